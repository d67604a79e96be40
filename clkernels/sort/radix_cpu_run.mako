## One unit sorts keys that lie in a cache: least significant digits first, but only as many bits as
## tell most keys apart, and what is left is put right by insertion.
##
##     codes of a run    |<-- equal: not looked at -->|<-- about log2(m) + SPARE_BITS -->|<-- rest -->|
##                                                     one to three digits, stably        by insertion
##
## Random keys need few moves then. Where the moves become many, the rest is sorted by digits, too:
## what insertion has done is a stable order, so that nothing is lost but its time.
##
## Source: own; the digits are counted in one read, for all passes.
##
## ELEMENT   see radix_cpu.cl.mako
## RUN
##   bits        of a digit, at most
##   spare_bits  bits beyond those that count the keys of a run
##   few         runs of so many keys are sorted by insertion alone
##   block       keys whose codes are made at once, see radix_cpu_blocks.mako
##   network     longest run of keys for radix_cpu_network.mako, or 0
## WHOLE     whether runs are whole rows of the user's arrays; else they are cut from elements
## STREAM    whether results go past the caches
<%namespace name="radix_cpu_blocks" file="radix_cpu_blocks.mako"/>\
<%namespace name="blocks" file="radix_cpu_blocks.mako"/>\
<%def name="declare(ELEMENT, RUN, WHOLE, STREAM)">\
#define RUN_RADIX ${1 << RUN.bits}

/* Bits of a number, without zeros in front. */
static inline uint length_of(const ukey_t number)
{
    return KEY_BITS - clz(number);
}

/* Of the keys so far: the least and the largest code, and the bits in which some differ from `one`. */
typedef struct {
    ukey_t least, largest, one, differ;
} extremes_t;

/* Look at `count` codes in all, from staged ones. */
static inline void update_extremes(extremes_t *extremes, const ukey_t *codes, const uint count)
{
    ukey_t least = extremes->least, largest = extremes->largest, differ = extremes->differ;
    const ukey_t one = extremes->one;
    for (uint j = 0; j < count; ++j) {
        least = LESSER(least, codes[j]);
        largest = GREATER(largest, codes[j]);
        differ |= codes[j] ^ one;
    }
    extremes->least = least;
    extremes->largest = largest;
    extremes->differ = differ;
}

% if STREAM:
typedef struct __attribute__((packed)) { uint8 vector; } loose_t;
% endif
/* Write sorted elements where the caller wants them. */
static void store_sorted(__global const elem_t *from, __global ukey_t *sorted,
                 __global out_value_t *sorted_values, const index_t count)
{
% if not ELEMENT.value and STREAM:
    index_t i = 0;
    for (; i < count && ((size_t)(sorted + i) & 31); ++i)
        sorted[i] = from[i];
    for (; i + 32 / sizeof(ukey_t) <= count; i += 32 / sizeof(ukey_t))
        STREAM_STORE(((__global const loose_t *)(from + i))->vector, (__global uint8 *)(sorted + i));
    for (; i < count; ++i)
        sorted[i] = from[i];
% else:
    for (index_t i = 0; i < count; ++i) {
% if not ELEMENT.indices:
        sorted[i] = KEY_OF(from[i]);
% endif
% if ELEMENT.value:
        sorted_values[i] = from[i].value;
% endif
    }
% endif
}

/* Make of counts the places where digits begin. */
static inline void exclusive_scan(__local index_t *counts, const uint radix)
{
    index_t sum = 0;
    for (uint d = 0; d < radix; ++d) {
        const index_t count = counts[d];
        counts[d] = sum;
        sum += count;
    }
}

${radix_cpu_blocks.declare(ELEMENT, BLOCK=RUN.block)}\
/* Put each element after those of no larger code, by at most `budget` moves. Returns whether all
   are in order. */
static bool insertion_sort(__global elem_t *run, const index_t count, index_t budget)
{
    ukey_t codes[${RUN.block}];
    ukey_t largest = code(KEY_OF(run[0]));
    for (index_t first = 0; first < count; first += ${RUN.block}) {
        const uint here = stage_elements(run, first, count, codes);
        for (uint j = 0; j < here; ++j) {
            const ukey_t mine = codes[j];
            if (mine >= largest) {
                largest = mine;
                continue;
            }
            index_t place = first + j;
            const elem_t element = run[place];
            bool before = true;
            for (; before && budget; --budget) {
                run[place] = run[place - 1];
                --place;
                before = place > 0 && mine < code(KEY_OF(run[place - 1]));
            }
            run[place] = element;
            if (before)
                return false;
        }
    }
    return true;
}

<% KIND = "arrays" if WHOLE else "elements" %>\
/*
 * Sort `count` elements of `source` to `sorted` and `sorted_values`, by way of `a` and `b`, which
 * have room for all of them. `source` may be `b`. `counts` has 3 * RUN_RADIX words.
 */
static void sort_run(${blocks.module.SOURCES[KIND]}, const index_t count, __global elem_t *a, __global elem_t *b,
                     __global ukey_t *sorted, __global out_value_t *sorted_values,
                     __local index_t *counts)
{
    if (count == 0)
        return;
% if RUN.network:
    if (count > ${RUN.few} && count <= ${RUN.network} && sort_by_network(${"source.keys" if WHOLE else "source"}, (uint)count, sorted))
        return;
% endif
    ukey_t codes[${RUN.block}];
    uint digits[${RUN.block}];
    uint wanted = 0, differing = 0, shift = 0;
    extremes_t extremes;
    extremes.one = code(KEY_OF(element_${KIND}(source, 0)));
    extremes.least = extremes.largest = extremes.one;
    extremes.differ = 0;
    if (count > ${RUN.few}) {
        for (index_t i = 0; i < count; i += ${RUN.block})
            update_extremes(&extremes, codes, stage_${KIND}(source, i, count, codes));
        differing = length_of(extremes.largest - extremes.least);
        /* Three digits, as `counts` has room for, in a word of `digits`. */
        wanted = LESSER(${RUN.spare_bits} + length_of_index(count), ${min(3 * RUN.bits, 32)}u);
    }
    /* Low bits in which no key differs are none that tell them apart. */
    uint low = 0;
    while (extremes.differ && !(extremes.differ >> low & 1))
        ++low;
    wanted = LESSER(wanted, differing - LESSER(differing, low));
    shift = differing - wanted;
    const uint passes = (wanted + ${RUN.bits - 1}) / ${RUN.bits};
    __global elem_t *from = a, *to = b;
    if (!passes) {
        for (index_t i = 0; i < count; ++i)
            a[i] = element_${KIND}(source, i);
    } else {
        const uint bits = (wanted + passes - 1) / passes, radix = 1u << bits, mask = radix - 1;
        for (uint d = 0; d < passes * radix; ++d)
            counts[d] = 0;
        for (index_t i = 0; i < count; i += ${RUN.block}) {
            const uint here = stage_digits_${KIND}(source, i, count, digits, extremes.least, shift, ~0u);
            if (passes == 2)
                for (uint j = 0; j < here; ++j) {
                    ++counts[digits[j] & mask];
                    ++counts[radix + (digits[j] >> bits)];
                }
            else
                for (uint p = 0; p < passes; ++p)
                    for (uint j = 0; j < here; ++j)
                        ++counts[p * radix + (digits[j] >> p * bits & mask)];
        }
        for (uint p = 0; p < passes; ++p)
            exclusive_scan(counts + p * radix, radix);
        pass_${KIND}(source, count, a, counts, extremes.least, shift, mask);
        for (uint p = 1; p < passes; ++p) {
            pass_elements(from, count, to, counts + p * radix, extremes.least, shift + p * bits, mask);
            __global elem_t *other = from;
            from = to;
            to = other;
        }
    }
    /* Without a digit all keys are equal or few. */
    if (shift > low || (!passes && count <= ${RUN.few})) {
        if (!insertion_sort(from, count, passes ? 2 * count : ~(index_t)0)) {
            for (uint begin = low; begin < differing; begin += ${RUN.bits}) {
                for (uint d = 0; d < RUN_RADIX; ++d)
                    counts[d] = 0;
                for (index_t i = 0; i < count; ++i)
                    ++counts[(uint)((ukey_t)(code(KEY_OF(from[i])) - extremes.least) >> begin) & (RUN_RADIX - 1)];
                exclusive_scan(counts, RUN_RADIX);
                pass_elements(from, count, to, counts, extremes.least, begin, RUN_RADIX - 1);
                __global elem_t *other = from;
                from = to;
                to = other;
            }
        }
    }
% if not ELEMENT.value:
    if (from != (__global elem_t *)sorted)
% endif
    store_sorted(from, sorted, sorted_values, count);
}
</%def>\
