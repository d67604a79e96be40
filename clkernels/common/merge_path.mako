## Merging two sorted runs by many items: where a stretch of the result comes from.
##
## The first `diagonal` elements of the result are the first i of run a and the first diagonal - i of
## run b. Those that wait for each other lie on a diagonal of the square of the two runs:
##
##               b   1   4   6           The path goes right where an element of b is taken, and down
##           a   +---.---.---.           where one of a is. It crosses a diagonal, from the lower left
##           2   .   |   .   .           to the upper right, once: here the one of 3 elements where two
##           3   .   |   . / .           are from a (2, 3) and one is from b (1). Left of it along the
##           5   .   +---.   .           diagonal the elements of a go first, right of it those of b, so
##               .   / . +---.           that a binary search finds the place.
##
## Equal elements: those of a go first, so that merging is stable.
##
## Source: O. Green, R. McColl, D. Bader, "GPU merge path: a GPU merging algorithm", ICS 2012; S. Odeh
## et al., "Merge path: parallel merging made simple", IPDPSW 2012.
##
## The caller guarantees: both runs are sorted by `code`. Cost: log2 of the shorter run's length in
## iterations, of two reads each; `take` reads one element and writes one per element of the result.
##
## ends        how many elements of run a come before a diagonal, at least and at most
## search      a function for one item
## search_all  a function for a group, which tries many places at once: few iterations where memory is slow
## take        a loop that merges a few elements into registers
##
## name     of the function
## space    where the runs are: __global or __local
## run_t    type of an element
## index_t  unsigned type that counts them
## code     macro or function: a number of an element, less if the element goes before
<%namespace name="registers" file="registers.mako"/>\
<%def name="search(name, space, run_t, index_t, code)">\
/* How many of the first `diagonal` elements come from a; it is known to be from `low` to `high`. */
static inline ${index_t} ${name}(${space} const ${run_t} *a, ${space} const ${run_t} *b,
                                 const ${index_t} diagonal, ${index_t} low, ${index_t} high)
{
    while (low < high) {
        const ${index_t} middle = low + (high - low) / 2;
        const bool before = ${code}(b[diagonal - 1 - middle]) < ${code}(a[middle]);
        high = before ? middle : high;
        low = before ? low : middle + 1;
    }
    return low;
}
</%def>\
## Both searches begin at the most that can come from b, and end at the most that can come from a.
<%def name="ends(index_t)">\
static inline ${index_t} least_of_a(const ${index_t} diagonal, const ${index_t} b_count)
{
    return diagonal > b_count ? diagonal - b_count : 0;
}

static inline ${index_t} most_of_a(const ${index_t} diagonal, const ${index_t} a_count)
{
    return diagonal < a_count ? diagonal : a_count;
}
</%def>\
## Two diagonals at once, each by half the items of a group. Every item calls the function; `found`
## are two words of local memory, free before and after.
##
## wg_size  items of the group: even, at least 4
<%def name="search_all(name, space, run_t, index_t, code, wg_size)">\
/* Put into places[0] and places[1] how many of the first diagonal_0 and diagonal_1 elements come from
   a. Uniform: `a_count`, `b_count` and both diagonals. */
static inline void ${name}(${space} const ${run_t} *a, const ${index_t} a_count,
                           ${space} const ${run_t} *b, const ${index_t} b_count,
                           const ${index_t} diagonal_0, const ${index_t} diagonal_1,
                           __local uint *found, ${index_t} *places)
{
    const uint half_ = get_local_id(0) / ${wg_size // 2}, item = get_local_id(0) % ${wg_size // 2};
    ${index_t} low[2], high[2];
    low[0] = least_of_a(diagonal_0, b_count);
    low[1] = least_of_a(diagonal_1, b_count);
    high[0] = most_of_a(diagonal_0, a_count);
    high[1] = most_of_a(diagonal_1, a_count);
    const ${index_t} diagonal = half_ ? diagonal_1 : diagonal_0;
    while (low[0] < high[0] || low[1] < high[1]) {
        if (item == 0)
            found[half_] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        /* Items try the ends of equal intervals, from the first on; all of them if they are few. */
        const ${index_t} from = half_ ? low[1] : low[0], to = half_ ? high[1] : high[0];
        const ${index_t} span = (to - from) / ${wg_size // 2} + 1;
        const ${index_t} end = from + span * item + (span - 1);
        if (end < to && !(${code}(b[diagonal - 1 - end]) < ${code}(a[end])))
            atomic_max(&found[half_], item + 1);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = 0; k < 2; ++k) {
            const ${index_t} size = (high[k] - low[k]) / ${wg_size // 2} + 1;
            const ${index_t} next = low[k] + size * found[k];
            high[k] = next + size - 1 < high[k] ? next + size - 1 : high[k];
            low[k] = next;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    places[0] = low[0];
    places[1] = low[1];
}
</%def>\
## Take `count` elements in order, from run[a..a_end) and run[b..b_end), into registers: the numbers by
## which they are ordered, and, if `slots` has a name, where in `run` each was. There are so many of
## them. Reads no further than run[a_end] and run[b_end], which may hold anything.
##
## unroll  whether the compiler is told to
<%def name="take(run, a, a_end, b, b_end, code_t, codes, slots, count, unroll)">\
    {
        uint a_ = ${a}, b_ = ${b};
        const uint a_last = ${a_end}, b_last = ${b_end};
        ${code_t} left = ${run}[a_], right = ${run}[b_];
${registers.each("j", count, unroll)} {
            const bool from_b = a_ >= a_last || (b_ < b_last && right < left);
            ${codes}[j] = from_b ? right : left;
% if slots:
            ${slots}[j] = (ushort)(from_b ? b_ : a_);
% endif
            const uint next = from_b ? ++b_ : ++a_;
            const ${code_t} one = ${run}[next];
            left = from_b ? left : one;
            right = from_b ? one : right;
        }
    }
</%def>\
