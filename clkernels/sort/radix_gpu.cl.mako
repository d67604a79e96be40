/*
 * Stable radix sort of rows by work-groups, least significant digits first: the form for GPUs.
 *
 *     histograms        all digits of all keys are counted in one read
 *     scan_histograms   a row per group: where the keys of each digit begin; which digits all keys
 *                       share, so that their passes do nothing; and so between which arrays the
 *                       others move keys. With LOOK_BACK the last group of `histograms` does that
 *     scatter           a pass, by tiles: keys are ranked in the group, brought in order in local
 *                       memory, and written in runs, after those of earlier tiles with the digit
 *
 * How many these are is found by looking back (LOOK_BACK, see common/lookback.mako), so that a pass
 * reads and writes each key once. Else every pass has two launches before, which assume nothing
 * about other groups:
 *
 *     count_tiles       digits of each tile
 *     scan_tiles        a digit per group: sums over the tiles before
 *
 * Source: A. Adinets, D. Merrill, "Onesweep: a faster least significant digit radix sort for GPUs",
 * 2022; the other form after D. Merrill, A. Grimshaw, "Revisiting sorting for GPGPU stream
 * architectures", 2010 (reduce-then-scan).
 *
 * The host guarantees: n > 0; `histogram` has RADIX words for each digit of a row (twice as many with
 * WIDE) and one more for each row, all zero, and one launch at a time has it; the other arrays
 * between launches have what sort/radix_gpu.py says; there is a group for each tile of each row, in
 * dimension 0; with LOOK_BACK, groups see words that others have written with volatile stores (PTX)
 * or atomic operations.
 *
 * ELEMENT      what is sorted: see keys.mako
 * WIDE         whether a row may have 2^30 keys or more
 * WG_SIZE      work-items of a group, a multiple of 32, at least 2^DIGIT_BITS
 * ITEM_KEYS    keys of an item, at least 2: with one, and so without loops, PoCL 3.0 lets values
 *              past the end through their guard
 * DIGIT_BITS   bits of a digit
 * DIGITS       digits of a key
 * LOOK_BACK    None where a pass is three launches; else
 *   looks        tiles that one looks back at together
 *   max_polls    how often one looks at a tile before counting it oneself
 * COPIES       counts of each digit in `histograms`, which neighbours use in turns
 * ROOM         bytes of local memory in which digits are ranked and keys and values exchanged
 * PTX          whether the device takes inline PTX
 */
<%page args="ELEMENT, WIDE, WG_SIZE, ITEM_KEYS, DIGIT_BITS, DIGITS, LOOK_BACK, COPIES, ROOM, PTX"/>\
<%namespace name="keys" file="keys.mako"/>\
<%namespace name="radix_gpu_tile" file="radix_gpu_tile.mako"/>\
<%namespace name="fence" file="/common/fence.mako"/>\
<%namespace name="tickets" file="/common/tickets.mako"/>\
<%namespace name="lookback" file="/common/lookback.mako"/>\
<%namespace name="radix_gpu_scan" file="radix_gpu_scan.mako"/>\
<%namespace name="radix_gpu_scatter" file="radix_gpu_scatter.mako"/>\
<%namespace name="arrival" file="/common/arrival.mako"/>\
<%namespace name="counts" file="/common/counts.mako"/>\
<%namespace name="registers" file="/common/registers.mako"/>\
${keys.declare(ELEMENT)}\
${radix_gpu_tile.declare(WG_SIZE=WG_SIZE, ITEM_KEYS=ITEM_KEYS, DIGIT_BITS=DIGIT_BITS, PTX=PTX)}\
% if LOOK_BACK:
${fence.declare(PTX=PTX)}\
${tickets.declare()}\
${lookback.declare(WIDE=WIDE, PTX=PTX)}\
% endif
#define DIGITS ${DIGITS}
#define COPIES ${COPIES}
#define COUNTS (DIGITS * RADIX * ${2 if WIDE else 1}) /* words of a row's histogram */
enum { ACTIVE = 1, FIRST = 2, LAST = 4, TO_SORTED = 8 };

typedef ${"ulong" if WIDE else "uint"} index_t;
% if ELEMENT.indices:
typedef long out_value_t;
% elif ELEMENT.value:
typedef value_t out_value_t;
% endif

/* A word that groups of the same launch have added to. */
#define COUNTED(i) ${"histogram[i]" if PTX else "atomic_or(&histogram[i], 0)"}

/* Find where the keys of each digit of a row begin, and which passes do what; all items of the group
   come `here`, or none. PoCL 3.0 takes barriers in a loop better than in a condition. */
static inline void scan_row(const size_t row, const index_t n, const bool here,
                              volatile __global uint *histogram,
                              __global index_t *restrict bases, __global uint *restrict pass_flags,
                              __local uint *space, __local uint *shared_by_all, __local ulong *sums)
{
    const uint item = (uint)get_local_id(0);
    if (item < DIGITS)
        shared_by_all[item] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = 0; d < (here ? DIGITS : 0); ++d) {
        const size_t word = (row * DIGITS + d) * RADIX + item;
        index_t count = 0;
        if (item < RADIX) {
            count = ${counts.value("histogram", "word", WIDE, "COUNTED")};
            ${counts.clear("histogram", "word", WIDE)}
            if (count == n)
                shared_by_all[d] = 1;
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
    volatile __local uint *mine = counts + item % COPIES;
<%def name="count_key()">\
% for d in range(DIGITS):
                atomic_inc(&mine[(${d} * RADIX + ((uint)(one >> ${d * DIGIT_BITS}) & (RADIX - 1))) * COPIES]);
% endfor
</%def>\
    for (index_t begin = (index_t)group * TILE; begin < n; begin += (index_t)groups * TILE) {
        ukey_t codes[ITEM_KEYS];
        if (n - begin >= TILE) {
${registers.each("j", "ITEM_KEYS", PTX)}
                codes[j] = code(keys[begin + j * WG_SIZE + item]);
${registers.each("j", "ITEM_KEYS", PTX)} {
                const ukey_t one = codes[j];
                ${count_key()}\
            }
        } else
            for (uint j = 0; begin + j * WG_SIZE + item < n; ++j) {
                const ukey_t one = code(keys[begin + j * WG_SIZE + item]);
                ${count_key()}\
            }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
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
    for (ulong i = get_global_id(0); i < status_words; i += get_global_size(0))
        status[i] = 0;
    if (get_global_id(0) < DIGITS)
        tickets[get_global_id(0)] = 0;
    /* The last group of a row to come here has all of its counts. */
    __local uint before_me;
    __local uint space[SCAN_WORDS];
    __local uint shared_by_all[DIGITS];
    __local ulong sums[RADIX];
    ${arrival.arrive("histogram[get_num_groups(0) / groups * COUNTS + row]", "before_me")}
    const bool last = before_me + 1 == groups;
    if (last && item == 0)
        histogram[get_num_groups(0) / groups * COUNTS + row] = 0;
    scan_row(row, n, last, histogram, bases, pass_flags, space, shared_by_all, sums);
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
% if not LOOK_BACK:
${radix_gpu_scan.declare(WG_SIZE=WG_SIZE)}\

% endif
${radix_gpu_scatter.declare(ELEMENT, LOOK_BACK=LOOK_BACK, WG_SIZE=WG_SIZE, ROOM=ROOM, PTX=PTX)}\
