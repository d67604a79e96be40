/*
 * Minima, maxima and other ranks of small windows, straight from the array.
 *
 *     row j      v v v|v v v v v v v v|v v v        an item reduces the windows at RESULTS rows side by
 *         j+1    v v v|v v v v v v v v|v v v        side, on CPUs of a vector of columns; what they
 *         j+2    v v v|v v v v v v v v|v v v   ->   have in common is sorted once, see `Network` of
 *         j+3    v v v|v v v v v v v v|v v v        opencl_lab/ops/filters/networks.py
 *
 * An item that is alone in its group (CPUs) reads vectors from the array itself. Only where windows reach
 * beyond an edge, it copies what lies under them to `margins` first. Groups of many items copy it to local
 * memory. A network may lose a NaN, so what is read is tested for one: then the windows that have it are
 * found place by place.
 *
 * Source: own; merges after K. E. Batcher, "Sorting networks and their applications", AFIPS 1968; what
 * windows share after A. Adams, "Fast median filters using separable sorting networks", SIGGRAPH 2021.
 *
 * The host guarantees: image and result are contiguous, planes x h x w x inner, and do not overlap; all places
 * are below 2^30; dimension 0 of the grid has a group for each part of a row: of WIDE values, or of at least
 * two vectors, but there may be one part of less; dimension 1 for each `band` rows (or fewer), dimension 2
 * for each plane (or fewer). inner <= COLOURS. `margins` has `room` values for each group, and `tile` has
 * room for the rows under a group's windows, of WIDE + (columns - 1) * COLOURS values each.
 *
 * NUMBERS   see numbers.mako
 * NETWORK   places of the window, rank, and rows of results of an item
 * SIZES     of the window along each axis: those of planes, rows, columns
 * COLOURS   most values at a place of a row
 * WIDE      values of a row of a group's tile
 * WG_SIZE   items of a group; with vectors it is 1
 */
<%page args="NUMBERS, NETWORK, SIZES, COLOURS, WIDE, WG_SIZE"/>\
<%namespace name="numbers" file="numbers.mako"/>\
<%namespace name="types" file="/common/types.mako"/>\
<%
    width, real, alone = NUMBERS.width, NUMBERS.sum in ("float", "double"), WG_SIZE == 1
    *plane_sizes, rows, columns = SIZES
    results, lead = NETWORK.results, len(plane_sizes)
    y, x = lead, lead + 1
    steps, found = NETWORK.steps()
    read = NETWORK.read()
    planes = 1
    for size in plane_sizes:
        planes *= size
    deep = WG_SIZE // WIDE
    high = results * deep + rows - 1
    pitch = WIDE + (columns - 1) * COLOURS
    mask = types.module.vector(types.module.signed(NUMBERS.sum), width) if width > 1 else "int"

    def tested():
        """Pairs of vectors in a row that have all values of it."""
        for (plane, row), used in read.items():
            kept = used[:1]
            for one, following in zip(used[1:], [*used[2:], columns + width]):
                if following - kept[-1] > width // COLOURS:
                    kept.append(one)
            for one, other in zip(kept[::2], [*kept[1::2], kept[-1]]):
                yield plane, row, one, other

    def value(plane, row, column):
        """What lies at a column of a row under the windows of an item."""
        if alone:
            place = f"from + places[{plane * high + row}] + {column} * inner"
            return f"to_sum({numbers.module.at(NUMBERS, 'global const', 'element', place)})"
        return f"(sum_t)from_{column}[{(plane * high + row) * pitch}]"
%>\
${numbers.declare(NUMBERS)}\
% if real and not alone:
#define LESSER(a, b) fmin(a, b)
#define GREATER(a, b) fmax(a, b)
% else:
#define LESSER(a, b) ((a) < (b) ? (a) : (b))
#define GREATER(a, b) ((a) > (b) ? (a) : (b))
% endif
% if real:
__constant int window[${len(NETWORK.places)}][2] = { /* rows of all planes, and columns */
    ${", ".join(f"{{{plane * high + row}, {column}}}" for plane, row, column in NETWORK.places)}
};
% endif

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void filter_network(
    __global const element_t *image,
    __global result_t *result,
% if alone:
    __global element_t *margins,
    const int room,
% else:
    __local element_t *restrict tile,
% endif
% for d in range(lead + 2):
    const int n_${d},
    const int before_${d},
    const int mode_${d},
% endfor
    const int inner,
    const int band,
    const ulong planes,
    const element_t cval_0,
    const element_t cval_1)
{
    const long length = (long)n_${x} * inner;
    const int reach = before_${x} * inner;
% if alone:
    const ulong parts = get_num_groups(0), part = get_group_id(0);
    const long first_x = length * part / parts, end = length * (part + 1) / parts;
    const int span = ${width} + ${columns - 1} * inner;
    __global element_t *own = margins + ((get_group_id(2) * get_num_groups(1) + get_group_id(1)) * parts + part) * room;
    long near[${planes * high}];
    for (int j = 0; j < ${planes * high}; ++j)
        near[j] = j * span;
% else:
    const int local_x = (int)get_local_id(0) % ${WIDE}, local_y = (int)get_local_id(0) / ${WIDE};
    const long first_x = (long)get_group_id(0) * ${WIDE};
    const int span = (int)min(length - first_x, ${WIDE}L) + ${columns - 1} * inner;
% if real:
    __local int some_nan;
% endif
% endif
    for (ulong plane = get_group_id(2); plane < planes; plane += get_num_groups(2)) {
% if lead > 1:
        ulong rest = plane;
% for d in reversed(range(1, lead)):
        const int at_${d} = (int)(rest % n_${d});
        rest /= n_${d};
% endfor
        const int at_0 = (int)rest;
% else:
        const int at_0 = (int)plane;
% endif
% if alone:
        const int last_y = min((int)(get_group_id(1) + 1) * band, n_${y});
        for (int first_y = (int)get_group_id(1) * band; first_y < last_y; first_y += ${results}) {
            const int y = first_y;
            long far[${planes * high}];
            bool outside = false;
            for (int j = 0; j < ${planes * high}; ++j) {
${row_of("j")}\
                far[j] = place < 0 ? -1 : place * length;
                outside |= place < 0;
            }
            for (long k = first_x; k < end; k += ${width}) {
                const long at = max(first_x, min(k, end - ${width}));
                const bool margin = outside || at < reach || at - reach + span > length;
                if (margin) {
                    const bool whole = end - at >= ${width};
                    if (whole)
                        for (int j = 0; j < ${planes * high}; ++j)
                            ${numbers.module.at(NUMBERS, "global", "element", "own + near[j] + reach")} = far[j] < 0 ? (element_vec_t)cval_0 : ${numbers.module.at(NUMBERS, "global const", "element", "image + far[j] + at")};
                    for (int i = whole && !reach ? ${width} : 0; i < span; ++i) {
                        const int p = (int)((at + i) / inner);
                        const int place = extend(p - before_${x}, n_${x}, mode_${x});
                        const long from = (long)place * inner + (int)(at + i - (long)p * inner);
                        for (int j = 0; j < ${planes * high}; ++j)
                            own[near[j] + i] = far[j] < 0 || place < 0 ? cval_0 : image[far[j] + from];
                        if (whole && i == reach - 1)
                            i += ${width};
                    }
                }
                __global const element_t *from = margin ? own : image + (at - reach);
                const long *places = margin ? near : far;
${reduced("at", "end - at")}\
            }
        }
% else:
        for (int first_y = (int)get_group_id(1) * band; first_y < n_${y}; first_y += (int)get_num_groups(1) * band) {
            const int y = first_y;
            bool bad = false;
% if real:
            some_nan = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
% endif
            for (int j = local_y; j < ${planes * high}; j += ${deep}) {
${row_of("j")}\
                __global const element_t *row = image + place * length;
                for (int i = local_x; i < span; i += ${WIDE}) {
                    const long q = first_x - reach + i;
                    long from = q;
                    if (q < 0 || q >= length) {
                        const int p = (int)((q + reach) / inner);
                        const int column = extend(p - before_${x}, n_${x}, mode_${x});
                        from = column < 0 ? -1 : (long)column * inner + (int)((q + reach) - (long)p * inner);
                    }
                    const element_t v = place < 0 || from < 0 ? cval_0 : row[from];
                    tile[j * ${pitch} + i] = v;
% if real:
                    bad |= v != v;
% endif
                }
            }
% if real:
            if (bad)
                some_nan = 1;
% endif
            barrier(CLK_LOCAL_MEM_FENCE);
            if (first_x + local_x < length) {
                const int y = first_y + local_y * ${results}, last_y = n_${y};
                __local const element_t *from = tile + local_y * ${results * pitch} + local_x;
% for i in range(columns):
                __local const element_t *from_${i} = from + ${i} * inner;
% endfor
${reduced("first_x + local_x", "1")}\
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
% endif
    }
}
## The number of a row of the array, of all planes, that is row `j` under the windows at y; -1: outside.
<%def name="row_of(j)">\
                long place = 0;
                {
                    int rest = ${j} / ${high};
                    const int row = extend(min(y, n_${y} - 1) + ${j} % ${high} - before_${y}, n_${y}, mode_${y});
                    bool inside = row >= 0;
% for d in reversed(range(lead)):
% if plane_sizes[d] > 1:
                    const int place_${d} = extend(at_${d} + rest % ${plane_sizes[d]} - before_${d}, n_${d}, mode_${d});
                    rest /= ${plane_sizes[d]};
                    inside = inside && place_${d} >= 0;
% else:
                    const int place_${d} = at_${d};
% endif
% endfor
% for d in range(lead):
                    place = place * n_${d} + place_${d};
% endfor
                    place = inside ? place * n_${y} + row : -1;
                }
</%def>\
## Reduce the windows at some rows from y on, and store `count` numbers, or a vector, of each result.
<%def name="reduced(at, count)">\
% for (plane, row), used in read.items():
% for i in used:
                const sum_vec_t v_${plane}_${row}_${i} = ${value(plane, row, i)};
% endfor
% endfor
% if real and alone:
                ${mask} bad = 0;
% for plane, row, one, other in tested():
                bad |= isunordered(v_${plane}_${row}_${one}, v_${plane}_${row}_${other});
% endfor
% endif
% for name, kind, one, other in steps:
                const sum_vec_t ${name} = ${kind}(${one}, ${other});
% endfor
% for o, name in enumerate(found):
                sum_vec_t found_${o} = ${name};
% endfor
% if real:
                if (${"any(bad)" if alone and width > 1 else "bad" if alone else "some_nan"}) {
                    for (int t = 0; t < ${len(NETWORK.places)}; ++t) {
% for o in range(results):
                        {
% if alone:
                            const sum_vec_t v = ${numbers.module.at(NUMBERS, "global const", "element", f"from + places[window[t][0] + {o}] + window[t][1] * inner")};
% else:
                            const sum_t v = from[(window[t][0] + ${o}) * ${pitch} + window[t][1] * inner];
% endif
                            found_${o} = v != v ? v : found_${o};
                        }
% endfor
                    }
                }
% endif
                const long row = (long)plane * n_${y} + y;
% for o in range(results):
                if (y + ${o} < last_y)
                    store(found_${o}, result + (row + ${o}) * length + ${at}, result, ${count});
% endfor
</%def>\
