## One item merges a stretch of the result of two sorted runs, which threads with caches do fast.
##
## A processor waits for a comparison before it can load what is compared next. So four merges that
## do not need each other take turns: two halves of a stretch, each from the front and from the rear,
## where neither needs to know where the other ends.
##
##     run a  |    front 0 ->      <- rear 0 | front 1 ->      <- rear 1     |
##     run b  |  front 0 -> <- rear 0 | front 1 ->            <- rear 1      |
##     result |  front 0 ->        <- rear 0 | front 1 ->            <- rear 1
##
## No branch depends on a key: at the begin of a round it is known how many elements cannot leave a run.
##
##   merge_stretch(..)   what is under given outputs of two runs that follow each other
##   merge_pairs(..)     what is under outputs of many runs, of which each two are merged
##
## Source: O. Green, R. McColl, D. Bader, "GPU merge path", ICS 2012, for the stretches; merging from
## both ends after I. van den Hoven, "quadsort" (parity merge), and O. Peters, "glidesort", 2021 to 2023;
## the rest is own.
##
## The caller guarantees: names of keys.mako; index_t; CODE_OF(e), a number that is less if e goes before.
##
## ELEMENT   what is merged: see keys.mako
## ENDS      type of where runs end, with its memory
<%namespace name="paths" file="/common/merge_path.mako"/>\
<%def name="declare(ELEMENT, ENDS)">\
% if not ELEMENT.value:
#define PICK(yes, one, other) ((yes) ? (one) : (other))
% else:
#define PICK(yes, one, other) ((elem_t){(yes) ? (one).key : (other).key, (yes) ? (one).value : (other).value})
% endif
${paths.ends("index_t")}
${paths.search("rank_of_path", "__global", "elem_t", "index_t", "CODE_OF")}
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
        index_t each = count;
% for k in range(2):
% for limit in (f"(rear{k} - front{k}) / 2", f"a_count - a_low{k}", f"count - b_low{k}", f"a_high{k}", f"b_high{k} - a_count"):
        each = LESSER(each, ${limit});
% endfor
% endfor
        if (each < 4) /* no round is worth its begin */
            break;
% for k in range(2):
        index_t front_b${k} = b_low${k}, rear_b${k} = b_high${k} - 1;
        const index_t front_sum${k} = a_low${k} + b_low${k}, rear_sum${k} = a_high${k} - 1 + rear_b${k};
        rear${k} -= 1;
% endfor
        /* Of each merge it is known what comes next of run b, and the sum of that and what comes next of
           run a: fewer numbers than processors have registers. */
        for (index_t done = 0; done < each; ++done) {
% for k in range(2):
            { /* equal elements of a go first, */
                const elem_t a = runs[front_sum${k} + done - front_b${k}], b = runs[front_b${k}];
                const bool right = CODE_OF(b) < CODE_OF(a);
                target[front${k} + done] = PICK(right, b, a);
                front_b${k} += right;
            }
% endfor
% for k in range(2):
            { /* and those of b last */
                const elem_t a = runs[rear_sum${k} - done - rear_b${k}], b = runs[rear_b${k}];
                const bool left = CODE_OF(b) < CODE_OF(a);
                target[rear${k} - done] = PICK(left, a, b);
                rear_b${k} -= !left;
            }
% endfor
        }
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

/* Where a run begins; after the last one, the end of all. */
static index_t begin_of(${ENDS} *ends, const uint runs, const uint run)
{
    return run == 0 ? 0 : (index_t)ends[LESSER(run, runs) - 1];
}

/* Merge what is under the outputs [begin, end) of runs that follow each other: each `width` of them, which
   are one by now, with the next. */
static void merge_pairs(__global const elem_t *source, ${ENDS} *ends, const uint runs, const uint width,
                        const index_t begin, const index_t end, __global elem_t *target)
{
    index_t at = begin;
    for (uint run = 0; at < end; run += 2 * width) {
        const index_t high = begin_of(ends, runs, run + 2 * width);
        if (high > at) {
            const index_t low = begin_of(ends, runs, run);
            const index_t middle = begin_of(ends, runs, run + width);
            const index_t stop = LESSER(high, end);
            merge_stretch(source + low, middle - low, high - middle, at - low, stop - low, target + (at - begin));
            at = stop;
        }
    }
}

</%def>\
