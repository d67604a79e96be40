/*
 * The order of keys: that of numpy.sort, where -0.0 == 0.0 and NaN is last, also if DESCENDING.
 *
 * Macros: KEY_T          type of a key
 *         KEY_IS_FLOAT   1 if keys can be NaN
 *         DESCENDING     1 for the greatest key first
 *         NAN_FIRST      1 for NaN as the greatest key, where DESCENDING
 */
#ifndef ORDER_H
#define ORDER_H

#include <stdbool.h>

/* Whether a must come before b; false both ways for equal keys. */
static inline bool before(KEY_T a, KEY_T b) {
#if DESCENDING && (NAN_FIRST || !KEY_IS_FLOAT)
    const KEY_T swap = a;
    a = b;
    b = swap;
#endif
#if KEY_IS_FLOAT && DESCENDING && !NAN_FIRST
    return !(a <= b) & (a == a);
#elif KEY_IS_FLOAT
    return !(a >= b) & (a == a); /* a < b, or b alone is NaN; & so that there is no branch */
#else
    return a < b;
#endif
}

#endif
