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
<%page args="REAL_T, INDEX_T, WG_SIZE, WORK_PER_ITEM, VECTOR_WIDTH, TILE, BLOCKS, RESEED, REREAD, KIND"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="kinds" file="kinds.mako"/>\
${extensions.enable(fp64=REAL_T == 'double')}\
<%
    width = "" if VECTOR_WIDTH == 1 else VECTOR_WIDTH
    vectors = range(WORK_PER_ITEM // VECTOR_WIDTH)
    lanes = [""] if VECTOR_WIDTH == 1 else [f".s{lane:x}" for lane in range(VECTOR_WIDTH)]
    unroll = RESEED or min(TILE, 4)
    span = TILE * BLOCKS
    group_span = WG_SIZE * WORK_PER_ITEM
    staged = WG_SIZE > 1  # a single item shares with nobody and reads the signal in place
    near = 8  # roots that are multiplied by a common one
%>\
<%def name="gather(v, power, name='w')">\
% for lane in lanes:
            ${name}_re_${v}${lane} = roots[${power}${lane}].x;
            ${name}_im_${v}${lane} = roots[${power}${lane}].y;
% endfor
</%def>\
<%def name="multiply(v, array, at)">\
            w_re_${v} = seed_re_${v} * ${array}_re[${at}] - seed_im_${v} * ${array}_im[${at}];
            w_im_${v} = seed_re_${v} * ${array}_im[${at}] + seed_im_${v} * ${array}_re[${at}];
</%def>\
<%def name="advance(power, step)">\
${power} += ${step};
            ${power} -= ${power} >= n ? (index_vec_t)(n) : (index_vec_t)(0);\
</%def>\
<%def name="steps(v)">
    vec_t step_re_${v}, step_im_${v};
% for lane in lanes:
    step_re_${v}${lane} = roots[k_${v}${lane}].x;
    step_im_${v}${lane} = roots[k_${v}${lane}].y;
% endfor
</%def>\
<%def name="products(blocks, unroll)">\
        /* Multiply by the inner roots. */
% for v in vectors:
% for b in range(blocks):
        vec_t re_${v}_${b} = 0, im_${v}_${b} = 0;
% endfor
% if RESEED:
        index_vec_t seed_power_${v} = 0;
% endif
% endfor
        for (uint t = 0; t < ${TILE if staged else "depth"}; t += ${unroll}) {
% if RESEED:
% for v in vectors:
${gather(v, f"seed_power_{v}")}\
            ${advance(f"seed_power_{v}", f"seed_step_{v}")}
% endfor
% endif
% for u in range(unroll):
<% inside = unroll > 1 and blocks == 1 and not staged %>\
            ${f"if (t + {u} < depth) " if inside else ""}{
% if not RESEED:
% for v in vectors:
                w_re_${v} = kept_re[(t + ${u}) * ${len(vectors)} + ${v}];
                w_im_${v} = kept_im[(t + ${u}) * ${len(vectors)} + ${v}];
% endfor
% endif
% for b in range(blocks):
% if staged:
                const sample_t x_${b} = tile[t + ${b * TILE + u}];
% elif KIND == "c2c": # single parts are broadcast as they are loaded
                const sample_t x_${b} = (sample_t)(parts[2 * (first + t + ${b * TILE + u})],
                                                   parts[2 * (first + t + ${b * TILE + u}) + 1]);
% else:
                const sample_t x_${b} = sample_at(row_samples, first + t + ${b * TILE + u}, n);
% endif
% for v in vectors:
% if KIND == "r2c":
                re_${v}_${b} += x_${b} * w_re_${v};
                im_${v}_${b} += x_${b} * w_im_${v};
% else:
                re_${v}_${b} += x_${b}.x * w_re_${v};
                im_${v}_${b} += x_${b}.x * w_im_${v};
                re_${v}_${b} -= x_${b}.y * w_im_${v};
                im_${v}_${b} += x_${b}.y * w_re_${v};
% endif
% endfor
% endfor
% if RESEED and u + 1 < unroll:
% for v in vectors:
                const vec_t next_${v} = w_re_${v} * step_re_${v} - w_im_${v} * step_im_${v};
                w_im_${v} = w_re_${v} * step_im_${v} + w_im_${v} * step_re_${v};
                w_re_${v} = next_${v};
% endfor
% endif
            }
% endfor
        }

        /* Multiply by the roots of the blocks, and add. */
% for b in range(blocks):
% for v in vectors:
        {
% if RESEED:
${gather(v, f"tile_power_{v}")}\
            ${advance(f"tile_power_{v}", f"tile_step_{v}")}
% else:
            if ((block + ${b}) % ${near} == 0) {
${gather(v, f"tile_power_{v}", "seed")}\
                ${advance(f"tile_power_{v}", f"tile_step_{v}")}
            }
${multiply(v, "near", f"(block + {b}) % {near} * {len(vectors)} + {v}")}\
% endif
            const vec_t add_re = re_${v}_${b} * w_re_${v} - im_${v}_${b} * w_im_${v} - lost_re_${v};
            const vec_t add_im = re_${v}_${b} * w_im_${v} + im_${v}_${b} * w_re_${v} - lost_im_${v};
            const vec_t next_re = total_re_${v} + add_re;
            const vec_t next_im = total_im_${v} + add_im;
            lost_re_${v} = (next_re - total_re_${v}) - add_re;
            lost_im_${v} = (next_im - total_im_${v}) - add_im;
            total_re_${v} = next_re;
            total_im_${v} = next_im;
        }
% endfor
% endfor
% if not RESEED:
        block += ${blocks};
% endif
</%def>\
${kinds.declare(REAL_T=REAL_T, INDEX_T=INDEX_T, KIND=KIND)}\
typedef ${REAL_T}${width} vec_t;
typedef ${INDEX_T}${width} index_vec_t;

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void dft_tiled(__global const sample_t *restrict signal,
               __global result_t *restrict spectrum,
               __global const complex_t *restrict roots,
               const index_t n,
               const real_t scale)
{
% if staged:
    __local sample_t tile[${span}];
% endif
    const uint item = (uint)get_local_id(0);
    const index_t points = POINTS(n), samples = SAMPLES(n);
    const size_t groups = (points + (size_t)${group_span - 1}) / ${group_span}; /* of a row */
    const index_t first_k = (index_t)(get_group_id(0) % groups * ${group_span});
    const ulong row = get_group_id(0) / groups;
    __global const sample_t *row_samples = signal + row * samples;
% if not RESEED:
    vec_t kept_re[${TILE * len(vectors)}];
    vec_t kept_im[${TILE * len(vectors)}];
    vec_t near_re[${near * len(vectors)}]; /* roots of a step within a group of tiles */
    vec_t near_im[${near * len(vectors)}];
    uint block = 0;
% endif
% for v in vectors:
    /* Frequencies past the end repeat the last one: its roots exist; they are not stored. */
    index_vec_t k_${v};
% for index, lane in enumerate(lanes):
    k_${v}${lane} = min(first_k + (${v * WG_SIZE} + item) * ${VECTOR_WIDTH} + ${index}, n - 1);
% endfor
    vec_t w_re_${v}, w_im_${v};
    vec_t total_re_${v} = 0, total_im_${v} = 0, lost_re_${v} = 0, lost_im_${v} = 0;
    index_vec_t tile_step_${v}, tile_power_${v} = 0;
% for lane in lanes:
    tile_step_${v}${lane} = (index_t)((ulong)k_${v}${lane} * ${TILE if RESEED else near * TILE} % n);
% endfor
% if RESEED:
% if not (staged and REREAD):
${steps(v)}\
% endif
    index_vec_t seed_step_${v};
% for lane in lanes:
    seed_step_${v}${lane} = (index_t)((ulong)k_${v}${lane} * ${RESEED} % n);
% endfor
% else:
    vec_t seed_re_${v}, seed_im_${v};
    {
        index_vec_t power = 0, far = 0, far_step;
        for (uint t = 0; t < ${near}; ++t) {
${gather(v, "power")}\
            near_re[t * ${len(vectors)} + ${v}] = w_re_${v};
            near_im[t * ${len(vectors)} + ${v}] = w_im_${v};
            ${advance("power", f"k_{v}")}
        }
        far_step = power;
        for (uint t = 0; t < ${TILE}; ++t) {
            if (t % ${near} == 0) {
${gather(v, "far", "seed")}\
                ${advance("far", "far_step")}
            }
${multiply(v, "near", f"t % {near} * {len(vectors)} + {v}")}\
            kept_re[t * ${len(vectors)} + ${v}] = w_re_${v};
            kept_im[t * ${len(vectors)} + ${v}] = w_im_${v};
        }
% for lane in lanes:
        far_step${lane} = (index_t)((ulong)k_${v}${lane} * ${TILE} % n);
% endfor
        power = 0;
        for (uint t = 0; t < ${near}; ++t) {
${gather(v, "power")}\
            near_re[t * ${len(vectors)} + ${v}] = w_re_${v};
            near_im[t * ${len(vectors)} + ${v}] = w_im_${v};
            ${advance("power", "far_step")}
        }
    }
% endif
% endfor

% if staged:
    for (index_t first = 0; first < samples; first += ${span}) {
        /* Stage the blocks, zeros past the end. */
        barrier(CLK_LOCAL_MEM_FENCE); /* nobody reads the blocks before any more */
        for (uint i = 0; i < ${span}; i += ${WG_SIZE}) {
            const index_t j = first + i + item;
            tile[i + item] =
                j < samples ? sample_at(row_samples, min(j, samples - 1), n) : (sample_t)(0);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
% if REREAD:
% for v in vectors:
${steps(v)}\
% endfor
% endif
${products(BLOCKS, unroll)}\
    }
% else:
    __global const real_t *parts = (__global const real_t *)row_samples;
    const index_t whole = samples / ${span} * ${span};
    for (index_t first = 0; first < whole; first += ${span}) {
        const uint depth = ${TILE};
${products(BLOCKS, unroll)}\
    }
    for (index_t first = whole; first < samples; first += ${TILE}) {
        const uint depth = (uint)min((index_t)${TILE}, samples - first);
${products(1, RESEED or 1)}\
    }
% endif

    /* Store what is inside the row. */
% for v in vectors:
    {
        const index_t k = first_k + (${v * WG_SIZE} + item) * ${VECTOR_WIDTH};
% for index, lane in enumerate(lanes):
        if (k + ${index} < points)
            spectrum[row * points + k + ${index}] =
% if KIND == "c2r":
                scale * total_re_${v}${lane};
% else:
                (complex_t)(scale * total_re_${v}${lane}, scale * total_im_${v}${lane});
% endif
% endfor
    }
% endfor
}
