/*
 * Filters along one axis of an array: sums of products with weights, means, minima and maxima.
 *
 *     image   outer x n x inner                tile, in the type of the sums
 *              inner ->                         wide ->
 *            +--+-------+----+                 +-------+
 *        n   |  |///////|    |  size - 1 rows  |       |   rows of the tile are places of the axis;
 *        |   |  |///////|    |  more, beyond   |       |   row r of the results is reduced from rows
 *        v   |  |///////|    |  edges, too     |       |   r .. r + size - 1, which lie `wide` apart
 *            +--+-------+----+                 +-------+
 *
 * So along any axis the value at place f of the tile is reduced from f, f + wide, f + 2 wide, ...: if
 * inner is small, rows follow each other without a gap, and a vector has several of them.
 *
 * Windows without weights grow: W(k) at a place reduces k values, W(2k) = W(k) here and k rows on, and
 * W(2k + 1) takes one value more. That is log2(size) steps, sums are as exact as those by pairs,
 * and nothing reaches a result from outside of its window.
 *
 * Source: own; windows that grow after J. Gil, R. Kimmel, "Efficient dilation, erosion, opening, and
 * closing algorithms", IEEE TPAMI 2002, and others.
 *
 * Short lines are filtered `together`: the tile has a row for each place, with the values of all of them.
 *
 * The host guarantees: image and result are contiguous, and do not overlap; n < 2^30; dimension 0 of the grid
 * has a group for each of `chunks` parts of a row, for all parts of `rows` places of the axis;
 * dimension 1 for each `lines` of the outer dimension. If more than one line is filtered `together`, a
 * group has whole lines, of fewer than 2^31 values in all; on CPUs their values are a multiple of WIDTH, and
 * nothing is combined. `tile` has room for (rows + size - 1) *
 * part * together values and BLOCK * WG_SIZE * WIDTH more, for each of one or (with growing windows) three tiles,
 * which are `room` values apart.
 *
 * NUMBERS   see numbers.mako
 * BLOCK     vectors that an item reduces side by side
 * WG_SIZE   items of a group; with vectors it is 1
 */
<%page args="NUMBERS, BLOCK, WG_SIZE"/>\
<%namespace name="numbers" file="numbers.mako"/>\
<%
    def at(pointer):
        return numbers.module.at(NUMBERS, "local", "sum", pointer)

    weighted = NUMBERS.reduce == "sum"
    alone = WG_SIZE == 1
    step = WG_SIZE * NUMBERS.width

    def ahead(v):
        """How far ahead a vector lies; items of a group do not read beyond the tile."""
        return v * step if alone else f"ahead_{v}"
%>\
${numbers.declare(NUMBERS)}\
% if alone:
#define MEET
% else:
#define MEET barrier(CLK_LOCAL_MEM_FENCE)
% endif
## Reduce `BLOCK` vectors of the tile from place `at` on to sum_0, sum_1, ...
<%def name="reduce()">\
% if not alone:
% for v in range(BLOCK):
            const int ahead_${v} = min(${v * step}, count * wide - 1 - at);
% endfor
% endif
% if weighted:
            __local const sum_t *values = tile + at;
% for v in range(BLOCK):
            sum_vec_t sum_${v} = 0;
% endfor
% if NUMBERS.exact:
            __local const sum_t *opposite = values + (size - 1) * wide;
            const int steps = paired ? size / 2 : size - 1, middle = paired ? steps : size - 1;
% for v in range(BLOCK):
            sum_${v} = w[middle] * ${at(f"values + middle * wide + {ahead(v)}")};
% endfor
            for (int j = 0; j < steps; ++j) {
                const sum_t weight = w[j];
                if (paired) {
                    const sum_t sign = paired;
% for v in range(BLOCK):
                    sum_${v} += (${at(f"values + {ahead(v)}")} + sign * ${at(f"opposite + {ahead(v)}")}) * weight;
% endfor
                } else {
% for v in range(BLOCK):
                    sum_${v} += weight * ${at(f"values + {ahead(v)}")};
% endfor
                }
                values += wide;
                opposite -= wide;
            }
% else:
            for (int j = 0; j < size; ++j) {
                const sum_t weight = w[j];
% for v in range(BLOCK):
                sum_${v} += weight * ${at(f"values + {ahead(v)}")};
% endfor
                values += wide;
            }
% endif
% else:
% for v in range(BLOCK):
            sum_vec_t sum_${v} = ${at(f"from + at + {ahead(v)}")};
            if (size > 1)
                sum_${v} = REDUCE(sum_${v}, ${at(f"from + at + k * wide + {ahead(v)}")});
            if (size > 1 && size & 1)
                sum_${v} = REDUCE(sum_${v}, ${at(f"tile + at + 2 * k * wide + {ahead(v)}")});
% if NUMBERS.reduce == "mean":
            sum_${v} = mean_of(sum_${v}, size);
% endif
% endfor
% endif
</%def>\

% if alone:
/* Copy to the tile. */
static inline void collect(__local sum_t *to, __global const element_t *from, const int count)
{
    int k = 0;
    for (; k + WIDTH <= count; k += WIDTH)
        ${at("to + k")} = to_sum(${numbers.module.at(NUMBERS, "global const", "element", "from + k")});
    for (; k < count; ++k)
        to[k] = (sum_t)from[k];
}

/* Store a vector of place `at` of the results of some lines, each of n places of `inner` values. */
static inline void scatter(const sum_vec_t v, const int at, const int wide, const int count, const int n, const int inner, const ulong lines, __global result_t *to)
{
    const result_vec_t r = finish(v, to, 0);
    int y = at / wide, l = (at - y * wide) / inner, c = at - y * wide - l * inner;
    if (inner == 1 && y < count && l + WIDTH <= lines) {
        to += l * n + y;
% for i in range(NUMBERS.width):
        to[${i} * n] = r${f".s{i:x}" if NUMBERS.width > 1 else ""};
% endfor
        return;
    }
    for (int i = 0; i < WIDTH; ++i) {
        if (y < count && l < lines)
            to[(l * n + y) * inner + c] = ((__private const result_t *)&r)[i];
        if (++c == inner) {
            c = 0;
            if (++l * inner == wide) {
                l = 0;
                ++y;
            }
        }
    }
}

% endif
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void filter_line(
    __global const element_t *restrict image,
% if weighted:
    __global const sum_t *restrict weights,
    const int first_weight,
    const int paired,
% endif
    __global result_t *result,
    __global const result_t *earlier,
    __local sum_t *tile,
    const int room,
    const ulong outer,
    const int n,
    const long inner,
    const int rows,
    const int part,
    const int chunks,
    const int lines,
    const int together,
    const int size,
    const int before,
    const int mode,
    const sum_t cval_0,
    const sum_t cval_1)
{
    const int chunk = (int)(get_group_id(0) % chunks);
    const int first = (int)(get_group_id(0) / chunks) * rows;
    const int count = min(rows, n - first), total = count + size - 1;
    const long first_value = (long)chunk * part;
    const int wide = together > 1 ? together * (int)inner : (int)min((long)part, inner - first_value);
    const int begin = first - before;
    const int low = clamp(-begin, 0, total), high = clamp(n - begin, low, total);
% if weighted:
    __global const sum_t *w = weights + first_weight;
% endif
    const ulong end = min(outer, (ulong)(get_group_id(1) + 1) * lines);
    for (ulong line = (ulong)get_group_id(1) * lines; line < end; line += together) {
        __global const element_t *source = image + line * n * inner + first_value;
% if alone:
        const bool whole = together > 1 || wide == inner;
        if (together > 1) {
            const int values = (int)inner, some = (int)min((ulong)together, end - line);
            int l = 0;
            for (; values == 1 && l + WIDTH <= some; l += WIDTH)
                for (int r = low; r < high; ++r) {
                    __global const element_t *from = source + l * n + begin + r;
                    ${at("tile + r * wide + l")} = to_sum((element_vec_t)(${", ".join(f"from[{i} * n]" for i in range(NUMBERS.width))}));
                }
            for (; l < some; ++l)
                for (int r = low; r < high; ++r)
                    for (int c = 0; c < values; ++c)
                        tile[r * wide + l * values + c] = (sum_t)source[(l * n + begin + r) * values + c];
        } else if (whole) {
            collect(tile + low * wide, source + (long)(begin + low) * inner, (high - low) * wide);
        }
        for (int r = 0; r < total; ++r) {
            if (whole && r == low)
                r = high;
            if (r >= total)
                break;
            const int place = extend(begin + r, n, mode);
            if (place >= 0 && together > 1)
                for (int x = 0; x < wide; x += WIDTH)
                    ${at("tile + r * wide + x")} = ${at("tile + (place - begin) * wide + x")};
            else if (place >= 0)
                collect(tile + r * wide, source + (long)place * inner, wide);
            else
                for (int x = 0; x < wide; ++x)
                    tile[r * wide + x] = ${numbers.module.cval(NUMBERS, "x")};
        }
% else:
        for (int f = get_local_id(0); f < total * wide; f += ${WG_SIZE}) {
            const int r = f / wide, x = f - r * wide, place = extend(begin + r, n, mode);
            const int l = together > 1 ? x / (int)inner : 0;
            if (line + l < end)
                tile[f] = place < 0 ? ${numbers.module.cval(NUMBERS, "x - l * (int)inner")} : (sum_t)source[(l * (long)n + place) * inner + x - l * (int)inner];
        }
% endif
        MEET;
% if not weighted:
        int k = 1;
        __local const sum_t *from = tile;
        for (int bit = 30 - (int)clz(size); bit > 0; --bit) {
            const int odd = size >> bit & 1, longer = 2 * k + odd;
            __local sum_t *to = tile + (from == tile + room ? 2 : 1) * room;
            for (int f = get_local_id(0) * WIDTH; f < (total + 1 - longer) * wide; f += ${step}) {
                sum_vec_t value = REDUCE(${at("from + f")}, ${at("from + f + k * wide")});
                if (odd)
                    value = REDUCE(value, ${at("tile + f + 2 * k * wide")});
                ${at("to + f")} = value;
            }
            from = to;
            k = longer;
            MEET;
        }
% endif
        const long base = (line * n + first) * inner + first_value;
% if alone:
        const int length = whole ? count * wide : wide;
        for (int y = 0; y < (whole ? 1 : count); ++y)
            for (int x = 0; x < length; x += ${BLOCK * step}) {
                const int at = y * wide + x;
                const long target = base + y * inner + x;
${reduce()}\
                if (together > 1) {
% for v in range(BLOCK):
                    scatter(sum_${v}, at + ${v * step}, wide, count, n, (int)inner, end - line, result + base);
% endfor
                    continue;
                }
% for v in range(BLOCK):
                store(sum_${v}, result + target + ${v * step}, earlier + target + ${v * step}, length - x - ${v * step});
% endfor
            }
% else:
        for (int at = get_local_id(0); at < count * wide; at += ${BLOCK * step}) {
${reduce()}\
% for v in range(BLOCK):
            {
                const int f = at + ${v * step}, y = f / wide;
                const int x = f - y * wide, l = together > 1 ? x / (int)inner : 0;
                const long target = base + (l * (long)n + y) * inner + x - l * (int)inner;
                store(sum_${v}, result + target, earlier + target, line + l < end ? count * wide - f : 0);
            }
% endfor
        }
        MEET;
% endif
    }
}
