"""Faults in kernels, planners and the way of calls to them, but for gemm; see `fault.py`."""

from __future__ import annotations

from fault import Fault

__all__ = ["KERNEL_FAULTS"]

SORT, CONV = "clkernels/sort", "clkernels/conv2d"
MATRIX = "test_matrix.py -k"

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
        "test_sort_forms.py",
    ),
    Fault(
        "radix, groups: tiles forget where their digit begins",
        SORT, "counts[tile] = sum + before;", "counts[tile] = before;",
        "test_sort_forms.py",
    ),
    Fault(
        "radix, groups: a tile that nobody counted is left out",
        "clkernels/common", "${sum} += (status_t)${missing};", "${sum} += 0;",
        "test_sort_forms.py",
    ),
    Fault(
        "radix, groups: what other tiles counted is added up wrong",
        "clkernels/common", "${sum} += word_${k} & NUMBER;", "${sum} += word_${k} & (NUMBER - 1);",
        "test_sort_forms.py",
    ),
    Fault(
        "radix, CPU: the rest of a line is cut short",
        SORT, "places[b] & ~(index_t)(LINE - 1)); k < places[b]; ++k)",
        "places[b] & ~(index_t)(LINE - 1)); k + 1 < places[b]; ++k)",
        "test_sort_forms.py",
    ),
    Fault(
        "radix, CPU: chunks take their places in the wrong order",
        SORT, "(uint k = 0; k < chunks; ++k) {", "(uint k = chunks; k-- > 0;) {",
        "test_sort_forms.py",
    ),
    Fault(
        "merge: a key of a block of eight is not told from equal ones before it",
        SORT, "((codes[${j}] == all) & (", "((codes[${j}] == all) & ~(",
        "test_sort_forms.py",
    ),
    Fault(
        "merge: paths that cross equal keys take the wrong side",
        "clkernels/common", "(b[diagonal - 1 - middle]) <", "(b[diagonal - 1 - middle]) <=",
        "test_sort_forms.py",
    ),
    Fault(
        "merge, groups: equal keys change their order",
        "clkernels/common", "right < left)", "right <= left)",
        "test_sort_forms.py",
    ),
    Fault(
        "merge: equal keys change their order",
        SORT, "const bool left = CODE_OF(b) < CODE_OF(a);",
        "const bool left = CODE_OF(b) <= CODE_OF(a);",
        "test_sort_forms.py",
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
    Fault(
        "phases: the last item to leave clears no counters",
        "clkernels/common", "atomic_xchg(&counters[t], 0);", ";",
        "test_common_kernels.py",
    ),
    Fault(
        "phases: of each share but the last one the last task is left out",
        "clkernels/common", "(index_t)((ulong)tasks * (share + 1) / shares);",
        "(index_t)((ulong)tasks * (share + 1) / shares) - (share + 1 < shares);",
        "test_common_kernels.py",
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
        CONV, "offset_y + ${STRIP.rows + taps_y - 2} < height",
        "offset_y + ${STRIP.rows + taps_y - 2} <= height",
        f"{MATRIX} conv2d-register",
    ),
    Fault(
        "conv2d register: the taps that unrolling leaves are the first ones",
        CONV, "${way.taps(PIXELS, STRIP, str(taps_x - rest), rest, pairs)}",
        '${way.taps(PIXELS, STRIP, "0", rest, pairs)}',
        f"{MATRIX} conv2d-register",
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
    Fault(
        "conv2d fft: magnitudes of the same row are counted twice",
        CONV, "+ (k % 2 ? -(k + 1) / 2 : k / 2);", "+ k / 2;",
        "test_conv2d_fft.py",
    ),
    Fault(
        "conv2d adaptive: the last group but one decides",
        CONV, "== get_num_groups(0)) {", "== get_num_groups(0) - 1) {",
        "test_conv2d_adaptive.py",
    ),
    Fault(
        "conv2d adaptive: launches that are called off are done all the same",
        "clkernels/common", "if (*wanted == 0)", "if (*wanted > 1)",
        "test_conv2d_adaptive.py",
    ),
    # -------------------------------------------------------------------- dft
    Fault(
        "dft direct: a power of n is not reduced",
        "clkernels/dft", "power -= power >= n ? n : 0;", "power -= power > n ? n : 0;",
        f"{MATRIX} dft-direct-naive or dft-naive",
    ),
    Fault(
        "dft tiled: exact roots are taken one sample too far apart",
        "clkernels/dft", "multiple_of(k[v], RESEED, n);", "multiple_of(k[v], RESEED + 1, n);",
        f"{MATRIX} dft",
    ),
    Fault(
        "fft, vector: the first fresh column of the last block is not stored",
        "clkernels/fourier", "if (lane + ${l} >= fresh)", "if (lane + ${l} > fresh)",
        "test_fft*.py",
    ),
    Fault(
        "fft, vector: vectors of the last rows overlap too far",
        "clkernels", "min(p, (uint)(N - V))", "min(p, (uint)(N - V - 1))",
        f"{MATRIX} dft-fft", times=2,
    ),
    Fault(
        "fft, local memory: real and imaginary components are not kept apart",
        "clkernels", "barrier(CLK_LOCAL_MEM_FENCE); /* these are read;", "/* these are read;",
        "test_fft*.py",
    ),
    Fault(
        "fft, local memory: points of all sections are written and read in the first",
        "clkernels/fourier", "== ${section})", "== 0)",
        "test_fft_fusion.py",
    ),
    Fault(
        "fft, shared launch: a strip has the groups of the strip before it",
        "clkernels/fourier", " + part * {strip} + {tile} % {strip}", " + part * {strip}",
        "test_fft_launches.py",
    ),
    Fault(
        "fft, shared launch: a group without patience does nothing itself",
        "clkernels/fourier", "waited_for = polls < ${max_polls} ? TILES_0 : 0;",
        "waited_for = TILES_0;",
        "test_fft_launches.py",
    ),
    Fault(
        "fft, local memory: the inverse of a long convolution is a forward transform",
        "clkernels/fourier", "x = times(x, chirp_spectrum[${written_at}]).yx;",
        "x = times(x, chirp_spectrum[${written_at}]);",
        "test_fft_fusion.py",
    ),
    Fault(
        "fft, local memory: the middle frequency of odd lengths has the other sign",
        "clkernels", "p > n / 2 ? -x.y", "p >= n / 2 ? -x.y",
        "test_fft*.py",
    ),
    Fault(
        "fft planner: distances between steps are not those of the array between",
        "opencl_lab/ops/fft/passes/steps.py", "array = target\n",
        "array = target._replace(pitch=n // rows * inner)\n",
        "test_fft*.py",
    ),
    Fault(
        "fft planner: a group has more items than the device allows",
        "opencl_lab", "group.work_group <= self.items and ", "",
        "test_fft*.py test_dft*.py",
    ),
    Fault(
        "real signals: the imaginary component of frequency 0 counts",
        "clkernels/fourier/real.cl.mako", "a.y = b.y = 0;", ";",
        "test_fft*.py test_dft*.py", times=2,
    ),
    Fault(
        "Bluestein: the convolution is as long as the transform",
        "opencl_lab", "next_smooth(2 * n - 1, 64)", "next_smooth(n, 64)",
        "test_dft*.py test_fft*.py",
    ),
    Fault(
        "fft, vector: items that convolve rows share their scratch memory",
        "clkernels/fourier", "buffer_${b} += get_global_id(0) * ${numbers};", ";",
        "test_fft_kernels.py",
    ),
    Fault(
        "fft, vector: the last frequency of an odd half has the factors of the one before",
        "clkernels/fourier", "range(first, first + TOGETHER)", "(first, first)",
        "test_fft_kernels.py",
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
        "topk: equal keys before a slice are not counted",
        "clkernels/select", "digit + t), slice, space", "digit), slice, space",
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
        "tiles: one comes into a slot while the last iteration still needs it",
        "opencl_lab/runtime/tile_schedule.py",
        "last[tile.array][slot] + 1", "last[tile.array][slot]",
        "test_tiles.py -k iteration",
    ),
    Fault(
        "tiles: the tile that is needed first makes room",
        "opencl_lab/runtime/tile_schedule.py", "-following[0] if following",
        "following[0] if following",
        "test_tiles.py -k room",
    ),
    Fault(
        "plans: local memory that is passed is not counted",
        "opencl_lab/core/plan.py",
        "return self.local_bytes + sum(passed)", "return self.local_bytes",
        "test_plan*.py",
    ),
    Fault(
        "plans: groups of the second dimension may be as many as of the first",
        "opencl_lab/core/plan.py", "if items < 1 or items % local:", "if items % local:",
        "test_plan*.py",
    ),
    Fault(
        "replay: strides of device arrays are not in the call key",
        "opencl_lab/runtime/call_key.py", 'own["strides"],', "", "test_replay*.py",
    ),
    Fault(
        "replay: an option that the environment sets is not in the call key",
        "opencl_lab/runtime/call_key.py", "variable(_tuning),", "None,",
        "test_replay*.py test_calls*.py test_cache*.py",
    ),
    Fault(
        "results: who asks for the events of one that has none gets none",
        "opencl_lab/runtime/results.py", "[cl.enqueue_marker(lease.pool.queue)]", "[]",
        "test_eventless*.py",
    ),
    Fault(
        "replay: a launch that others wait for has no event",
        "opencl_lab/runtime/bound.py", "if needs_event and", "if not needs_event and",
        "test_eventless*.py",
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
