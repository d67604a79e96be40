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
 *     gather_roots, advanced   exact roots, by powers that are kept below n
 *     add_product              one sample times one root of each frequency
 *     add_tiles                BLOCKS tiles: the inner sums, then `total`
 *     dft_tiled                the kernel: frequencies of an item, staging, stores
 *
 * Source: the definition, blocked as a complex GEMM. Powers f * k and t * k are reduced
 * modulo n exactly, by integers, and their roots read from a table. Between two such
 * roots, RESEED samples apart, w^(t k) follows by multiplication with w^k. With RESEED = 0 a
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
 * ELEMENT        complex numbers: Element of core/kernels.py
 * INDEX_T        unsigned type that holds 2n
 * WG_SIZE        work-items in a work-group
 * WORK_PER_ITEM  frequencies of an item, a multiple of VECTOR_WIDTH
 * VECTOR_WIDTH   frequencies in a vector: 1, 2, 4, 8 or 16
 * TILE           samples of a block
 * BLOCKS         blocks that share the roots
 * RESEED         samples between exact roots, a divisor of TILE; 0 keeps a tile of exact ones
 * REREAD         whether items of a group read w^k anew in each block, as Intel's
 *                compiler for CPUs mixes up these values if they live over a barrier
 * KIND           c2c, r2c or c2r: which sides are complex
 */
/* PoCL calls what is long, which keeps loops from being vectors and arrays from being registers. */
#define INLINE static inline __attribute__((always_inline))
typedef float real_t;
typedef float2 complex_t;
typedef uint index_t;
typedef complex_t sample_t;
typedef complex_t result_t;
#define SAMPLES(n) (n)
#define POINTS(n) (n)

/* Return sample j of a row. A frequency of half a spectrum stands for its mirror image too, but
 * 0 and n / 2 are their own, and their imaginary components are taken for 0. */
static inline sample_t sample_at(__global const sample_t *row, const index_t j, const index_t n)
{
    return row[j];
}
#define WG_SIZE 1
#define V 4 /* frequencies of a vector */
#define VECTORS 1 /* of an item */
#define TILE 16
#define BLOCKS 2
#define SPAN (TILE * BLOCKS)
#define NEAR 8 /* roots that are multiplied by a common one */
typedef float4 vec_t;
typedef uint4 index_vec_t;

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

/* Read the roots w^power. */
INLINE points_t gather_roots(__global const complex_t *roots, const index_vec_t power)
{
    points_t w;
    w.re.s0 = roots[power.s0].x;
    w.im.s0 = roots[power.s0].y;
    w.re.s1 = roots[power.s1].x;
    w.im.s1 = roots[power.s1].y;
    w.re.s2 = roots[power.s2].x;
    w.im.s2 = roots[power.s2].y;
    w.re.s3 = roots[power.s3].x;
    w.im.s3 = roots[power.s3].y;
    return w;
}

/* Both are below n, and so is their sum modulo n. */
INLINE index_vec_t advanced(const index_vec_t power, const index_vec_t step, const index_t n)
{
    const index_vec_t sum = power + step;
    return sum - (sum >= n ? (index_vec_t)(n) : (index_vec_t)(0));
}

/* k * factor modulo n. */
INLINE index_vec_t multiple_of(const index_vec_t k, const uint factor, const index_t n)
{
    index_vec_t product;
    product.s0 = (index_t)((ulong)k.s0 * factor % n);
    product.s1 = (index_t)((ulong)k.s1 * factor % n);
    product.s2 = (index_t)((ulong)k.s2 * factor % n);
    product.s3 = (index_t)((ulong)k.s3 * factor % n);
    return product;
}

/* Put w^(t * step), t < NEAR, to near[t * VECTORS]. Return NEAR * step modulo n. */
INLINE index_vec_t gather_near(points_t *near, __global const complex_t *roots, const index_vec_t step,
                               const index_t n)
{
    index_vec_t power = 0;
    for (uint t = 0; t < NEAR; ++t) {
        near[t * VECTORS] = gather_roots(roots, power);
        power = advanced(power, step, n);
    }
    return power;
}

INLINE void add_product(points_t *sum, const sample_t x, const points_t w)
{
    sum->re += x.x * w.re;
    sum->im += x.x * w.im;
    sum->re -= x.y * w.im;
    sum->im += x.y * w.re;
}

/* Add, and keep what rounding took from the total in `lost`. */
INLINE void add_compensated(points_t *total, points_t *lost, const points_t x)
{
    const points_t add = {x.re - lost->re, x.im - lost->im};
    const points_t next = {total->re + add.re, total->im + add.im};
    lost->re = (next.re - total->re) - add.re;
    lost->im = (next.im - total->im) - add.im;
    *total = next;
}

/* Store the frequencies from k on that are inside the row. */
INLINE void store_lanes(__global result_t *row, const index_t k, const index_t points, const points_t x,
                        const real_t scale)
{
    if (k + 0 < points)
        row[k + 0] = (complex_t)(scale * x.re.s0, scale * x.im.s0);
    if (k + 1 < points)
        row[k + 1] = (complex_t)(scale * x.re.s1, scale * x.im.s1);
    if (k + 2 < points)
        row[k + 2] = (complex_t)(scale * x.re.s2, scale * x.im.s2);
    if (k + 3 < points)
        row[k + 3] = (complex_t)(scale * x.re.s3, scale * x.im.s3);
}

__kernel __attribute__((reqd_work_group_size(WG_SIZE, 1, 1)))
void dft_tiled(__global const sample_t *restrict signal,
               __global result_t *restrict spectrum,
               __global const complex_t *restrict roots,
               const index_t n,
               const real_t scale)
{
    const uint item = (uint)get_local_id(0);
    const index_t points = POINTS(n), samples = SAMPLES(n);
    const size_t groups = (points + (size_t)(WG_SIZE * VECTORS * V - 1)) / (WG_SIZE * VECTORS * V); /* of a row */
    const index_t first_k = (index_t)(get_group_id(0) % groups * (WG_SIZE * VECTORS * V));
    const ulong row = get_group_id(0) / groups;
    __global const sample_t *row_samples = signal + row * samples;

    index_vec_t k[VECTORS];
    index_vec_t tile_step[VECTORS], tile_power[VECTORS]; /* of the next root between blocks */
    points_t total[VECTORS], lost[VECTORS];
    points_t kept[TILE * VECTORS]; /* w^(t * k) */
    points_t near[NEAR * VECTORS]; /* of a tile first, then of blocks */
    points_t seed[VECTORS];        /* what they are multiplied by */
    uint block = 0;
    #pragma unroll
    for (uint v = 0; v < VECTORS; ++v) {
        /* Frequencies past the end repeat the last one: its roots exist; they are not stored. */
        k[v].s0 = min(first_k + (v * WG_SIZE + item) * V + 0, n - 1);
        k[v].s1 = min(first_k + (v * WG_SIZE + item) * V + 1, n - 1);
        k[v].s2 = min(first_k + (v * WG_SIZE + item) * V + 2, n - 1);
        k[v].s3 = min(first_k + (v * WG_SIZE + item) * V + 3, n - 1);
        total[v].re = total[v].im = lost[v].re = lost[v].im = 0;
        tile_power[v] = 0;
        tile_step[v] = multiple_of(k[v], NEAR * TILE, n);
        const index_vec_t far_step = gather_near(near + v, roots, k[v], n);
        index_vec_t far = 0;
        for (uint t = 0; t < TILE; ++t) {
            if (t % NEAR == 0) {
                seed[v] = gather_roots(roots, far);
                far = advanced(far, far_step, n);
            }
            kept[t * VECTORS + v] = multiplied(seed[v], near[t % NEAR * VECTORS + v]);
        }
        gather_near(near + v, roots, multiple_of(k[v], TILE, n), n);
    }

    __global const real_t *components = (__global const real_t *)row_samples;
    const index_t whole = samples / SPAN * SPAN;
    for (index_t first = 0; first < whole; first += SPAN) {
        const uint depth = TILE;
        /* Multiply 2 blocks of `depth` samples by the inner roots. */
        points_t w[VECTORS], sum[VECTORS][2];
        #pragma unroll
        for (uint v = 0; v < VECTORS; ++v) {
            #pragma unroll
            for (uint b = 0; b < 2; ++b)
                sum[v][b].re = sum[v][b].im = 0;
        }
        for (uint t = 0; t < depth; t += 4) {
            #pragma unroll
            for (uint u = 0; u < 4; ++u) {
                #pragma unroll
                for (uint v = 0; v < VECTORS; ++v)
                    w[v] = kept[(t + u) * VECTORS + v];
                #pragma unroll
                for (uint b = 0; b < 2; ++b) {
                    const index_t j = first + t + u + b * TILE;
                    const sample_t x = (sample_t)(components[2 * j], components[2 * j + 1]);
                    #pragma unroll
                    for (uint v = 0; v < VECTORS; ++v)
                        add_product(&sum[v][b], x, w[v]);
                }
            }
        }

        /* Multiply by the roots of the blocks, and add. */
        #pragma unroll
        for (uint b = 0; b < 2; ++b)
            #pragma unroll
            for (uint v = 0; v < VECTORS; ++v) {
                if ((block + b) % NEAR == 0) {
                    seed[v] = gather_roots(roots, tile_power[v]);
                    tile_power[v] = advanced(tile_power[v], tile_step[v], n);
                }
                const points_t between = multiplied(seed[v], near[(block + b) % NEAR * VECTORS + v]);
                add_compensated(&total[v], &lost[v], multiplied(sum[v][b], between));
            }
        block += 2;
    }
    for (index_t first = whole; first < samples; first += TILE) {
        const uint depth = (uint)min((index_t)TILE, samples - first);
        /* Multiply 1 blocks of `depth` samples by the inner roots. */
        points_t w[VECTORS], sum[VECTORS][1];
        #pragma unroll
        for (uint v = 0; v < VECTORS; ++v) {
            #pragma unroll
            for (uint b = 0; b < 1; ++b)
                sum[v][b].re = sum[v][b].im = 0;
        }
        for (uint t = 0; t < depth; t += 1) {
            #pragma unroll
            for (uint u = 0; u < 1; ++u) {
                #pragma unroll
                for (uint v = 0; v < VECTORS; ++v)
                    w[v] = kept[(t + u) * VECTORS + v];
                #pragma unroll
                for (uint b = 0; b < 1; ++b) {
                    const index_t j = first + t + u + b * TILE;
                    const sample_t x = (sample_t)(components[2 * j], components[2 * j + 1]);
                    #pragma unroll
                    for (uint v = 0; v < VECTORS; ++v)
                        add_product(&sum[v][b], x, w[v]);
                }
            }
        }

        /* Multiply by the roots of the blocks, and add. */
        #pragma unroll
        for (uint b = 0; b < 1; ++b)
            #pragma unroll
            for (uint v = 0; v < VECTORS; ++v) {
                if ((block + b) % NEAR == 0) {
                    seed[v] = gather_roots(roots, tile_power[v]);
                    tile_power[v] = advanced(tile_power[v], tile_step[v], n);
                }
                const points_t between = multiplied(seed[v], near[(block + b) % NEAR * VECTORS + v]);
                add_compensated(&total[v], &lost[v], multiplied(sum[v][b], between));
            }
        block += 1;
    }

    #pragma unroll
    for (uint v = 0; v < VECTORS; ++v)
        store_lanes(spectrum + row * points, first_k + (v * WG_SIZE + item) * V, points, total[v], scale);
}
