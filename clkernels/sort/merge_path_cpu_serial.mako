## One item sorts a row in its cache, and merges stretches of two runs: see merge_path_cpu.cl.mako.
##
## ELEMENT, MOVED, SPACE, CAPACITY   see there
<%namespace name="types" file="/common/types.mako"/>\
<%namespace name="paths" file="/common/merge_path.mako"/>\
<%def name="declare(ELEMENT, MOVED, SPACE, CAPACITY)">\
<%
    BLOCK = 8
    LEAST = 4  # elements of each merge in a round that is worth it
    rank_t, unsigned = types.module.signed(ELEMENT.key), types.module.unsigned(ELEMENT.key)
%>\
% if not ELEMENT.value:
#define PICK(yes, one, other) ((yes) ? (one) : (other))
% else:
#define PICK(yes, one, other) ((elem_t){(yes) ? (one).key : (other).key, (yes) ? (one).value : (other).value})
% endif
#define CODE_OF(e) ${"KEY_OF(e)" if MOVED in ("codes", "indices") else "code(KEY_OF(e))"}

${paths.ends("index_t")}
${paths.search("rank_of_path", SPACE, "elem_t", "index_t", "CODE_OF")}
/* Sort up to ${BLOCK} elements by counting: the place of one is how many go before it. */
static inline void sort_block(__global const ukey_t *keys,
% if MOVED == "pairs":
                              __global const value_t *values,
% endif
% if MOVED == "indices":
                              const index_t position,
% endif
                              const uint count, ${SPACE} elem_t *target)
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
% if not ELEMENT.value:
        target[ranks[i]] = keys[i];
% else:
        target[ranks[i]].key = ${"keys[i]" if MOVED == "pairs" else "codes[i]"};
        target[ranks[i]].value = \
${{"codes": "keys[i]", "indices": "(value_t)(position + i)", "pairs": "values[i]"}[MOVED]};
% endif
    }
}

/* Four merges of elements of `runs`, `each` of them: from the fronts to outputs `front` + 0, 1, ..
   and from the rears to those before `rear`. Of each merge it is known what comes next of run b, and
   the sum of that and what comes next of run a: fewer numbers than processors have registers. */
#define MERGE_FOUR(runs, target, each)                                                             \
    do {                                                                                           \
        for (index_t done = 0; done < (each); ++done) {                                           \
            FRONT(runs, target, 0);                                                                \
            FRONT(runs, target, 1);                                                                \
            REAR(runs, target, 0);                                                                 \
            REAR(runs, target, 1);                                                                 \
        }                                                                                          \
    } while (0)
/* Equal elements of a go first, .. */
#define FRONT(runs, target, k)                                                                     \
    do {                                                                                           \
        const elem_t a = runs[front_sum##k + done - front_b##k], b = runs[front_b##k];             \
        const bool right = CODE_OF(b) < CODE_OF(a);                                                \
        target[front##k + done] = PICK(right, b, a);                                                   \
        front_b##k += right;                                                                       \
    } while (0)
/* .. and those of b last. */
#define REAR(runs, target, k)                                                                      \
    do {                                                                                           \
        const elem_t a = runs[rear_sum##k - done - rear_b##k], b = runs[rear_b##k];                \
        const bool left = CODE_OF(b) < CODE_OF(a);                                                 \
        target[rear##k - done] = PICK(left, a, b);                                                     \
        rear_b##k -= !left;                                                                        \
    } while (0)

/* Merge two pairs of runs, each of `width` elements, that follow each other. */
static inline void merge_pairs(${SPACE} const elem_t *runs, const index_t width,
                               ${SPACE} elem_t *target)
{
% for k in range(2):
    const index_t front${k} = ${2 * k} * width, rear${k} = ${2 * k + 2} * width - 1;
    index_t front_b${k} = front${k} + width, rear_b${k} = rear${k};
    const index_t front_sum${k} = front${k} + front_b${k}, rear_sum${k} = rear${k} + front_b${k} - 1;
% endfor
    MERGE_FOUR(runs, target, width);
}

/* Merge what is under the outputs [begin, end) of two runs that follow each other. */
static void merge_stretch(${SPACE} const elem_t *runs, const index_t a_count, const index_t b_count,
                          const index_t begin, const index_t end, ${SPACE} elem_t *target)
{
    ${SPACE} const elem_t *second_run = runs + a_count;
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
        index_t each = count;
% for k in range(2):
% for limit in (f"(rear{k} - front{k}) / 2", f"a_count - a_low{k}", f"count - b_low{k}", f"a_high{k}", f"b_high{k} - a_count"):
        each = LESSER(each, ${limit});
% endfor
% endfor
        if (each < ${LEAST})
            break;
% for k in range(2):
        index_t front_b${k} = b_low${k}, rear_b${k} = b_high${k} - 1;
        const index_t front_sum${k} = a_low${k} + b_low${k}, rear_sum${k} = a_high${k} - 1 + rear_b${k};
        rear${k} -= 1;
% endfor
        MERGE_FOUR(runs, target, each);
% for k in range(2):
        a_low${k} += each - (front_b${k} - b_low${k});
        a_high${k} -= each - (b_high${k} - 1 - rear_b${k});
        b_low${k} = front_b${k};
        b_high${k} = rear_b${k} + 1;
        front${k} += each;
        rear${k} = rear${k} + 1 - each;
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

/* Sort a row; returns where it is. */
static ${SPACE} elem_t *sort_tile(__global const ukey_t *keys,
% if MOVED == "pairs":
                                  __global const value_t *values,
% endif
% if MOVED == "indices":
                                  const index_t position,
% endif
                                  const uint count, ${SPACE} elem_t *mine)
{
    ${SPACE} elem_t *from = mine, *to = mine + ${CAPACITY};
    for (uint i = 0; i < count; i += ${BLOCK})
        sort_block(keys + i, ${{"indices": "position + i, ", "pairs": "values + i, "}.get(MOVED, "")}\
LESSER(count - i, ${BLOCK}u), from + i);
    for (uint width = ${BLOCK}; width < count; width *= 2) {
        uint i = 0;
        for (; i + 4 * width <= count; i += 4 * width)
            merge_pairs(from + i, width, to + i);
        for (; i < count; i += 2 * width) {
            const uint a_count = LESSER(width, count - i), b_count = LESSER(width, count - i - a_count);
            merge_stretch(from + i, a_count, b_count, 0, a_count + b_count, to + i);
        }
        ${SPACE} elem_t *free = from;
        from = to;
        to = free;
    }
    return from;
}

</%def>\
