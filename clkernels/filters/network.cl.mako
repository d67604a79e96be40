/*
 * Minima, maxima and other ranks of small windows, straight from the array.
 *
 *     row j      v v v|v v v v v v v v|v v v        an item reduces the windows at some rows side by side,
 *         j+1    v v v|v v v v v v v v|v v v        on CPUs of a vector of columns; what they have in
 *         j+2    v v v|v v v v v v v v|v v v   ->   common is sorted once, see `Network` of
 *         j+3    v v v|v v v v v v v v|v v v        opencl_lab/ops/filters/networks.py
 *
 * Windows of vectors that reach beyond an edge are copied to `margins` first. Networks may lose a NaN, so
 * what is read is tested for one: then the windows that have it are found place by place.
 *
 * Source: own; merges after K. E. Batcher, "Sorting networks and their applications", AFIPS 1968; what
 * windows share after A. Adams, "Fast median filters using separable sorting networks", SIGGRAPH 2021.
 *
 * The host guarantees: image and result are contiguous, planes x h x w x inner, and do not overlap; places and
 * w * inner are below 2^30, inner <= COLOURS. Dimension 1 of the grid has a group for each `band` rows (or
 * fewer groups), dimension 2 for each plane (or fewer). Groups of one item: dimension 0 has one for each part
 * of a row, of at least two vectors, but there may be one part of less; `margins` has `room` values for
 * each group. Others: for each 2^shift values of a row, which are at most the items of a group.
 *
 * NUMBERS   see numbers.mako
 * NETWORK   places of the window, rank, and rows of results of an item
 * SIZES     of the window along each axis: those of planes, rows, columns
 * COLOURS   most values at a place of a row
 * CONSTANT  whether there may be `cval` beyond an edge; for groups of one item it does not matter
 * SUB_GROUP items of a sub-group, 0: the compiler chooses
 * WG_SIZE   items of a group; with vectors it is 1
 */
<%page args="NUMBERS, NETWORK, SIZES, COLOURS, CONSTANT, SUB_GROUP, WG_SIZE"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
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
    high = results + rows - 1
    halves = [half for half in (8, 4, 2, 1) if half < width]

    def integer(count):
        """The type of comparisons of so many numbers."""
        return types.module.vector(types.module.signed(NUMBERS.sum), count) if width > 1 else "int"

    def whole(half):
        return f"bad_{2 * half}" if 2 * half < width else "bad"

    def tested():
        """Pairs of vectors in a row that have all values of it."""
        for (plane, row), used in read.items():
            kept = used[:1]
            for one, following in zip(used[1:], [*used[2:], columns + width]):
                if following - kept[-1] > width // COLOURS:
                    kept.append(one)
            for one, other in zip(kept[::2], [*kept[1::2], kept[-1]]):
                yield f"v_{plane}_{row}_{one}", f"v_{plane}_{row}_{other}"

    def vector(place, space="global const"):
        return numbers.module.at(NUMBERS, space, "element", place)

    def value(row, column):
        """What lies at a column of a row under the windows of an item."""
        if alone:
            return vector(f"from + places[{row}] + ({column}) * inner")
        place = f"image[far[{row}] + column[{column}]]"
        return f"far[{row}] < 0 || column[{column}] < 0 ? cval_0 : {place}" if CONSTANT else place
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

/* Return which value of a row is `i` places on from value `at`, which may be before or beyond the row; -1: none. */
static inline int column_at(const int at, const int i, const int inner, const int n, const int before, const int mode)
{
    const int value = at + i * inner;
    if (value >= 0 && value < n * inner)
        return value;
    const int ahead = value + before * inner, place = extend(ahead / inner - before, n, mode);
    return place < 0 ? -1 : place * inner + ahead % inner;
}

__kernel ${extensions.ask_width(SUB_GROUP)}__attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void filter_network(
    __global const element_t *image,
    __global result_t *result,
% if alone:
    __global element_t *margins,
    const int room,
% else:
    const int shift,
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
    const int length = n_${x} * inner, reach = before_${x} * inner;
% if alone:
    const ulong parts = get_num_groups(0), part = get_group_id(0);
    const int first_x = (int)(length * part / parts), end = (int)(length * (part + 1) / parts);
    const int span = WIDTH + ${columns - 1} * inner;
    __global element_t *own = margins + ((get_group_id(2) * get_num_groups(1) + get_group_id(1)) * parts + part) * room;
    long near[${planes * high}];
    for (int j = 0; j < ${planes * high}; ++j)
        near[j] = j * span;
% else:
    const int at = (int)((get_group_id(0) << shift) + (get_local_id(0) & (1 << shift) - 1));
    if (at >= length)
        return;
    int column[${columns}];
% for i in range(columns):
    column[${i}] = column_at(at - reach, ${i}, inner, n_${x}, before_${x}, mode_${x});
% endfor
% endif
% if alone:
    /* Windows of neighbouring planes overlap, so a group has several in a row. */
    const ulong first_plane = planes * get_group_id(2) / get_num_groups(2);
    const ulong last_plane = planes * (get_group_id(2) + 1) / get_num_groups(2);
    for (ulong plane = first_plane; plane < last_plane; ++plane) {
% else:
    for (ulong plane = get_group_id(2); plane < planes; plane += get_num_groups(2)) {
% endif
        ulong rest = plane;
% for d in reversed(range(1, lead)):
        const int at_${d} = (int)(rest % n_${d});
        rest /= n_${d};
% endfor
        const int at_0 = (int)rest;
% if alone:
        const int first_y = (int)get_group_id(1) * band, last_y = min(first_y + band, n_${y});
        for (int y = first_y; y < last_y; y += ${results}) {
            long far[${planes * high}];
            bool outside = false;
            for (int j = 0; j < ${planes * high}; ++j) {
${row("j")}\
                outside |= far[j] < 0;
            }
            for (int k = first_x; k < end; k += WIDTH) {
                const int at = max(first_x, min(k, end - WIDTH));
                const bool margin = outside || at < reach || (long)at - reach + span > length;
                if (margin) {
                    const bool whole = end - at >= WIDTH;
                    if (whole)
                        for (int j = 0; j < ${planes * high}; ++j)
                            ${vector("own + near[j] + reach", "global")} = far[j] < 0 ? (element_vec_t)cval_0 : ${vector("image + far[j] + at")};
                    for (int i = whole && !reach ? WIDTH : 0; i < (whole ? span : end - at + ${columns - 1} * inner); ++i) {
                        const int from = column_at(at - reach + i, 0, inner, n_${x}, before_${x}, mode_${x});
                        for (int j = 0; j < ${planes * high}; ++j)
                            own[near[j] + i] = far[j] < 0 || from < 0 ? cval_0 : image[far[j] + from];
                        if (whole && i == reach - 1)
                            i += WIDTH;
                    }
                }
                __global const element_t *from = margin ? own : image + (at - reach);
                const long *places = margin ? near : far;
                const int count = end - at;
${reduced()}\
            }
        }
% else:
        const int last_y = n_${y};
        for (int y = (int)get_group_id(1) * band + (int)(get_local_id(0) >> shift) * ${results}; y < last_y; y += (int)get_num_groups(1) * band) {
            const int count = 1;
            long far[${planes * high}];
% for j in range(planes * high):
${row(j)}\
% endfor
${reduced()}\
        }
% endif
    }
}
## Where row `j` of all planes under the windows at y begins; -1: outside.
<%def name="row(j)">\
                {
% if alone:
                    const int p = j / ${high}, r = y + j % ${high} - before_${y};
% else:
                    const int p = ${j // high}, r = y + ${j % high} - before_${y};
% endif
                    const int place = extend(min(r, n_${y} + ${rows}), n_${y}, mode_${y});
                    bool inside = place >= 0;
                    long line = 0;
<% step = planes %>\
% for d in range(lead):
<% step //= plane_sizes[d] %>\
% if plane_sizes[d] > 1:
                    const int place_${d} = extend(at_${d} + p / ${step} % ${plane_sizes[d]} - before_${d}, n_${d}, mode_${d});
                    inside = inside && place_${d} >= 0;
                    line = line * n_${d} + place_${d};
% else:
                    line = line * n_${d} + at_${d};
% endif
% endfor
                    far[${j}] = inside ? (line * n_${y} + place) * length : -1;
                }
</%def>\
## Reduce the windows at some rows from y on, and store `count` numbers, or a vector, of each result.
<%def name="reduced()">\
% for (plane, row), used in read.items():
% for i in used:
                const sum_vec_t v_${plane}_${row}_${i} = ${value(plane * high + row, i)};
% endfor
% endfor
% if real:
                ${integer(width)} bad = 0;
% for one, other in tested():
                bad |= (${one} != ${one}) | (${other} != ${other});
% endfor
% for half in halves:
                const ${integer(half)} bad_${half} = ${whole(half)}.lo | ${whole(half)}.hi;
% endfor
% endif
% for name, kind, one, other in steps:
                const sum_vec_t ${name} = ${kind}(${one}, ${other});
% endfor
% for o, name in enumerate(found):
                sum_vec_t found_${o} = ${name};
% endfor
% if real:
                if (${"bad_1" if width > 1 else "bad"}) {
                    for (int t = 0; t < ${len(NETWORK.places)}; ++t) {
% for o in range(results):
                        {
                            const sum_vec_t v = ${value(f"window[t][0] + {o}", "window[t][1]")};
                            found_${o} = v != v ? v : found_${o};
                        }
% endfor
                    }
                }
% endif
                const long line = (long)plane * n_${y} + y;
% for o in range(results):
                if (y + ${o} < last_y)
                    store(found_${o}, result + (line + ${o}) * length + at, result, count);
% endfor
</%def>\
