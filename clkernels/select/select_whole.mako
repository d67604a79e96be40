## Rows or slices of them that a group reads alone: forms whole and twice of radix_select.cl.mako, of which
## all names in OpenCL C are.
##
##     select_slices   a group per slice: its first k keys and their places; a whole row is one slice
##     select_few      a group per row: the first k of what its slices have found, with their places
##
## Source, guarantees: see there.
##
## WG_SIZE   work-items of a group
## TWICE     whether there is a second launch
<%def name="declare(WG_SIZE, TWICE)">\
<%def name="select(kernel, few)">\
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void ${kernel}(__global const ukey_t *keys,
% if few:
               __global const long *few_places,
% endif
               __global ukey_t *values,
               __global long *places,
               const index_t n,
               const index_t k,
               const uint slices)
{
    __local uint counts[COPIES * RADIX];
    __local uint sums[SCAN_WORDS];
    __local index_t space[SPACE];
    __local index_t answer[3];
    __local uint below, total;
    const uint item = (uint)get_local_id(0);
    const size_t row = get_group_id(0) / slices, to = get_group_id(0) * (size_t)k;
    const ulong slice = get_group_id(0) % slices;
    /* As even as they can be: none has fewer than k. */
    const index_t begin = (index_t)(n * slice / slices), end = (index_t)(n * (slice + 1) / slices);
    prefix_t known;
    known.prefix = 0;
    known.left = k;
    known.equal = end - begin;
    keys += row * n;
    /* Where all that share the digits so far are wanted, further digits say nothing. */
    uint d = 0;
    for (; d < DIGITS && known.left < known.equal; ++d) {
        index_t own[OWN_WORDS];
        const code_t low = known.prefix * values_of(d);
        clear_counts(counts, &below);
        count_slice(keys, begin, end, shift_of(d), counts, &below, low, low + values_of(d) - 1);
        for (uint w = 0; w < OWN_WORDS; ++w) {
            const uint v = item * OWN_WORDS + w;
            own[w] = v < RADIX ? counts[v] : 0;
            for (uint c = 1; c < COPIES; ++c)
                own[w] += v < RADIX ? counts[c * RADIX + v] : 0;
        }
        known = next_digit(known, d, own, space, answer);
    }
    take_slice(keys, begin, end, d ? shift_of(d - 1) : 0, ${"few_places + row * n" if few else "0"}, 0, 0, known.left,
              values + to, places + to, sums, &total, known.prefix, d ? known.prefix : ~(code_t)0);
}
</%def>\
${select("select_slices", False)}
% if TWICE:
${select("select_few", True)}
% endif
</%def>\
