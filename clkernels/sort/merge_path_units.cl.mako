/*
 * Stable merge sort of rows by threads with caches: the form for CPUs, without a barrier. Groups of
 * one item, one for each compute unit, go through phases of tasks.
 *
 *     phase 0       sort     some tiles: in the cache, by ranks and merges
 *     phase 1, ..   merge    a stretch of STRETCH elements of the result of two runs
 *
 * A processor waits for a comparison before it can load what is compared next. So four merges that
 * do not need each other take turns: two stretches, each from the front and from the rear, where
 * neither needs to know where the other ends.
 *
 *     run a  |    front 0 ->      <- rear 0 | front 1 ->      <- rear 1     |
 *     run b  |  front 0 -> <- rear 0 | front 1 ->            <- rear 1      |
 *     result |  front 0 ->        <- rear 0 | front 1 ->            <- rear 1
 *
 * No branch depends on a key: at the begin of a round it is known how many steps cannot leave a run.
 * In a tile, blocks of BLOCK keys are sorted by counting how many go before each, in vectors; the
 * first merges then take two pairs of runs at once, whose lengths say the steps.
 *
 * Source: O. Green, R. McColl, D. Bader, "GPU merge path", ICS 2012, for the stretches; merging from
 * both ends after I. van den Hoven, "quadsort" (parity merge), and O. Peters, "glidesort", 2021 to 2023;
 * the rest is own.
 *
 * The host guarantees: n > 0; what common/phases.mako asks for; `spares` has 2 * CAPACITY elements
 * for each item; `first` and `second` have an element for each key where there are so many phases:
 * runs are in them by turns, and the last of `second` are the result. `second` is `sorted` where
 * elements are keys. Launches begin with phase 0, or have one each.
 *
 * KEY_T, DESCENDING, VALUE_T   see radix_keys.mako
 * MOVED      what elements are: keys; codes, which are not the whole of their keys, with the keys as
 *            values; codes with indices, positions in the row; or pairs of keys and the user's values
 * INDEX_T    unsigned type that counts the elements of all rows
 * TILE       elements that one item sorts in its cache
 * STRETCH    elements of a task of merging, not more than two tiles, which it divides
 * CAPACITY   elements that `spares` has twice for each item: a tile or a stretch
 * PATIENCE   how often an item looks for others to finish
 */
<%page args="KEY_T, DESCENDING, VALUE_T, MOVED, INDEX_T, TILE, STRETCH, CAPACITY, PATIENCE"/>\
<%namespace name="phases" file="/common/phases.mako"/>\
<%namespace name="paths" file="/common/merge_path.mako"/>\
<%include file="/prelude.cl.mako"/>\
<%include file="radix_keys.mako" args="KEY_T=KEY_T, DESCENDING=DESCENDING, VALUE_T=VALUE_T"/>\
<%
    BLOCK = 8
    LEAST = 4  # steps of a round that are worth it
    rank_t = {"uchar": "char", "char": "char", "ushort": "short", "short": "short", "half": "short",
              "ulong": "long", "long": "long", "double": "long"}.get(KEY_T, "int")
    unsigned = "u" + rank_t
%>\
typedef ${INDEX_T} index_t;
typedef ${"long" if MOVED == "indices" else VALUE_T or "uchar"} out_value_t;
#define CODE_OF(e) ${"KEY_OF(e)" if MOVED in ("codes", "indices") else "code(KEY_OF(e))"}

${paths.ends("index_t")}
${paths.search("rank_of_path", "__global", "elem_t", "index_t", "CODE_OF")}
/* Sort up to ${BLOCK} elements by counting: the place of one is how many go before it. */
static inline void sort_block(__global const ukey_t *keys,
% if MOVED == "pairs":
                              __global const value_t *values,
% endif
% if MOVED == "indices":
                              const index_t position,
% endif
                              const uint count, __global elem_t *target)
{
    ukey_t codes[${BLOCK}];
    ${rank_t} ranks[${BLOCK}];
    for (uint i = 0; i < ${BLOCK}; ++i)
        codes[i] = i < count ? code(keys[i]) : (ukey_t)~(ukey_t)0;
    const ${unsigned}${BLOCK} all = vload${BLOCK}(0, codes);
    const ${rank_t}${BLOCK} number = (${rank_t}${BLOCK})(${", ".join(map(str, range(BLOCK)))});
    ${rank_t}${BLOCK} rank = (${rank_t}${BLOCK})(0);
% for j in range(BLOCK):
    rank -= (codes[${j}] < all) | ((codes[${j}] == all) & ((${rank_t})${j} < number));
% endfor
    vstore${BLOCK}(rank, 0, ranks);
    for (uint i = 0; i < count; ++i) {
% if VALUE_T is None:
        target[ranks[i]] = keys[i];
% else:
        target[ranks[i]].key = ${"keys[i]" if MOVED == "pairs" else "codes[i]"};
        target[ranks[i]].value = \
${{"codes": "keys[i]", "indices": "(value_t)(position + i)", "pairs": "values[i]"}[MOVED]};
% endif
    }
}

/* Four merges of elements of `runs`, as many steps each: from the fronts to outputs `front` + 0, 1, ..
   and from the rears to those before `rear`. Of each merge it is known what comes next of run b, and
   the sum of that and what comes next of run a: fewer numbers than processors have registers. */
#define MERGE_FOUR(runs, target, steps)                                                            \
    do {                                                                                           \
        for (index_t step = 0; step < (steps); ++step) {                                           \
            FRONT(runs, target, 0);                                                                \
            FRONT(runs, target, 1);                                                                \
            REAR(runs, target, 0);                                                                 \
            REAR(runs, target, 1);                                                                 \
        }                                                                                          \
    } while (0)
/* Equal elements of a go first, .. */
#define FRONT(runs, target, k)                                                                     \
    do {                                                                                           \
        const elem_t a = runs[front_sum##k + step - front_b##k], b = runs[front_b##k];             \
        const bool right = CODE_OF(b) < CODE_OF(a);                                                \
        target[front##k + step] = right ? b : a;                                                   \
        front_b##k += right;                                                                       \
    } while (0)
/* .. and those of b last. */
#define REAR(runs, target, k)                                                                      \
    do {                                                                                           \
        const elem_t a = runs[rear_sum##k - step - rear_b##k], b = runs[rear_b##k];                \
        const bool left = CODE_OF(b) < CODE_OF(a);                                                 \
        target[rear##k - step] = left ? a : b;                                                     \
        rear_b##k -= !left;                                                                        \
    } while (0)

/* Merge two pairs of runs, each of `width` elements, that follow each other. */
static inline void merge_pairs(__global const elem_t *runs, const index_t width,
                               __global elem_t *target)
{
% for k in range(2):
    const index_t front${k} = ${2 * k} * width, rear${k} = ${2 * k + 2} * width - 1;
    index_t front_b${k} = front${k} + width, rear_b${k} = rear${k};
    const index_t front_sum${k} = front${k} + front_b${k}, rear_sum${k} = rear${k} + front_b${k} - 1;
% endfor
    MERGE_FOUR(runs, target, width);
}

/* Merge what is under the outputs [begin, end) of two runs that follow each other. */
static void merge_stretch(__global const elem_t *runs, const index_t a_count, const index_t b_count,
                          const index_t begin, const index_t end, __global elem_t *target)
{
    __global const elem_t *second_run = runs + a_count;
    const index_t middle = begin + (end - begin) / 2;
    const index_t a_0 = rank_of_path(runs, second_run, begin, least_of_a(begin, b_count),
                                     most_of_a(begin, a_count));
    const index_t a_2 = rank_of_path(runs, second_run, end, least_of_a(end, b_count),
                                     most_of_a(end, a_count));
    /* Neither half of the stretch has more of a run than it has outputs. */
    const index_t half_ = middle - begin, rest = end - middle;
    const index_t a_1 = rank_of_path(runs, second_run, middle, a_2 > a_0 + rest ? a_2 - rest : a_0,
                                     a_0 + half_ < a_2 ? a_0 + half_ : a_2);
    const index_t count = a_count + b_count;
    /* Of both halves: where fronts are, and rears, which are beyond the last element. */
% for k, (start, stop) in enumerate((("begin", "middle"), ("middle", "end"))):
    index_t a_low${k} = a_${k}, a_high${k} = a_${k + 1};
    index_t b_low${k} = a_count + ${start} - a_${k}, b_high${k} = a_count + ${stop} - a_${k + 1};
    index_t front${k} = ${start} - begin, rear${k} = ${stop} - begin;
% endfor
    for (;;) {
        index_t steps = count;
% for k in range(2):
% for limit in (f"(rear{k} - front{k}) / 2", f"a_count - a_low{k}", f"count - b_low{k}", f"a_high{k}", f"b_high{k} - a_count"):
        steps = LESSER(steps, ${limit});
% endfor
% endfor
        if (steps < ${LEAST})
            break;
% for k in range(2):
        index_t front_b${k} = b_low${k}, rear_b${k} = b_high${k} - 1;
        const index_t front_sum${k} = a_low${k} + b_low${k}, rear_sum${k} = a_high${k} - 1 + rear_b${k};
        rear${k} -= 1;
% endfor
        MERGE_FOUR(runs, target, steps);
% for k in range(2):
        a_low${k} += steps - (front_b${k} - b_low${k});
        a_high${k} -= steps - (b_high${k} - 1 - rear_b${k});
        b_low${k} = front_b${k};
        b_high${k} = rear_b${k} + 1;
        front${k} += steps;
        rear${k} = rear${k} + 1 - steps;
% endfor
    }
    /* What is left: little, or in one run alone. */
% for k in range(2):
    while (a_low${k} < a_high${k} && b_low${k} < b_high${k}) {
        const bool right = CODE_OF(runs[b_low${k}]) < CODE_OF(runs[a_low${k}]);
        target[front${k}++] = runs[right ? b_low${k}++ : a_low${k}++];
    }
    while (a_low${k} < a_high${k})
        target[front${k}++] = runs[a_low${k}++];
    while (b_low${k} < b_high${k})
        target[front${k}++] = runs[b_low${k}++];
% endfor
}

/* Sort a tile. What is last merged goes to `target` if there is one; returns where it is. */
static __global elem_t *sort_tile(__global const ukey_t *keys,
% if MOVED == "pairs":
                                  __global const value_t *values,
% endif
% if MOVED == "indices":
                                  const index_t position,
% endif
                                  const uint count, __global elem_t *mine, __global elem_t *target)
{
    __global elem_t *from = mine, *to = mine + ${CAPACITY};
    if (target && count <= ${BLOCK})
        from = target;
    for (uint i = 0; i < count; i += ${BLOCK})
        sort_block(keys + i, ${{"indices": "position + i, ", "pairs": "values + i, "}.get(MOVED, "")}\
LESSER(count - i, ${BLOCK}u), from + i);
    for (uint width = ${BLOCK}; width < count; width *= 2) {
        if (target && 2 * width >= count)
            to = target;
        uint i = 0;
        for (; i + 4 * width <= count; i += 4 * width)
            merge_pairs(from + i, width, to + i);
        for (; i < count; i += 2 * width) {
            const uint a_count = LESSER(width, count - i), b_count = LESSER(width, count - i - a_count);
            merge_stretch(from + i, a_count, b_count, 0, a_count + b_count, to + i);
        }
        __global elem_t *free = from;
        from = to;
        to = free;
    }
    return from;
}

% if VALUE_T is not None:
/* Write sorted elements where the caller wants them. */
static void emit(__global const elem_t *from,
% if MOVED != "indices":
                 __global ukey_t *sorted,
% endif
% if MOVED != "codes":
                 __global out_value_t *sorted_values,
% endif
                 const uint count)
{
    for (uint i = 0; i < count; ++i) {
% if MOVED != "indices":
        sorted[i] = from[i].${"key" if MOVED == "pairs" else "value"};
% endif
% if MOVED != "codes":
        sorted_values[i] = from[i].value;
% endif
    }
}
% endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void merge_units(__global const ukey_t *keys,
% if MOVED == "pairs":
                 __global const value_t *values,
% endif
% if MOVED != "indices":
                 __global ukey_t *sorted,
% endif
% if MOVED in ("indices", "pairs"):
                 __global out_value_t *sorted_values,
% endif
                 __global elem_t *spares,
                 __global elem_t *first,
% if VALUE_T is not None:
                 __global elem_t *second,
% endif
                 const ulong n,
                 const ulong rows,
                 const uint from,
                 const uint to,
                 const uint last,
                 volatile __global uint *counters)
{
% if VALUE_T is None:
    __global elem_t *second = (__global elem_t *)sorted;
% endif
    __global elem_t *mine = spares + get_global_id(0) * (size_t)${2 * CAPACITY};
    const ulong tiles = (n - 1) / ${TILE} + 1, stretches = (n - 1) / ${STRETCH} + 1;
    /* Tiles are sorted by shares of them, as they may be many and small. */
    <%phases:run tasks="(uint)(phase ? rows * stretches : min(rows * tiles, (ulong)get_global_size(0) * 64))"
                 patience="${PATIENCE}">
        __global elem_t *target = (last - 1 - phase) & 1 ? first : second;
        __global const elem_t *source = (last - 1 - phase) & 1 ? second : first;
        const bool ends = phase + 1 == last;
        const ulong share_end = phase ? task + 1ul : rows * tiles * (task + 1) / tasks;
        for (ulong part = phase ? task : rows * tiles * task / tasks; part < share_end; ++part) {
            const ulong parts = phase ? stretches : tiles;
            const ulong at = part / parts * n;
            const index_t begin = (index_t)(part % parts) * (phase ? ${STRETCH} : ${TILE});
            const uint count = (uint)min((ulong)(phase ? ${STRETCH} : ${TILE}), n - begin);
% if VALUE_T is None:
            __global elem_t *result = target + at + begin;
% else:
            __global elem_t *result = ends ? (phase ? mine : 0) : target + at + begin;
% endif
            if (phase == 0) {
                result = sort_tile(keys + at + begin, ${{"indices": "begin, ", "pairs": "values + at + begin, "}.get(MOVED, "")}\
count, mine, result);
            } else {
                const index_t width = (index_t)${TILE} << (phase - 1);
                const index_t pair = begin & ~(2 * width - 1);
                const index_t a_count = (index_t)min((ulong)width, n - pair);
                const index_t b_count = (index_t)min((ulong)width, n - pair - a_count);
                merge_stretch(source + at + pair, a_count, b_count, begin - pair, begin - pair + count,
                              result);
            }
% if VALUE_T is not None:
            if (ends)
                emit(result, ${{"codes": "sorted + at + begin", "indices": "sorted_values + at + begin", "pairs": "sorted + at + begin, sorted_values + at + begin"}[MOVED]}, count);
% endif
        }
    </%phases:run>
}
