/*
 * An example of clkernels/fourier/fft_local.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       dft n=64 batch=100
 *     algorithm     fft
 *     configuration FORM=local-memory WG_SIZE=64 POINTS=4 TRANSFORMS=0 LAST_TRANSFORMS=0
 *                   LOCAL_LIMIT=16384 LOCAL_PAD=0 EXCHANGE=auto FEW_TWIDDLES=True FUSED=auto
 *                   VECTOR_WIDTH=8 BLOCK=4 MAX_RADIX=16 ITEMS_PER_UNIT=8 SPLIT=auto
 *     device        NVIDIA H200 (h200 of tools/rendered_kernels.py)
 *     launch        fft_local, (832,) items in groups of (64,)
 */
/*
 * Fast Fourier transforms by work-groups in local memory: the form for GPUs. A launch does one
 * step, transforms of one length, or two steps of a longer transform, one after the other.
 *
 * A group does some transforms of n points, each by several items. In a pass, each item has every
 * so-many-th butterfly and keeps its points in registers; between two passes all points go through
 * local memory:
 *
 *     global --load--> registers --butterfly--> local --butterfly--> ... --store--> global
 *
 *     item of a transform    0    1    2   ..  items-1   0    1   ...
 *     butterfly j            0    1    2   ..            items     ...     of n / R in a pass
 *
 *     butterfly j reads positions j + i * n/R, i < R; multiplies by w^(i * (j mod S));
 *     writes positions (j / S) * S * R + (j mod S) + i * S    S = product of the radices before
 *
 * Of rows, neighbouring items read neighbouring positions; of columns, the same position of
 * neighbouring transforms. They write alike: with rows in and columns out, the exchange after the
 * first pass transposes. All items meet every barrier; loads and stores of transforms past the end
 * are guarded.
 *
 * Between two steps of a transform, the results are multiplied by twiddle factors, each of them the
 * product of two from tables of about sqrt(n) entries. Transforms of a length with large prime
 * factors are done as convolutions, as bluestein.cl.mako explains: one group does all of it
 * ("whole"), or the "first" step multiplies what it reads by the chirp, the last one there what it
 * writes by the transform of the chirp ("product"), and the "last" one what it writes by the chirp.
 *
 *     local_step.mako      what a group does
 *     local_loads.mako     from global memory into registers; real signals, too
 *     local_passes.mako    twiddle factors and butterflies
 *     local_exchange.mako  through local memory
 *     local_stores.mako    from registers to global memory
 *     fused_steps.mako     how groups of two steps share a launch
 *
 * Source: Stockham's autosort algorithm (W. T. Cochran et al., 1967) as given for GPUs by
 * N. K. Govindaraju et al., "High performance discrete Fourier transforms on graphics
 * processors", SC 2008; four steps after D. H. Bailey, "FFTs in external or hierarchical
 * memory", 1990.
 *
 * The host guarantees: `source` and `target` of a step do not overlap; element (b, o, p, c) of
 * either lies at offset + b * BATCH + o * OUTER + p * POSITION + c * LANE; there is a group for
 * every `transforms` lanes, these for each `o` < outer, and all of that for each `b`.
 *
 * ELEMENT      complex numbers: Element of core/kernels.py
 * INDEX_T      unsigned type that counts the elements of the arrays
 * INVERSE      whether components are swapped as they are read and written
 * LOCAL_REALS  real numbers of local memory
 * PTX          whether the device takes inline PTX
 * LOOK_AHEAD   of two steps: by how many parts the first one is ahead
 * MAX_POLLS    of two steps: looks in vain for the first one, after which a group does it itself
 * STEPS        one or two `LocalStep` of opencl_lab/ops/fft/passes/local_schedule.py, whose groups have
 *              equally many items
 * CONDITIONAL  whether a launch before this one may have called it off
 */
/* PoCL calls what is long, which keeps loops from being vectors and arrays from being registers. */
#define INLINE static inline __attribute__((always_inline))

typedef float real_t;
typedef float2 complex_t;
typedef uint index_t;

static inline complex_t times(const complex_t a, const complex_t b)
{
    return (complex_t)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

/* Where an element lies in local memory with a gap after so many elements, 0 for none. */
INLINE uint padded(const uint element, const uint gap)
{
    return gap == 0 ? element : element + element / gap;
}

/* Where the element lies that is `offset` after `start`, as a constant distance from one of few places:
   that of the first, if all lie `together` between two gaps, or of one less than a gap after it. */
INLINE uint place_of(const uint start, const uint offset, const uint gap, const bool together)
{
    if (gap == 0)
        return start + offset;
    const uint rest = together ? 0 : offset % gap;
    return padded(start + rest, gap) + padded(offset - rest, gap);
}

/* Transform 8 points in place. */
INLINE void butterfly_8(complex_t *x)
{
    const real_t v0 = x[0].x + x[4].x;
    const real_t v1 = x[0].y + x[4].y;
    const real_t v2 = x[0].x - x[4].x;
    const real_t v3 = x[0].y - x[4].y;
    const real_t v4 = x[1].x + x[5].x;
    const real_t v5 = x[1].y + x[5].y;
    const real_t v6 = x[1].x - x[5].x;
    const real_t v7 = x[1].y - x[5].y;
    const real_t v8 = x[2].x + x[6].x;
    const real_t v9 = x[2].y + x[6].y;
    const real_t v10 = x[2].x - x[6].x;
    const real_t v11 = x[2].y - x[6].y;
    const real_t v12 = x[3].x + x[7].x;
    const real_t v13 = x[3].y + x[7].y;
    const real_t v14 = x[3].x - x[7].x;
    const real_t v15 = x[3].y - x[7].y;
    const real_t v16 = v0 + v8;
    const real_t v17 = v1 + v9;
    const real_t v18 = v0 - v8;
    const real_t v19 = v1 - v9;
    const real_t v20 = v4 + v12;
    const real_t v21 = v5 + v13;
    const real_t v22 = v4 - v12;
    const real_t v23 = v5 - v13;
    const real_t v24 = v16 + v20;
    const real_t v25 = v17 + v21;
    const real_t v26 = v18 + v23;
    const real_t v27 = v19 - v22;
    const real_t v28 = v16 - v20;
    const real_t v29 = v17 - v21;
    const real_t v30 = v18 - v23;
    const real_t v31 = v19 + v22;
    const real_t v32 = v6 + v7;
    const real_t v33 = v7 - v6;
    const real_t v34 = 0.7071067811865476f * v32;
    const real_t v35 = 0.7071067811865476f * v33;
    const real_t v36 = -v10;
    const real_t v37 = v14 - v15;
    const real_t v38 = v14 + v15;
    const real_t v39 = -0.7071067811865476f * v37;
    const real_t v40 = -0.7071067811865476f * v38;
    const real_t v41 = v2 + v11;
    const real_t v42 = v3 + v36;
    const real_t v43 = v2 - v11;
    const real_t v44 = v3 - v36;
    const real_t v45 = v34 + v39;
    const real_t v46 = v35 + v40;
    const real_t v47 = v34 - v39;
    const real_t v48 = v35 - v40;
    const real_t v49 = v41 + v45;
    const real_t v50 = v42 + v46;
    const real_t v51 = v43 + v48;
    const real_t v52 = v44 - v47;
    const real_t v53 = v41 - v45;
    const real_t v54 = v42 - v46;
    const real_t v55 = v43 - v48;
    const real_t v56 = v44 + v47;
    x[0].x = v24;
    x[0].y = v25;
    x[1].x = v49;
    x[1].y = v50;
    x[2].x = v26;
    x[2].y = v27;
    x[3].x = v51;
    x[3].y = v52;
    x[4].x = v28;
    x[4].y = v29;
    x[5].x = v53;
    x[5].y = v54;
    x[6].x = v30;
    x[6].y = v31;
    x[7].x = v55;
    x[7].y = v56;
}

/* Do what one group of step 0 does. */
void step_0(
    const index_t group_number,
    __local real_t *space,
    __global const complex_t *restrict source,
    __global complex_t *restrict target,
    __global const complex_t *restrict twiddles,
    const index_t lanes)
{
    enum { N = 64, TRANSFORMS = 8, ITEMS = 8 }; /* of a group, of a transform */
    const index_t source_outer = 0;
    const index_t target_outer = 0;
    const index_t source_batch = 0;
    const index_t target_batch = 0;
    const index_t source_offset = 0;
    const index_t target_offset = 0;
    const index_t outer = 1;
    const index_t source_position = 1;
    const index_t source_lane = 64;
    const index_t target_position = 1;
    const index_t target_lane = 64;
    __local real_t *local_re = space, *local_im = space + 528;
    const uint item = (uint)get_local_id(0);
    const index_t group_lane = group_number * TRANSFORMS, o = 0, b = 0;
    /* Which transform an item has, and its number there: as it loads, and from then on. */
    const uint load_lane = item / ITEMS, load_item = item % ITEMS;
    const uint store_lane = item / ITEMS, store_item = item % ITEMS;
    /* Points of passes. They begin as 0, also where an item has no butterfly: undefined values cost time. */
    complex_t x_0[1][8] = {{0}};
    complex_t x_1[1][8] = {{0}};

    /* Load. */
    {
        enum { R = 8, S = 1, BUTTERFLIES = 8, ROUNDS = 1 };
        const index_t c = group_lane + load_lane;
        __global const complex_t *from = source
            + (source_offset + b * source_batch + o * source_outer + c * source_lane);
        #pragma unroll
        for (uint round = 0; round < ROUNDS; ++round) {
            const uint j = load_item + round * ITEMS;
            if (true) if (c < lanes) {
                __global const complex_t *from_j = from + j * source_position;
                #pragma unroll
                for (uint i = 0; i < R; ++i)
                {
                    const complex_t x = from_j[i * BUTTERFLIES * source_position];
                    x_0[round][i] = x;
                }
            }
        }
    }

    /* Pass 0: radix 8, stride 1. */
    {
        enum { R = 8, S = 1, BUTTERFLIES = 8, ROUNDS = 1 };
        #pragma unroll
        for (uint round = 0; round < ROUNDS; ++round) {
            const uint j = load_item + round * ITEMS;
            if (true) {
                complex_t *x = x_0[round];
                butterfly_8(x);
            }
        }
    }
    {
        enum { R = 8, S = 1, BUTTERFLIES = 8, ROUNDS = 1 };
        #pragma unroll
        for (uint round = 0; round < ROUNDS; ++round) {
            const uint j = load_item + round * ITEMS;
            if (true) {
                const uint start = load_lane * N + j / S * S * R + j % S;
                #pragma unroll
                for (uint i = 0; i < R; ++i)

                {
                    const uint place = place_of(start, i * S, 32, 1);
                    local_re[place] = x_0[round][i].x;
                    local_im[place] = x_0[round][i].y;
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE); /* all points are there */
    }
    {
        enum { R = 8, S = 8, BUTTERFLIES = 8, ROUNDS = 1 };
        #pragma unroll
        for (uint round = 0; round < ROUNDS; ++round) {
            const uint j = store_item + round * ITEMS;
            if (true) {
                const uint start = store_lane * N + j;
                #pragma unroll
                for (uint i = 0; i < R; ++i)
                {
                    const uint place = place_of(start, i * BUTTERFLIES, 32, 0);
                    x_1[round][i].x = local_re[place];
                    x_1[round][i].y = local_im[place];
                }
            }
        }
    }

    /* Pass 1: radix 8, stride 8. */
    {
        enum { R = 8, S = 8, BUTTERFLIES = 8, ROUNDS = 1 };
        #pragma unroll
        for (uint round = 0; round < ROUNDS; ++round) {
            const uint j = store_item + round * ITEMS;
            if (true) {
                complex_t *x = x_1[round];
                enum { FEW = 3 };
                __global const complex_t *twiddles_of_j = twiddles + (0 + j % S);
                complex_t w[R];
                #pragma unroll
                for (uint i = 1; i < R; ++i) {
                    w[i] = i < FEW || i % FEW == 0 ? twiddles_of_j[(i - 1) * S] : times(w[i / FEW * FEW], w[i % FEW]);
                    x[i] = times(x[i], w[i]);
                }
                butterfly_8(x);
            }
        }
    }

    /* Store. */
    {
        enum { R = 8, S = 8, BUTTERFLIES = 8, ROUNDS = 1 };
        const index_t c = group_lane + store_lane;
        __global complex_t *to = target
            + (target_offset + b * target_batch + o * target_outer + c * target_lane);
        #pragma unroll
        for (uint round = 0; round < ROUNDS; ++round) {
            const uint j = store_item + round * ITEMS;
            if (true) if (c < lanes) {
                __global complex_t *to_j = to + j * target_position;
                #pragma unroll
                for (uint i = 0; i < R; ++i)
                {
                    complex_t x = x_1[round][i];
                    to_j[i * S * target_position] = x;
                }
            }
        }
    }
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void fft_local(
    __global const complex_t *restrict source_0,
    __global complex_t *restrict target_0,
    __global const complex_t *restrict twiddles_0,
    const index_t lanes_0)
{
    __local real_t space[1056] __attribute__((aligned(16)));
    step_0((index_t)get_group_id(0), space, source_0, target_0, twiddles_0, lanes_0);
}
