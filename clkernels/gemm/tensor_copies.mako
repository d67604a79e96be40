## How the kernels of matrix units copy steps of k to local memory: instructions, and the loops of items
## that do nothing else.
##
##     <%namespace name="copies" file="/gemm/tensor_copies.mako"/>
##
##   declare_async_copies()  copy_16(to, from, bytes), copies_commit, copies_wait(left)
##   declare_bulk_copies()   bulk_copy, and the barriers in local memory that count its bytes
##   declare_bulk_step(...)  copy_step(stage, step) of packed matrices in bulk, if `who` is this item
##   declare_async_step(...) the same by all items
##   packed_steps(...)       one item copies all steps of packed matrices
##   steps_in_place(...)     128 items copy all steps of halves from where the matrices lie
##
## A stage of local memory is handed over by two barriers: `full`, where copies arrive, and `empty`, where
## those arrive that have read it.
##
## Source: PTX ISA 9.0, sections on cp.async, cp.async.bulk, mbarrier and the proxies of memory.
<%def name="declare_async_copies()">\
/* Copy so many bytes to local memory, without registers, and zeros behind them up to 16. */
#define copy_16(to, from, bytes) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" \
        :: "r"(to), "l"((ulong)(from)), "r"(bytes) : "memory")
/* The copies so far are one batch. */
#define copies_commit() asm volatile("cp.async.commit_group;" ::: "memory")
/* Wait until at most `left` batches of this item are under way. */
#define copies_wait(left) asm volatile("cp.async.wait_group %0;" :: "n"(left) : "memory")
</%def>\
<%def name="declare_bulk_copies()">\
/* A barrier in local memory that `count` arrivals complete. */
#define barrier_start(bar, count) \
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory")
/* What was written to local memory so far is there for the units that copy and multiply, too. */
#define memory_fence() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define barrier_arrive(bar) \
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory")
/* Arrive, and let the barrier wait for so many bytes besides. */
#define barrier_expect(bar, bytes) \
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" \
        :: "r"(bar), "r"(bytes) : "memory")
/* Wait for the end of the phase of this parity. */
#define barrier_wait(bar, parity) \
    asm volatile("{ .reg .pred p;\nAGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n" \
        "@p bra DONE;\nbra AGAIN;\nDONE: }" :: "r"(bar), "r"(parity) : "memory")
/* One item copies many bytes to local memory; they count at the barrier. */
#define bulk_copy(to, from, bytes, bar) \
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" \
        :: "r"(to), "l"((ulong)(from)), "r"(bytes), "r"(bar) : "memory")
</%def>\
<%def name="declare_bulk_step(bytes_a, bytes_b, who='')">\
#define copy_step(stage, step) ${who}{ \
    const uint to = memory + (stage) * STAGE_BYTES, bar = full + 8 * (stage); \
    barrier_expect(bar, STAGE_BYTES); \
    bulk_copy(to, packed_a + (step) * ${bytes_a}, ${bytes_a}, bar); \
    bulk_copy(to + ${bytes_a}, packed_b + (step) * ${bytes_b}, ${bytes_b}, bar); \
}
</%def>\
<%def name="declare_async_step(bytes_a, bytes_b, items)">\
#define copy_step(stage, step) { \
    _Pragma("unroll") \
    for (uint x = 0; x < ${bytes_a // 16 // items}; x++) \
        copy_16(memory + (stage) * STAGE_BYTES + (item + x * ${items}) * 16, \
                packed_a + (step) * ${bytes_a} + (item + x * ${items}) * 16, 16); \
    _Pragma("unroll") \
    for (uint x = 0; x < ${bytes_b // 16 // items}; x++) \
        copy_16(memory + (stage) * STAGE_BYTES + ${bytes_a} + (item + x * ${items}) * 16, \
                packed_b + (step) * ${bytes_b} + (item + x * ${items}) * 16, 16); \
}
</%def>\
<%def name="packed_steps(bytes_a, bytes_b, stages)">\
${declare_bulk_step(bytes_a, bytes_b)}\
        if (lane == 0) {
            for (ulong step = first_step; step < last_step; step++) {
                barrier_wait(empty + 8 * stage, parity ^ 1);
                copy_step(stage, step)
                if (++stage == ${stages}) {
                    stage = 0;
                    parity ^= 1;
                }
            }
        }
</%def>\
## Copy one step of `tile` rows of `name`, 64 halves along k, to local memory, each chunk of 16 bytes to
## where the matrix unit looks for it. In memory neighbours lie along k, or `across` it. 128 items, of
## which this one has line `line` of every 16 and chunk `chunk` of every 8; `rows` and `left` are what
## the matrix has of the tile and of k. `from` and `to` are those of the item's first chunk.
<%def name="tile_in_place(extent, tile, across, rows, left, start, to)">\
% for i in range(tile // 16):
<%
    sixteen, block = (i % 4, i // 4) if across else (i, 0)
    steps = f"line + {16 * sixteen} < {left} && chunk * 8 + {64 * block} < {rows}"
    lines = f"line + {16 * sixteen} < {rows} && chunk * 8 < {left}"
    offset = f"(ulong){16 * sixteen} * {extent if across else 'k'} + {64 * block}"
%>\
                copy_16(${to} + ${i * 2048}, ${start} + ${offset}, ${steps if across else lines} ? 16 : 0);
% endfor
</%def>\
<%def name="steps_in_place(tile_m, tile_n, across_a, across_b, stages)">\
## Steps that may be under way when the next one is copied:
<% late = stages - 2 %>\
        const uint line = item % 128 / 8, chunk = item % 8;
        const uint place = line * 128 + ((chunk ^ line % 8) << 4);
        const ulong first_a = (ulong)tile_row * ${tile_m}, first_b = (ulong)tile_column * ${tile_n};
        const uint rows_a = (uint)min((ulong)m - first_a, (ulong)${tile_m});
        const uint rows_b = (uint)min((ulong)n - first_b, (ulong)${tile_n});
        __global const element_t *from_a = a + ${"line * (ulong)m + first_a" if across_a else "(first_a + line) * k"} + chunk * 8;
        __global const element_t *from_b = b + ${"line * (ulong)n + first_b" if across_b else "(first_b + line) * k"} + chunk * 8;
        from_a += first_step * STEP${" * m" if across_a else ""};
        from_b += first_step * STEP${" * n" if across_b else ""};
        uint waited = full; /* of the stage whose copies are waited for next */
#define copies_arrive() { \
    memory_fence(); \
    barrier_arrive(waited); \
    waited = waited == full + ${8 * (stages - 1)} ? full : waited + 8; \
}
        for (ulong step = first_step; step < last_step; step++) {
            const uint left = (uint)min((ulong)k - step * STEP, (ulong)STEP);
            const uint to_a = memory + stage * STAGE_BYTES + place, to_b = to_a + ${tile_m * 128};
            barrier_wait(empty + 8 * stage, parity ^ 1);
${tile_in_place("m", tile_m, across_a, "rows_a", "left", "from_a", "to_a")}\
${tile_in_place("n", tile_n, across_b, "rows_b", "left", "from_b", "to_b")}\
            copies_commit();
            from_a += ${"(ulong)m * STEP" if across_a else "STEP"};
            from_b += ${"(ulong)n * STEP" if across_b else "STEP"};
% if late:
            if (step - first_step >= ${late}) {
                copies_wait(${late});
                copies_arrive()
            }
% else:
            copies_wait(0);
            copies_arrive()
% endif
            if (++stage == ${stages}) {
                stage = 0;
                parity ^= 1;
            }
        }
% if late:
        copies_wait(0);
        for (uint left = (uint)min(last_step - first_step, (ulong)${late}); left > 0; left--)
            copies_arrive()
% endif
</%def>\
