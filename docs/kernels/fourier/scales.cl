/*
 * An example of clkernels/fourier/scales.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     problem       dft n=1009 batch=3 dtype=float32
 *     algorithm     fft
 *     configuration FORM=vector WG_SIZE=64 POINTS=4 TRANSFORMS=0 LAST_TRANSFORMS=0
 *                   LOCAL_LIMIT=16384 LOCAL_PAD=0 EXCHANGE=auto FEW_TWIDDLES=True FUSED=auto
 *                   VECTOR_WIDTH=8 BLOCK=4 MAX_RADIX=8 ITEMS_PER_UNIT=8 SPLIT=auto
 *     device        EPYC (pocl of tools/rendered_kernels.py)
 *     launch        weigh, (3,) items in groups of (1,)
 */
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
typedef float real_t;
typedef uint index_t;
typedef uint bits_t;
#define MAGNITUDE_MASK 0x7fffffffu
#define MAGNITUDE(x) (as_uint(x) & MAGNITUDE_MASK)
#define NUMBER(bits) as_float(bits)
#define INFINITE 0x7f800000u
typedef uint8 bits_vec_t;
typedef struct __attribute__((packed)) { float8 numbers; } unaligned_t;

#define MAGNITUDES(x) (as_uint8(x) & MAGNITUDE_MASK)

static inline real_t scale_of(const real_t size)
{
    const real_t power = ldexp((real_t)1, clamp(-ilogb(size), -126, 126));
    return !isfinite(size) ? NAN : size == 0 ? INFINITY : power;
}

/* Of each row, the first number counts, and all from number `from` on. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
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
    bits_vec_t lanes = 0;
    for (; p + 8 <= end; p += 8) {
        const bits_vec_t these = MAGNITUDES(((__global const unaligned_t *)(row + p))->numbers);
        lanes = max(lanes, these);
    }
    largest = max(largest, lanes.s0);
    largest = max(largest, lanes.s1);
    largest = max(largest, lanes.s2);
    largest = max(largest, lanes.s3);
    largest = max(largest, lanes.s4);
    largest = max(largest, lanes.s5);
    largest = max(largest, lanes.s6);
    largest = max(largest, lanes.s7);
    for (; p < end; p += 1)
        largest = max(largest, MAGNITUDE(row[p]));
    if (item == 0)
        results[group] = sections == 1 ? scale_of(NUMBER(largest)) : NUMBER(largest);
}
