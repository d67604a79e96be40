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
 * factors are done as convolutions, as bluestein.cl.mako explains; here, one group does all of it.
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
 * REAL_T       float or double
 * INDEX_T      unsigned type that counts the elements of the arrays
 * INVERSE      whether real and imaginary parts are swapped as they are read and written
 * LOCAL_REALS  real numbers of local memory
 * PTX          whether the device takes inline PTX
 * LOOK_AHEAD   of two steps: by how many transforms the first one is ahead
 * STEPS        one or two `LocalStep` of opencl_lab/fourier/local_schedule.py, whose groups have
 *              equally many items
 */
typedef float real_t;
typedef float2 complex_t;
typedef float vec_t;
typedef uint index_t;

#define PADDED_0(at) ((at) + (at) / 32)

/* Do what one group of this step does. */
void step_0(const index_t group_number, __local real_t *space, __global const complex_t *restrict source, __global complex_t *restrict target, __global const complex_t *restrict twiddles, const index_t outer, const index_t lanes, const index_t source_offset, const index_t source_batch, const index_t source_outer, const index_t target_offset, const index_t target_batch, const index_t target_outer, const real_t scale)
{
    const index_t source_position = 1;
    const index_t source_lane = 64;
    const index_t target_position = 1;
    const index_t target_lane = 64;
    __local real_t *local_re = space, *local_im = space + 528;
    const uint item = (uint)get_local_id(0);
    const index_t first_lane = group_number * 8, o = 0, b = 0;
    const uint lane_0 = item / 8;
    const uint j_0 = item % 8;
    real_t re_0_0_0 = 0, im_0_0_0 = 0, re_0_0_1 = 0, im_0_0_1 = 0, re_0_0_2 = 0, im_0_0_2 = 0, re_0_0_3 = 0, im_0_0_3 = 0, re_0_0_4 = 0, im_0_0_4 = 0, re_0_0_5 = 0, im_0_0_5 = 0, re_0_0_6 = 0, im_0_0_6 = 0, re_0_0_7 = 0, im_0_0_7 = 0;
    const uint lane_1 = item / 8;
    const uint j_1 = item % 8;
    real_t re_1_0_0 = 0, im_1_0_0 = 0, re_1_0_1 = 0, im_1_0_1 = 0, re_1_0_2 = 0, im_1_0_2 = 0, re_1_0_3 = 0, im_1_0_3 = 0, re_1_0_4 = 0, im_1_0_4 = 0, re_1_0_5 = 0, im_1_0_5 = 0, re_1_0_6 = 0, im_1_0_6 = 0, re_1_0_7 = 0, im_1_0_7 = 0;

    /* Load. */
    {
        const index_t c = first_lane + lane_0;
        __global const complex_t *from = source
            + (source_offset + b * source_batch + o * source_outer + c * source_lane);
        if (c < lanes) {
            {
                const uint j = j_0 + 0;
                __global const complex_t *from_j = from + j * source_position;
                {
                    const complex_t x = from_j[0 * source_position];
                    re_0_0_0 = x.x;
                    im_0_0_0 = x.y;
                }
                {
                    const complex_t x = from_j[8 * source_position];
                    re_0_0_1 = x.x;
                    im_0_0_1 = x.y;
                }
                {
                    const complex_t x = from_j[16 * source_position];
                    re_0_0_2 = x.x;
                    im_0_0_2 = x.y;
                }
                {
                    const complex_t x = from_j[24 * source_position];
                    re_0_0_3 = x.x;
                    im_0_0_3 = x.y;
                }
                {
                    const complex_t x = from_j[32 * source_position];
                    re_0_0_4 = x.x;
                    im_0_0_4 = x.y;
                }
                {
                    const complex_t x = from_j[40 * source_position];
                    re_0_0_5 = x.x;
                    im_0_0_5 = x.y;
                }
                {
                    const complex_t x = from_j[48 * source_position];
                    re_0_0_6 = x.x;
                    im_0_0_6 = x.y;
                }
                {
                    const complex_t x = from_j[56 * source_position];
                    re_0_0_7 = x.x;
                    im_0_0_7 = x.y;
                }
            }
        }
    }

    /* Pass 0: radix 8, runs of 1. */
    {
        {
            const uint j = j_0 + 0;
            real_t re_0 = re_0_0_0, im_0 = im_0_0_0, re_1 = re_0_0_1, im_1 = im_0_0_1, re_2 = re_0_0_2, im_2 = im_0_0_2, re_3 = re_0_0_3, im_3 = im_0_0_3, re_4 = re_0_0_4, im_4 = im_0_0_4, re_5 = re_0_0_5, im_5 = im_0_0_5, re_6 = re_0_0_6, im_6 = im_0_0_6, re_7 = re_0_0_7, im_7 = im_0_0_7;
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
            re_0_0_0 = re_0;
            im_0_0_0 = im_0;
            re_0_0_1 = re_1;
            im_0_0_1 = im_1;
            re_0_0_2 = re_2;
            im_0_0_2 = im_2;
            re_0_0_3 = re_3;
            im_0_0_3 = im_3;
            re_0_0_4 = re_4;
            im_0_0_4 = im_4;
            re_0_0_5 = re_5;
            im_0_0_5 = im_5;
            re_0_0_6 = re_6;
            im_0_0_6 = im_6;
            re_0_0_7 = re_7;
            im_0_0_7 = im_7;
        }
    }
    {
        {
            const uint j = j_0 + 0;
            const uint start = lane_0 * 64 + (j / 1 * 8 + j % 1);
            const uint start_0 = PADDED_0(start + 0);
            local_re[start_0 + 0] = re_0_0_0;
            local_im[start_0 + 0] = im_0_0_0;
            local_re[start_0 + 1] = re_0_0_1;
            local_im[start_0 + 1] = im_0_0_1;
            local_re[start_0 + 2] = re_0_0_2;
            local_im[start_0 + 2] = im_0_0_2;
            local_re[start_0 + 3] = re_0_0_3;
            local_im[start_0 + 3] = im_0_0_3;
            local_re[start_0 + 4] = re_0_0_4;
            local_im[start_0 + 4] = im_0_0_4;
            local_re[start_0 + 5] = re_0_0_5;
            local_im[start_0 + 5] = im_0_0_5;
            local_re[start_0 + 6] = re_0_0_6;
            local_im[start_0 + 6] = im_0_0_6;
            local_re[start_0 + 7] = re_0_0_7;
            local_im[start_0 + 7] = im_0_0_7;
        }
        barrier(CLK_LOCAL_MEM_FENCE); /* all points are there */
        {
            const uint j = j_1 + 0;
            const uint start = lane_1 * 64 + j;
            const uint start_0 = PADDED_0(start + 0);
            const uint start_8 = PADDED_0(start + 8);
            const uint start_16 = PADDED_0(start + 16);
            const uint start_24 = PADDED_0(start + 24);
            re_1_0_0 = local_re[start_0 + 0];
            im_1_0_0 = local_im[start_0 + 0];
            re_1_0_1 = local_re[start_8 + 0];
            im_1_0_1 = local_im[start_8 + 0];
            re_1_0_2 = local_re[start_16 + 0];
            im_1_0_2 = local_im[start_16 + 0];
            re_1_0_3 = local_re[start_24 + 0];
            im_1_0_3 = local_im[start_24 + 0];
            re_1_0_4 = local_re[start_0 + 33];
            im_1_0_4 = local_im[start_0 + 33];
            re_1_0_5 = local_re[start_8 + 33];
            im_1_0_5 = local_im[start_8 + 33];
            re_1_0_6 = local_re[start_16 + 33];
            im_1_0_6 = local_im[start_16 + 33];
            re_1_0_7 = local_re[start_24 + 33];
            im_1_0_7 = local_im[start_24 + 33];
        }
    }

    /* Pass 1: radix 8, runs of 8. */
    {
        {
            const uint j = j_1 + 0;
            real_t re_0 = re_1_0_0, im_0 = im_1_0_0, re_1 = re_1_0_1, im_1 = im_1_0_1, re_2 = re_1_0_2, im_2 = im_1_0_2, re_3 = re_1_0_3, im_3 = im_1_0_3, re_4 = re_1_0_4, im_4 = im_1_0_4, re_5 = re_1_0_5, im_5 = im_1_0_5, re_6 = re_1_0_6, im_6 = im_1_0_6, re_7 = re_1_0_7, im_7 = im_1_0_7;
            __global const complex_t *twiddles_of_j = twiddles + (0 + j % 8);
            const complex_t w_1 = twiddles_of_j[0];
            {
                const real_t product = re_1 * w_1.x - im_1 * w_1.y;
                im_1 = re_1 * w_1.y + im_1 * w_1.x;
                re_1 = product;
            }
            const complex_t w_2 = twiddles_of_j[8];
            {
                const real_t product = re_2 * w_2.x - im_2 * w_2.y;
                im_2 = re_2 * w_2.y + im_2 * w_2.x;
                re_2 = product;
            }
            const complex_t w_3 = twiddles_of_j[16];
            {
                const real_t product = re_3 * w_3.x - im_3 * w_3.y;
                im_3 = re_3 * w_3.y + im_3 * w_3.x;
                re_3 = product;
            }
            const complex_t w_4 = (complex_t)(w_3.x * w_1.x - w_3.y * w_1.y, w_3.x * w_1.y + w_3.y * w_1.x);
            {
                const real_t product = re_4 * w_4.x - im_4 * w_4.y;
                im_4 = re_4 * w_4.y + im_4 * w_4.x;
                re_4 = product;
            }
            const complex_t w_5 = (complex_t)(w_3.x * w_2.x - w_3.y * w_2.y, w_3.x * w_2.y + w_3.y * w_2.x);
            {
                const real_t product = re_5 * w_5.x - im_5 * w_5.y;
                im_5 = re_5 * w_5.y + im_5 * w_5.x;
                re_5 = product;
            }
            const complex_t w_6 = twiddles_of_j[40];
            {
                const real_t product = re_6 * w_6.x - im_6 * w_6.y;
                im_6 = re_6 * w_6.y + im_6 * w_6.x;
                re_6 = product;
            }
            const complex_t w_7 = (complex_t)(w_6.x * w_1.x - w_6.y * w_1.y, w_6.x * w_1.y + w_6.y * w_1.x);
            {
                const real_t product = re_7 * w_7.x - im_7 * w_7.y;
                im_7 = re_7 * w_7.y + im_7 * w_7.x;
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
            re_1_0_0 = re_0;
            im_1_0_0 = im_0;
            re_1_0_1 = re_1;
            im_1_0_1 = im_1;
            re_1_0_2 = re_2;
            im_1_0_2 = im_2;
            re_1_0_3 = re_3;
            im_1_0_3 = im_3;
            re_1_0_4 = re_4;
            im_1_0_4 = im_4;
            re_1_0_5 = re_5;
            im_1_0_5 = im_5;
            re_1_0_6 = re_6;
            im_1_0_6 = im_6;
            re_1_0_7 = re_7;
            im_1_0_7 = im_7;
        }
    }

    /* Store. */
    {
        const index_t c = first_lane + lane_1;
        __global complex_t *to = target
            + (target_offset + b * target_batch + o * target_outer + c * target_lane);
        if (c < lanes) {
            {
                const uint j = j_1 + 0;
                __global complex_t *to_j = to + j * target_position;
                {
                    complex_t x = (complex_t)(re_1_0_0, im_1_0_0);
                    to_j[0 * target_position] = x;
                }
                {
                    complex_t x = (complex_t)(re_1_0_1, im_1_0_1);
                    to_j[8 * target_position] = x;
                }
                {
                    complex_t x = (complex_t)(re_1_0_2, im_1_0_2);
                    to_j[16 * target_position] = x;
                }
                {
                    complex_t x = (complex_t)(re_1_0_3, im_1_0_3);
                    to_j[24 * target_position] = x;
                }
                {
                    complex_t x = (complex_t)(re_1_0_4, im_1_0_4);
                    to_j[32 * target_position] = x;
                }
                {
                    complex_t x = (complex_t)(re_1_0_5, im_1_0_5);
                    to_j[40 * target_position] = x;
                }
                {
                    complex_t x = (complex_t)(re_1_0_6, im_1_0_6);
                    to_j[48 * target_position] = x;
                }
                {
                    complex_t x = (complex_t)(re_1_0_7, im_1_0_7);
                    to_j[56 * target_position] = x;
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
    const index_t outer_0,
    const index_t lanes_0,
    const index_t source_offset_0,
    const index_t source_batch_0,
    const index_t source_outer_0,
    const index_t target_offset_0,
    const index_t target_batch_0,
    const index_t target_outer_0,
    const real_t scale_0
)
{
    __local real_t space[1056] __attribute__((aligned(16)));
    step_0((index_t)get_group_id(0), space, source_0, target_0, twiddles_0, outer_0, lanes_0, source_offset_0, source_batch_0, source_outer_0, target_offset_0, target_batch_0, target_outer_0, scale_0);
}
