/*
 * A copy of an array that is continued beyond its edges, so that no window asks where its values are.
 *
 *     c c | a b c d | d d       size - 1 places more along each axis with windows of that size
 *
 * Source: none; each number is read and written once.
 *
 * The host guarantees: both arrays are contiguous. The last axis has `inner` values at each of its n
 * places, the others one. Items are numbered through the rows of the copy, `chunks` a row, each of
 * `SPAN` values; there may be more of them.
 *
 * NUMBERS   see numbers.mako; the copy is in the type of the sums
 * CODES     None, or the element whose codes are copied: see sort/keys.mako
 * NDIM      axes before the last one
 * SPAN      values of an item
 * WG_SIZE   items of a group
 */
<%page args="NUMBERS, CODES, NDIM, SPAN, WG_SIZE"/>\
<%namespace name="numbers" file="numbers.mako"/>\
<%namespace name="keys" file="/sort/keys.mako"/>\
% if CODES:
${keys.declare(CODES)}\
% endif
${numbers.declare(NUMBERS)}\

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void filter_pad(
    __global const element_t *restrict image,
    __global sum_t *restrict padded,
% for d in range(NDIM):
    const int n_${d},
    const int size_${d},
    const int before_${d},
    const int mode_${d},
% endfor
    const ulong rows,
    const int chunks,
    const int n,
    const long inner,
    const int size,
    const int before,
    const int mode,
    const sum_t cval_0,
    const sum_t cval_1)
{
    const ulong row = get_global_id(0) / chunks;
    if (row < rows) {
        const long length = (n + size - 1) * inner, low = before * inner, high = low + n * inner;
        const long first = (long)(get_global_id(0) - row * chunks) * ${SPAN}, last = min(first + ${SPAN}, length);
        ulong rest = row;
        long from = 0, step = n * inner;
        bool inside = true;
% for d in reversed(range(NDIM)):
        {
            const int extended = n_${d} + size_${d} - 1;
            const int place = extend((int)(rest % extended) - before_${d}, n_${d}, mode_${d});
            rest /= extended;
            inside = inside && place >= 0;
            from += place * step;
            step *= n_${d};
        }
% endfor
        __global const element_t *source = image + from;
        __global sum_t *target = padded + row * length;
        for (long x = first; x < last; ++x) {
            if (inside && x >= low && x < high) {
                const long end = min(last, high);
                for (; x < end; ++x)
                    target[x] = ${"code(source[x - low])" if CODES else "(sum_t)source[x - low]"};
                --x;
                continue;
            }
            const int place = inside ? extend((int)(x / inner) - before, n, mode) : -1;
            const sum_t value = place < 0 ? ${numbers.module.cval(NUMBERS, "x")} : (sum_t)source[place * inner + x % inner];
            target[x] = ${"code((ukey_t)value)" if CODES else "value"};
        }
    }
}
