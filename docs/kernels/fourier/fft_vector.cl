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
 * two that a four-step transform has here:
 *
 *     fft_vector.cl.mako            the kernel: which item does which task
 *       common/work_stealing.mako     shares of the tasks, and the way from step to step
 *       vector_step.mako              one task of a step: load, passes, store
 *         vector_passes.mako            one pass: loops, twiddle factors
 *           butterflies.mako              the transform of a few points in registers
 *         vector_loads.mako             from the user's memory into vectors
 *         vector_stores.mako            and back
 *           vectors.mako                  vectors of real and imaginary parts
 *
 * How points lie in vectors, and which arrays passes read and write, is in VectorStep of
 * opencl_lab/fourier/vector_step.py, with drawings; what a pass computes, in schedule.py there.
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
 * not overlap or are one array, all columns, without a tail; element (o, p, c) of either lies at
 * o * OUTER + p * POSITION + c * LANE, where LANE is 1 for "columns" and POSITION is 1
 * for "rows"; `work` has the room of a step for each item; over the points, lanes count the
 * transforms. Of several steps, what work_stealing.mako says.
 *
 * REAL_T        float or double
 * INDEX_T       unsigned type that counts the elements of the arrays
 * VECTOR_WIDTH  lanes of a vector: 2, 4, 8 or 16
 * WORK          memory of the arrays: local, which all items of a unit use one after the other, so that
 *               it stays in its caches, or global where that is too small
 * INVERSE       whether real and imaginary parts are swapped as they are read and written
 * STEPS         a VectorStep each
 * PATIENCE      how often an item looks for others to finish a step
 */
typedef float real_t;
typedef float2 complex_t;
typedef float8 vec_t;
typedef uint index_t;

typedef struct __attribute__((packed)) {
    vec_t low, high;
} pairs_t;

/* Load complex numbers, one a lane. */
static inline void load_lanes(__global const complex_t *p, vec_t *re, vec_t *im)
{
    const vec_t low = ((__global const pairs_t *)p)->low;
    const vec_t high = ((__global const pairs_t *)p)->high;
    *re = (vec_t)(low.even, high.even);
    *im = (vec_t)(low.odd, high.odd);
}

static inline void store_lanes(const vec_t re, const vec_t im, __global complex_t *p)
{
    ((__global pairs_t *)p)->low = (vec_t)(re.s0, im.s0, re.s1, im.s1, re.s2, im.s2, re.s3, im.s3);
    ((__global pairs_t *)p)->high = (vec_t)(re.s4, im.s4, re.s5, im.s5, re.s6, im.s6, re.s7, im.s7);
}

/* Do one task of step 0: transform a block of lanes. */
static inline __attribute__((always_inline)) void step_0(
    const index_t task,
    __local vec_t *work,
    __global const complex_t *source,
    __global complex_t *target,
    __global const real_t *twiddles,
    const index_t lanes,
    const index_t source_outer,
    const index_t source_position,
    const index_t source_lane,
    const index_t target_outer,
    const index_t target_position,
    const index_t target_lane,
    const real_t scale)
{
    const index_t blocks = lanes;
    const index_t block = task % blocks;
    const index_t first = block;
    __global const complex_t *from =
        source + (task / blocks * source_outer + first * source_lane);
    __global const real_t *reals_from = (__global const real_t *)from;
    __global complex_t *to = target + (task / blocks * target_outer + first * target_lane);

    const uint v = 0;
    /* Pass 0: radix 8, runs of 1. */
    __local vec_t *work_0 = work + (v + 1) * 16;
    __local vec_t *work_1 = work;
    for (uint j = 0; j < 8; j += 8) {
        const uint at = j;
        __global const complex_t *from_at = from + at;
        vec_t re_0, im_0, re_1, im_1, re_2, im_2, re_3, im_3, re_4, im_4, re_5, im_5, re_6, im_6, re_7, im_7;
        load_lanes(from_at, &re_0, &im_0);
        load_lanes(from_at + 8, &re_1, &im_1);
        load_lanes(from_at + 16, &re_2, &im_2);
        load_lanes(from_at + 24, &re_3, &im_3);
        load_lanes(from_at + 32, &re_4, &im_4);
        load_lanes(from_at + 40, &re_5, &im_5);
        load_lanes(from_at + 48, &re_6, &im_6);
        load_lanes(from_at + 56, &re_7, &im_7);
        {
            vec_t out_re_0, out_im_0, out_re_1, out_im_1, out_re_2, out_im_2, out_re_3, out_im_3, out_re_4, out_im_4, out_re_5, out_im_5, out_re_6, out_im_6, out_re_7, out_im_7;
            const vec_t v0 = re_0 + re_4;
            const vec_t v1 = im_0 + im_4;
            const vec_t v2 = re_0 - re_4;
            const vec_t v3 = im_0 - im_4;
            const vec_t v4 = re_1 + re_5;
            const vec_t v5 = im_1 + im_5;
            const vec_t v6 = re_1 - re_5;
            const vec_t v7 = im_1 - im_5;
            const vec_t v8 = re_2 + re_6;
            const vec_t v9 = im_2 + im_6;
            const vec_t v10 = re_2 - re_6;
            const vec_t v11 = im_2 - im_6;
            const vec_t v12 = re_3 + re_7;
            const vec_t v13 = im_3 + im_7;
            const vec_t v14 = re_3 - re_7;
            const vec_t v15 = im_3 - im_7;
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
            out_re_0 = v24;
            out_im_0 = v25;
            out_re_1 = v49;
            out_im_1 = v50;
            out_re_2 = v26;
            out_im_2 = v27;
            out_re_3 = v51;
            out_im_3 = v52;
            out_re_4 = v28;
            out_im_4 = v29;
            out_re_5 = v53;
            out_im_5 = v54;
            out_re_6 = v30;
            out_im_6 = v31;
            out_re_7 = v55;
            out_im_7 = v56;
            re_0 = out_re_0;
            im_0 = out_im_0;
            re_1 = out_re_1;
            im_1 = out_im_1;
            re_2 = out_re_2;
            im_2 = out_im_2;
            re_3 = out_re_3;
            im_3 = out_im_3;
            re_4 = out_re_4;
            im_4 = out_im_4;
            re_5 = out_re_5;
            im_5 = out_im_5;
            re_6 = out_re_6;
            im_6 = out_im_6;
            re_7 = out_re_7;
            im_7 = out_im_7;
        }
        __local vec_t *work_at = work_0 + at * 2;
        { const vec_t t = (vec_t)(re_0.s0, re_0.s1, re_0.s2, re_0.s3, re_4.s0, re_4.s1, re_4.s2, re_4.s3);
            re_4 = (vec_t)(re_0.s4, re_0.s5, re_0.s6, re_0.s7, re_4.s4, re_4.s5, re_4.s6, re_4.s7);
            re_0 = t; }
        { const vec_t t = (vec_t)(re_1.s0, re_1.s1, re_1.s2, re_1.s3, re_5.s0, re_5.s1, re_5.s2, re_5.s3);
            re_5 = (vec_t)(re_1.s4, re_1.s5, re_1.s6, re_1.s7, re_5.s4, re_5.s5, re_5.s6, re_5.s7);
            re_1 = t; }
        { const vec_t t = (vec_t)(re_2.s0, re_2.s1, re_2.s2, re_2.s3, re_6.s0, re_6.s1, re_6.s2, re_6.s3);
            re_6 = (vec_t)(re_2.s4, re_2.s5, re_2.s6, re_2.s7, re_6.s4, re_6.s5, re_6.s6, re_6.s7);
            re_2 = t; }
        { const vec_t t = (vec_t)(re_3.s0, re_3.s1, re_3.s2, re_3.s3, re_7.s0, re_7.s1, re_7.s2, re_7.s3);
            re_7 = (vec_t)(re_3.s4, re_3.s5, re_3.s6, re_3.s7, re_7.s4, re_7.s5, re_7.s6, re_7.s7);
            re_3 = t; }
        { const vec_t t = (vec_t)(re_0.s0, re_0.s1, re_2.s0, re_2.s1, re_0.s4, re_0.s5, re_2.s4, re_2.s5);
            re_2 = (vec_t)(re_0.s2, re_0.s3, re_2.s2, re_2.s3, re_0.s6, re_0.s7, re_2.s6, re_2.s7);
            re_0 = t; }
        { const vec_t t = (vec_t)(re_1.s0, re_1.s1, re_3.s0, re_3.s1, re_1.s4, re_1.s5, re_3.s4, re_3.s5);
            re_3 = (vec_t)(re_1.s2, re_1.s3, re_3.s2, re_3.s3, re_1.s6, re_1.s7, re_3.s6, re_3.s7);
            re_1 = t; }
        { const vec_t t = (vec_t)(re_4.s0, re_4.s1, re_6.s0, re_6.s1, re_4.s4, re_4.s5, re_6.s4, re_6.s5);
            re_6 = (vec_t)(re_4.s2, re_4.s3, re_6.s2, re_6.s3, re_4.s6, re_4.s7, re_6.s6, re_6.s7);
            re_4 = t; }
        { const vec_t t = (vec_t)(re_5.s0, re_5.s1, re_7.s0, re_7.s1, re_5.s4, re_5.s5, re_7.s4, re_7.s5);
            re_7 = (vec_t)(re_5.s2, re_5.s3, re_7.s2, re_7.s3, re_5.s6, re_5.s7, re_7.s6, re_7.s7);
            re_5 = t; }
        { const vec_t t = (vec_t)(re_0.s0, re_1.s0, re_0.s2, re_1.s2, re_0.s4, re_1.s4, re_0.s6, re_1.s6);
            re_1 = (vec_t)(re_0.s1, re_1.s1, re_0.s3, re_1.s3, re_0.s5, re_1.s5, re_0.s7, re_1.s7);
            re_0 = t; }
        { const vec_t t = (vec_t)(re_2.s0, re_3.s0, re_2.s2, re_3.s2, re_2.s4, re_3.s4, re_2.s6, re_3.s6);
            re_3 = (vec_t)(re_2.s1, re_3.s1, re_2.s3, re_3.s3, re_2.s5, re_3.s5, re_2.s7, re_3.s7);
            re_2 = t; }
        { const vec_t t = (vec_t)(re_4.s0, re_5.s0, re_4.s2, re_5.s2, re_4.s4, re_5.s4, re_4.s6, re_5.s6);
            re_5 = (vec_t)(re_4.s1, re_5.s1, re_4.s3, re_5.s3, re_4.s5, re_5.s5, re_4.s7, re_5.s7);
            re_4 = t; }
        { const vec_t t = (vec_t)(re_6.s0, re_7.s0, re_6.s2, re_7.s2, re_6.s4, re_7.s4, re_6.s6, re_7.s6);
            re_7 = (vec_t)(re_6.s1, re_7.s1, re_6.s3, re_7.s3, re_6.s5, re_7.s5, re_6.s7, re_7.s7);
            re_6 = t; }
        { const vec_t t = (vec_t)(im_0.s0, im_0.s1, im_0.s2, im_0.s3, im_4.s0, im_4.s1, im_4.s2, im_4.s3);
            im_4 = (vec_t)(im_0.s4, im_0.s5, im_0.s6, im_0.s7, im_4.s4, im_4.s5, im_4.s6, im_4.s7);
            im_0 = t; }
        { const vec_t t = (vec_t)(im_1.s0, im_1.s1, im_1.s2, im_1.s3, im_5.s0, im_5.s1, im_5.s2, im_5.s3);
            im_5 = (vec_t)(im_1.s4, im_1.s5, im_1.s6, im_1.s7, im_5.s4, im_5.s5, im_5.s6, im_5.s7);
            im_1 = t; }
        { const vec_t t = (vec_t)(im_2.s0, im_2.s1, im_2.s2, im_2.s3, im_6.s0, im_6.s1, im_6.s2, im_6.s3);
            im_6 = (vec_t)(im_2.s4, im_2.s5, im_2.s6, im_2.s7, im_6.s4, im_6.s5, im_6.s6, im_6.s7);
            im_2 = t; }
        { const vec_t t = (vec_t)(im_3.s0, im_3.s1, im_3.s2, im_3.s3, im_7.s0, im_7.s1, im_7.s2, im_7.s3);
            im_7 = (vec_t)(im_3.s4, im_3.s5, im_3.s6, im_3.s7, im_7.s4, im_7.s5, im_7.s6, im_7.s7);
            im_3 = t; }
        { const vec_t t = (vec_t)(im_0.s0, im_0.s1, im_2.s0, im_2.s1, im_0.s4, im_0.s5, im_2.s4, im_2.s5);
            im_2 = (vec_t)(im_0.s2, im_0.s3, im_2.s2, im_2.s3, im_0.s6, im_0.s7, im_2.s6, im_2.s7);
            im_0 = t; }
        { const vec_t t = (vec_t)(im_1.s0, im_1.s1, im_3.s0, im_3.s1, im_1.s4, im_1.s5, im_3.s4, im_3.s5);
            im_3 = (vec_t)(im_1.s2, im_1.s3, im_3.s2, im_3.s3, im_1.s6, im_1.s7, im_3.s6, im_3.s7);
            im_1 = t; }
        { const vec_t t = (vec_t)(im_4.s0, im_4.s1, im_6.s0, im_6.s1, im_4.s4, im_4.s5, im_6.s4, im_6.s5);
            im_6 = (vec_t)(im_4.s2, im_4.s3, im_6.s2, im_6.s3, im_4.s6, im_4.s7, im_6.s6, im_6.s7);
            im_4 = t; }
        { const vec_t t = (vec_t)(im_5.s0, im_5.s1, im_7.s0, im_7.s1, im_5.s4, im_5.s5, im_7.s4, im_7.s5);
            im_7 = (vec_t)(im_5.s2, im_5.s3, im_7.s2, im_7.s3, im_5.s6, im_5.s7, im_7.s6, im_7.s7);
            im_5 = t; }
        { const vec_t t = (vec_t)(im_0.s0, im_1.s0, im_0.s2, im_1.s2, im_0.s4, im_1.s4, im_0.s6, im_1.s6);
            im_1 = (vec_t)(im_0.s1, im_1.s1, im_0.s3, im_1.s3, im_0.s5, im_1.s5, im_0.s7, im_1.s7);
            im_0 = t; }
        { const vec_t t = (vec_t)(im_2.s0, im_3.s0, im_2.s2, im_3.s2, im_2.s4, im_3.s4, im_2.s6, im_3.s6);
            im_3 = (vec_t)(im_2.s1, im_3.s1, im_2.s3, im_3.s3, im_2.s5, im_3.s5, im_2.s7, im_3.s7);
            im_2 = t; }
        { const vec_t t = (vec_t)(im_4.s0, im_5.s0, im_4.s2, im_5.s2, im_4.s4, im_5.s4, im_4.s6, im_5.s6);
            im_5 = (vec_t)(im_4.s1, im_5.s1, im_4.s3, im_5.s3, im_4.s5, im_5.s5, im_4.s7, im_5.s7);
            im_4 = t; }
        { const vec_t t = (vec_t)(im_6.s0, im_7.s0, im_6.s2, im_7.s2, im_6.s4, im_7.s4, im_6.s6, im_7.s6);
            im_7 = (vec_t)(im_6.s1, im_7.s1, im_6.s3, im_7.s3, im_6.s5, im_7.s5, im_6.s7, im_7.s7);
            im_6 = t; }
        work_at[0] = re_0;
        work_at[1] = im_0;
        work_at[2] = re_1;
        work_at[3] = im_1;
        work_at[4] = re_2;
        work_at[5] = im_2;
        work_at[6] = re_3;
        work_at[7] = im_3;
        work_at[8] = re_4;
        work_at[9] = im_4;
        work_at[10] = re_5;
        work_at[11] = im_5;
        work_at[12] = re_6;
        work_at[13] = im_6;
        work_at[14] = re_7;
        work_at[15] = im_7;
    }
    /* Pass 1: radix 8, runs of 8. */
    for (uint k = 0; k < 1; ++k) {
        const vec_t w_re_1 = ((__global const vec_t *)(twiddles + 0))[k * 14 + 0];
        const vec_t w_im_1 = ((__global const vec_t *)(twiddles + 0))[k * 14 + 1];
        const vec_t w_re_2 = ((__global const vec_t *)(twiddles + 0))[k * 14 + 2];
        const vec_t w_im_2 = ((__global const vec_t *)(twiddles + 0))[k * 14 + 3];
        const vec_t w_re_3 = ((__global const vec_t *)(twiddles + 0))[k * 14 + 4];
        const vec_t w_im_3 = ((__global const vec_t *)(twiddles + 0))[k * 14 + 5];
        const vec_t w_re_4 = ((__global const vec_t *)(twiddles + 0))[k * 14 + 6];
        const vec_t w_im_4 = ((__global const vec_t *)(twiddles + 0))[k * 14 + 7];
        const vec_t w_re_5 = ((__global const vec_t *)(twiddles + 0))[k * 14 + 8];
        const vec_t w_im_5 = ((__global const vec_t *)(twiddles + 0))[k * 14 + 9];
        const vec_t w_re_6 = ((__global const vec_t *)(twiddles + 0))[k * 14 + 10];
        const vec_t w_im_6 = ((__global const vec_t *)(twiddles + 0))[k * 14 + 11];
        const vec_t w_re_7 = ((__global const vec_t *)(twiddles + 0))[k * 14 + 12];
        const vec_t w_im_7 = ((__global const vec_t *)(twiddles + 0))[k * 14 + 13];
        for (uint g = 0; g < 1; ++g)
        {
            __local vec_t *work_0 = work + (v + 1) * 16;
            __local vec_t *work_1 = work;
            const uint j = g * 1 + k;
            const uint at = g * 8 + k;
            __local const vec_t *from_at = work_0 + 2 * j;
            __global complex_t *to_at = to + at * 8;
            vec_t re_0, im_0, re_1, im_1, re_2, im_2, re_3, im_3, re_4, im_4, re_5, im_5, re_6, im_6, re_7, im_7;
            re_0 = from_at[0];
            im_0 = from_at[1];
            re_1 = from_at[2];
            im_1 = from_at[3];
            {
                const vec_t product = re_1 * w_re_1 - im_1 * w_im_1;
                im_1 = re_1 * w_im_1 + im_1 * w_re_1;
                re_1 = product;
            }
            re_2 = from_at[4];
            im_2 = from_at[5];
            {
                const vec_t product = re_2 * w_re_2 - im_2 * w_im_2;
                im_2 = re_2 * w_im_2 + im_2 * w_re_2;
                re_2 = product;
            }
            re_3 = from_at[6];
            im_3 = from_at[7];
            {
                const vec_t product = re_3 * w_re_3 - im_3 * w_im_3;
                im_3 = re_3 * w_im_3 + im_3 * w_re_3;
                re_3 = product;
            }
            re_4 = from_at[8];
            im_4 = from_at[9];
            {
                const vec_t product = re_4 * w_re_4 - im_4 * w_im_4;
                im_4 = re_4 * w_im_4 + im_4 * w_re_4;
                re_4 = product;
            }
            re_5 = from_at[10];
            im_5 = from_at[11];
            {
                const vec_t product = re_5 * w_re_5 - im_5 * w_im_5;
                im_5 = re_5 * w_im_5 + im_5 * w_re_5;
                re_5 = product;
            }
            re_6 = from_at[12];
            im_6 = from_at[13];
            {
                const vec_t product = re_6 * w_re_6 - im_6 * w_im_6;
                im_6 = re_6 * w_im_6 + im_6 * w_re_6;
                re_6 = product;
            }
            re_7 = from_at[14];
            im_7 = from_at[15];
            {
                const vec_t product = re_7 * w_re_7 - im_7 * w_im_7;
                im_7 = re_7 * w_im_7 + im_7 * w_re_7;
                re_7 = product;
            }
            {
                vec_t out_re_0, out_im_0, out_re_1, out_im_1, out_re_2, out_im_2, out_re_3, out_im_3, out_re_4, out_im_4, out_re_5, out_im_5, out_re_6, out_im_6, out_re_7, out_im_7;
                const vec_t v0 = re_0 + re_4;
                const vec_t v1 = im_0 + im_4;
                const vec_t v2 = re_0 - re_4;
                const vec_t v3 = im_0 - im_4;
                const vec_t v4 = re_1 + re_5;
                const vec_t v5 = im_1 + im_5;
                const vec_t v6 = re_1 - re_5;
                const vec_t v7 = im_1 - im_5;
                const vec_t v8 = re_2 + re_6;
                const vec_t v9 = im_2 + im_6;
                const vec_t v10 = re_2 - re_6;
                const vec_t v11 = im_2 - im_6;
                const vec_t v12 = re_3 + re_7;
                const vec_t v13 = im_3 + im_7;
                const vec_t v14 = re_3 - re_7;
                const vec_t v15 = im_3 - im_7;
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
                out_re_0 = v24;
                out_im_0 = v25;
                out_re_1 = v49;
                out_im_1 = v50;
                out_re_2 = v26;
                out_im_2 = v27;
                out_re_3 = v51;
                out_im_3 = v52;
                out_re_4 = v28;
                out_im_4 = v29;
                out_re_5 = v53;
                out_im_5 = v54;
                out_re_6 = v30;
                out_im_6 = v31;
                out_re_7 = v55;
                out_im_7 = v56;
                re_0 = out_re_0;
                im_0 = out_im_0;
                re_1 = out_re_1;
                im_1 = out_im_1;
                re_2 = out_re_2;
                im_2 = out_im_2;
                re_3 = out_re_3;
                im_3 = out_im_3;
                re_4 = out_re_4;
                im_4 = out_im_4;
                re_5 = out_re_5;
                im_5 = out_im_5;
                re_6 = out_re_6;
                im_6 = out_im_6;
                re_7 = out_re_7;
                im_7 = out_im_7;
            }
            store_lanes(re_0, im_0, to_at);
            store_lanes(re_1, im_1, to_at + 8);
            store_lanes(re_2, im_2, to_at + 16);
            store_lanes(re_3, im_3, to_at + 24);
            store_lanes(re_4, im_4, to_at + 32);
            store_lanes(re_5, im_5, to_at + 40);
            store_lanes(re_6, im_6, to_at + 48);
            store_lanes(re_7, im_7, to_at + 56);
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void fft_vector(
    __global const complex_t *source_0,
    __global complex_t *target_0,
    __global const real_t *restrict twiddles_0,
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
    __local vec_t space[32];
    const index_t tasks = outer_0 * lanes_0;
    const index_t begin = (index_t)((ulong)tasks * get_global_id(0) / get_global_size(0));
    const index_t end = (index_t)((ulong)tasks * (get_global_id(0) + 1) / get_global_size(0));
    for (index_t task = begin; task < end; ++task)
        step_0(task, space, source_0, target_0, twiddles_0, lanes_0, source_outer_0, source_position_0, source_lane_0, target_outer_0, target_position_0, target_lane_0, scale_0);
}
