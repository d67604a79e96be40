/*
 * Cosine and sine transforms of types 1 to 4: what is done before and after a Fourier transform.
 *
 * Rows of n reals x become rows y of n reals. Factors of 2 are part of the Fourier transform's scale.
 *
 *     type 1   the row and its mirror image, real   2 (n - 1) numbers    | a b c d c b |
 *              y = the real parts                   sine: 2 (n + 1)      | 0 a b c 0 -c -b -a |
 *     type 2   even positions, odd ones reversed, real         n = 5     | a c e d b |
 *              y[k] + i y'[n - k] = w^k V[k]   with y' = -y              w = exp(-2 pi i / 4n)
 *     type 3   the inverse of type 2:   V[k] = w^-k (x[k] - i x[n - k]), back to reals
 *     type 4   n even: z[p] = v^(8p + 1) (x[2p] + i x[n - 1 - 2p]), complex, n / 2 numbers
 *              y[2k] - i y[n - 1 - 2k] = v^(8k + 1) Z[k]                 v = exp(-2 pi i / 16n)
 *              n odd: the odd results of type 2 of the row and n zeros
 *
 * A sine transform is the cosine transform of other signs and orders: of types 2 and 3, samples at odd
 * positions are negated, and frequencies come in reverse order; of type 4, samples come in
 * reverse order, and frequencies at odd positions are negated. Type 1 mirrors with a sign.
 *
 * Source: J. Makhoul, "A fast cosine transform in one and two dimensions", 1980, for types 2 and 3;
 * for type 4 and even n, the half-length transform of real symmetric data of P. Duhamel,
 * Y. Mahieux, J. P. Petit, "A fast algorithm for the implementation of filter banks based on
 * time domain aliasing cancellation", 1991.
 *
 * The host guarantees: rows are contiguous and do not overlap; work-groups cover the points of one
 * row after the other: in `before` the numbers of a row that are transformed (frequencies
 * for type 3), in `after` the frequencies of a row (real numbers for type 3). Real arrays are
 * aligned to one real only.
 *
 * ELEMENT  complex numbers: Element of core/kernels.py
 * INDEX_T  unsigned type that counts the elements of the arrays
 * WG_SIZE  work-items in a work-group
 * TYPE     1, 2, 3 or 4
 * SINE     whether it is a sine transform
 * PADDED   whether type 4 goes by type 2 of twice the length
 *
 * `weight` makes the transform's matrix orthogonal, but for a common factor, where it is not 1: by it
 * are multiplied the ends of type 1 of the cosine transform, before and after, and the first
 * number of its types 2, after, and 3, before; the last one of the sine transform.
 */
<%page args="ELEMENT, INDEX_T, WG_SIZE, TYPE, SINE, PADDED"/>\
<%namespace name="grid" file="/fourier/grid.mako"/>\
${grid.declare(ELEMENT, INDEX_T, WG_SIZE)}\
<%
    packed = TYPE == 4 and not PADDED  # pairs of reals on both sides are complex numbers
    before_t = "complex_t" if TYPE == 3 or packed else "real_t"
    after_t = "real_t" if TYPE == 3 else "complex_t"
%>\
#define GROUP __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))

/* Where sample or frequency j of a cosine transform lies in a row, and with which sign. */
#define REVERSED(j) ${"(n - 1 - (j))" if SINE else "(j)"}
#define NEGATED(j, x) ${"((j) & 1 ? -(x) : (x))" if SINE else "(x)"}

__kernel GROUP
void before(__global const real_t *restrict signal,
            __global ${before_t} *restrict numbers,
% if TYPE == 3 or packed:
            __global const complex_t *restrict twiddles,
% endif
            const index_t n,
            const index_t points,
            const real_t weight)
{
    const index_t p = point_of(points), row = row_of(points);
    __global const real_t *x = signal + row * n;
    if (p >= points)
        return;
% if TYPE == 1 and SINE:
    const index_t j = p <= n ? p : points - p; /* 0 and n + 1 hold nothing */
    real_t number = j == 0 || j == n + 1 ? 0 : x[j - 1];
    numbers[row * points + p] = p <= n ? number : -number;
% elif TYPE == 1:
    const index_t j = p < n ? p : points - p;
    numbers[row * points + p] = j == 0 || j == n - 1 ? weight * x[j] : x[j];
% elif TYPE == 2:
    const index_t j = 2 * p < n ? 2 * p : 2 * (n - p) - 1;
    numbers[row * n + p] = NEGATED(j, x[j]);
% elif TYPE == 3:
    const real_t here = p == 0 ? weight * x[REVERSED(p)] : x[REVERSED(p)];
    const real_t opposite = p == 0 ? 0 : x[REVERSED(n - p)];
    const complex_t w = twiddles[p];
    numbers[row * points + p] = times((complex_t)(w.x, -w.y), (complex_t)(here, -opposite));
% elif packed:
    const complex_t pair = (complex_t)(x[REVERSED(2 * p)], x[REVERSED(n - 1 - 2 * p)]);
    numbers[row * points + p] = times(twiddles[p], pair);
% else:
    const index_t j = p < n ? 2 * p : 2 * (2 * n - p) - 1;
    numbers[row * points + p] = j < n ? x[REVERSED(j)] : 0;
% endif
}

__kernel GROUP
void after(__global const ${after_t} *restrict numbers,
           __global real_t *restrict result,
% if TYPE in (2, 4):
           __global const complex_t *restrict twiddles,
% endif
           const index_t n,
           const index_t points,
           const real_t weight)
{
    const index_t k = point_of(points), row = row_of(points);
    __global real_t *y = result + row * n;
    if (k >= points)
        return;
% if TYPE == 1 and SINE:
    y[k] = -numbers[row * (n + 2) + k + 1].y;
% elif TYPE == 1:
    const real_t number = numbers[row * n + k].x;
    y[k] = k == 0 || k == n - 1 ? weight * number : number;
% elif TYPE == 2:
    const complex_t both = times(twiddles[k], numbers[row * points + k]);
    y[REVERSED(k)] = k == 0 ? weight * both.x : both.x;
    if (k > 0 && 2 * k != n)
        y[REVERSED(n - k)] = -both.y;
% elif TYPE == 3:
    const real_t number = numbers[row * n + (k & 1 ? n - (k + 1) / 2 : k / 2)];
    y[k] = NEGATED(k, number);
% elif packed:
    const complex_t both = times(twiddles[k], numbers[row * points + k]);
    y[2 * k] = both.x;
    y[n - 1 - 2 * k] = ${"both.y" if SINE else "-both.y"};
% else:
    const complex_t both = times(twiddles[k], numbers[row * (n + 1) + 2 * k + 1]);
    y[k] = NEGATED(k, both.x);
    if (2 * k + 1 != n)
        y[n - 1 - k] = NEGATED(k, -both.y);
% endif
}
