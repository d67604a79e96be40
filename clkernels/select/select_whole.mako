## A row a group, in one launch: see radix_select.cl.mako.
<%page args="WG_SIZE"/>\
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void select_rows(__global const ukey_t *keys,
                 __global ukey_t *values,
                 __global long *places,
                 const index_t n,
                 const index_t k)
{
    __local uint counts[COPIES * RADIX];
    __local uint sums[SCAN_WORDS];
    __local index_t space[SPACE];
    __local index_t answer[3];
    __local uint below, total;
    const uint item = (uint)get_local_id(0);
    const size_t row = get_group_id(0);
    settled_t known;
    known.prefix = 0;
    known.left = k;
    known.equal = n;
    keys += row * n;
    /* Where all that share the digits so far are wanted, further digits say nothing. */
    uint d = 0;
    for (; d < DIGITS && known.left < known.equal; ++d) {
        index_t own[OWN_WORDS];
        const code_t low = known.prefix * values_of(d);
        clear_counts(counts, &below);
        count_part(keys, 0, n, shift_of(d), counts, &below, low, low + values_of(d) - 1);
        for (uint w = 0; w < OWN_WORDS; ++w) {
            const uint v = item * OWN_WORDS + w;
            own[w] = v < RADIX ? counts[v] : 0;
            for (uint c = 1; c < COPIES; ++c)
                own[w] += v < RADIX ? counts[c * RADIX + v] : 0;
        }
        known = settle(known, d, own, space, answer);
    }
    take_part(keys, 0, n, d ? shift_of(d - 1) : 0, 0, 0, 0, known.left, values + row * k, places + row * k, sums, &total,
              known.prefix, d ? known.prefix : ~(code_t)0);
}
