## The first read of a radix sort: how many keys have each value of each digit, and so where these begin
## in the row, and what each pass has to do. See radix_gpu.cl.mako, of which all names in OpenCL C are.
##
##     histograms        some groups per row count in local memory, and add to the row's counts:
##
##       histogram   row 0: digit 0 [0 .. RADIX - 1], digit 1 [..], ..  |  row 1: ..  |  arrivals per row
##
##     scan_histograms   of these counts, where each value begins (`bases`) and `pass_flags`; with
##                       LOOK_BACK the last group of `histograms` does that for its row
##
## Source: A. Adinets, D. Merrill, 2022, see there; neighbouring items use COPIES counts in turns, as one
## that all add to is a queue.
##
## WIDE, WG_SIZE, DIGIT_BITS, DIGITS, LOOK_BACK, TOP, PTX   see radix_gpu.cl.mako
<%namespace name="arrival" file="/common/arrival.mako"/>\
<%namespace name="counts" file="/common/counts.mako"/>\
<%namespace name="radix_gpu_top" file="radix_gpu_top.mako"/>\
<%namespace name="registers" file="/common/registers.mako"/>\
## Count all digits of the code `one`.
<%def name="count_key(digits, digit_bits)">\
% for d in range(digits):
                atomic_inc(&mine[(${d} * RADIX + ((uint)(one >> ${d * digit_bits}) & (RADIX - 1))) * COPIES]);
% endfor
</%def>\
<%def name="declare(WIDE, WG_SIZE, DIGIT_BITS, DIGITS, LOOK_BACK, TOP, PTX)">\
/* A word that groups of the same launch have added to. */
#define COUNTED(i) ${"histogram[i]" if PTX else "atomic_or(&histogram[i], 0)"}

% if TOP:
${radix_gpu_top.schedule(TOP)}\

% endif
/* Find where the keys of each digit of a row begin, and which passes do what; all items of the group
   come `here`, or none. PoCL 3.0 takes barriers in a loop better than in a condition. */
static inline void scan_row(const size_t row, const index_t n, const bool here,
                              volatile __global uint *histogram,
                              __global index_t *restrict bases, __global uint *restrict pass_flags,
                              __local uint *space, __local uint *shared_by_all, \
${"__local uint *chances, " if TOP else ""}__local ulong *sums)
{
    const uint item = (uint)get_local_id(0);
    if (item < DIGITS)
        shared_by_all[item] = ${"chances[item] = 0" if TOP else "0"};
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = 0; d < (here ? DIGITS : 0); ++d) {
        const size_t word = (row * DIGITS + d) * RADIX + item;
        index_t count = 0;
        if (item < RADIX) {
            count = ${counts.value("histogram", "word", WIDE, "COUNTED")};
            ${counts.clear("histogram", "word", WIDE)}
            if (count == n)
                shared_by_all[d] = 1;
% if TOP:
            if (count)
                atomic_add(&chances[d], chance_of(count, n));
% endif
        }
% if WIDE:
        if (item < RADIX)
            sums[item] = count;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item == 0) {
            ulong sum = 0;
            for (uint i = 0; i < RADIX; ++i) {
                const ulong one = sums[i];
                sums[i] = sum;
                sum += one;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < RADIX)
            bases[word] = sums[item];
% else:
        const uint before = scan_group(count, space);
        if (item < RADIX)
            bases[word] = before;
% endif
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (here && item == 0) {
        uint left = 0;
        for (uint d = 0; d < DIGITS; ++d)
            left += !shared_by_all[d];
        /* Equal keys are copied by the first pass. */
        if (!left)
            shared_by_all[0] = 0, left = 1;
% if TOP:
        choose_passes(pass_flags + row * ROW_FLAGS, n, left, shared_by_all, chances);
% else:
        uint first = FIRST;
        for (uint d = 0; d < DIGITS; ++d) {
            uint word = 0;
            if (!shared_by_all[d]) {
                word = ACTIVE | first | (left == 1 ? LAST : 0) | (left & 1 ? TO_SORTED : 0);
                first = 0;
                --left;
            }
            pass_flags[row * DIGITS + d] = word;
        }
% endif
    }
}

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void histograms(__global const ukey_t *restrict keys,
                volatile __global uint *histogram,
% if LOOK_BACK:
                __global index_t *restrict bases,
                __global uint *restrict pass_flags,
                __global status_t *restrict status,
                const ulong status_words,
                __global uint *restrict tickets,
% endif
                const index_t n,
                const uint groups)
{
    __local uint counts[DIGITS * RADIX * COPIES];
    const uint item = (uint)get_local_id(0);
    const size_t row = get_group_id(0) / groups;
    const uint group = (uint)get_group_id(0) % groups;
    for (uint i = item; i < DIGITS * RADIX * COPIES; i += WG_SIZE)
        counts[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    keys += row * n;
    /* Count all digits of the group's tiles. */
    volatile __local uint *mine = counts + item % COPIES;
    for (index_t begin = (index_t)group * TILE; begin < n; begin += (index_t)groups * TILE) {
        ukey_t codes[ITEM_KEYS];
        if (n - begin >= TILE) {
${registers.each("j", "ITEM_KEYS", PTX)}
                codes[j] = code(keys[begin + j * WG_SIZE + item]);
${registers.each("j", "ITEM_KEYS", PTX)} {
                const ukey_t one = codes[j];
                ${count_key(DIGITS, DIGIT_BITS)}\
            }
        } else
            for (uint j = 0; begin + j * WG_SIZE + item < n; ++j) {
                const ukey_t one = code(keys[begin + j * WG_SIZE + item]);
                ${count_key(DIGITS, DIGIT_BITS)}\
            }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    /* Add the group's counts to those of the row. */
    for (uint i = item; i < DIGITS * RADIX; i += WG_SIZE) {
        uint count = 0;
        for (uint c = 0; c < COPIES; ++c)
            count += counts[i * COPIES + c];
        if (count) {
            const size_t word = row * DIGITS * RADIX + i;
            ${counts.add("histogram", "word", "count", WIDE)}\
        }
    }
% if LOOK_BACK:
    /* Clear what the first pass looks back at; each pass clears that of the next. */
    for (ulong i = get_global_id(0); i < status_words; i += get_global_size(0))
        status[i] = 0;
    if (get_global_id(0) < ${"PASSES" if TOP else "DIGITS"})
        tickets[get_global_id(0)] = 0;
% if TOP:
    if (get_global_id(0) == 0)
        pass_flags[get_num_groups(0) / groups * ROW_FLAGS] = 0;
% endif
    /* The last group of a row to come here has all of its counts. */
    __local uint before_me;
    __local uint space[SCAN_WORDS];
    __local uint shared_by_all[DIGITS];
% if TOP:
    __local uint chances[DIGITS];
% endif
    __local ulong sums[RADIX];
    ${arrival.arrive("histogram[get_num_groups(0) / groups * COUNTS + row]", "before_me")}
    const bool last = before_me + 1 == groups;
    if (last && item == 0)
        histogram[get_num_groups(0) / groups * COUNTS + row] = 0;
    scan_row(row, n, last, histogram, bases, pass_flags, space, shared_by_all, ${"chances, " if TOP else ""}sums);
% endif
}

% if not LOOK_BACK:
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void scan_histograms(volatile __global uint *histogram,
            __global index_t *restrict bases,
            __global uint *restrict pass_flags,
            const index_t n)
{
    __local uint space[SCAN_WORDS];
    __local uint shared_by_all[DIGITS];
    __local ulong sums[RADIX];
    scan_row(get_group_id(0), n, true, histogram, bases, pass_flags, space, shared_by_all, sums);
}

% endif
</%def>\
