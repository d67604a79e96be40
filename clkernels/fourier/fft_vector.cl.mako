/*
 * Fast Fourier transforms by single work-items with explicit vectors: the form for CPUs. A
 * group is one item. STEPS holds one step, transforms of length N, or several that follow each
 * other; vector_step.mako has the code of one.
 *
 * LANES = across: a vector holds the same position of VECTOR_WIDTH transforms.
 *
 *     position      0       1       2             N-1
 *                +-------+-------+-------+ ... +-------+
 *     work       | re im | re im | re im |     | re im |    one vector each, lanes = transforms
 *                +-------+-------+-------+ ... +-------+
 *
 * BLOCK such vectors lie side by side in the user's arrays, so that columns of a matrix are read
 * and written in runs of BLOCK * VECTOR_WIDTH neighbours.
 *
 * LANES = within: a vector holds VECTOR_WIDTH neighbouring positions of one transform. The
 * first pass, whose results lie RADICES[0] apart, transposes them in registers; from then on
 * all runs of neighbours are whole vectors.
 *
 *     position    0..V-1  V..2V-1               N-V..N-1
 *                +-------+-------+ ... +-------+
 *     work       | re im | re im |     | re im |            one vector each, lanes = positions
 *                +-------+-------+ ... +-------+
 *
 * Either way passes go to and fro between two such arrays, which stay in cache; the first
 * reads the user's array and the last one writes it. The vectors of a block have one array each,
 * and take turns with another one. Local memory holds them if it can: a unit has it in its
 * cache, whichever items it gets.
 *
 *     read position j + i * N/R, i < R; times w_(S*R)^(i * (j mod S)); butterfly of R points;
 *     write position (j / S) * S * R + (j mod S) + i * S         S = product of the radices before
 *
 * With TWIST lane p is transformed at frequencies k + p / lanes, which makes this the second
 * step of a four-step transform with no multiplication between the two: in each pass the
 * power of w_(S*R) is i * (j mod S + p / lanes), a factor by position times one by lane.
 *
 * The items of a launch with several steps claim tasks one by one, first those of a share of
 * their own and then what is left, by counters in `counters`:
 *
 *     step 0                                step 1                       at the end
 *     claimed by share .. | finished        claimed by share .. | -      left
 *
 * No item waits for another one. Who finds all tasks claimed and some not finished looks again
 * for a while, and then leaves; who finishes the last task finds that all are, and goes on to
 * the next step. So a launch ends with the right result in whatever order groups run, also one
 * after the other. The last item to leave makes the counters zero again.
 *
 * Source: Stockham's autosort algorithm (W. T. Cochran et al., 1967) as given by
 * N. K. Govindaraju et al., "High performance discrete Fourier transforms on graphics
 * processors", SC 2008; four steps after D. H. Bailey, "FFTs in external or hierarchical
 * memory", 1990.
 *
 * Where the lanes of a block are not all there, the block begins earlier (TAIL = overlap), and
 * only lanes from `fresh` on are stored, or it has fewer lanes (TAIL = few).
 *
 * The host guarantees: `source` and `target` of a step are aligned to one real, and either do
 * not overlap or are one array, all columns, without TAIL; element (o, p, c) of either lies at
 * o * OUTER + p * POSITION + c * LANE, where LANE is 1 for "columns" and POSITION is 1
 * for "rows"; `work` has room for BLOCK + 1 arrays an item; with LANES = within, lanes count the
 * transforms, RADICES[0] is a multiple of VECTOR_WIDTH, and N / RADICES[0] is not less;
 * `counters` is zero, one launch at a time has it, and items see what others have written
 * before an atomic operation.
 *
 * REAL_T        float or double
 * INDEX_T       unsigned type that counts the elements of the arrays
 * VECTOR_WIDTH  lanes of a vector: 2, 4, 8 or 16
 * WORK          memory of the arrays: local, or global where it is too small
 * INVERSE       whether real and imaginary parts are exchanged on the way in and out
 * PATIENCE      how often an item looks for others to finish
 * STEPS         of each step:
 *   BLOCK         vectors side by side; 1 with LANES = within
 *   N             length of a transform
 *   RADICES       of the passes, in order; their product is N
 *   LANES         across or within
 *   LOAD, STORE   columns or rows
 *   TAIL          none, overlap or few
 *   FEW           lanes of every block where TAIL is few
 *   TWIST         whether lanes are transformed at fractions of a frequency
 *   HALVED        whether what is read is halved first: packed real signals, see real.cl.mako
 *   SCALED        whether to multiply by `scale`
 *   GAP           positions between two arrays, so that equal places are in different sets of a cache
 *   FETCH         what passes fetch ahead into the cache: none, the source of the next task, or
 *                 both that and the target of their own
 */
<%page args="REAL_T, INDEX_T, VECTOR_WIDTH, WORK, INVERSE, STEPS, PATIENCE"/>\
<%namespace name="vectors" file="vectors.mako"/>\
<%include file="/prelude.cl.mako" args="REQUIRE_FP64=REAL_T == 'double'"/>\
<%
    V = VECTOR_WIDTH
    joined = len(STEPS) > 1

    def unit(step):
        return V if step["LANES"] == "within" else 1

    # Of an item, in vectors.
    room = max(2 * (step["N"] // unit(step) + step["GAP"]) * (step["BLOCK"] + 1) for step in STEPS)
    strides = [f"{side}_{axis}" for side in ("source", "target") for axis in ("outer", "position", "lane")]

    def twist(step):
        return ("twist",) if step["TWIST"] else ()
%>\
${vectors.types(REAL_T, V)}\
typedef ${INDEX_T} index_t;

${vectors.lane_moves(V, INVERSE)}\

% if any(step["FETCH"] != "none" for step in STEPS):
/* Fetch a line of memory to read it, or to write it. `prefetch` of OpenCL C does nothing on PoCL. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_prefetch)
#define FETCH_LINE(address, writing) __builtin_prefetch((const void *)(address), writing, 3)
#endif
#endif
#if !defined(FETCH_LINE)
#define FETCH_LINE(address, writing)
#endif

% endif

% for s, step in enumerate(STEPS):
<%include file="vector_step.mako" args="STEP=s, REAL_T=REAL_T, VECTOR_WIDTH=V, WORK=WORK, INVERSE=INVERSE, **step"/>\

% endfor
<%def name="do_task(s)">\
step_${s}(task, space, ${", ".join(f"{name}_{s}" for name in ("source", "target", "twiddles", *twist(STEPS[s]), "lanes", *strides, "scale"))});
</%def>\
<%def name="count_tasks(s)">\
<% step = STEPS[s] %>\
const index_t tasks = outer_${s} * ${f"lanes_{s}" if unit(step) > 1 else f"((lanes_{s} + {V * step['BLOCK'] - 1}) / {V * step['BLOCK']})"};
</%def>\
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void fft_vector(
% for s, step in enumerate(STEPS):
    __global const complex_t *source_${s},
    __global complex_t *target_${s},
    __global const real_t *restrict twiddles_${s},
% if step["TWIST"]:
    __global const vec_t *restrict twist_${s},
% endif
% for name in ("outer", "lanes", *strides):
    const index_t ${name}_${s},
% endfor
    const real_t scale_${s}${"," if s + 1 < len(STEPS) or joined or WORK == "global" else ")"}
% endfor
% if joined:
    volatile __global uint *counters${"," if WORK == "global" else ")"}
% endif
% if WORK == "global":
    __global vec_t *restrict work)
% endif
{
% if WORK == "local":
    __local vec_t space[${room}];
% else:
    __global vec_t *space = work + get_global_id(0) * ${room};
% endif
% if not joined:
    ${count_tasks(0)}\
    const index_t begin = (index_t)((ulong)tasks * get_global_id(0) / get_global_size(0));
    const index_t end = (index_t)((ulong)tasks * (get_global_id(0) + 1) / get_global_size(0));
    for (index_t task = begin; task < end; ++task)
        ${do_task(0)}\
% else:
    const uint items = (uint)get_global_size(0);
    bool here = true;
% for s in range(len(STEPS)):
    if (here) {
        ${count_tasks(s)}\
        volatile __global uint *claimed = counters + ${s} * (items + 1);
        volatile __global uint *finished = claimed + items;
        /* Do the tasks of this item's share, then what is left of the others'. */
        for (uint other = 0; other < items; ++other) {
            const uint share = ((uint)get_global_id(0) + other) % items;
            const index_t begin = (index_t)((ulong)tasks * share / items);
            const index_t end = (index_t)((ulong)tasks * (share + 1) / items);
            for (;;) {
                const index_t task = begin + atomic_inc(&claimed[share]);
                if (task >= end)
                    break;
                ${do_task(s)}\
                mem_fence(CLK_GLOBAL_MEM_FENCE); /* what was written is seen before it is counted */
                atomic_inc(finished);
            }
        }
% if s + 1 < len(STEPS):
        /* Look for the others to finish, or leave: who finishes the last task goes on. */
        for (uint polls = 0; here && atomic_or(finished, 0) != tasks; ++polls)
            here = polls < ${PATIENCE};
        mem_fence(CLK_GLOBAL_MEM_FENCE);
% endif
    }
% endfor
    /* The last to leave, when all is done, makes the counters ready for the next launch. */
    const uint words = ${len(STEPS)} * (items + 1);
    if (atomic_inc(&counters[words]) + 1 == items)
        for (uint t = 0; t <= words; ++t)
            atomic_xchg(&counters[t], 0);
% endif
}
