/*
 * Scales of rows: for each a power of two that brings its largest number near 1.
 *
 *     numbers  | section 0      | section 1      | section 2 |     a row: equal sections
 *     items      0 1 2 3 0 1 2 3  0 1 2 3 0 1 2 3  0 1 2 3 0       one group each, whose items
 *     results  | largest        | largest        | largest   |     read neighbours
 *
 * A row that is one section gets its scale. Of a row of several, a second launch makes
 * the scale from the largest numbers of the sections: so few long rows occupy many groups.
 *
 * Source: none. A scale is infinite for a row of zeros, so that dividing by it later makes zeros
 * again, and NaN for a row that is not finite.
 *
 * The host guarantees: rows are contiguous and not empty; there is a group for every section. A
 * group of one item has no barrier.
 *
 * ELEMENT       complex numbers with the type of these: Element of core/kernels.py
 * INDEX_T       unsigned type that counts the numbers
 * WG_SIZE       work-items in a work-group
 * VECTOR_WIDTH  numbers that an item reads at once: more than 1 where it has no neighbours
 */
<%page args="ELEMENT, INDEX_T, WG_SIZE, VECTOR_WIDTH"/>\
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="magnitudes" file="magnitudes.mako"/>\
${extensions.enable(fp64=ELEMENT.double)}\
<%
    LIMIT = 1022 if ELEMENT.double else 126
    width = "" if VECTOR_WIDTH == 1 else VECTOR_WIDTH
    bits = f"{'ulong' if ELEMENT.double else 'uint'}{width}"
%>\
typedef ${ELEMENT.real} real_t;
typedef ${INDEX_T} index_t;
${magnitudes.declare(ELEMENT.real)}\
typedef ${bits} bits_vec_t;
typedef struct __attribute__((packed)) { ${ELEMENT.real}${width} numbers; } unaligned_t;

#define MAGNITUDES(x) (as_${bits}(x) & MAGNITUDE_MASK)

static inline real_t scale_of(const real_t size)
{
    const real_t power = ldexp((real_t)1, clamp(-ilogb(size), -${LIMIT}, ${LIMIT}));
    return !isfinite(size) ? NAN : size == 0 ? INFINITY : power;
}

/* Of each row, the first number counts, and all from number `from` on. */
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void weigh(__global const real_t *restrict numbers,
           __global real_t *restrict results,
           const index_t count,
           const index_t sections,
           const index_t from)
{
    const index_t group = get_group_id(0);
    const uint item = get_local_id(0);
    __global const real_t *restrict row = numbers + group / sections * count;
    const index_t length = (count - from + sections - 1) / sections;
    const index_t begin = from + group % sections * length, end = min(begin + length, count);
    bits_t largest = MAGNITUDE(row[0]);
    index_t p = begin + item;
% if VECTOR_WIDTH > 1:
    bits_vec_t lanes = 0;
    for (; p + ${VECTOR_WIDTH} <= end; p += ${VECTOR_WIDTH}) {
        const bits_vec_t these = MAGNITUDES(((__global const unaligned_t *)(row + p))->numbers);
        lanes = max(lanes, these);
    }
% for lane in range(VECTOR_WIDTH):
    largest = max(largest, lanes.s${"%x" % lane});
% endfor
% endif
    for (; p < end; p += ${WG_SIZE})
        largest = max(largest, MAGNITUDE(row[p]));
% if WG_SIZE > 1:

    /* Halve the items that have found one until one has the largest of all. */
    __local bits_t found[${WG_SIZE}];
    found[item] = largest;
    for (uint width = ${WG_SIZE}; width > 1; width = (width + 1) / 2) {
        barrier(CLK_LOCAL_MEM_FENCE); /* the upper half has been written */
        if (item < width / 2)
            found[item] = max(found[item], found[item + (width + 1) / 2]);
    }
    largest = found[item];
% endif
    if (item == 0)
        results[group] = sections == 1 ? scale_of(NUMBER(largest)) : NUMBER(largest);
}
