/*
 * Stable radix sort of rows by work-groups, least significant digits first: the form for GPUs.
 *
 *     histograms        all digits of all keys are counted in one read
 *     scan_histograms   a row per group: where the keys of each digit begin; which digits all keys
 *                       share, so that their passes do nothing; and so between which arrays the
 *                       others move keys. With LOOK_BACK the last group of `histograms` does that
 *     scatter           a pass, by tiles: keys are ranked in the group, brought in order in local
 *                       memory, and written in runs: the keys of one value of the digit after those
 *                       of earlier tiles with the same value
 *
 * How many these are is found by looking back (LOOK_BACK, see common/lookback.mako), so that a pass
 * reads and writes each key once. Else every pass has two launches before, which assume nothing
 * about other groups:
 *
 *     count_tiles       a tile per group: how many of its keys have each value
 *     scan_tiles        a value of the digit per group: sums over the tiles before
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
 *   max_polls    looks in vain at a tile, after which one counts it oneself
 * TOP          None where passes are over all digits; else, with LOOK_BACK, see radix_gpu_top.mako
 * COPIES       counts of each digit in `histograms`, which neighbours use in turns
 * ROOM         bytes of local memory in which digits are ranked and keys and values exchanged
 * PTX          whether the device takes inline PTX
 * SUB_GROUP    items of a sub-group where a tile is in registers, 0: the compiler chooses
 */
<%page args="ELEMENT, WIDE, WG_SIZE, ITEM_KEYS, DIGIT_BITS, DIGITS, LOOK_BACK, TOP, COPIES, ROOM, PTX,
             SUB_GROUP"/>\
<%namespace name="keys" file="keys.mako"/>\
<%namespace name="radix_gpu_tile" file="radix_gpu_tile.mako"/>\
<%namespace name="fence" file="/common/fence.mako"/>\
<%namespace name="tickets" file="/common/tickets.mako"/>\
<%namespace name="lookback" file="/common/lookback.mako"/>\
<%namespace name="radix_gpu_histograms" file="radix_gpu_histograms.mako"/>\
<%namespace name="radix_gpu_scan" file="radix_gpu_scan.mako"/>\
<%namespace name="radix_gpu_scatter" file="radix_gpu_scatter.mako"/>\
<%namespace name="radix_gpu_top" file="radix_gpu_top.mako"/>\
% if TOP:
/* What two kernels call is part of both, as private arrays in memory are slow. */
#define inline inline __attribute__((always_inline))

% endif
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
/* What a pass does, in a word of pass_flags; 0 where all keys share its digit. */
enum { ACTIVE = 1, FIRST = 2, LAST = 4, TO_SORTED = 8 };

typedef ${"ulong" if WIDE else "uint"} index_t;
% if ELEMENT.indices:
typedef long out_value_t;
% elif ELEMENT.value:
typedef value_t out_value_t;
% endif

${radix_gpu_histograms.declare(WIDE=WIDE, WG_SIZE=WG_SIZE, DIGIT_BITS=DIGIT_BITS, DIGITS=DIGITS,
                               LOOK_BACK=LOOK_BACK, TOP=TOP, PTX=PTX)}\
% if not LOOK_BACK:
${radix_gpu_scan.declare(WG_SIZE=WG_SIZE)}\

% endif
${radix_gpu_scatter.declare(ELEMENT, LOOK_BACK=LOOK_BACK, TOP=TOP, WG_SIZE=WG_SIZE, ROOM=ROOM, PTX=PTX,
                           SUB_GROUP=SUB_GROUP)}\
% if TOP:

${radix_gpu_top.mend(ELEMENT, WG_SIZE=WG_SIZE, PTX=PTX)}\
% endif
