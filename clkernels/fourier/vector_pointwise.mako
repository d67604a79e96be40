## One row of a step that is no transform, by vectors: what real.cl.mako and bluestein.cl.mako do in
## launches of their own, for an item that does all steps.
##
##     halves     the spectrum of a real row from the transform of its packed neighbours, or the reverse
##     chirp_in, chirp_multiply, chirp_out     a convolution's rows of M, see bluestein.cl.mako
##
##   declare(step_index, step)   the function for one row: see vector_step.mako
##
## The host guarantees: of `halves`, positions have stride 1, and source and target are one array or do
## not overlap; the M numbers of a row are neighbours, and M is a multiple of V.
##
## step   the PointwiseStep
<%namespace name="steps" file="vector_step.mako"/>\
<%def name="declare(step_index, step)">\
% if step.kind == "halves":
${reversed_lanes(step)}\
% endif
/* Do row `task` of step ${step_index}. */
${steps.signature(step_index, step)}\
{
% if step.n:
    enum { N = ${step.n} };
% else:
    const index_t N = points;
% endif
    __global const complex_t *from = source + (task / lanes * source_outer + task % lanes * source_lane);
    __global complex_t *to = target + (task / lanes * target_outer + task % lanes * target_lane);

% if step.kind == "halves":
${halves(step)}\
% else:
${chirped(step)}\
% endif
}
</%def>\
##
##     X[k]      =  a + b + u         a = Z[k], b = conj(Z[h - k]), u = -i w^k (a - b), w = exp(-pi i / h)
##     X[h - k]  =  conj(a + b - u)
##
## is both directions: where components are swapped as they are loaded and stored, conjugates are
## negated, and the result is Z / 2 of X, which is halved first as in real.cl.mako. All of a vector are read before any are written, as k and h - k
## may lie in one array.
<%def name="halves(step)">\
    __global const real_t *numbers = (__global const real_t *)from;
    __global real_t *results = (__global real_t *)to;
    enum { RE = ${int(step.inverse)}, IM = 1 - RE }; /* which of two components is loaded as which */
% if step.inverse:
    /* The imaginary components of frequencies 0 and n / 2 are taken for 0. */
    const real_t first = ONE_HALF * numbers[0], last = ONE_HALF * numbers[2 * N];
    results[0] = first + last;
    results[1] = first - last;
% else:
    const real_t even = 2 * numbers[0], odd = 2 * numbers[1];
    results[0] = even + odd;
    results[2 * N] = even - odd;
    results[1] = results[2 * N + 1] = 0;
% endif
    uint k = 1;
    for (; 2 * (k + V) <= N + 1; k += V) {
        const points_t a = load_lanes(from + k), m = reversed_lanes(load_lanes(from + N - k - (V - 1)));
        const points_t w = twiddles[k / V];
        points_t here, opposite;
${both("vec_t", step)}\
        store_lanes(here, to + k);
        store_lanes(reversed_lanes(opposite), to + N - k - (V - 1));
    }
    for (; 2 * k <= N; ++k) {
        typedef struct { real_t re, im; } point_t;
        __global const real_t *factors = (__global const real_t *)(twiddles + (k - 1) / V) + (k - 1) % V;
        const point_t a = {numbers[2 * k + RE], numbers[2 * k + IM]};
        const point_t m = {numbers[2 * (N - k) + RE], numbers[2 * (N - k) + IM]};
        const point_t w = {factors[0], factors[V]};
        point_t here, opposite;
${both("real_t", step)}\
        results[2 * k + RE] = here.re;
        results[2 * k + IM] = here.im;
        results[2 * (N - k) + RE] = opposite.re;
        results[2 * (N - k) + IM] = opposite.im;
    }
</%def>\
<%def name="both(type, step)">\
<%
    plus, minus = "-+" if step.inverse else "+-"
    half = "ONE_HALF * " if step.inverse else ""
%>\
        {
            const ${type} a_re = ${half}a.re, a_im = ${half}a.im, b_re = ${plus}${half}m.re, b_im = ${minus}${half}m.im;
            const ${type} sum_re = a_re + b_re, sum_im = a_im + b_im, d_re = a_re - b_re, d_im = a_im - b_im;
            const ${type} u_re = w.re * d_im + w.im * d_re, u_im = w.im * d_im - w.re * d_re;
            here.re = sum_re + u_re;
            here.im = sum_im + u_im;
            opposite.re = ${plus}(sum_re - u_re);
            opposite.im = ${minus}(sum_im - u_im);
        }
</%def>\
<%def name="reversed_lanes(step)">\
<% lanes = ", ".join(f"x.{{}}.s{lane:x}" for lane in reversed(range(step.vectors.width))) %>\
INLINE points_t reversed_lanes(const points_t x)
{
    const points_t y = {(vec_t)(${lanes.replace("{}", "re")}),
                        (vec_t)(${lanes.replace("{}", "im")})};
    return y;
}

</%def>\
## Numbers of the user beyond the last whole vector, and those in columns, go one by one.
<%def name="chirped(step)">\
% if step.kind == "chirp_in":
    for (index_t p = 0; p < ${step.m or "filled"}; p += V) {
        points_t x = {0, 0};
% if step.rows:
        if (p + V <= N)
            x = multiplied(load_lanes(from + p), twiddles[p / V]);
        else
% endif
        if (p < N)
            x = multiplied(gather_lanes(from + p * source_position, source_position, N - p), twiddles[p / V]);
        store_lanes(x, to + p);
    }
% elif step.kind == "chirp_multiply":
    for (index_t p = 0; p < N; p += V) {
        const points_t product = multiplied(load_lanes(from + p), twiddles[p / V]);
        const points_t swapped = {product.im, product.re};
        store_lanes(swapped, to + p);
    }
% else:
    for (index_t p = 0; p < N; p += V) {
        const points_t product = load_lanes(from + p), swapped = {product.im, product.re};
        const points_t x = scaled(multiplied(swapped, twiddles[p / V]), scale);
% if step.rows:
        if (p + V <= N)
            store_lanes(x, to + p);
        else
% endif
            scatter_lanes(x, to + p * target_position, target_position, 0, 0, N - p);
    }
% endif
</%def>\
