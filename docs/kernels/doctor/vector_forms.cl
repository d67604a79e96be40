/*
 * An example of clkernels/doctor/vector_forms.cl.mako, rendered by tools/kernel_examples.py:
 * what to change is the template.
 *
 *     parameters    TYPE=short, PARTNER=float, WIDTHS=(2, 3, 4), ITEMS=16, STORED=False
 */
/*
 * Probe: vectors of one type in arithmetic, comparisons and selections, conversions, loads and
 * stores.
 *
 *   a    | W = 2: item 0 | item 1 | ... | W = 3: item 0 | item 1 | ... | ...      and so all arrays
 *
 *   sums       a * b + a
 *   chosen     the greater one of a and b; loaded and stored through pointers to vectors, but for 3
 *   converted  a as PARTNER
 *   back       p as TYPE
 *
 * If STORED, halves are in memory only: sums is all there is, computed in float.
 *
 * Source: own. Written for Clover, which was wrong at widths from 2 to 8 (CLBlast, issue 387).
 *
 * The host guarantees: ITEMS items; all arrays hold W elements for each item and width W.
 *
 *   TYPE     element type
 *   PARTNER  type that it is converted to, and back
 *   WIDTHS   widths of vectors
 *   ITEMS    work-items, a multiple of all widths but 3
 *   STORED   whether vload_half and vstore_half read and write TYPE
 */
__kernel void forms(__global const short *a, __global const short *b,
                    __global const float *p, __global short *sums, __global short *chosen,
                    __global float *converted, __global short *back) {
    const size_t i = get_global_id(0);
    {
        const short2 x = vload2(i, a + 0);
        const short2 y = ((__global const short2 *)(b + 0))[i];
        ((__global short2 *)(chosen + 0))[i] = select(x, y, x < y);
        vstore2(x * y + x, i, sums + 0);
        vstore2(convert_float2(x), i, converted + 0);
        vstore2(convert_short2(vload2(i, p + 0)), i, back + 0);
    }
    {
        const short3 x = vload3(i, a + 32);
        const short3 y = vload3(i, b + 32);
        vstore3(select(x, y, x < y), i, chosen + 32);
        vstore3(x * y + x, i, sums + 32);
        vstore3(convert_float3(x), i, converted + 32);
        vstore3(convert_short3(vload3(i, p + 32)), i, back + 32);
    }
    {
        const short4 x = vload4(i, a + 80);
        const short4 y = ((__global const short4 *)(b + 80))[i];
        ((__global short4 *)(chosen + 80))[i] = select(x, y, x < y);
        vstore4(x * y + x, i, sums + 80);
        vstore4(convert_float4(x), i, converted + 80);
        vstore4(convert_short4(vload4(i, p + 80)), i, back + 80);
    }
}
