/*
 * The order of keys: that of numpy.sort. NaN is the greatest key and -0.0 == 0.0; DESCENDING
 * reverses the relation.
 *
 * Macros: KEY_T          type of a key
 *         KEY_IS_FLOAT   1 if keys can be NaN
 *         DESCENDING     1 for the greatest key first
 */
#ifndef ORDER_H
#define ORDER_H

#include <stdbool.h>

/* Whether a must come before b; false both ways for equal keys. */
static inline bool before(KEY_T a, KEY_T b) {
#if DESCENDING
    const KEY_T swap = a;
    a = b;
    b = swap;
#endif
#if KEY_IS_FLOAT
    return !(a >= b) & (a == a); /* a < b, or b alone is NaN; & so that there is no branch */
#else
    return a < b;
#endif
}

#endif
