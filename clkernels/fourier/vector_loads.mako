## Loads of the vector form, which a step chooses by name (VectorStep.load_fragment).
##
##   vector          as many neighbours in memory as a vector has lanes
##   partial_vector  fewer of them; the other lanes are zero
##   rows            all of some rows, which are turned into vectors over the batch:
##
##                       row 0    a0 a1 a2 a3 ..           a0   a1   a2   a3
##                       row 1    b0 b1 b2 b3 ..    ->     b0   b1   b2   b3  ..
##                       row 2    c0 c1 c2 c3 ..           c0   c1   c2   c3
##                       row 3    d0 d1 d2 d3 ..           d0   d1   d2   d3
##
##   short_rows      the same number by number, where rows or their number are less than a vector
##
## Vectors are loaded into re_<i> and im_<i>; rows into array 0, `work_0`.
##
## step        the VectorStep
## parts       "re" and "im" in the order of memory
## plus_lanes  OpenCL C, such as " + v * 8": from the first row of a block to that of vector `v`
<%namespace name="vectors" file="vectors.mako"/>\
<%def name="vector(step, i, address, parts)">\
            load_lanes(${address}, &re_${i}, &im_${i});
</%def>\
<%def name="partial_vector(step, i, address, parts)">\
            re_${i} = 0;
            im_${i} = 0;
% for l in range(step.vectors.active_lanes):
            ${parts[0]}_${i}.s${f"{l:x}"} = ((__global const real_t *)(${address}))[${2 * l}];
            ${parts[1]}_${i}.s${f"{l:x}"} = ((__global const real_t *)(${address}))[${2 * l + 1}];
% endfor
</%def>\
<%def name="rows(step, plus_lanes, work, parts)">\
<% n, V = step.n, step.vectors.width %>\
        for (uint p = 0; p < ${n}; p += ${V}) {
            const uint at = ${"p" if n % V == 0 else f"min(p, (uint){n - V})"};
            __${work} vec_t *work_at = work_0 + 2 * at;
            vec_t ${", ".join(f"re_{l}, im_{l}" for l in range(V))};
% for l in range(V):
            load_lanes(from + (${l}${plus_lanes}) * source_lane + at, &re_${l}, &im_${l});
% endfor
${vectors.transpose([f"re_{l}" for l in range(V)], V)}\
${vectors.transpose([f"im_{l}" for l in range(V)], V)}\
% for l in range(V):
            work_at[${2 * l}] = re_${l};
            work_at[${2 * l + 1}] = im_${l};
% endfor
        }
</%def>\
<%def name="short_rows(step, plus_lanes, work, parts)">\
        for (uint p = 0; p < ${step.n}; ++p) {
            vec_t re = 0, im = 0;
% for l in range(step.vectors.active_lanes):
            ${parts[0]}.s${f"{l:x}"} = reals_from[2 * ((${l}${plus_lanes}) * source_lane + p)];
            ${parts[1]}.s${f"{l:x}"} = reals_from[2 * ((${l}${plus_lanes}) * source_lane + p) + 1];
% endfor
            work_0[2 * p] = re;
            work_0[2 * p + 1] = im;
        }
</%def>\
## Halve point i, where packed real signals are read.
<%def name="halve(i)">\
            re_${i} *= (real_t)0.5;
            im_${i} *= (real_t)0.5;
</%def>\
