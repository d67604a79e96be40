/*
 * Converts real numbers to a type that holds them, real or complex.
 *
 *     source  3 | 1 | 4 | 1 | 5
 *     target  3 | 1 | 4 | 1 | 5        one item each; complex ones get 0 as imaginary part
 *
 * Source: none; each item moves one number.
 *
 * The host guarantees: the arrays do not overlap; items cover `count` numbers.
 *
 * REAL_T    float or double: what the numbers become, or their real parts
 * INDEX_T   unsigned type that counts the elements of the arrays
 * WG_SIZE   work-items in a work-group
 * SOURCE_T  type of the numbers: of integers, float or double
 * COMPLEX   whether the target is complex
 */
<%page args="REAL_T, INDEX_T, WG_SIZE, SOURCE_T, COMPLEX"/>\
<%include file="/prelude.cl.mako" args="REQUIRE_FP64=REAL_T == 'double'"/>\
typedef ${REAL_T}${2 if COMPLEX else ""} target_t;

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void convert(__global const ${SOURCE_T} *restrict source,
             __global target_t *restrict target,
             const ${INDEX_T} count)
{
    const ${INDEX_T} i = (${INDEX_T})get_global_id(0);
    if (i < count) target[i] = (target_t)(${"(%s)source[i], 0" % REAL_T if COMPLEX else "source[i]"});
}
