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
 * SUB_GROUP      items of a sub-group, 0: the compiler chooses
 * KIND           c2c, r2c or c2r: which sides are complex
 */
<%page args="ELEMENT, INDEX_T, WG_SIZE, WORK_PER_ITEM, VECTOR_WIDTH, TILE, BLOCKS, RESEED, REREAD, SUB_GROUP,
             KIND"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="complex_numbers" file="/fourier/complex.mako"/>\
<%namespace name="kinds" file="kinds.mako"/>\
<%
    width = "" if VECTOR_WIDTH == 1 else VECTOR_WIDTH
    lanes = [""] if VECTOR_WIDTH == 1 else [f".s{lane:x}" for lane in range(VECTOR_WIDTH)]
    staged = WG_SIZE > 1  # a single item shares with nobody and reads the signal in place
    reread = staged and REREAD
%>\
${extensions.enable(fp64=ELEMENT.double)}\
${complex_numbers.inlined()}\
${kinds.declare(ELEMENT, INDEX_T, KIND)}\
#define WG_SIZE ${WG_SIZE}
#define V ${VECTOR_WIDTH} /* frequencies of a vector */
#define VECTORS ${WORK_PER_ITEM // VECTOR_WIDTH} /* of an item */
#define TILE ${TILE}
#define BLOCKS ${BLOCKS}
#define SPAN (TILE * BLOCKS)
% if RESEED:
#define RESEED ${RESEED}
% else:
#define NEAR 8 /* roots that are multiplied by a common one */
% endif
typedef ${ELEMENT.real}${width} vec_t;
typedef ${INDEX_T}${width} index_vec_t;

${complex_numbers.declare_points()}\

/* Read the roots w^power. */
INLINE points_t gather_roots(__global const complex_t *roots, const index_vec_t power)
{
    points_t w;
% for lane in lanes:
    w.re${lane} = roots[power${lane}].x;
    w.im${lane} = roots[power${lane}].y;
% endfor
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
% for lane in lanes:
    product${lane} = (index_t)((ulong)k${lane} * factor % n);
% endfor
    return product;
}

% if not RESEED:
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

% endif
INLINE void add_product(points_t *sum, const sample_t x, const points_t w)
{
% if KIND == "r2c":
    sum->re += x * w.re;
    sum->im += x * w.im;
% else:
    sum->re += x.x * w.re;
    sum->im += x.x * w.im;
    sum->re -= x.y * w.im;
    sum->im += x.y * w.re;
% endif
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
% for l, lane in enumerate(lanes):
    if (k + ${l} < points)
        row[k + ${l}] = ${f"scale * x.re{lane}" if KIND == "c2r" else f"(complex_t)(scale * x.re{lane}, scale * x.im{lane})"};
% endfor
}

__kernel ${extensions.ask_width(SUB_GROUP)}__attribute__((reqd_work_group_size(WG_SIZE, 1, 1)))
void dft_tiled(__global const sample_t *restrict signal,
               __global result_t *restrict spectrum,
               __global const complex_t *restrict roots,
               const index_t n,
               const real_t scale)
{
% if staged:
    __local sample_t tile[SPAN];
% endif
    const uint item = (uint)get_local_id(0);
    const index_t points = POINTS(n), samples = SAMPLES(n);
    const size_t groups = (points + (size_t)(WG_SIZE * VECTORS * V - 1)) / (WG_SIZE * VECTORS * V); /* of a row */
    const index_t first_k = (index_t)(get_group_id(0) % groups * (WG_SIZE * VECTORS * V));
    const ulong row = get_group_id(0) / groups;
    __global const sample_t *row_samples = signal + row * samples;

    index_vec_t k[VECTORS];
    index_vec_t tile_step[VECTORS], tile_power[VECTORS]; /* of the next root between blocks */
    points_t total[VECTORS], lost[VECTORS];
% if RESEED:
    index_vec_t seed_step[VECTORS]; /* between exact roots */
    points_t root_of_k[VECTORS];
% else:
    points_t kept[TILE * VECTORS]; /* w^(t * k) */
    points_t near[NEAR * VECTORS]; /* of a tile first, then of blocks */
    points_t seed[VECTORS];        /* what they are multiplied by */
    uint block = 0;
% endif
#pragma unroll
    for (uint v = 0; v < VECTORS; ++v) {
        /* Frequencies past the end repeat the last one: its roots exist; they are not stored. */
% for l, lane in enumerate(lanes):
        k[v]${lane} = min(first_k + (v * WG_SIZE + item) * V + ${l}, n - 1);
% endfor
        total[v].re = total[v].im = lost[v].re = lost[v].im = 0;
        tile_power[v] = 0;
        tile_step[v] = multiple_of(k[v], ${"TILE" if RESEED else "NEAR * TILE"}, n);
% if RESEED:
        seed_step[v] = multiple_of(k[v], RESEED, n);
        root_of_k[v] = gather_roots(roots, k[v]);
% else:
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
% endif
    }

% if staged:
    for (index_t first = 0; first < samples; first += SPAN) {
        /* Stage the blocks, zeros past the end. */
        barrier(CLK_LOCAL_MEM_FENCE); /* nobody reads the blocks before any more */
        for (uint i = 0; i < SPAN; i += WG_SIZE) {
            const index_t j = first + i + item;
            tile[i + item] =
                j < samples ? sample_at(row_samples, min(j, samples - 1), n) : (sample_t)(0);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
% if reread:
#pragma unroll
        for (uint v = 0; v < VECTORS; ++v)
            root_of_k[v] = gather_roots(roots, k[v]);
% endif
        const uint depth = TILE;
${add_tiles(BLOCKS, RESEED or min(TILE, 4))}\
    }
% else:
    __global const real_t *components = (__global const real_t *)row_samples;
    const index_t whole = samples / SPAN * SPAN;
    for (index_t first = 0; first < whole; first += SPAN) {
        const uint depth = TILE;
${add_tiles(BLOCKS, RESEED or min(TILE, 4))}\
    }
    for (index_t first = whole; first < samples; first += TILE) {
        const uint depth = (uint)min((index_t)TILE, samples - first);
${add_tiles(1, RESEED or 1)}\
    }
% endif

#pragma unroll
    for (uint v = 0; v < VECTORS; ++v)
        store_lanes(spectrum + row * points, first_k + (v * WG_SIZE + item) * V, points, total[v], scale);
}
<%def name="add_tiles(blocks, unroll)">\
        /* Multiply ${blocks} blocks of `depth` samples by the inner roots. */
        points_t w[VECTORS], sum[VECTORS][${blocks}];
% if RESEED:
        index_vec_t seed_power[VECTORS];
% endif
#pragma unroll
        for (uint v = 0; v < VECTORS; ++v) {
% if RESEED:
            seed_power[v] = 0;
% endif
#pragma unroll
            for (uint b = 0; b < ${blocks}; ++b)
                sum[v][b].re = sum[v][b].im = 0;
        }
        for (uint t = 0; t < depth; t += ${unroll}) {
% if RESEED:
#pragma unroll
            for (uint v = 0; v < VECTORS; ++v) {
                w[v] = gather_roots(roots, seed_power[v]);
                seed_power[v] = advanced(seed_power[v], seed_step[v], n);
            }
% endif
#pragma unroll
            for (uint u = 0; u < ${unroll}; ++u) {
% if unroll > 1 and blocks == 1 and not staged:
                if (t + u >= depth)
                    continue;
% endif
% if not RESEED:
#pragma unroll
                for (uint v = 0; v < VECTORS; ++v)
                    w[v] = kept[(t + u) * VECTORS + v];
% endif
#pragma unroll
                for (uint b = 0; b < ${blocks}; ++b) {
% if staged:
                    const sample_t x = tile[t + u + b * TILE];
% elif KIND == "c2c": # single components are broadcast as they are loaded
                    const index_t j = first + t + u + b * TILE;
                    const sample_t x = (sample_t)(components[2 * j], components[2 * j + 1]);
% else:
                    const sample_t x = sample_at(row_samples, first + t + u + b * TILE, n);
% endif
#pragma unroll
                    for (uint v = 0; v < VECTORS; ++v)
                        add_product(&sum[v][b], x, w[v]);
                }
% if RESEED:
                if (u + 1 < ${unroll})
#pragma unroll
                    for (uint v = 0; v < VECTORS; ++v)
                        w[v] = multiplied(w[v], root_of_k[v]);
% endif
            }
        }

        /* Multiply by the roots of the blocks, and add. */
#pragma unroll
        for (uint b = 0; b < ${blocks}; ++b)
#pragma unroll
            for (uint v = 0; v < VECTORS; ++v) {
% if RESEED:
                const points_t between = gather_roots(roots, tile_power[v]);
                tile_power[v] = advanced(tile_power[v], tile_step[v], n);
% else:
                if ((block + b) % NEAR == 0) {
                    seed[v] = gather_roots(roots, tile_power[v]);
                    tile_power[v] = advanced(tile_power[v], tile_step[v], n);
                }
                const points_t between = multiplied(seed[v], near[(block + b) % NEAR * VECTORS + v]);
% endif
                add_compensated(&total[v], &lost[v], multiplied(sum[v][b], between));
            }
% if not RESEED:
        block += ${blocks};
% endif
</%def>\
