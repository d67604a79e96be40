## Rows of the user's memory as vectors over the batch, and back: see vector_step.mako.
##
##     row 0    a0 a1 a2 a3 ..           a0   a1   a2   a3
##     row 1    b0 b1 b2 b3 ..    <->    b0   b1   b2   b3  ..        V positions of V rows at a time
##     row 2    c0 c1 c2 c3 ..           c0   c1   c2   c3
##     row 3    d0 d1 d2 d3 ..           d0   d1   d2   d3
##
##   load(step)          rows to array 0
##   store(step, array)  rows from an array
##
## The last V positions begin earlier where n is no multiple of V. Where rows are shorter than a vector,
## or fewer than its lanes, they go number by number.
##
## step   the VectorStep
## array  OpenCL C: work_0 or work_1
<%def name="load(step)">\
        /* Load rows. */
% if step.whole_rows:
        for (uint p = 0; p < N; p += V) {
            const uint at = N % V == 0 ? p : min(p, (uint)(N - V));
            points_t x[V];
#pragma unroll
            for (uint l = 0; l < V; ++l)
                x[l] = load_lanes(from + (lane + l) * source_lane + at);
            transpose(x);
#pragma unroll
            for (uint l = 0; l < V; ++l)
                work_0[at + l] = x[l];
        }
% else:
        for (uint p = 0; p < N; ++p)
            work_0[p] = gather_lanes(from + lane * source_lane + p, source_lane, LANES);
% endif
</%def>\
<%def name="store(step, array)">\
        /* Store rows. */
% if step.whole_rows:
        for (uint p = 0; p < N; p += V) {
            const uint at = N % V == 0 ? p : min(p, (uint)(N - V));
            points_t x[V];
#pragma unroll
            for (uint l = 0; l < V; ++l)
                x[l] = SCALED ? scaled(${array}[at + l], scale) : ${array}[at + l];
            transpose(x);
#pragma unroll
            for (uint l = 0; l < V; ++l)
                if (lane + l >= fresh)
                    store_lanes(x[l], to + (lane + l) * target_lane + at);
        }
% else:
        for (uint p = 0; p < N; ++p) {
            const points_t x = SCALED ? scaled(${array}[p], scale) : ${array}[p];
            scatter_lanes(x, to + lane * target_lane + p, target_lane, lane, fresh, LANES);
        }
% endif
</%def>\
