/*
 * Fast Fourier transforms of length N by single work-items with explicit vectors: the
 * form for CPUs. A group is one item and nothing synchronises.
 *
 * LANES = across: a vector holds the same position of VECTOR_WIDTH transforms.
 *
 *     position      0       1       2             N-1
 *                +-------+-------+-------+ ... +-------+
 *     work       | re im | re im | re im |     | re im |    one vector each, lanes = transforms
 *                +-------+-------+-------+ ... +-------+
 *
 * BLOCK such vectors lie side by side at each position, so that columns of a matrix are read
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
 * reads the user's array and the last one writes it. Local memory holds them if it can: a unit
 * has it in its cache, whichever items it gets.
 *
 *     read position j + i * N/R, i < R; times w^(i * (j mod S)); butterfly of R points;
 *     write position (j / S) * S * R + (j mod S) + i * S         S = product of the radices before
 *
 * Source: Stockham's autosort algorithm (W. T. Cochran et al., 1967) as given by
 * N. K. Govindaraju et al., "High performance discrete Fourier transforms on graphics
 * processors", SC 2008. With SHIFT, position p of lane c is multiplied by w_(N*lanes)^(p * c)
 * at the end, which makes this the first step of a four-step transform (D. H. Bailey, "FFTs
 * in external or hierarchical memory", 1990).
 *
 * Where the lanes of a block are not all there, the block begins earlier (TAIL = overlap), and
 * only lanes from `fresh` on are stored, or it has fewer lanes (TAIL = few).
 *
 * The host guarantees: `source` and `target` are aligned to one real, and either do not overlap
 * or are one array, all columns, without TAIL; element (o, p, c) of either lies at
 * o * OUTER + p * POSITION + c * LANE, where LANE is 1 for "columns" and POSITION is 1
 * for "rows"; `work` has room for two arrays an item; with LANES = within, lanes count the
 * transforms, RADICES[0] is a multiple of VECTOR_WIDTH, and N / RADICES[0] is not less.
 *
 * REAL_T        float or double
 * INDEX_T       unsigned type that counts the elements of the arrays
 * VECTOR_WIDTH  lanes of a vector: 2, 4, 8 or 16
 * BLOCK         vectors side by side; 1 with LANES = within
 * WORK          memory of the two arrays: local, or global where it is too small
 * N             length of a transform
 * RADICES       of the passes, in order; their product is N
 * LANES         across or within
 * LOAD, STORE   columns or rows
 * TAIL          none, overlap or few
 * FEW           lanes of every block where TAIL is few
 * SHIFT         whether to multiply by the roots between two steps
 * INVERSE       whether real and imaginary parts are exchanged on the way in and out
 * SCALED        whether to multiply by `scale`
 */
<%page args="REAL_T, INDEX_T, VECTOR_WIDTH, BLOCK, WORK, N, RADICES, LANES, LOAD, STORE, TAIL, FEW, SHIFT, INVERSE, SCALED"/>\
<%namespace name="codelets" file="codelets.mako"/>\
<%namespace name="vectors" file="vectors.mako"/>\
<%include file="/prelude.cl.mako" args="REQUIRE_FP64=REAL_T == 'double'"/>\
<%
    V, K = VECTOR_WIDTH, BLOCK
    within = LANES == "within"
    unit = V if within else 1
    passes = len(RADICES)
    before = [1]
    for radix in RADICES:
        before.append(before[-1] * radix)
    # The roots of each pass lie one after the other, in reals.
    places, place = [], 0
    for index, radix in enumerate(RADICES):
        places.append(place)
        place += 2 * before[index] * (radix - 1) if index else 0
    # `work` is read and written in turns; rows are loaded into the first array.
    readers, writers, current = [], [], 0 if LOAD == "rows" else None
    for index in range(passes):
        readers.append(current)
        current = None if index == passes - 1 and STORE == "columns" else (0 if current == 1 else 1) if current is not None else 0
        writers.append(current)
    vector_lane = f" + v * {V}" if K > 1 else ""
    at_work = (lambda p: f"({p}) * {K} + v") if K > 1 else (lambda p: p)
    first_re, first_im = ("im", "re") if INVERSE else ("re", "im")
%>\
${vectors.types(REAL_T, V)}\
typedef ${INDEX_T} index_t;

${vectors.lane_moves(V, INVERSE)}\

<%def name="load_global(i, step)">\
<% offset = f" + {i * step}" + ("" if within else " * source_position") if i else "" %>\
% if TAIL == "few":
            re_${i} = 0;
            im_${i} = 0;
% for l in range(FEW):
            ${first_re}_${i}.s${f"{l:x}"} = ((__global const real_t *)(from_at${offset}))[${2 * l}];
            ${first_im}_${i}.s${f"{l:x}"} = ((__global const real_t *)(from_at${offset}))[${2 * l + 1}];
% endfor
% else:
            load_lanes(from_at${offset}, &re_${i}, &im_${i});
% endif
</%def>\
<%def name="turn(i, step)">\
            {
                const complex_t far = far_at[${i * step}];
                const vec_t near_re = near_at[${2 * i * step}], near_im = near_at[${2 * i * step + 1}];
                const vec_t w_re = near_re * far.x - near_im * far.y;
                const vec_t w_im = near_re * far.y + near_im * far.x;
                const vec_t turned = re_${i} * w_re - im_${i} * w_im;
                im_${i} = re_${i} * w_im + im_${i} * w_re;
                re_${i} = turned;
            }
</%def>\
<%def name="store_global(i, step)">\
<% offset = f" + {i * step}" + ("" if within else " * target_position") if i else "" %>\
% if SCALED:
            re_${i} *= scale;
            im_${i} *= scale;
% endif
% if TAIL == "none":
            store_lanes(re_${i}, im_${i}, to_at${offset});
% elif TAIL == "overlap":
            if (fresh == 0) {
                store_lanes(re_${i}, im_${i}, to_at${offset});
            } else {
% for l in range(V):
                if (${l}${vector_lane} >= fresh)
                    ${store_one(i, l, offset)}\
% endfor
            }
% else:
% for l in range(FEW):
            ${store_one(i, l, offset)}\
% endfor
% endif
</%def>\
<%def name="store_one(i, l, offset)">\
vstore2((complex_t)(${first_re}_${i}.s${f"{l:x}"}, ${first_im}_${i}.s${f"{l:x}"}), ${l}, (__global real_t *)(to_at${offset}));
</%def>\
<%def name="load_rows()">\
<% whole = N >= V and TAIL != "few" %>\
% if whole:
${each_vector()}\
        for (uint p = 0; p < ${N}; p += ${V}) {
            const uint at = ${"p" if N % V == 0 else f"min(p, (uint){N - V})"};
            __${WORK} vec_t *work_at = work_0 + 2 * (${at_work("at")});
            vec_t ${", ".join(f"re_{l}, im_{l}" for l in range(V))};
% for l in range(V):
            load_lanes(from + (${l}${vector_lane}) * source_lane + at, &re_${l}, &im_${l});
% endfor
${vectors.transpose([f"re_{l}" for l in range(V)], V, " " * 12)}\
${vectors.transpose([f"im_{l}" for l in range(V)], V, " " * 12)}\
% for l in range(V):
            work_at[${2 * l * K}] = re_${l};
            work_at[${2 * l * K + 1}] = im_${l};
% endfor
        }
% else:
${each_vector()}\
        for (uint p = 0; p < ${N}; ++p) {
            vec_t re = 0, im = 0;
% for l in range(FEW if TAIL == "few" else V):
            ${first_re}.s${f"{l:x}"} = reals_from[2 * ((${l}${vector_lane}) * source_lane + p)];
            ${first_im}.s${f"{l:x}"} = reals_from[2 * ((${l}${vector_lane}) * source_lane + p) + 1];
% endfor
            work_0[2 * (${at_work("p")})] = re;
            work_0[2 * (${at_work("p")}) + 1] = im;
        }
% endif
</%def>\
<%def name="store_rows(source)">\
<% whole = N >= V and TAIL != "few" %>\
% if whole:
${each_vector()}\
        for (uint p = 0; p < ${N}; p += ${V}) {
            const uint at = ${"p" if N % V == 0 else f"min(p, (uint){N - V})"};
            __${WORK} const vec_t *work_at = ${source} + 2 * (${at_work("at")});
            vec_t ${", ".join(f"re_{l}, im_{l}" for l in range(V))};
% for l in range(V):
            re_${l} = work_at[${2 * l * K}]${" * scale" if SCALED else ""};
            im_${l} = work_at[${2 * l * K + 1}]${" * scale" if SCALED else ""};
% endfor
${vectors.transpose([f"re_{l}" for l in range(V)], V, " " * 12)}\
${vectors.transpose([f"im_{l}" for l in range(V)], V, " " * 12)}\
% for l in range(V):
% if TAIL == "overlap":
            if (${l}${vector_lane} >= fresh)
    \
% endif
            store_lanes(re_${l}, im_${l}, to + (${l}${vector_lane}) * target_lane + at);
% endfor
        }
% else:
${each_vector()}\
        for (uint p = 0; p < ${N}; ++p) {
            const vec_t re = ${source}[2 * (${at_work("p")})]${" * scale" if SCALED else ""};
            const vec_t im = ${source}[2 * (${at_work("p")}) + 1]${" * scale" if SCALED else ""};
% for l in range(FEW if TAIL == "few" else V):
% if TAIL == "overlap":
            if (${l}${vector_lane} >= fresh)
    \
% endif
            vstore2((complex_t)(${first_re}.s${f"{l:x}"}, ${first_im}.s${f"{l:x}"}), (${l}${vector_lane}) * target_lane + p, (__global real_t *)to);
% endfor
        }
% endif
</%def>\
<%def name="each_vector(indent=8)">\
% if K > 1:
${" " * indent}for (uint v = 0; v < ${K}; ++v)
% endif
</%def>\
<%def name="one_pass(index)">\
<%
    R, S = RADICES[index], before[index]
    reader, writer = readers[index], writers[index]
    step = N // R // unit
    blocks, groups = max(S // unit, 1), N // (R * S)
    points = range(R)
%>\
        /* Pass ${index}: radix ${R}, runs of ${S}. */
% if within and index == 0:
        for (uint j = 0; j < ${N // R}; j += ${V}) {
            const uint at = ${"j" if N // R % V == 0 else f"min(j, (uint){N // R - V})"};
            __global const complex_t *from_at = from + at;
            vec_t ${", ".join(f"re_{i}, im_{i}" for i in points)};
% for i in points:
${load_global(i, N // R)}\
% endfor
${codelets.butterfly(R, REAL_T)}\
            __${WORK} vec_t *work_at = work_${writer} + at * ${2 * R // V};
% for h in range(R // V):
${vectors.transpose([f"re_{h * V + l}" for l in range(V)], V, " " * 12)}\
${vectors.transpose([f"im_{h * V + l}" for l in range(V)], V, " " * 12)}\
% for l in range(V):
            work_at[${2 * (l * (R // V) + h)}] = re_${h * V + l};
            work_at[${2 * (l * (R // V) + h) + 1}] = im_${h * V + l};
% endfor
% endfor
        }
% else:
        for (uint k = 0; k < ${blocks}; ++k) {
% if S > 1:
% for i in points[1:]:
% if within:
            const vec_t w_re_${i} = ((__global const vec_t *)(roots + ${places[index]}))[2 * (k * ${R - 1} + ${i - 1})];
            const vec_t w_im_${i} = ((__global const vec_t *)(roots + ${places[index]}))[2 * (k * ${R - 1} + ${i - 1}) + 1];
% else:
            const real_t w_re_${i} = roots[${places[index]} + 2 * (k * ${R - 1} + ${i - 1})];
            const real_t w_im_${i} = roots[${places[index]} + 2 * (k * ${R - 1} + ${i - 1}) + 1];
% endif
% endfor
% endif
            for (uint g = 0; g < ${groups}; ++g)
${each_vector(12)}\
            {
            const uint j = g * ${blocks} + k;
            const uint at = g * ${blocks * R} + k;
% if reader is None:
            __global const complex_t *from_at = from + j * source_position${vector_lane};
% else:
            __${WORK} const vec_t *from_at = work_${reader} + 2 * (${at_work("j")});
% endif
% if writer is None:
            __global complex_t *to_at = to + at * ${unit if within else f"target_position{vector_lane}"};
% else:
            __${WORK} vec_t *to_at = work_${writer} + 2 * (${at_work("at")});
% endif
% if SHIFT and index == passes - 1:
            __global const complex_t *far_at = shift_far + ((block * ${K}${" + v" if K > 1 else ""}) * ${N} + at);
            __global const vec_t *near_at = shift_near + 2 * at;
% endif
            vec_t ${", ".join(f"re_{i}, im_{i}" for i in points)};
% for i in points:
% if reader is None:
${load_global(i, step)}\
% else:
            re_${i} = from_at[${2 * i * step * K}];
            im_${i} = from_at[${2 * i * step * K + 1}];
% endif
% if S > 1 and i:
            {
                const vec_t turned = re_${i} * w_re_${i} - im_${i} * w_im_${i};
                im_${i} = re_${i} * w_im_${i} + im_${i} * w_re_${i};
                re_${i} = turned;
            }
% endif
% endfor
${codelets.butterfly(R, REAL_T)}\
% for i in points:
% if SHIFT and index == passes - 1:
${turn(i, blocks)}\
% endif
% if writer is None:
${store_global(i, blocks * unit)}\
% else:
            to_at[${2 * i * blocks * K}] = re_${i};
            to_at[${2 * i * blocks * K + 1}] = im_${i};
% endif
% endfor
            }
        }
% endif
</%def>\
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void fft_lanes(__global const complex_t *source,
               __global complex_t *target,
% if WORK == "global":
               __global vec_t *restrict work,
% endif
               __global const real_t *restrict roots,
% if SHIFT:
               __global const vec_t *restrict shift_near,
               __global const complex_t *restrict shift_far,
% endif
               const index_t outer,
               const index_t lanes,
               const index_t source_outer,
               const index_t source_position,
               const index_t source_lane,
               const index_t target_outer,
               const index_t target_position,
               const index_t target_lane,
               const real_t scale)
{
% if WORK == "local":
    __local vec_t space[${4 * N * K // unit}];
    __local vec_t *work_0 = space;
% else:
    __global vec_t *work_0 = work + get_global_id(0) * ${4 * N * K // unit};
% endif
    __${WORK} vec_t *work_1 = work_0 + ${2 * N * K // unit};
    const index_t blocks = ${"lanes" if within else f"(lanes + {V * K - 1}) / {V * K}"};
    const index_t tasks = outer * blocks;
    const index_t begin = (index_t)((ulong)tasks * get_global_id(0) / get_global_size(0));
    const index_t end = (index_t)((ulong)tasks * (get_global_id(0) + 1) / get_global_size(0));

    for (index_t task = begin; task < end; ++task) {
        const index_t block = task % blocks;
% if within:
        const index_t first = block;
% elif TAIL == "overlap":
        const index_t first = min(block * ${V * K}, lanes - ${V * K});
        const uint fresh = (uint)(block * ${V * K} - first); /* lanes before belong to the block before */
% else:
        const index_t first = block * ${V * K};
% endif
        __global const complex_t *from =
            source + (task / blocks * source_outer + first * source_lane);
        __global const real_t *reals_from = (__global const real_t *)from;
        __global complex_t *to = target + (task / blocks * target_outer + first * target_lane);

% if LOAD == "rows":
        /* Load rows, V positions of each at a time. */
${load_rows()}\
% endif
% for index in range(passes):
${one_pass(index)}\
% endfor
% if STORE == "rows":
        /* Store rows. */
${store_rows(f"work_{current}")}\
% endif
    }
}
