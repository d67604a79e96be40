## One step of transforms by single items with explicit vectors, as a function that does a task:
## see fft_vector.cl.mako, which says what the names mean.
<%page args="STEP, REAL_T, VECTOR_WIDTH, WORK, INVERSE, BLOCK, N, RADICES, LANES, LOAD, STORE, TAIL, FEW, TWIST, HALVED, SCALED, GAP, FETCH"/>\
<%namespace name="codelets" file="butterflies.mako"/>\
<%namespace name="vectors" file="vectors.mako"/>\
<%
    V, K = VECTOR_WIDTH, BLOCK
    within = LANES == "within"
    unit = V if within else 1
    passes = len(RADICES)
    before = [1]
    for radix in RADICES:
        before.append(before[-1] * radix)
    # The twiddles of each pass lie one after the other, in reals.
    places, place = [], 0
    for index, radix in enumerate(RADICES):
        places.append(place)
        place += 2 * before[index] * (radix - 1) if index else 0
    # A vector's array and the other one are read and written in turns. The last pass writes the
    # positions that it reads, so that it needs no other array where rows are stored later.
    readers, writers, current = [], [], 0 if LOAD == "rows" else None
    for index in range(passes):
        readers.append(current)
        if index == passes - 1 and STORE == "columns":
            current = None
        elif current is None:
            current = 0
        elif index < passes - 1:
            current = 1 - current
        writers.append(current)
    # Columns are loaded and stored for all vectors of a block at a time, in long runs. Between
    # that, each vector goes through its passes alone, so that they find it in the nearest cache.
    first, last = int(LOAD == "columns"), passes - int(STORE == "columns")
    # A block's vectors have an array each, and there is one more, which all use in turns; or, where
    # the last pass of columns finds them there, each uses that of the vector before it.
    room, shared = 2 * (N // unit + GAP), STORE == "columns" and passes > 1 and readers[-1] == 1
    # The factors of each pass that differ by lane, in vectors.
    twists = [2 * sum(radix - 1 for radix in RADICES[:index]) for index in range(passes + 1)]
    lane_factor = lambda index, i, part: f"twist_at[{twists[index] + 2 * (i - 1) + part}]"
    vector_lane = f" + v * {V}" if K > 1 else ""
    # What the next task reads is fetched in the last pass, and what this one writes in the one before.
    fetching = {passes - 1: [("next", "source", LOAD)]} if FETCH != "none" else {}
    if FETCH == "both" and passes > 1:
        fetching[passes - 2] = [("to", "target", STORE)]
    lines = max(2 * V * (4 if REAL_T == "float" else 8) // 64, 1)  # of a vector in memory
    first_re, first_im = ("im", "re") if INVERSE else ("re", "im")
%>\
<%def name="fetch(index, j)">\
% for base, side, layout in fetching.get(index, ()):
% for i in range(RADICES[index]):
<%
    vector = f"({j} * {RADICES[index]} + {i})"
    if within:
        at = f"{vector} * {V}"
    elif layout == "rows":
        at = f"({vector} % {V}{vector_lane}) * {side}_lane + {vector} / {V} * {V}"
    else:
        at = f"{vector} * {side}_position{vector_lane}"
%>\
% for line in range(lines):
            FETCH_LINE((size_t)(${base} + ${at}) + ${64 * line}, ${int(side == "target")});
% endfor
% endfor
% endfor
</%def>\
<%def name="load_global(i, step)">\
<% offset = f" + {i * step}" + ("" if within else " * source_position") if i else "" %>\
% if TAIL == "few":
            re_${i} = 0;
            im_${i} = 0;
% for l in range(FEW):
            ${first_re}_${i}.s${f"{l:x}"} = ((__global const real_t *)(from_at${offset}))[${2 * l}];
            ${first_im}_${i}.s${f"{l:x}"} = ((__global const real_t *)(from_at${offset}))[${2 * l + 1}];
% endfor
% else:
            load_lanes(from_at${offset}, &re_${i}, &im_${i});
% endif
</%def>\
<%def name="halve(index, i)">\
% if HALVED and index == 0:
            re_${i} *= (real_t)0.5;
            im_${i} *= (real_t)0.5;
% endif
</%def>\
<%def name="store_global(i, step)">\
<% offset = f" + {i * step}" + ("" if within else " * target_position") if i else "" %>\
% if SCALED:
            re_${i} *= scale;
            im_${i} *= scale;
% endif
% if TAIL == "none":
            store_lanes(re_${i}, im_${i}, to_at${offset});
% elif TAIL == "overlap":
            if (fresh == 0) {
                store_lanes(re_${i}, im_${i}, to_at${offset});
            } else {
% for l in range(V):
                if (${l}${vector_lane} >= fresh)
                    ${store_one(i, l, offset)}\
% endfor
            }
% else:
% for l in range(FEW):
            ${store_one(i, l, offset)}\
% endfor
% endif
</%def>\
<%def name="store_one(i, l, offset)">\
vstore2((complex_t)(${first_re}_${i}.s${f"{l:x}"}, ${first_im}_${i}.s${f"{l:x}"}), ${l}, (__global real_t *)(to_at${offset}));
</%def>\
<%def name="load_rows()">\
<% whole = N >= V and TAIL != "few" %>\
% if whole:
        for (uint p = 0; p < ${N}; p += ${V}) {
            const uint at = ${"p" if N % V == 0 else f"min(p, (uint){N - V})"};
            __${WORK} vec_t *work_at = work_0 + 2 * at;
            vec_t ${", ".join(f"re_{l}, im_{l}" for l in range(V))};
% for l in range(V):
            load_lanes(from + (${l}${vector_lane}) * source_lane + at, &re_${l}, &im_${l});
% endfor
${vectors.transpose([f"re_{l}" for l in range(V)], V, " " * 12)}\
${vectors.transpose([f"im_{l}" for l in range(V)], V, " " * 12)}\
% for l in range(V):
            work_at[${2 * l}] = re_${l};
            work_at[${2 * l + 1}] = im_${l};
% endfor
        }
% else:
        for (uint p = 0; p < ${N}; ++p) {
            vec_t re = 0, im = 0;
% for l in range(FEW if TAIL == "few" else V):
            ${first_re}.s${f"{l:x}"} = reals_from[2 * ((${l}${vector_lane}) * source_lane + p)];
            ${first_im}.s${f"{l:x}"} = reals_from[2 * ((${l}${vector_lane}) * source_lane + p) + 1];
% endfor
            work_0[2 * p] = re;
            work_0[2 * p + 1] = im;
        }
% endif
</%def>\
<%def name="store_rows(source)">\
<% whole = N >= V and TAIL != "few" %>\
% if whole:
        for (uint p = 0; p < ${N}; p += ${V}) {
            const uint at = ${"p" if N % V == 0 else f"min(p, (uint){N - V})"};
            __${WORK} const vec_t *work_at = ${source} + 2 * at;
            vec_t ${", ".join(f"re_{l}, im_{l}" for l in range(V))};
% for l in range(V):
            re_${l} = work_at[${2 * l}]${" * scale" if SCALED else ""};
            im_${l} = work_at[${2 * l + 1}]${" * scale" if SCALED else ""};
% endfor
${vectors.transpose([f"re_{l}" for l in range(V)], V, " " * 12)}\
${vectors.transpose([f"im_{l}" for l in range(V)], V, " " * 12)}\
% for l in range(V):
% if TAIL == "overlap":
            if (${l}${vector_lane} >= fresh)
    \
% endif
            store_lanes(re_${l}, im_${l}, to + (${l}${vector_lane}) * target_lane + at);
% endfor
        }
% else:
        for (uint p = 0; p < ${N}; ++p) {
            const vec_t re = ${source}[2 * p]${" * scale" if SCALED else ""};
            const vec_t im = ${source}[2 * p + 1]${" * scale" if SCALED else ""};
% for l in range(FEW if TAIL == "few" else V):
% if TAIL == "overlap":
            if (${l}${vector_lane} >= fresh)
    \
% endif
            vstore2((complex_t)(${first_re}.s${f"{l:x}"}, ${first_im}.s${f"{l:x}"}), (${l}${vector_lane}) * target_lane + p, (__global real_t *)to);
% endfor
        }
% endif
</%def>\
<%def name="one_pass(index)">\
<%
    R, S = RADICES[index], before[index]
    reader, writer = readers[index], writers[index]
    step = N // R // unit
    blocks, groups = max(S // unit, 1), N // (R * S)
    points = range(R)
    together = not first <= index < last
%>\
        /* Pass ${index}: radix ${R}, runs of ${S}. */
% if within and index == 0:
${arrays()}\
        for (uint j = 0; j < ${N // R}; j += ${V}) {
            const uint at = ${"j" if N // R % V == 0 else f"min(j, (uint){N // R - V})"};
            __global const complex_t *from_at = from + at;
${fetch(index, f"(j / {V})")}\
            vec_t ${", ".join(f"re_{i}, im_{i}" for i in points)};
% for i in points:
${load_global(i, N // R)}\
${halve(index, i)}\
% endfor
${codelets.butterfly(R, REAL_T)}\
            __${WORK} vec_t *work_at = work_0 + at * ${2 * R // V};
% for h in range(R // V):
${vectors.transpose([f"re_{h * V + l}" for l in range(V)], V, " " * 12)}\
${vectors.transpose([f"im_{h * V + l}" for l in range(V)], V, " " * 12)}\
% for l in range(V):
            work_at[${2 * (l * (R // V) + h)}] = re_${h * V + l};
            work_at[${2 * (l * (R // V) + h) + 1}] = im_${h * V + l};
% endfor
% endfor
        }
% else:
        for (uint k = 0; k < ${blocks}; ++k) {
% if S > 1 and not (TWIST and together):
${factors(index)}\
% endif
            for (uint g = 0; g < ${groups}; ++g)
% if together and K > 1:
            for (uint v = 0; v < ${K}; ++v)
% endif
            {
% if together:
${arrays()}\
% if S > 1 and TWIST:
${factors(index)}\
% endif
% endif
            const uint j = g * ${blocks} + k;
            const uint at = g * ${blocks * R} + k;
${fetch(index, "j")}\
% if reader is None:
            __global const complex_t *from_at = from + j * source_position${vector_lane};
% else:
            __${WORK} const vec_t *from_at = work_${reader} + 2 * j;
% endif
% if writer is None:
            __global complex_t *to_at = to + at * ${unit if within else f"target_position{vector_lane}"};
% else:
            __${WORK} vec_t *to_at = work_${writer} + 2 * at;
% endif
            vec_t ${", ".join(f"re_{i}, im_{i}" for i in points)};
% for i in points:
% if reader is None:
${load_global(i, step)}\
% else:
            re_${i} = from_at[${2 * i * step}];
            im_${i} = from_at[${2 * i * step + 1}];
% endif
${halve(index, i)}\
% if i and (S > 1 or TWIST):
            {
<% w = (f"w_re_{i}", f"w_im_{i}") if S > 1 else (lane_factor(index, i, 0), lane_factor(index, i, 1)) %>\
                const vec_t turned = re_${i} * ${w[0]} - im_${i} * ${w[1]};
                im_${i} = re_${i} * ${w[1]} + im_${i} * ${w[0]};
                re_${i} = turned;
            }
% endif
% endfor
${codelets.butterfly(R, REAL_T)}\
% for i in points:
% if writer is None:
${store_global(i, blocks * unit)}\
% else:
            to_at[${2 * i * blocks}] = re_${i};
            to_at[${2 * i * blocks + 1}] = im_${i};
% endif
% endfor
            }
        }
% endif
</%def>\
<%def name="factors(index)">\
<% R = RADICES[index] %>\
% for i in range(1, R):
<% at = 2 * (i - 1) %>\
% if within:
            const vec_t w_re_${i} = ((__global const vec_t *)(twiddles + ${places[index]}))[k * ${2 * (R - 1)} + ${at}];
            const vec_t w_im_${i} = ((__global const vec_t *)(twiddles + ${places[index]}))[k * ${2 * (R - 1)} + ${at + 1}];
% else:
            const real_t root_re_${i} = twiddles[k * ${2 * (R - 1)} + ${places[index] + at}];
            const real_t root_im_${i} = twiddles[k * ${2 * (R - 1)} + ${places[index] + at + 1}];
% if TWIST:
            const vec_t w_re_${i} = ${lane_factor(index, i, 0)} * root_re_${i} - ${lane_factor(index, i, 1)} * root_im_${i};
            const vec_t w_im_${i} = ${lane_factor(index, i, 0)} * root_im_${i} + ${lane_factor(index, i, 1)} * root_re_${i};
% else:
            const real_t w_re_${i} = root_re_${i}, w_im_${i} = root_im_${i};
% endif
% endif
% endfor
</%def>\
<%def name="arrays()">\
            __${WORK} vec_t *work_0 = work + (v + 1) * ${room};
            __${WORK} vec_t *work_1 = work${f" + v * {room}" if shared else ""};
% if TWIST:
            __global const vec_t *twist_at = twist + (block * ${K} + v) * ${twists[-1]};
% endif
</%def>\
/* Do one task of step ${STEP}: transform a block of lanes. */
static inline __attribute__((always_inline)) void step_${STEP}(
    const index_t task,
    __${WORK} vec_t *work,
    __global const complex_t *source,
    __global complex_t *target,
    __global const real_t *twiddles,
% if TWIST:
    __global const vec_t *twist,
% endif
    const index_t lanes,
    const index_t source_outer,
    const index_t source_position,
    const index_t source_lane,
    const index_t target_outer,
    const index_t target_position,
    const index_t target_lane,
    const real_t scale)
{
    const index_t blocks = ${"lanes" if within else f"(lanes + {V * K - 1}) / {V * K}"};
    const index_t block = task % blocks;
% if within:
    const index_t first = block;
% elif TAIL == "overlap":
    const index_t first = min(block * ${V * K}, lanes - ${V * K});
    const uint fresh = (uint)(block * ${V * K} - first); /* lanes before belong to the block before */
% else:
    const index_t first = block * ${V * K};
% endif
    __global const complex_t *from =
        source + (task / blocks * source_outer + first * source_lane);
% if FETCH != "none":
    /* The next block; there is none after the last one, but fetching does not fault. */
    const index_t ahead = (task + 1) % blocks * ${1 if within else V * K};
    __global const complex_t *next = source
        + ((task + 1) / blocks * source_outer
           + ${f"min(ahead, lanes - {V * K})" if TAIL == "overlap" else "ahead"} * source_lane);
% endif
    __global const real_t *reals_from = (__global const real_t *)from;
    __global complex_t *to = target + (task / blocks * target_outer + first * target_lane);

% if K == 1:
    const uint v = 0;
% endif
% for index in range(first):
${one_pass(index)}\
% endfor
% if first < last or "rows" in (LOAD, STORE):
% if K > 1:
    for (uint v = 0; v < ${K}; ++v)
% endif
    {
${arrays()}\
% if LOAD == "rows":
        /* Load rows, V positions of each at a time. */
${load_rows()}\
% endif
% for index in range(first, last):
${one_pass(index)}\
% endfor
% if STORE == "rows":
        /* Store rows. */
${store_rows(f"work_{current}")}\
% endif
    }
% endif
% for index in range(max(first, last), passes):
${one_pass(index)}\
% endfor
}
