/*
 * Of sorted keys the first of each run of equal ones, and how long the run is, by one thread in one
 * pass. For what is computed see unique.cl.mako, whose names these are.
 *
 *     keys     2 2 2 5 7 7
 *     values   2 5 7            each key is stored behind the heads so far, and stays there if it is one
 *     counts   0 3 4 | 6        likewise where runs begin; then their differences: 3 1 2
 *
 * Source: own.
 *
 * The host guarantees: n > 0; one work-item; outputs but `found` have room for n; `order` holds each
 * number below n once.
 *
 * ELEMENT   what a key is: see sort/keys.mako
 * WIDE      whether there may be 2^31 keys or more
 * COUNTS    whether lengths are wanted
 * FIRST     whether it is wanted where values come first
 * INVERSE   whether it is wanted which value each key became
 * EQUAL_NAN whether all NaN, or all NaT, are one key
 */
<%page args="ELEMENT, WIDE, COUNTS, FIRST, INVERSE, EQUAL_NAN"/>\
<%namespace name="keys" file="/sort/keys.mako"/>\
${keys.declare(ELEMENT)}\
${keys.distinct(ELEMENT, EQUAL_NAN)}\
typedef ${"ulong" if WIDE else "uint"} index_t;

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void heads_serial(__global const ukey_t *restrict keys,
% if FIRST or INVERSE:
                  __global const long *restrict order,
% endif
                  __global ukey_t *restrict values,
% if FIRST:
                  __global long *restrict first_places,
% endif
% if INVERSE:
                  __global long *restrict inverse,
% endif
% if COUNTS:
                  __global long *restrict counts,
% endif
                  __global long *restrict found,
                  const index_t n)
{
    index_t heads = 0;
    ukey_t before = ~code(keys[0]);
    for (index_t i = 0; i < n; ++i) {
        const ukey_t mine = code(keys[i]);
        values[heads] = keys[i];
% if COUNTS:
        counts[heads] = (long)i;
% endif
% if FIRST:
        first_places[heads] = order[i];
% endif
        heads += DISTINCT(mine, before);
        before = mine;
% if INVERSE:
        inverse[order[i]] = (long)heads - 1;
% endif
    }
% if COUNTS:
    for (index_t j = 0; j + 1 < heads; ++j)
        counts[j] = counts[j + 1] - counts[j];
    counts[heads - 1] = (long)n - counts[heads - 1];
% endif
    found[0] = (long)heads;
}
