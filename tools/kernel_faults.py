"""Faults in kernels, planners and the way of calls to them; see `fault.py`."""

from __future__ import annotations

from fault import Fault

__all__ = ["KERNEL_FAULTS"]

SORT, GEMM, CONV = "clkernels/sort", "clkernels/gemm", "clkernels/conv2d"
PLANS = "opencl_lab/operations/gemm"
MATRIX = "test_matrix.py -k"
SWEEP = f"{MATRIX} "  # by configurations other than the default one

KERNEL_FAULTS = (
    # ------------------------------------------------------------------- sort
    Fault(
        "radix, CPU: every pass sorts by the first digit",
        SORT, "extremes.least, shift + p * bits, mask", "extremes.least, shift, mask",
        f"{MATRIX} sort-radix",
    ),
    Fault(
        "radix, CPU: a last block alone is not merged with those before it",
        SORT, "for (uint first = 0; first + width / 2 < filled; first += width)",
        "for (uint first = 0; first + width / 2 + 1 < filled; first += width)",
        "test_sort_radix*.py",
    ),
    Fault(
        "radix, groups: tiles forget where their digit begins",
        SORT, "counts[tile] = sum + before;", "counts[tile] = before;",
        "test_sort_radix*.py",
    ),
    Fault(
        "radix, groups: a tile that nobody counted is left out",
        "clkernels/common", "sum += (status_t)(MISSING);", "sum += 0;",
        "test_sort_radix*.py",
    ),
    Fault(
        "radix, groups: what other tiles counted is added up wrong",
        "clkernels/common", "sum += word_${k} & NUMBER;", "sum += word_${k} & (NUMBER - 1);",
        "test_sort_radix*.py",
    ),
    Fault(
        "radix, CPU: the rest of a line is cut short",
        SORT, "places[b] & ~(index_t)(LINE - 1)); k < places[b]; ++k)",
        "places[b] & ~(index_t)(LINE - 1)); k + 1 < places[b]; ++k)",
        "test_sort_radix*.py",
    ),
    Fault(
        "radix, CPU: chunks take their places in the wrong order",
        SORT, "(uint k = 0; k < chunks; ++k) {", "(uint k = chunks; k-- > 0;) {",
        "test_sort_radix*.py",
    ),
    Fault(
        "merge: a key of a block of eight is not told from equal ones before it",
        SORT, "((codes[${j}] == all) & (", "((codes[${j}] == all) & ~(",
        "test_sort_merge*.py",
    ),
    Fault(
        "merge: paths that cross equal keys take the wrong side",
        "clkernels/common", "(b[diagonal - 1 - middle]) <", "(b[diagonal - 1 - middle]) <=",
        "test_sort_merge*.py",
    ),
    Fault(
        "merge, groups: equal keys change their order",
        "clkernels/common", "right < left)", "right <= left)",
        "test_sort_merge*.py",
    ),
    Fault(
        "merge: equal keys change their order",
        SORT, "const bool left = CODE_OF(b) < CODE_OF(a);",
        "const bool left = CODE_OF(b) <= CODE_OF(a);",
        "test_sort_merge*.py",
    ),
    Fault(
        "odd-even: equal keys of both blocks get one place",
        SORT, "if (count_equal ? !before(key, other) : before(other, key))",
        "if (before(other, key))",
        f"{MATRIX} odd",
    ),
    Fault(
        "odd-even, blocked: equal keys change their order",
        SORT, "if (before(b[rank - 1 - middle], a[middle]))",
        "if (!before(a[middle], b[rank - 1 - middle]))",
        f"{MATRIX} odd",
    ),
    Fault(
        "odd-even, bounds: the last element of a span is not searched for",
        SORT, "? first : last - 1;", "? first : last - 2;",
        f"{MATRIX} odd",
    ),
    # ------------------------------------------------------------------- gemm
    Fault(
        "gemm blocked: products past the end of k are added",
        GEMM, "${p} < ${some} ? ${value(matrix, at)}", "${p} < ${depth} ? ${value(matrix, at)}",
        f"{MATRIX} gemm-blocked",
    ),
    Fault(
        "gemm blocked: an element past the end of a row is stored",
        GEMM, "if (column < n)", "if (column <= n)",
        f"{MATRIX} gemm-blocked",
    ),
    Fault(
        "gemm blocked: rows that lie across the tile move along k by m",
        GEMM, 'if matrix.along else ""};', 'if True else ""};',
        f"{SWEEP}gemm-blocked",
    ),
    Fault(
        "gemm blocked: lines of a tile have no gap between them where they are read",
        GEMM, "(b_from + p * ${LINE_B}", "(b_from + p * ${tile_n}",
        f"{SWEEP}gemm-blocked",
    ),
    Fault(
        "gemm blocked: the last part of k is not added",
        GEMM, "part_${c} < splits ?", "part_${c} < splits - 1 ?",
        "test_gemm_blocked.py",
    ),
    Fault(
        "gemm tiled: rows past the end of a transposed A are read",
        GEMM, "first + y < k && top + x < m", "top + x < m",
        f"{MATRIX} gemm-tiled",
    ),
    Fault(
        "gemm: items that share the parts of k all count those of the first",
        GEMM, 'f"sums[x + {i * beside}]"', 'f"sums[x]"',
        "test_gemm_blocked.py -k alike",
    ),
    Fault(
        "gemm: the parts of k of a product of a stack begin at those of the first product",
        GEMM, "(size_t)number * splits * m * n + place", "place",
        "test_gemm_gemv.py -k complex128-alone-split",
    ),
    Fault(
        "gemm gemv, CPU: products of a stack store their parts of k in one place",
        f"{GEMM}/gemv_cpu.cl.mako", '"number * get_num_groups(1) + get_group_id(1)"',
        '"get_group_id(1)"',
        "test_gemm_gemv.py -k complex128-alone-split",
    ),
    Fault(
        "gemm gemv, CPU: the last line is left out",
        f"{GEMM}/gemv_cpu.cl.mako", "for (; line < count; ++line) {",
        "for (; line + 1 < count; ++line) {",
        "test_gemm_gemv.py -k float64-alone",
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
        "gemm packed: all parts of k go on to its end",
        GEMM, "const index_t end = min(k, begin + part_k);", "const index_t end = k;",
        "test_gemm_packed.py -k parts",
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
        "gemm packed: the rest of k after the last part is left out",
        PLANS, "return ceil_divide(self.problem.depth, self.splits)",
        "return self.problem.depth // self.splits",
        "test_gemm_packed.py -k parts",
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
        "tiles: one comes into a slot while the last step still needs it",
        "opencl_lab/runtime/tile_schedule.py",
        "last[tile.array][slot] + 1", "last[tile.array][slot]",
        "test_tiles.py -k step",
    ),
    Fault(
        "tiles: the tile that is needed first makes room",
        "opencl_lab/runtime/tile_schedule.py", "-following[0] if following",
        "following[0] if following",
        "test_tiles.py -k room",
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
    # ----------------------------------------------------------------- conv2d
    Fault(
        "conv2d: the boundary reflect leaves out the edge",
        CONV, "i < 0 ? -1 - i : i;", "i < 0 ? -i : i;",
        f"{MATRIX} conv2d and reflect or conv2d and sweep",
    ),
    Fault(
        "conv2d: far beyond the edge, wrap goes on from the wrong end",
        CONV, "return k < 0 ? k + n : k;", "return k < 0 ? -k : k;",
        "test_conv2d*.py",
    ),
    Fault(
        "conv2d register: a block at the lower edge is taken for one inside",
        CONV, "offset_y + ${S.rows + taps_y - 2} < height",
        "offset_y + ${S.rows + taps_y - 2} <= height",
        f"{MATRIX} conv2d-register",
    ),
    Fault(
        "conv2d register: the taps that unrolling leaves are the first ones",
        CONV, "${way.taps(P, S, str(taps_x - rest), rest, pairs)}",
        '${way.taps(P, S, "0", rest, pairs)}',
        f"{SWEEP}conv2d-register",
    ),
    Fault(
        "conv2d register: whole vectors begin one value late",
        CONV, 'f"piece_{piece}", align, place)', 'f"piece_{piece}", align, (place + 1) % align)',
        "test_conv2d*.py",
    ),
    Fault(
        "conv2d fft: products of complex numbers have the wrong sign",
        CONV, "PUT(target, x, a * d + b * c, a * c - b * d);",
        "PUT(target, x, a * d + b * c, a * c + b * d);",
        f"{MATRIX} conv2d-fft",
    ),
    # -------------------------------------------------------------------- dft
    Fault(
        "dft direct: a power of n is not reduced",
        "clkernels/dft", "power -= power >= n ? n : 0;", "power -= power > n ? n : 0;",
        f"{MATRIX} dft-direct-naive or dft-naive",
    ),
    Fault(
        "dft tiled: blocks are not turned where their roots are computed",
        "clkernels/dft", "* ${RESEED} % n);", "* ${RESEED + 1} % n);",
        f"{SWEEP}dft",
    ),
    Fault(
        "fft, vector: the first fresh column of the last block is not stored",
        "clkernels/fourier", "if (${row} >= fresh)", "if (${row} > fresh)",
        "test_fft*.py",
    ),
    Fault(
        "fft, vector: vectors of the last rows overlap too far",
        "clkernels", 'f"min(p, (uint){n - V})"', 'f"min(p, (uint){n - V - 1})"',
        f"{MATRIX} dft-fft", times=2,
    ),
    Fault(
        "fft, local memory: real and imaginary parts are not kept apart",
        "clkernels", "barrier(CLK_LOCAL_MEM_FENCE); /* real parts are read;",
        "/* real parts are read;",
        "test_fft*.py",
    ),
    Fault(
        "fft, local memory: the middle frequency of odd lengths has the other sign",
        "clkernels", "p > ${step.length // 2} ? -x.y", "p >= ${step.length // 2} ? -x.y",
        "test_fft*.py",
    ),
    Fault(
        "fft planner: distances between steps are not those of the array between",
        "opencl_lab/fourier/steps.py", "array = target\n",
        "array = target._replace(pitch=n // rows * inner)\n",
        "test_fft*.py",
    ),
    Fault(
        "fft planner: a group has more items than the device allows",
        "opencl_lab", "group.work_group <= self.items and ", "",
        "test_fft*.py test_dft*.py",
    ),
    Fault(
        "real signals: the imaginary part of frequency 0 counts",
        "clkernels/fourier/real.cl.mako", "a.y = b.y = 0;", ";",
        "test_fft*.py test_dft*.py", times=2,
    ),
    Fault(
        "Bluestein: the convolution is as long as the transform",
        "opencl_lab", "next_smooth(2 * n - 1, 64)", "next_smooth(n, 64)",
        "test_dft*.py test_fft*.py",
    ),
    Fault(
        "cosine transforms: of two ends, only the first one has a weight",
        "clkernels/dft", "j == 0 || j == n - 1 ? weight", "j == 0 ? weight",
        "test_fft_cosine*.py",
    ),
    # ----------------------------------------------------------------- select
    Fault(
        "topk: the last key of a digit is looked for in the next one",
        "clkernels/select", "known.left - before <= own[w]", "known.left - before < own[w]",
        "test_select*.py",
    ),
    Fault(
        "topk: places of the few are those among the few",
        "clkernels/select", "places ? places[first + j]", "places ? (long)(first + j)",
        "test_select_topk*.py test_select.py",
    ),
    Fault(
        "topk: equal keys before a part are not counted",
        "clkernels/select", "digit + t), part, space", "digit), part, space",
        "test_select_topk*.py test_select.py",
    ),
    Fault(
        "topk: the last digit is one too small",
        "clkernels/select", "(code_t)answer[0];",
        "(code_t)(answer[0] - (d + 1 == DIGITS && answer[0]));",
        "test_select_topk*.py test_select.py",
    ),
    Fault(
        "unique: the first key of a part is not compared with the one before",
        "clkernels/select", "uint j = first == 0; j < here", "uint j = 1; j < here",
        "test_select*.py",
    ),
    Fault(
        "searchsorted: sides are exchanged",
        "clkernels/select", '"<=" if RIGHT else "<"', '"<" if RIGHT else "<="',
        "test_select*.py",
    ),
    # ------------------------------------------------------- plans and calls
    Fault(
        "plans: local memory that is passed is not counted",
        "opencl_lab/plan.py", "return self.local_bytes + sum(passed)", "return self.local_bytes",
        "test_plan*.py",
    ),
    Fault(
        "plans: groups of the second dimension may be as many as of the first",
        "opencl_lab/plan.py", "if items < 1 or items % local:", "if items % local:",
        "test_plan*.py",
    ),
    Fault(
        "replay: strides of device arrays tell no kinds apart",
        "opencl_lab/runtime/kinds.py", 'own["strides"],', "", "test_replay*.py",
    ),
    Fault(
        "replay: options that the environment sets tell no kinds apart",
        "opencl_lab/runtime/kinds.py", "parts.append(_surroundings())", "pass",
        "test_replay*.py test_calls*.py test_kept*.py",
    ),
    Fault(
        "host copies: a piece begins where the one before began",
        "opencl_lab/runtime/staging.py", "return lambda: read(pinned, piece.start)",
        "return lambda: read(pinned, 0)",
        "test_staging*.py",
    ),
    Fault(
        "device copies: elements are not moved around the end",
        "opencl_lab/runtime/copies.py", "shift % shape)", "0)",
        "test_fft*.py",
    ),
)  # fmt: skip
