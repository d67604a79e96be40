"""Faults in kernels, planners and calls of the matrix product; see `fault.py`."""

from __future__ import annotations

from fault import Fault

__all__ = ["GEMM_FAULTS"]

GEMM, PLANS = "clkernels/gemm", "opencl_lab/ops/gemm"
REDUCTIONS = (f"{GEMM}/blocked_reduction.mako", f"{GEMM}/gemv_gpu_reduction.mako")
PACK = f"{GEMM}/tensor_pack.cl.mako"
HALVES = f"{GEMM}/tensor_pack_halves.cl.mako"
MATRIX = "test_matrix.py -k"

GEMM_FAULTS = (
    # ------------------------------------------------------------------- gemm
    Fault(
        "gemm blocked: products past the end of k are added",
        GEMM, "${p} < ${some} ? ${value(",
        "${p} < ${tile.depth} ? ${value(",
        f"{MATRIX} gemm-blocked",
    ),
    Fault(
        "gemm blocked: an element past the end of a row is stored",
        GEMM, "if (column < n)", "if (column <= n)",
        f"{MATRIX} gemm-blocked",
    ),
    Fault(
        "gemm blocked: rows that lie across the tile move along k by m",
        GEMM, 'if tile.along else ""};', 'if True else ""};',
        f"{MATRIX} gemm-blocked",
    ),
    Fault(
        "gemm blocked: lines of a tile have no gap between them where they are read",
        GEMM, "(b_from + p * ${TILE_B.line}", "(b_from + p * ${tile_n}",
        f"{MATRIX} gemm-blocked",
    ),
    Fault(
        "gemm blocked: the last slice of k is not added",
        GEMM, "slice_${c} < splits ?", "slice_${c} < splits - 1 ?",
        "test_gemm_blocked.py",
    ),
    Fault(
        "gemm blocked: rows past the end of the matrix are read",
        GEMM, "min({tile.first} + {e}, {tile.size} - 1)", "({tile.first} + {e})",
        "test_gemm_blocked.py -k inside_of",
    ),
    Fault(
        "gemm blocked: vectors past the end of a row are read",
        GEMM, "min({tile.first} + {e}, {tile.size} - {tile.width})", "({tile.first} + {e})",
        "test_gemm_blocked.py -k inside_of",
    ),
    Fault(
        "gemm blocked: loads of an item in one row of the tile go to several rows",
        GEMM, "rows, within = divmod(j, beside // items)",
        "within, rows = divmod(j, beside // items)",
        "test_gemm_blocked.py -k several_loads",
    ),
    Fault(
        "gemm blocked: halves that are not aligned are stored as if they were",
        GEMM, "if aligned and width > 1:", "if width > 1:",
        "test_gemm_blocked.py -k vectors",
    ),
    Fault(
        "gemm tiled: rows past the end of a transposed A are read",
        GEMM, "first + y < k && top + x < m", "top + x < m",
        f"{MATRIX} gemm-tiled",
    ),
    Fault(
        "gemm: items that share the slices of k all count those of the first",
        GEMM, 'f"sums[x + {i * beside}]"', 'f"sums[x]"',
        "test_gemm_blocked.py -k alike",
    ),
    Fault(
        "gemm: the slices of k of a product of a stack begin at those of the first product",
        GEMM, "(size_t)number * splits * m * n + place", "place",
        "test_gemm_gemv.py -k complex128-alone-split",
    ),
    Fault(
        "gemm gemv, CPU: products of a stack store their slices of k in one place",
        f"{GEMM}/gemv_cpu.cl.mako", '"number * get_num_groups(1) + get_group_id(1)"',
        '"get_group_id(1)"',
        "test_gemm_gemv.py -k complex128-alone-split",
    ),
    Fault(
        "gemm gemv, CPU: the last to come counts its own slice twice",
        f"{GEMM}/gemv_cpu_reduction.mako", "(slice ? mine[e * ${length} + i] : 0)",
        "mine[e * ${length} + i]",
        "test_gemm_gemv.py -k alone-last-group",
    ),
    Fault(
        "gemm gemv, CPU: the next call finds slices counted",
        f"{GEMM}/gemv_cpu_reduction.mako", "atomic_xchg(&arrived[get_global_id(0)], 0);", "",
        "test_gemm_gemv.py -k themselves",
    ),
    Fault(
        "gemm gemv, CPU: the last line is left out",
        f"{GEMM}/gemv_cpu.cl.mako", "for (; line + ${rows} <= count;",
        "for (; line + ${rows} < count;",
        "test_gemm_gemv.py -k float64-alone",
    ),
    Fault(
        "gemm gemv, CPU: a matrix counts by itself where its conjugate is asked for",
        f"{GEMM}/gemv_cpu.cl.mako", "by[0].x + by[1].y, by[1].x - by[0].y",
        "by[0].x - by[1].y, by[0].y + by[1].x",
        "test_gemm_gemv.py -k complex64",
    ),
    Fault(
        "gemm gemv: what is conjugated is taken for the vectors",
        f"{PLANS}/thin/lines.py", "conjugated = conjugated[::-1]", "pass",
        "test_gemm_gemv.py -k complex64",
    ),
    Fault(
        "gemm: a second launch adds the C of the first product to all of a stack",
        GEMM, '"(c + number * m * n)" if STACKS else "c"', '"c"',
        "test_gemm_blocked.py -k one_after_the_other",
    ),
    Fault(
        "gemm packed: what the panel before has added up is added again",
        GEMM, "const uint old_columns = column - out_column;", "const uint old_columns = 0;",
        "test_gemm_packed.py -k place-False",
    ),
    Fault(
        "gemm packed: the second row of a complex number loses a sign",
        GEMM, "${signs(-sign_a * sign_b, sign_a)};", "${signs(sign_a * sign_b, sign_a)};",
        "test_gemm_packed.py -k complex64",
    ),
    Fault(
        "gemm packed: all slices of k go on to its end",
        GEMM, "const index_t end = min(k, begin + slice_k);", "const index_t end = k;",
        "test_gemm_packed.py -k slices",
    ),
    Fault(
        "gemm packed: lower tiles begin at the first row",
        GEMM, "top = phase == 1 ? 0 : down * tile_m;", "top = 0;",
        "test_gemm_packed.py -k panel-False",
    ),
    Fault(
        "gemm: relu makes zero of what is no number",
        GEMM, "${value} = ${value} < 0 ? 0 : ${value};", "${value} = ${value} > 0 ? ${value} : 0;",
        "test_gemm_stacks.py -k activations",
    ),
    # ------------------------------------------------------ gemm: planners and calls
    Fault(
        "gemm packed: the rest of k after the last slice is left out",
        PLANS, "return ceil_divide(self.problem.depth, self.splits)",
        "return self.problem.depth // self.splits",
        "test_gemm_packed.py -k slices",
    ),
    Fault(
        "gemm blocked: slices of k begin in the middle of a step",
        f"{PLANS}/blocked",
        'round_up(ceil_divide(problem.depth, config.integer("SPLITS")), tile.TILE_K)',
        'ceil_divide(problem.depth, config.integer("SPLITS"))',
        "test_gemm_blocked.py -k slices_of_k",
    ),
    Fault(
        "gemm blocked: slices of k have as few steps as there are",
        f"{PLANS}/blocked", "if 2 <= splits <= most:", "if 2 <= splits:",
        "test_gemm_blocked.py -k slices_of_k",
    ),
    Fault(
        "gemm blocked: the counter in local memory is not counted",
        f"{PLANS}/blocked", "+ 4 * in_launch,", ",",
        "test_gemm_blocked.py -k one_launch",
    ),
    Fault(
        "gemm blocked: a CPU with many units gets the largest tiles",
        f"{PLANS}/blocked", "tiles.sort(key=lambda tile: not fills(tile))", "pass",
        "test_gemm_blocked.py -k cpus",
    ),
    Fault(
        "gemm: in a stack of stacks, products of b lie beside each other",
        PLANS, "step_b *= count if moves_b else 1", "step_b *= 1",
        "test_gemm_stacks.py -k broadcast",
    ),
    Fault(
        "gemm: matrices of a stack become a tall one, whose rows have another bias",
        PLANS, ' and not turned_a and kind != "row":', " and not turned_a:",
        "test_gemm_stacks.py -k bias",
    ),
    Fault(
        "gemm: dimensions of a stack are one although only one of them moves a",
        PLANS, "alike = bool(found) and found[-1][1:] == (of_a, of_b)", "alike = bool(found)",
        "test_gemm_stacks.py -k broadcast",
    ),
    Fault(
        "gemm by tiles: C counts again for each piece of k",
        PLANS, "beta=whole.beta if first else 1.0,", "beta=whole.beta,",
        "test_gemm_streamed.py -k limit",
    ),
    Fault(
        "gemm hybrid: the host has one call for a stack",
        PLANS, "fixed + count * max(each - fixed, 0.0) if count > 1", "each if count > 1",
        "test_gemm_hybrid.py -k faster",
    ),
    Fault(
        "gemm hybrid: what was measured before a tuning still holds",
        PLANS, 'wanted = {**_head(device, dtype), "state": _state()}',
        "wanted = _head(device, dtype)",
        "test_gemm_hybrid.py -k stale",
    ),
    # ------------------------------------- gemm: slices of k that the last group adds up
    Fault(
        "gemm blocked, last group: tiles leave their slices of k in one place",
        REDUCTIONS[0], "partial + counter * splits * apart", "partial",
        "test_gemm_blocked.py -k alike",
    ),
    Fault(
        "gemm blocked, last group: the last but one group adds up what there is",
        REDUCTIONS[0], "before_me + 1 == splits", "before_me + 2 == splits",
        "test_gemm_blocked.py -k alike",
    ),
    Fault(
        "gemm blocked, last group: the counter of a tile is not zero for the next call",
        REDUCTIONS[0], "arrived[counter] = 0;", ";",
        "test_gemm_blocked.py -k alike",
    ),
    Fault(
        "gemm gemv, last group: the counter of a block is not zero for the next call",
        REDUCTIONS[1], "arrived[get_group_id(0)] = 0;", ";",
        "test_gemm_gemv.py -k themselves",
    ),
    Fault(
        "gemm gemv, last group: the last slice of k is not added",
        REDUCTIONS[1], "const bool there = slice + ${c * sharers} < slices;",
        "const bool there = slice + ${c * sharers} + 1 < slices;",
        "test_gemm_gemv.py -k themselves",
    ),
    Fault(
        "gemm gemv, last group: an item that shares a result does not count",
        REDUCTIONS[1], "% for i in range(sharers):", "% for i in range(sharers - 1):",
        "test_gemm_gemv.py -k themselves",
    ),
    Fault(
        "gemm gemv, last group: of several results of an item, the first is stored for all",
        REDUCTIONS[1], "const uint r = r_${t};", "const uint r = r_0;",
        "test_gemm_gemv.py -k themselves",
    ),
    # ------------------------------------------------- gemm: what matrix units read
    Fault(
        "gemm tensor: chunks of a row lie in their order",
        PACK, "((c ^ row % 8) << 4)", "(c << 4)",
        "test_gemm_tensor_pack.py",
    ),
    Fault(
        "gemm tensor: fragments of the right matrix have the order of the left",
        PACK, "if left else (word // 2, word % 2)", "if True else (word // 2, word % 2)",
        "test_gemm_tensor_pack.py",
    ),
    Fault(
        "gemm tensor: halves of a fragment of float64 are exchanged",
        PACK, 'if left else ("r + 8 * half_of"', 'if True else ("r + 8 * half_of"',
        "test_gemm_tensor_pack.py",
    ),
    Fault(
        "gemm tensor: ties are rounded up",
        PACK, "(bits >> 13 & 1)", "1",
        "test_gemm_tensor_pack.py",
    ),
    Fault(
        "gemm tensor: an infinity has a second limb",
        PACK, "(high & 0x7f800000) == 0x7f800000 ? 0 :", "false ? 0 :",
        "test_gemm_tensor_pack.py",
    ),
    Fault(
        "gemm tensor: what is no number is rounded as one",
        PACK, "if (isnan(x))", "if (false)",
        "test_gemm_tensor_pack.py",
    ),
    Fault(
        "gemm tensor: a matrix more is packed than the stack of b holds",
        PACK, "number >= count_b", "number > count_b",
        "test_gemm_tensor_pack.py",
    ),
    Fault(
        "gemm tensor: rows past the end of k are not zero",
        PACK, " < ${extent} && first + p < k", " < ${extent}",
        "test_gemm_tensor_pack.py",
    ),
    Fault(
        "gemm tensor: as many matrices are packed as the stack of a holds",
        f"{PLANS}/tensor", "max(stored(problem)))", "stored(problem)[0])",
        "test_gemm_tensor_pack.py",
    ),
    Fault(
        "gemm tensor: chunks of halves lie in their order",
        HALVES, "(chunk ^ line % 8)", "chunk",
        "test_gemm_tensor_pack.py",
    ),
    Fault(
        "gemm tensor: halves past the end of k are not zero",
        HALVES, "first + l < k", "true",
        "test_gemm_tensor_pack.py",
    ),
    Fault(
        "gemm tensor: halves past the end of a row are not zero",
        HALVES, "there + e < whole ?", "true ?",
        "test_gemm_tensor_pack.py",
    ),
    Fault(
        "gemm tensor: rows of B are taken to be aligned where those of A are",
        HALVES, "not B.transposed, ALIGNED_B", "not B.transposed, ALIGNED_A",
        "test_gemm_tensor_pack.py",
    ),
    Fault(
        "gemm tensor: halves are read in place where only rows of A are aligned",
        f"{PLANS}/in_place.py", "in row_lengths(problem))", "in row_lengths(problem)[:1])",
        "test_gemm_tensor.py -k packed",
    ),
    Fault(
        "gemm tensor: only the first product of a stack has groups",
        f"{PLANS}/tensor", "* items(config), problem.batch,", "* items(config), 1,",
        "test_gemm_tensor.py -k built_in",
    ),
    Fault(
        "gemm tensor: packing costs nothing",
        f"{PLANS}/tensor", "time += PACK_START +", "time += 0 *",
        "test_gemm_tensor.py -k aligned",
    ),
    Fault(
        "gemm tensor: a sum of nothing has empty buffers",
        f"{PLANS}/tensor", "max(nbytes, 16)", "nbytes",
        "test_gemm_tensor.py -k empty",
    ),
    Fault(
        "gemm tensor: packing takes less local memory than its kernel",
        f"{PLANS}/tensor", "* (PACKED_ROWS + 1)", "* PACKED_ROWS",
        "test_gemm_tensor.py -k local_memory",
    ),
    Fault(
        "gemm tensor: a last wave of few tiles takes no time",
        f"{PLANS}/tensor", "waves * tile_m * tile_n * cost", "tiles * tile_m * tile_n * cost",
        "test_gemm_tensor.py -k larger",
    ),
)  # fmt: skip
