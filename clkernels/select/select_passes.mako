## A launch for each digit and one more, with a group per slice of a row: form passes of
## radix_select.cl.mako, of which all names in OpenCL C are.
##
##     histogram   of each row and digit, the counts of all slices
##     table       of each row and slice, for two digits in turns: keys below each value of the digit
##     state       of each row and digit, what is known when it has been counted
##
##     narrow_first, narrow   count a digit, see there
##     gather                 takes the keys; its last group makes the histogram zero again
##
## Source, guarantees: see there.
##
## WIDE, WG_SIZE   see there
## KEY_DIGITS      digits of a key
<%namespace name="arrival" file="/common/arrival.mako"/>\
<%namespace name="counts" file="/common/counts.mako"/>\
<%def name="declare(WIDE, WG_SIZE, KEY_DIGITS)">\
/* What is written down of a pass, in words of `state`: its prefix, how many of the keys that share it
   are wanted, how many keys the next pass reads, and whether those are the few. */
enum { PREFIX, LEFT, COUNT, FEW, STATE };

/* What this item has of the counts of digit d. */
static inline void own_counts(volatile __global const uint *histogram, const size_t row, const uint d,
                              index_t *own)
{
    for (uint w = 0; w < OWN_WORDS; ++w) {
        const uint v = (uint)get_local_id(0) * OWN_WORDS + w;
        const size_t word = (row * DIGITS + d) * RADIX + v;
        own[w] = v < RADIX ? ${counts.value("histogram", "word", WIDE)} : 0;
    }
}

/* What is known before digit d, which is not the first, is counted: from the counts of the one before. */
static inline prefix_t prefix_before(volatile __global const uint *histogram,
                                       __global const ulong *state, const size_t row, const uint d,
                                       const index_t k, __local index_t *space, __local index_t *answer)
{
    index_t own[OWN_WORDS];
    prefix_t known;
    known.prefix = d > 1 ? (code_t)state[(row * DIGITS + d - 1) * STATE + PREFIX] : 0;
    known.left = d > 1 ? (index_t)state[(row * DIGITS + d - 1) * STATE + LEFT] : k;
    known.equal = 0;
    own_counts(histogram, row, d - 1, own);
    return next_digit(known, d - 1, own, space, answer);
}

/* Where the words of a value begin that say of each slice how many keys it has below that value. */
#define TABLE(row, d, value) (table + (((row) * 2 + ((d) & 1)) * (RADIX + 1) + (value)) * (size_t)slices)

<%def name="narrow(kernel, first)">\
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void ${kernel}(__global const ukey_t *keys,
               __global ukey_t *few_keys,
               __global long *few_places,
               __global ulong *state,
               __global uint *table,
               volatile __global uint *histogram,
               const index_t n,
               const index_t k,
               const uint slices,
               const index_t capacity,
               const uint pass)
{
    __local uint counts[COPIES * RADIX];
    __local index_t space[SPACE];
    __local uint below;
    const uint item = (uint)get_local_id(0);
    const size_t row = get_group_id(0) / slices;
    const uint slice = (uint)(get_group_id(0) % slices);
    __global ulong *mine = state + (row * DIGITS + pass) * STATE;
    clear_counts(counts, &below);
% if first:
    if (slice == 0 && item == 0) {
        mine[COUNT] = n;
        mine[FEW] = 0;
    }
    count_slice(keys + row * n, slice_begin(n, slice, slices, TILE), slice_begin(n, slice + 1, slices, TILE),
               shift_of(0), counts, &below, 0, values_of(0) - 1);
% else:
    __local uint sums[SCAN_WORDS];
    __local index_t answer[3];
    __local uint total;
    const prefix_t known = prefix_before(histogram, state, row, pass, k, space, answer);
    const bool few = mine[FEW - STATE] != 0;
    const index_t count = few ? (index_t)mine[COUNT - STATE] : n, kept = k - known.left + known.equal;
    const bool taking = !few && pass + 1 < DIGITS && kept <= capacity;
    const code_t low = known.prefix * values_of(pass), high = low + values_of(pass) - 1;
    const uint digit = (uint)(known.prefix & (values_of(pass - 1) - 1));
    if (slice == 0 && item == 0) {
        mine[PREFIX] = known.prefix;
        mine[LEFT] = known.left;
        mine[COUNT] = taking ? kept : count;
        mine[FEW] = few || taking;
    }
    const index_t taken = sum_before(TABLE(row, pass - 1, digit + 1), slice, space);
    count_and_take_slice(few ? few_keys + row * capacity : keys + row * n,
                        slice_begin(count, slice, slices, TILE), slice_begin(count, slice + 1, slices, TILE),
                        shift_of(pass), counts, &below, 0, 0, taken, n, few_keys + row * capacity,
                        few_places + row * capacity, sums, &total, taking, low, high);
% endif
    /* Sums of counts up to each value, for the table. */
    index_t own[OWN_WORDS], sum = 0;
    for (uint w = 0; w < OWN_WORDS; ++w) {
        const uint v = item * OWN_WORDS + w;
        uint found = v < RADIX ? counts[v] : 0;
        for (uint c = 1; c < COPIES; ++c)
            found += v < RADIX ? counts[c * RADIX + v] : 0;
        if (found) {
            const size_t word = (row * DIGITS + pass) * RADIX + v;
            ${counts.add("histogram", "word", "found", WIDE)}\
        }
        own[w] = found;
        sum += found;
    }
    index_t before = below + scan_index(sum, space);
    for (uint w = 0; w < OWN_WORDS; ++w) {
        const uint v = item * OWN_WORDS + w;
        if (v < RADIX) {
            TABLE(row, pass, v)[slice] = (uint)before;
            before += own[w];
            if (v == RADIX - 1)
                TABLE(row, pass, RADIX)[slice] = (uint)before;
        }
    }
}
</%def>\
${narrow("narrow_first", True)}
% if KEY_DIGITS > 1:
${narrow("narrow", False)}
% endif

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void gather(__global const ukey_t *keys,
            __global const ukey_t *few_keys,
            __global const long *few_places,
            __global const ulong *state,
            __global const uint *table,
            __global ukey_t *values,
            __global long *places,
            volatile __global uint *histogram,
            volatile __global uint *leaving,
            const index_t n,
            const index_t k,
            const uint slices,
            const index_t capacity,
            const uint pass)
{
    __local uint sums[SCAN_WORDS];
    __local index_t space[SPACE];
    __local index_t answer[3];
    __local uint total;
    __local uint before_me;
    const uint item = (uint)get_local_id(0);
    const size_t row = get_group_id(0) / slices;
    const uint slice = (uint)(get_group_id(0) % slices);
    __global const ulong *mine = state + (row * DIGITS + pass - 1) * STATE;
    const prefix_t known = prefix_before(histogram, state, row, pass, k, space, answer);
    const bool few = mine[FEW] != 0;
    const index_t count = few ? (index_t)mine[COUNT] : n;
    const uint digit = (uint)(known.prefix & (values_of(pass - 1) - 1));
    /* In a loop: PoCL 3.0 crashes where it inlines the same function twice. */
    index_t before[2];
    for (uint t = 0; t < 2; ++t)
        before[t] = sum_before(TABLE(row, pass - 1, digit + t), slice, space);
    take_slice(few ? few_keys + row * capacity : keys + row * n, slice_begin(count, slice, slices, TILE),
              slice_begin(count, slice + 1, slices, TILE), 0, few ? few_places + row * capacity : 0,
              before[0], before[1] - before[0], known.left, values + row * k, places + row * k, sums, &total, known.prefix,
              known.prefix);
    /* The last group to leave makes the counts ready for the next run: all have read them. */
    ${arrival.arrive("leaving[row]", "before_me")}
    if (before_me + 1 == slices) {
        const uint words = DIGITS * RADIX * ${2 if WIDE else 1};
        for (uint w = item; w < words; w += WG_SIZE)
            histogram[row * words + w] = 0;
        if (item == 0)
            leaving[row] = 0;
    }
}
</%def>\
