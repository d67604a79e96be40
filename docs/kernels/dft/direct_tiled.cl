/*
 * An example of clkernels/dft/direct_tiled.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       dft n=1000 batch=8
 *     algorithm     direct-tiled
 *     configuration WG_SIZE=1 WORK_PER_ITEM=4 VECTOR_WIDTH=4 TILE=16 BLOCKS=2 RESEED=0
 *     device        EPYC (pocl of tools/rendered_kernels.py)
 *     launch        dft_tiled, (2000,) items in groups of (1,)
 */
/*
 * Discrete Fourier transform by its definition, arranged as a product of matrices.
 *
 *     spectrum[b][k] = scale * sum over j of signal[b][j] * w^(j * k)       w = exp(-+2 pi i / n)
 *
 * One side may be real; the other one then has the frequencies from 0 to n / 2.
 *
 * With j = f + t, where f is the first sample of a block and t < TILE,
 *
 *     sum over j = sum over f of w^(f * k) * (sum over t of signal[f + t] * w^(t * k)),
 *
 * and the inner roots w^(t * k) are the same for every block. BLOCKS blocks go together,
 * so that a root, once it is known, serves as many multiplications:
 *
 *              TILE          BLOCKS = 3
 *            +------+------+------+------+------+------+---
 *   signal   | f0   | f1   | f2   | f0   | f1   | f2   | ..    staged in local memory,
 *            +------+------+------+------+------+------+---    BLOCKS tiles at a time
 *               t      t      t
 *   item     sum_0 += x[f0 + t] * w^(t k)        WORK_PER_ITEM values of k: in registers,
 *            sum_1 += x[f1 + t] * w^(t k)        sine and cosine together
 *            sum_2 += x[f2 + t] * w^(t k)
 *   after a tile:  total += w^(f0 k) * sum_0 + w^(f1 k) * sum_1 + w^(f2 k) * sum_2
 *
 *   frequencies of a group: vector v of item i holds lanes of VECTOR_WIDTH from
 *   first + (v * WG_SIZE + i) * VECTOR_WIDTH on
 *
 * Source: the definition, blocked as a complex GEMM. Powers f * k and t * k are reduced
 * modulo n exactly, by integers, and their roots read from a table. Between two such
 * roots, RESEED steps apart, w^(t k) follows by multiplication with w^k. With RESEED = 0 a
 * tile of roots is kept in private memory, each the product of two exact ones,
 * w^(8 a k) * w^(b k) with b < 8; the roots of blocks are products alike. The sums of tiles
 * are added with compensation (W. Kahan, CACM 8(1), 1965).
 *
 * Samples past the end are staged as zeros, so all items take the same trips and meet
 * every barrier; only the stores are guarded. A group of one item reads the signal in
 * place, without barriers, and takes the rest that fills no BLOCKS tiles by single tiles.
 *
 * The host guarantees: rows are contiguous; work-groups cover the frequencies of one row
 * after the other; WG_SIZE divides TILE * BLOCKS; `spectrum` does not overlap `signal`; roots[e] is w^e, correctly rounded.
 *
 * REAL_T         float or double
 * INDEX_T        unsigned type that holds 2n
 * WG_SIZE        work-items in a work-group
 * WORK_PER_ITEM  frequencies of an item, a multiple of VECTOR_WIDTH
 * VECTOR_WIDTH   frequencies in a vector: 1, 2, 4, 8 or 16
 * TILE           samples of a block
 * BLOCKS         blocks that share the roots
 * RESEED         steps between exact roots, a divisor of TILE; 0 keeps a tile of exact ones
 * REREAD         whether items of a group read the step between roots anew in each block, as Intel's
 *                compiler for CPUs mixes up these values if they live over a barrier
 * KIND           c2c, r2c or c2r: which sides are complex
 */
typedef float real_t;
typedef float2 complex_t;
typedef uint index_t;
typedef complex_t sample_t;
typedef complex_t result_t;
#define SAMPLES(n) (n)
#define POINTS(n) (n)

/* Return sample j of a row. A frequency of half a spectrum stands for its mirror image too, but
 * 0 and n / 2 are their own, and their imaginary parts are taken for 0. */
static inline sample_t sample_at(__global const sample_t *row, const index_t j, const index_t n)
{
    return row[j];
}
typedef float4 vec_t;
typedef uint4 index_vec_t;

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void dft_tiled(__global const sample_t *restrict signal,
               __global result_t *restrict spectrum,
               __global const complex_t *restrict roots,
               const index_t n,
               const real_t scale)
{
    const uint item = (uint)get_local_id(0);
    const index_t points = POINTS(n), samples = SAMPLES(n);
    const size_t groups = (points + (size_t)3) / 4; /* of a row */
    const index_t first_k = (index_t)(get_group_id(0) % groups * 4);
    const ulong row = get_group_id(0) / groups;
    __global const sample_t *row_samples = signal + row * samples;
    vec_t kept_re[16];
    vec_t kept_im[16];
    vec_t near_re[8]; /* roots of a step within a group of tiles */
    vec_t near_im[8];
    uint block = 0;
    /* Frequencies past the end repeat the last one: its roots exist; they are not stored. */
    index_vec_t k_0;
    k_0.s0 = min(first_k + (0 + item) * 4 + 0, n - 1);
    k_0.s1 = min(first_k + (0 + item) * 4 + 1, n - 1);
    k_0.s2 = min(first_k + (0 + item) * 4 + 2, n - 1);
    k_0.s3 = min(first_k + (0 + item) * 4 + 3, n - 1);
    vec_t w_re_0, w_im_0;
    vec_t total_re_0 = 0, total_im_0 = 0, lost_re_0 = 0, lost_im_0 = 0;
    index_vec_t tile_step_0, tile_power_0 = 0;
    tile_step_0.s0 = (index_t)((ulong)k_0.s0 * 128 % n);
    tile_step_0.s1 = (index_t)((ulong)k_0.s1 * 128 % n);
    tile_step_0.s2 = (index_t)((ulong)k_0.s2 * 128 % n);
    tile_step_0.s3 = (index_t)((ulong)k_0.s3 * 128 % n);
    vec_t seed_re_0, seed_im_0;
    {
        index_vec_t power = 0, far = 0, far_step;
        for (uint t = 0; t < 8; ++t) {
            w_re_0.s0 = roots[power.s0].x;
            w_im_0.s0 = roots[power.s0].y;
            w_re_0.s1 = roots[power.s1].x;
            w_im_0.s1 = roots[power.s1].y;
            w_re_0.s2 = roots[power.s2].x;
            w_im_0.s2 = roots[power.s2].y;
            w_re_0.s3 = roots[power.s3].x;
            w_im_0.s3 = roots[power.s3].y;
            near_re[t * 1 + 0] = w_re_0;
            near_im[t * 1 + 0] = w_im_0;
            power += k_0;
            power -= power >= n ? (index_vec_t)(n) : (index_vec_t)(0);
        }
        far_step = power;
        for (uint t = 0; t < 16; ++t) {
            if (t % 8 == 0) {
                seed_re_0.s0 = roots[far.s0].x;
                seed_im_0.s0 = roots[far.s0].y;
                seed_re_0.s1 = roots[far.s1].x;
                seed_im_0.s1 = roots[far.s1].y;
                seed_re_0.s2 = roots[far.s2].x;
                seed_im_0.s2 = roots[far.s2].y;
                seed_re_0.s3 = roots[far.s3].x;
                seed_im_0.s3 = roots[far.s3].y;
                far += far_step;
                far -= far >= n ? (index_vec_t)(n) : (index_vec_t)(0);
            }
            w_re_0 = seed_re_0 * near_re[t % 8 * 1 + 0] - seed_im_0 * near_im[t % 8 * 1 + 0];
            w_im_0 = seed_re_0 * near_im[t % 8 * 1 + 0] + seed_im_0 * near_re[t % 8 * 1 + 0];
            kept_re[t * 1 + 0] = w_re_0;
            kept_im[t * 1 + 0] = w_im_0;
        }
        far_step.s0 = (index_t)((ulong)k_0.s0 * 16 % n);
        far_step.s1 = (index_t)((ulong)k_0.s1 * 16 % n);
        far_step.s2 = (index_t)((ulong)k_0.s2 * 16 % n);
        far_step.s3 = (index_t)((ulong)k_0.s3 * 16 % n);
        power = 0;
        for (uint t = 0; t < 8; ++t) {
            w_re_0.s0 = roots[power.s0].x;
            w_im_0.s0 = roots[power.s0].y;
            w_re_0.s1 = roots[power.s1].x;
            w_im_0.s1 = roots[power.s1].y;
            w_re_0.s2 = roots[power.s2].x;
            w_im_0.s2 = roots[power.s2].y;
            w_re_0.s3 = roots[power.s3].x;
            w_im_0.s3 = roots[power.s3].y;
            near_re[t * 1 + 0] = w_re_0;
            near_im[t * 1 + 0] = w_im_0;
            power += far_step;
            power -= power >= n ? (index_vec_t)(n) : (index_vec_t)(0);
        }
    }

    __global const real_t *parts = (__global const real_t *)row_samples;
    const index_t whole = samples / 32 * 32;
    for (index_t first = 0; first < whole; first += 32) {
        const uint depth = 16;
        /* Multiply by the inner roots. */
        vec_t re_0_0 = 0, im_0_0 = 0;
        vec_t re_0_1 = 0, im_0_1 = 0;
        for (uint t = 0; t < depth; t += 4) {
            {
                w_re_0 = kept_re[(t + 0) * 1 + 0];
                w_im_0 = kept_im[(t + 0) * 1 + 0];
                const sample_t x_0 = (sample_t)(parts[2 * (first + t + 0)],
                                                parts[2 * (first + t + 0) + 1]);
                re_0_0 += x_0.x * w_re_0;
                im_0_0 += x_0.x * w_im_0;
                re_0_0 -= x_0.y * w_im_0;
                im_0_0 += x_0.y * w_re_0;
                const sample_t x_1 = (sample_t)(parts[2 * (first + t + 16)],
                                                parts[2 * (first + t + 16) + 1]);
                re_0_1 += x_1.x * w_re_0;
                im_0_1 += x_1.x * w_im_0;
                re_0_1 -= x_1.y * w_im_0;
                im_0_1 += x_1.y * w_re_0;
            }
            {
                w_re_0 = kept_re[(t + 1) * 1 + 0];
                w_im_0 = kept_im[(t + 1) * 1 + 0];
                const sample_t x_0 = (sample_t)(parts[2 * (first + t + 1)],
                                                parts[2 * (first + t + 1) + 1]);
                re_0_0 += x_0.x * w_re_0;
                im_0_0 += x_0.x * w_im_0;
                re_0_0 -= x_0.y * w_im_0;
                im_0_0 += x_0.y * w_re_0;
                const sample_t x_1 = (sample_t)(parts[2 * (first + t + 17)],
                                                parts[2 * (first + t + 17) + 1]);
                re_0_1 += x_1.x * w_re_0;
                im_0_1 += x_1.x * w_im_0;
                re_0_1 -= x_1.y * w_im_0;
                im_0_1 += x_1.y * w_re_0;
            }
            {
                w_re_0 = kept_re[(t + 2) * 1 + 0];
                w_im_0 = kept_im[(t + 2) * 1 + 0];
                const sample_t x_0 = (sample_t)(parts[2 * (first + t + 2)],
                                                parts[2 * (first + t + 2) + 1]);
                re_0_0 += x_0.x * w_re_0;
                im_0_0 += x_0.x * w_im_0;
                re_0_0 -= x_0.y * w_im_0;
                im_0_0 += x_0.y * w_re_0;
                const sample_t x_1 = (sample_t)(parts[2 * (first + t + 18)],
                                                parts[2 * (first + t + 18) + 1]);
                re_0_1 += x_1.x * w_re_0;
                im_0_1 += x_1.x * w_im_0;
                re_0_1 -= x_1.y * w_im_0;
                im_0_1 += x_1.y * w_re_0;
            }
            {
                w_re_0 = kept_re[(t + 3) * 1 + 0];
                w_im_0 = kept_im[(t + 3) * 1 + 0];
                const sample_t x_0 = (sample_t)(parts[2 * (first + t + 3)],
                                                parts[2 * (first + t + 3) + 1]);
                re_0_0 += x_0.x * w_re_0;
                im_0_0 += x_0.x * w_im_0;
                re_0_0 -= x_0.y * w_im_0;
                im_0_0 += x_0.y * w_re_0;
                const sample_t x_1 = (sample_t)(parts[2 * (first + t + 19)],
                                                parts[2 * (first + t + 19) + 1]);
                re_0_1 += x_1.x * w_re_0;
                im_0_1 += x_1.x * w_im_0;
                re_0_1 -= x_1.y * w_im_0;
                im_0_1 += x_1.y * w_re_0;
            }
        }

        /* Multiply by the roots of the blocks, and add. */
        {
            if ((block + 0) % 8 == 0) {
                seed_re_0.s0 = roots[tile_power_0.s0].x;
                seed_im_0.s0 = roots[tile_power_0.s0].y;
                seed_re_0.s1 = roots[tile_power_0.s1].x;
                seed_im_0.s1 = roots[tile_power_0.s1].y;
                seed_re_0.s2 = roots[tile_power_0.s2].x;
                seed_im_0.s2 = roots[tile_power_0.s2].y;
                seed_re_0.s3 = roots[tile_power_0.s3].x;
                seed_im_0.s3 = roots[tile_power_0.s3].y;
                tile_power_0 += tile_step_0;
                tile_power_0 -= tile_power_0 >= n ? (index_vec_t)(n) : (index_vec_t)(0);
            }
            w_re_0 = seed_re_0 * near_re[(block + 0) % 8 * 1 + 0] - seed_im_0 * near_im[(block + 0) % 8 * 1 + 0];
            w_im_0 = seed_re_0 * near_im[(block + 0) % 8 * 1 + 0] + seed_im_0 * near_re[(block + 0) % 8 * 1 + 0];
            const vec_t add_re = re_0_0 * w_re_0 - im_0_0 * w_im_0 - lost_re_0;
            const vec_t add_im = re_0_0 * w_im_0 + im_0_0 * w_re_0 - lost_im_0;
            const vec_t next_re = total_re_0 + add_re;
            const vec_t next_im = total_im_0 + add_im;
            lost_re_0 = (next_re - total_re_0) - add_re;
            lost_im_0 = (next_im - total_im_0) - add_im;
            total_re_0 = next_re;
            total_im_0 = next_im;
        }
        {
            if ((block + 1) % 8 == 0) {
                seed_re_0.s0 = roots[tile_power_0.s0].x;
                seed_im_0.s0 = roots[tile_power_0.s0].y;
                seed_re_0.s1 = roots[tile_power_0.s1].x;
                seed_im_0.s1 = roots[tile_power_0.s1].y;
                seed_re_0.s2 = roots[tile_power_0.s2].x;
                seed_im_0.s2 = roots[tile_power_0.s2].y;
                seed_re_0.s3 = roots[tile_power_0.s3].x;
                seed_im_0.s3 = roots[tile_power_0.s3].y;
                tile_power_0 += tile_step_0;
                tile_power_0 -= tile_power_0 >= n ? (index_vec_t)(n) : (index_vec_t)(0);
            }
            w_re_0 = seed_re_0 * near_re[(block + 1) % 8 * 1 + 0] - seed_im_0 * near_im[(block + 1) % 8 * 1 + 0];
            w_im_0 = seed_re_0 * near_im[(block + 1) % 8 * 1 + 0] + seed_im_0 * near_re[(block + 1) % 8 * 1 + 0];
            const vec_t add_re = re_0_1 * w_re_0 - im_0_1 * w_im_0 - lost_re_0;
            const vec_t add_im = re_0_1 * w_im_0 + im_0_1 * w_re_0 - lost_im_0;
            const vec_t next_re = total_re_0 + add_re;
            const vec_t next_im = total_im_0 + add_im;
            lost_re_0 = (next_re - total_re_0) - add_re;
            lost_im_0 = (next_im - total_im_0) - add_im;
            total_re_0 = next_re;
            total_im_0 = next_im;
        }
        block += 2;
    }
    for (index_t first = whole; first < samples; first += 16) {
        const uint depth = (uint)min((index_t)16, samples - first);
        /* Multiply by the inner roots. */
        vec_t re_0_0 = 0, im_0_0 = 0;
        for (uint t = 0; t < depth; t += 1) {
            {
                w_re_0 = kept_re[(t + 0) * 1 + 0];
                w_im_0 = kept_im[(t + 0) * 1 + 0];
                const sample_t x_0 = (sample_t)(parts[2 * (first + t + 0)],
                                                parts[2 * (first + t + 0) + 1]);
                re_0_0 += x_0.x * w_re_0;
                im_0_0 += x_0.x * w_im_0;
                re_0_0 -= x_0.y * w_im_0;
                im_0_0 += x_0.y * w_re_0;
            }
        }

        /* Multiply by the roots of the blocks, and add. */
        {
            if ((block + 0) % 8 == 0) {
                seed_re_0.s0 = roots[tile_power_0.s0].x;
                seed_im_0.s0 = roots[tile_power_0.s0].y;
                seed_re_0.s1 = roots[tile_power_0.s1].x;
                seed_im_0.s1 = roots[tile_power_0.s1].y;
                seed_re_0.s2 = roots[tile_power_0.s2].x;
                seed_im_0.s2 = roots[tile_power_0.s2].y;
                seed_re_0.s3 = roots[tile_power_0.s3].x;
                seed_im_0.s3 = roots[tile_power_0.s3].y;
                tile_power_0 += tile_step_0;
                tile_power_0 -= tile_power_0 >= n ? (index_vec_t)(n) : (index_vec_t)(0);
            }
            w_re_0 = seed_re_0 * near_re[(block + 0) % 8 * 1 + 0] - seed_im_0 * near_im[(block + 0) % 8 * 1 + 0];
            w_im_0 = seed_re_0 * near_im[(block + 0) % 8 * 1 + 0] + seed_im_0 * near_re[(block + 0) % 8 * 1 + 0];
            const vec_t add_re = re_0_0 * w_re_0 - im_0_0 * w_im_0 - lost_re_0;
            const vec_t add_im = re_0_0 * w_im_0 + im_0_0 * w_re_0 - lost_im_0;
            const vec_t next_re = total_re_0 + add_re;
            const vec_t next_im = total_im_0 + add_im;
            lost_re_0 = (next_re - total_re_0) - add_re;
            lost_im_0 = (next_im - total_im_0) - add_im;
            total_re_0 = next_re;
            total_im_0 = next_im;
        }
        block += 1;
    }

    /* Store what is inside the row. */
    {
        const index_t k = first_k + (0 + item) * 4;
        if (k + 0 < points)
            spectrum[row * points + k + 0] =
                (complex_t)(scale * total_re_0.s0, scale * total_im_0.s0);
        if (k + 1 < points)
            spectrum[row * points + k + 1] =
                (complex_t)(scale * total_re_0.s1, scale * total_im_0.s1);
        if (k + 2 < points)
            spectrum[row * points + k + 2] =
                (complex_t)(scale * total_re_0.s2, scale * total_im_0.s2);
        if (k + 3 < points)
            spectrum[row * points + k + 3] =
                (complex_t)(scale * total_re_0.s3, scale * total_im_0.s3);
    }
}
