/*
 * An example of clkernels/fourier/fft_vector.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       dft n=64 batch=100
 *     algorithm     fft
 *     configuration FORM=vector WG_SIZE=64 POINTS=4 TRANSFORMS=0 LAST_TRANSFORMS=0
 *                   LOCAL_LIMIT=16384 LOCAL_PAD=0 EXCHANGE=auto FEW_TWIDDLES=True FUSED=auto
 *                   VECTOR_WIDTH=8 BLOCK=4 MAX_RADIX=8 ITEMS_PER_UNIT=8 SPLIT=auto
 *     device        EPYC (pocl of tools/rendered_kernels.py)
 *     launch        fft_vector, (16,) items in groups of (1,)
 */
/*
 * Fast Fourier transforms by single work-items with explicit vectors: the form for CPUs. A group
 * is one item, so that there is no barrier. A launch does one step, transforms of one length, or the
 * two that a four-step transform has here. On a device with one compute unit a single item does all
 * steps of a plan one after the other, also those that are no transforms; and so do all items with
 * rows of their own:
 *
 *     fft_vector.cl.mako            the kernel: which item does which task
 *       common/work_stealing.mako     shares of the tasks, and the way from step to step
 *       vector_step.mako              one task of a step: load, passes, store
 *         vector_passes.mako            one pass: loops, twiddle factors
 *         vector_rows.mako              rows of the user's memory into vectors, and back
 *       vector_pointwise.mako         one row of a step before, between or after transforms
 *       butterflies.mako              the transform of a few points in registers
 *       vectors.mako                  vectors of real and imaginary components
 *
 * How points lie in vectors, and which arrays passes read and write, is in VectorStep of
 * opencl_lab/ops/fft/passes/vector_step.py, with drawings; what a pass computes, in schedule.py there.
 *
 * No launch multiplies by the twiddle factors between the steps. The second step transforms its
 * column p, of as many as there are `lanes`, at frequencies k + p / lanes, so that in each pass the
 * power of w_(S R) is i * (j mod S + p / lanes): a factor by position times one by column.
 *
 * Source: Stockham's autosort algorithm (W. T. Cochran et al., 1967) as given by
 * N. K. Govindaraju et al., "High performance discrete Fourier transforms on graphics
 * processors", SC 2008; four steps after D. H. Bailey, "FFTs in external or hierarchical
 * memory", 1990.
 *
 * The host guarantees: `source` and `target` of a step are aligned to one real, and either do
 * not overlap or are one array, all columns without a tail, or of items that do all steps all columns
 * or rows in one step; element (o, p, c) of either lies at
 * o * OUTER + p * POSITION + c * LANE, where LANE is 1 for "columns" and POSITION is 1
 * for "rows"; `work` has the room of a step for each item; over the points, lanes count the
 * transforms. Of several steps, what work_stealing.mako says.
 *
 * ELEMENT       complex numbers: Element of core/kernels.py
 * INDEX_T       unsigned type that counts the elements of the arrays
 * VECTOR_WIDTH  lanes of a vector: 2, 4, 8 or 16
 * WORK          memory of the arrays: local, which all items of a unit use one after the other, so that
 *               it stays in its caches, or global where that is too small
 * INVERSE       whether components are swapped as they are read and written
 * STEPS         a VectorStep each; for items that do all steps also a PointwiseStep
 * BUFFERS       for items that do all steps: the numbers of the source and the target of each step
 *               among the buffers that the kernel takes; else None
 * OWN           for items that do all steps of one row after the other: how many numbers of each
 *               buffer an item has for itself, 0 for those of all rows, which only pointwise steps
 *               read and write; else None
 * MAX_POLLS     how often an item looks for others to finish a step
 * CONDITIONAL   whether a launch before this one may have called it off
 */
/* PoCL calls what is long, which keeps loops from being vectors and arrays from being registers. */
#define INLINE static inline __attribute__((always_inline))
#define WORK __local

typedef float real_t;
typedef float2 complex_t;
typedef uint index_t;

static inline complex_t times(const complex_t a, const complex_t b)
{
    return (complex_t)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

#define V 8 /* lanes of a vector */
typedef float8 vec_t;

/* A complex number, or one in each lane of vec_t. */
typedef struct {
    vec_t re, im;
} points_t;

INLINE points_t multiplied(const points_t x, const points_t w)
{
    const points_t product = {x.re * w.re - x.im * w.im, x.re * w.im + x.im * w.re};
    return product;
}

INLINE points_t scaled(const points_t x, const real_t factor)
{
    const points_t product = {x.re * factor, x.im * factor};
    return product;
}

/* Complex numbers in memory, as many as a vector has lanes. */
typedef struct __attribute__((packed)) {
    vec_t low, high;
} pairs_t;

INLINE points_t load_lanes(__global const complex_t *p)
{
    const vec_t low = ((__global const pairs_t *)p)->low;
    const vec_t high = ((__global const pairs_t *)p)->high;
    points_t x;
    x.re = (vec_t)(low.even, high.even);
    x.im = (vec_t)(low.odd, high.odd);
    return x;
}

INLINE void store_lanes(const points_t x, __global complex_t *p)
{
    ((__global pairs_t *)p)->low = (vec_t)(x.re.s0, x.im.s0, x.re.s1, x.im.s1, x.re.s2, x.im.s2, x.re.s3, x.im.s3);
    ((__global pairs_t *)p)->high = (vec_t)(x.re.s4, x.im.s4, x.re.s5, x.im.s5, x.re.s6, x.im.s6, x.re.s7, x.im.s7);
}

INLINE void store_fresh_lanes(const points_t x, __global complex_t *p, const uint lane, const uint fresh)
{
    if (fresh == 0) {
        store_lanes(x, p);
    } else {
        if (lane + 0 >= fresh)
            vstore2((complex_t)(x.re.s0, x.im.s0), 0, (__global real_t *)p);
        if (lane + 1 >= fresh)
            vstore2((complex_t)(x.re.s1, x.im.s1), 1, (__global real_t *)p);
        if (lane + 2 >= fresh)
            vstore2((complex_t)(x.re.s2, x.im.s2), 2, (__global real_t *)p);
        if (lane + 3 >= fresh)
            vstore2((complex_t)(x.re.s3, x.im.s3), 3, (__global real_t *)p);
        if (lane + 4 >= fresh)
            vstore2((complex_t)(x.re.s4, x.im.s4), 4, (__global real_t *)p);
        if (lane + 5 >= fresh)
            vstore2((complex_t)(x.re.s5, x.im.s5), 5, (__global real_t *)p);
        if (lane + 6 >= fresh)
            vstore2((complex_t)(x.re.s6, x.im.s6), 6, (__global real_t *)p);
        if (lane + 7 >= fresh)
            vstore2((complex_t)(x.re.s7, x.im.s7), 7, (__global real_t *)p);
    }
}

/* The lanes that are left are zero. */
INLINE points_t gather_lanes(__global const complex_t *p, const index_t distance, const uint count)
{
    __global const real_t *reals = (__global const real_t *)p;
    points_t x = {0, 0};
    if (0 < count) {
        x.re.s0 = reals[2 * (0 * distance)];
        x.im.s0 = reals[2 * (0 * distance) + 1];
    }
    if (1 < count) {
        x.re.s1 = reals[2 * (1 * distance)];
        x.im.s1 = reals[2 * (1 * distance) + 1];
    }
    if (2 < count) {
        x.re.s2 = reals[2 * (2 * distance)];
        x.im.s2 = reals[2 * (2 * distance) + 1];
    }
    if (3 < count) {
        x.re.s3 = reals[2 * (3 * distance)];
        x.im.s3 = reals[2 * (3 * distance) + 1];
    }
    if (4 < count) {
        x.re.s4 = reals[2 * (4 * distance)];
        x.im.s4 = reals[2 * (4 * distance) + 1];
    }
    if (5 < count) {
        x.re.s5 = reals[2 * (5 * distance)];
        x.im.s5 = reals[2 * (5 * distance) + 1];
    }
    if (6 < count) {
        x.re.s6 = reals[2 * (6 * distance)];
        x.im.s6 = reals[2 * (6 * distance) + 1];
    }
    if (7 < count) {
        x.re.s7 = reals[2 * (7 * distance)];
        x.im.s7 = reals[2 * (7 * distance) + 1];
    }
    return x;
}

INLINE void scatter_lanes(const points_t x, __global complex_t *p, const index_t distance, const uint lane,
                          const uint fresh, const uint count)
{
    if (0 < count && lane + 0 >= fresh)
        vstore2((complex_t)(x.re.s0, x.im.s0), 0 * distance, (__global real_t *)p);
    if (1 < count && lane + 1 >= fresh)
        vstore2((complex_t)(x.re.s1, x.im.s1), 1 * distance, (__global real_t *)p);
    if (2 < count && lane + 2 >= fresh)
        vstore2((complex_t)(x.re.s2, x.im.s2), 2 * distance, (__global real_t *)p);
    if (3 < count && lane + 3 >= fresh)
        vstore2((complex_t)(x.re.s3, x.im.s3), 3 * distance, (__global real_t *)p);
    if (4 < count && lane + 4 >= fresh)
        vstore2((complex_t)(x.re.s4, x.im.s4), 4 * distance, (__global real_t *)p);
    if (5 < count && lane + 5 >= fresh)
        vstore2((complex_t)(x.re.s5, x.im.s5), 5 * distance, (__global real_t *)p);
    if (6 < count && lane + 6 >= fresh)
        vstore2((complex_t)(x.re.s6, x.im.s6), 6 * distance, (__global real_t *)p);
    if (7 < count && lane + 7 >= fresh)
        vstore2((complex_t)(x.re.s7, x.im.s7), 7 * distance, (__global real_t *)p);
}

/* Two rows exchange blocks of so many lanes: those of b on the left become those of a on the right. */
INLINE void exchange_4(points_t *a, points_t *b)
{
    const points_t left = {(vec_t)(a->re.s0, a->re.s1, a->re.s2, a->re.s3, b->re.s0, b->re.s1, b->re.s2, b->re.s3),
                           (vec_t)(a->im.s0, a->im.s1, a->im.s2, a->im.s3, b->im.s0, b->im.s1, b->im.s2, b->im.s3)};
    const points_t right = {(vec_t)(a->re.s4, a->re.s5, a->re.s6, a->re.s7, b->re.s4, b->re.s5, b->re.s6, b->re.s7),
                            (vec_t)(a->im.s4, a->im.s5, a->im.s6, a->im.s7, b->im.s4, b->im.s5, b->im.s6, b->im.s7)};
    *a = left;
    *b = right;
}

INLINE void exchange_2(points_t *a, points_t *b)
{
    const points_t left = {(vec_t)(a->re.s0, a->re.s1, b->re.s0, b->re.s1, a->re.s4, a->re.s5, b->re.s4, b->re.s5),
                           (vec_t)(a->im.s0, a->im.s1, b->im.s0, b->im.s1, a->im.s4, a->im.s5, b->im.s4, b->im.s5)};
    const points_t right = {(vec_t)(a->re.s2, a->re.s3, b->re.s2, b->re.s3, a->re.s6, a->re.s7, b->re.s6, b->re.s7),
                            (vec_t)(a->im.s2, a->im.s3, b->im.s2, b->im.s3, a->im.s6, a->im.s7, b->im.s6, b->im.s7)};
    *a = left;
    *b = right;
}

INLINE void exchange_1(points_t *a, points_t *b)
{
    const points_t left = {(vec_t)(a->re.s0, b->re.s0, a->re.s2, b->re.s2, a->re.s4, b->re.s4, a->re.s6, b->re.s6),
                           (vec_t)(a->im.s0, b->im.s0, a->im.s2, b->im.s2, a->im.s4, b->im.s4, a->im.s6, b->im.s6)};
    const points_t right = {(vec_t)(a->re.s1, b->re.s1, a->re.s3, b->re.s3, a->re.s5, b->re.s5, a->re.s7, b->re.s7),
                            (vec_t)(a->im.s1, b->im.s1, a->im.s3, b->im.s3, a->im.s5, b->im.s5, a->im.s7, b->im.s7)};
    *a = left;
    *b = right;
}

/* Transpose a square of V x V numbers: exchange blocks of half of it, then of a quarter, and so on. */
INLINE void transpose(points_t *x)
{
    exchange_4(&x[0], &x[4]);
    exchange_4(&x[1], &x[5]);
    exchange_4(&x[2], &x[6]);
    exchange_4(&x[3], &x[7]);
    exchange_2(&x[0], &x[2]);
    exchange_2(&x[1], &x[3]);
    exchange_2(&x[4], &x[6]);
    exchange_2(&x[5], &x[7]);
    exchange_1(&x[0], &x[1]);
    exchange_1(&x[2], &x[3]);
    exchange_1(&x[4], &x[5]);
    exchange_1(&x[6], &x[7]);
}

/* Twiddle factor number i of a table, for all lanes. */
INLINE points_t factor_at(__global const real_t *twiddles, const uint i)
{
    points_t w;
    w.re = twiddles[2 * i];
    w.im = twiddles[2 * i + 1];
    return w;
}

/* Transform 8 points in place. */
INLINE void butterfly_8(points_t *x)
{
    const vec_t v0 = x[0].re + x[4].re;
    const vec_t v1 = x[0].im + x[4].im;
    const vec_t v2 = x[0].re - x[4].re;
    const vec_t v3 = x[0].im - x[4].im;
    const vec_t v4 = x[1].re + x[5].re;
    const vec_t v5 = x[1].im + x[5].im;
    const vec_t v6 = x[1].re - x[5].re;
    const vec_t v7 = x[1].im - x[5].im;
    const vec_t v8 = x[2].re + x[6].re;
    const vec_t v9 = x[2].im + x[6].im;
    const vec_t v10 = x[2].re - x[6].re;
    const vec_t v11 = x[2].im - x[6].im;
    const vec_t v12 = x[3].re + x[7].re;
    const vec_t v13 = x[3].im + x[7].im;
    const vec_t v14 = x[3].re - x[7].re;
    const vec_t v15 = x[3].im - x[7].im;
    const vec_t v16 = v0 + v8;
    const vec_t v17 = v1 + v9;
    const vec_t v18 = v0 - v8;
    const vec_t v19 = v1 - v9;
    const vec_t v20 = v4 + v12;
    const vec_t v21 = v5 + v13;
    const vec_t v22 = v4 - v12;
    const vec_t v23 = v5 - v13;
    const vec_t v24 = v16 + v20;
    const vec_t v25 = v17 + v21;
    const vec_t v26 = v18 + v23;
    const vec_t v27 = v19 - v22;
    const vec_t v28 = v16 - v20;
    const vec_t v29 = v17 - v21;
    const vec_t v30 = v18 - v23;
    const vec_t v31 = v19 + v22;
    const vec_t v32 = v6 + v7;
    const vec_t v33 = v7 - v6;
    const vec_t v34 = 0.7071067811865476f * v32;
    const vec_t v35 = 0.7071067811865476f * v33;
    const vec_t v36 = -v10;
    const vec_t v37 = v14 - v15;
    const vec_t v38 = v14 + v15;
    const vec_t v39 = -0.7071067811865476f * v37;
    const vec_t v40 = -0.7071067811865476f * v38;
    const vec_t v41 = v2 + v11;
    const vec_t v42 = v3 + v36;
    const vec_t v43 = v2 - v11;
    const vec_t v44 = v3 - v36;
    const vec_t v45 = v34 + v39;
    const vec_t v46 = v35 + v40;
    const vec_t v47 = v34 - v39;
    const vec_t v48 = v35 - v40;
    const vec_t v49 = v41 + v45;
    const vec_t v50 = v42 + v46;
    const vec_t v51 = v43 + v48;
    const vec_t v52 = v44 - v47;
    const vec_t v53 = v41 - v45;
    const vec_t v54 = v42 - v46;
    const vec_t v55 = v43 - v48;
    const vec_t v56 = v44 + v47;
    x[0].re = v24;
    x[0].im = v25;
    x[1].re = v49;
    x[1].im = v50;
    x[2].re = v26;
    x[2].im = v27;
    x[3].re = v51;
    x[3].im = v52;
    x[4].re = v28;
    x[4].im = v29;
    x[5].re = v53;
    x[5].im = v54;
    x[6].re = v30;
    x[6].im = v31;
    x[7].re = v55;
    x[7].im = v56;
}

/* Do one task of step 0: `first` is the first of its transforms. */
INLINE void step_0(
    const index_t task,
    WORK points_t *work,
    __global const complex_t *source,
    __global complex_t *target,
    __global const points_t *twiddles,
    const index_t lanes,
    const index_t source_outer,
    const index_t source_position,
    const index_t source_lane,
    const index_t target_outer,
    const index_t target_position,
    const index_t target_lane,
    const real_t scale)
{
    enum {
        N = 64, /* points of a transform */
            BLOCK = 1, /* vectors of a task */
            TRANSFORMS = 1, /* of a task */
            LANES = 8, /* of a vector that have a transform */
            ARRAY = 8, /* vectors from one array to the next */
            CHAINED = 0, /* whether a vector's array 1 is array 0 of the one before it */
            SCALED = 0 /* whether results are multiplied by `scale` */
    };
    const index_t blocks = (lanes + (TRANSFORMS - 1)) / TRANSFORMS;
    const index_t block = task % blocks, outer = task / blocks;
    const index_t first = block * TRANSFORMS;
    const uint fresh = (uint)(block * TRANSFORMS - first); /* lanes before belong to the block before */
    __global const complex_t *from = source + (outer * source_outer + first * source_lane);
    __global complex_t *to = target + (outer * target_outer + first * target_lane);

    /* Pass 0: radix 8, stride 1. */
    {
        enum { R = 8, RUN = 1, RUNS = 8, SPACING = 1 };
        enum { BUTTERFLIES = 8 };
        const uint v = 0;
        const uint lane = v * V;
        WORK points_t *work_0 = work + (v + 1) * ARRAY;
        WORK points_t *work_1 = work + CHAINED * v * ARRAY;
        for (uint j = 0; j < BUTTERFLIES; j += V) {
            const uint at = BUTTERFLIES % V == 0 ? j : min(j, (uint)(BUTTERFLIES - V));
            points_t x[R];
            #pragma unroll
            for (uint i = 0; i < R; ++i)
                x[i] = load_lanes(from + at + i * BUTTERFLIES);
            butterfly_8(x);
            #pragma unroll
            for (uint h = 0; h < R / V; ++h) {
                transpose(x + h * V);
                #pragma unroll
                for (uint l = 0; l < V; ++l)
                    work_0[at * R / V + l * (R / V) + h] = x[h * V + l];
            }
        }
    }
    /* Pass 1: radix 8, stride 8. */
    {
        enum { R = 8, RUN = 1, RUNS = 1, SPACING = 1 };
        for (uint k = 0; k < RUN; ++k) {
            points_t w[R]; /* twiddle factors */
            #pragma unroll
            for (uint i = 1; i < R; ++i)
                w[i] = twiddles[0 / 8 + k * (R - 1) + i - 1];
            for (uint run = 0; run < RUNS; ++run)
                for (uint v = 0; v < BLOCK; ++v)
                {
                    const uint j = run * RUN + k, at = run * RUN * R + k;
                    points_t x[R];
                    const uint lane = v * V;
                    WORK points_t *work_0 = work + (v + 1) * ARRAY;
                    WORK points_t *work_1 = work + CHAINED * v * ARRAY;
                    #pragma unroll
                    for (uint i = 0; i < R; ++i)
                        x[i] = work_0[j + i * SPACING];
                    #pragma unroll
                    for (uint i = 1; i < R; ++i)
                        x[i] = multiplied(x[i], w[i]);
                    butterfly_8(x);
                    __global complex_t *to_at = to + at * V + lane;
                    #pragma unroll
                    for (uint i = 0; i < R; ++i)
                        store_lanes(x[i], to_at + i * RUN * V);
                }
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void fft_vector(
    __global const complex_t *source_0,
    __global complex_t *target_0,
    __global const points_t *restrict twiddles_0,
    const index_t outer_0,
    const index_t lanes_0,
    const index_t source_outer_0,
    const index_t source_position_0,
    const index_t source_lane_0,
    const index_t target_outer_0,
    const index_t target_position_0,
    const index_t target_lane_0,
    const real_t scale_0)
{
    enum { ROOM = 16 }; /* vectors of the arrays of an item */
    __local points_t space[ROOM];
    const index_t tasks = outer_0 * lanes_0;
    const index_t begin = (index_t)((ulong)tasks * get_global_id(0) / get_global_size(0));
    const index_t end = (index_t)((ulong)tasks * (get_global_id(0) + 1) / get_global_size(0));
    for (index_t task = begin; task < end; ++task)
        step_0(task, space, source_0, target_0, twiddles_0, lanes_0, source_outer_0, source_position_0, source_lane_0, target_outer_0, target_position_0, target_lane_0, scale_0);
}
