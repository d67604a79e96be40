## One step of transforms by work-groups in local memory, as a function that does what one group
## does: see fft_local.cl.mako, which says what the names mean.
<%page args="STEP, REAL_T, INVERSE, N, RADICES, TRANSFORMS, ITEMS, FLAT, LOAD, STORE, LOOSE_LOAD, LOOSE_STORE, GUARD, SHIFT, SHIFT_BITS, EXCHANGE, LOCAL_PAD, FEW_TWIDDLES, CHIRP, HALVED, REAL, SCALED, KNOWN, parameters"/>\
<%namespace name="codelets" file="butterflies.mako"/>\
<%
    import math
    T, W = TRANSFORMS, ITEMS
    passes = len(RADICES)
    before = [1]
    for radix in RADICES:
        before.append(before[-1] * radix)
    places, place = [], 0
    for index, radix in enumerate(RADICES):
        places.append(place)
        place += before[index] * (radix - 1) if index else 0
    turns = [-(-(N // radix) // W) for radix in RADICES]
    whole = [N // radix % W == 0 for radix in RADICES]
    maps = [STORE if index or passes == 1 and STORE == "columns" else LOAD for index in range(passes)]
    padded = T * N + (T * N // LOCAL_PAD if LOCAL_PAD else 0)
    first, second = ("y", "x") if INVERSE else ("x", "y")
    array = {"re": "local_re", "im": "local_re" if EXCHANGE == "two-phase" else "local_im"}
    length = CHIRP or N
    stored = length // 2 + 1 if REAL == "r2c-full" else CHIRP  # positions, or 0 for all
    halves = -(-(N // 2 + 1) // W)  # pairs of opposite frequencies for each item

    def points_of(lane, position, step, count):
        """Return code that says where the first of some points lies in local memory, and places.

        The points lie `step` positions apart. A gap comes after every LOCAL_PAD elements, so
        that a place is known from that of a point a multiple of these before it, or from that of
        any point between the same gaps.
        """
        near = T if STORE == "columns" else 1
        between_gaps = LOCAL_PAD and LOCAL_PAD % (count * step * near) == 0
        start = f"({position}) * {T} + {lane}" if STORE == "columns" else f"{lane} * {N} + {position}"
        code, found = [f"const uint start = {start};"], []
        for i in range(count):
            offset = i * step * near
            if not LOCAL_PAD:
                found.append(f"start + {offset}")
                continue
            rest = 0 if between_gaps else offset % LOCAL_PAD
            line = f"const uint start_{rest} = PADDED_{STEP}(start + {rest});"
            code += [line] if line not in code else []
            found.append(f"start_{rest} + {offset - rest + (offset - rest) // LOCAL_PAD}")
        return code, found

    def place_of(position):
        """Return where a position of a row lies in local memory."""
        at = f"lane_{passes - 1} * {N} + {position}"
        return f"PADDED_{STEP}({at})" if LOCAL_PAD else at

    def opposite(turn):
        """Return the condition that there is a pair of frequencies for an item."""
        return f"j_{passes - 1} + {turn * W} <= {N // 2}"

    def stride_of_roots(radix):
        """Return how far apart the roots are that are not products of two others."""
        return max(2, round(math.sqrt(radix))) if FEW_TWIDDLES and radix >= 4 else 1
%>\
% if LOCAL_PAD:
#define PADDED_${STEP}(at) ((at) + (at) / ${LOCAL_PAD})
% endif

<%def name="owned(index, turn)">\
% if whole[index]:
        {
% else:
        if (j_${index} + ${turn * W} < ${N // RADICES[index]}) {
% endif
            const uint j = j_${index} + ${turn * W};
</%def>\
<%def name="names(index, turn)">\
${", ".join(f"re_{index}_{turn}_{i} = 0, im_{index}_{turn}_{i} = 0" for i in range(RADICES[index]))}\
</%def>\
<%def name="write_points(index, parts)">\
<%
    R, S = RADICES[index], before[index]
    code, at = points_of(f"lane_{index}", f"(j / {S} * {S * R} + j % {S})", S, R)
%>\
% for turn in range(turns[index]):
${owned(index, turn)}\
% for line in code:
            ${line}
% endfor
% for i in range(R):
% if EXCHANGE == "interleaved":
            local_pairs[${at[i]}] = (complex_t)(re_${index}_${turn}_${i}, im_${index}_${turn}_${i});
% else:
% for part in parts:
            ${array[part]}[${at[i]}] = ${part}_${index}_${turn}_${i};
% endfor
% endif
% endfor
        }
% endfor
        barrier(CLK_LOCAL_MEM_FENCE); /* all points are there */
</%def>\
<%def name="exchange(index, after, parts)">\
<%
    Q = RADICES[after]
    code, at = points_of(f"lane_{after}", "j", N // Q, Q)
%>\
${write_points(index, parts)}\
% for turn in range(turns[after]):
${owned(after, turn)}\
% for line in code:
            ${line}
% endfor
% for i in range(Q):
% if EXCHANGE == "interleaved":
            const complex_t x_${i} = local_pairs[${at[i]}];
            re_${after}_${turn}_${i} = x_${i}.x;
            im_${after}_${turn}_${i} = x_${i}.y;
% else:
% for part in parts:
            ${part}_${after}_${turn}_${i} = ${array[part]}[${at[i]}];
% endfor
% endif
% endfor
        }
% endfor
</%def>\
<%def name="read_opposites(parts)">\
% for turn in range(halves):
        if (${opposite(turn)}) {
            const uint k = j_${passes - 1} + ${turn * W};
            const uint at = ${place_of("k")}, opposite = ${place_of(f"(k ? {N} - k : 0)")};
% if EXCHANGE == "interleaved":
            re_a_${turn} = local_pairs[at].x;
            im_a_${turn} = local_pairs[at].y;
            re_b_${turn} = local_pairs[opposite].x;
            im_b_${turn} = local_pairs[opposite].y;
% else:
% for part in parts:
            ${part}_a_${turn} = ${array[part]}[at];
            ${part}_b_${turn} = ${array[part]}[opposite];
% endfor
% endif
        }
% endfor
</%def>\
<%def name="store_real(at, x)">\
% if SCALED:
            to[${at}] = ${x} * scale;
% else:
            to[${at}] = ${x};
% endif
</%def>\
<%def name="swap(index, after, last)">\
    {
% if EXCHANGE == "two-phase":
${exchange(index, after, ("re",))}\
        barrier(CLK_LOCAL_MEM_FENCE); /* real parts are read; imaginary ones take their place */
${exchange(index, after, ("im",))}\
% else:
${exchange(index, after, ("re", "im"))}\
% endif
% if not last:
        barrier(CLK_LOCAL_MEM_FENCE); /* all points are read; the next ones take their place */
% endif
    }
</%def>\
<%def name="product(name, a, b)">\
            const complex_t ${name} = (complex_t)(${a}.x * ${b}.x - ${a}.y * ${b}.y, ${a}.x * ${b}.y + ${a}.y * ${b}.x);
</%def>\
<%def name="turned(re, im, w)">\
            {
                const real_t turned = ${re} * ${w}.x - ${im} * ${w}.y;
                ${im} = ${re} * ${w}.y + ${im} * ${w}.x;
                ${re} = turned;
            }
</%def>\
<%def name="shift_root(name, power)">\
            const index_t power_${name} = ${power};
            const complex_t high_${name} = shift_high[power_${name} >> ${SHIFT_BITS}];
            const complex_t low_${name} = shift_low[power_${name} & ${(1 << SHIFT_BITS) - 1}];
${product(name, f"high_{name}", f"low_{name}")}\
</%def>\
<%def name="turn_between_steps(index, turn)">\
<% R, S, step = RADICES[index], before[index], stride_of_roots(RADICES[index]) %>\
            const index_t k = (first_lane + lane_${index}) / shift_inner;
% for i in range(1, step):
${shift_root(f"near_{i}", f"k * {i * S}")}\
% endfor
% for i in range(R):
% if i % step == 0:
${shift_root(f"w_{i}", f"k * (j + {i * S})")}\
% else:
${product(f"w_{i}", f"w_{i // step * step}", f"near_{i % step}")}\
% endif
${turned(f"re_{index}_{turn}_{i}", f"im_{index}_{turn}_{i}", f"w_{i}")}\
% endfor
</%def>\
<%def name="all_passes(last)">\
% for index in range(passes):

    /* Pass ${index}: radix ${RADICES[index]}, runs of ${before[index]}. */
    {
${compute(index)}\
    }
% if index + 1 < passes:
${swap(index, index + 1, last and index + 2 == passes)}\
% endif
% endfor
</%def>\
<%def name="turn_by_roots(index, turn)">\
<% R, S, step = RADICES[index], before[index], stride_of_roots(RADICES[index]) %>\
            __global const complex_t *twiddles_of_j = twiddles + (${places[index]} + j % ${S});
% for i in range(1, R):
% if i < step or i % step == 0:
            const complex_t w_${i} = twiddles_of_j[${(i - 1) * S}];
% else:
${product(f"w_{i}", f"w_{i // step * step}", f"w_{i % step}")}\
% endif
${turned(f"re_{i}", f"im_{i}", f"w_{i}")}\
% endfor
</%def>\
<%def name="compute(index)">\
<% R = RADICES[index] %>\
% for turn in range(turns[index]):
${owned(index, turn)}\
            real_t ${", ".join(f"re_{i} = re_{index}_{turn}_{i}, im_{i} = im_{index}_{turn}_{i}" for i in range(R))};
% if index:
${turn_by_roots(index, turn)}\
% endif
${codelets.butterfly(R, REAL_T)}\
% for i in range(R):
            re_${index}_${turn}_${i} = re_${i};
            im_${index}_${turn}_${i} = im_${i};
% endfor
        }
% endfor
</%def>\
/* Do what group number `group` of this step does. */
void step_${STEP}(const index_t group, __local real_t *space, ${", ".join(parameters)})
{
% for name, number in KNOWN.items():
    const index_t ${name} = ${number};
% endfor
% if passes > 1 and EXCHANGE == "split":
    __local real_t *local_re = space, *local_im = space + ${padded};
% elif passes > 1 and EXCHANGE == "two-phase":
    __local real_t *local_re = space;
% elif passes > 1:
    __local complex_t *local_pairs = (__local complex_t *)space;
% endif
    const uint item = (uint)get_local_id(0);
% if FLAT:
    const index_t first_lane = group * ${T}, o = 0, b = 0;
% else:
    const index_t lane_groups = (lanes + ${T - 1}) / ${T};
    const index_t first_lane = group % lane_groups * ${T};
    const index_t o = group / lane_groups % outer, b = group / lane_groups / outer;
% endif
% for index in range(passes):
% if maps[index] == "rows":
    const uint lane_${index} = item / ${W};
    const uint j_${index} = item % ${W};
% else:
    const uint lane_${index} = item % ${T};
    const uint j_${index} = item / ${T};
% endif
% for turn in range(turns[index]):
    real_t ${names(index, turn)};
% endfor
% endfor

    /* Load. */
    {
        const index_t c = first_lane + lane_0;
        __global const ${"real_t" if REAL == "r2c-full" else "complex_t"} *from = ${"(__global const real_t *)" if REAL == "r2c-full" else ""}source
            + (source_offset + b * source_batch + o * source_outer + c * source_lane);
% for turn in range(turns[0]):
        if (${"c < lanes" if GUARD else "1"}) {
${owned(0, turn)}\
% if REAL in ("", "r2c-packed"):
            __global const complex_t *from_j = from + j * source_position;
% endif
% for i in range(RADICES[0]):
            ${f"if (j + {i * (N // RADICES[0])} < {CHIRP}) " if CHIRP else ""}{
<% at, half = f"{i * (N // RADICES[0])} * source_position", "(real_t)0.5 * " if HALVED else "" %>\
% if REAL == "c2r-packed":
                const uint p = j + ${i * (N // RADICES[0])};
                complex_t here = from[p], opposite = from[${N} - p];
                if (p == 0)
                    here.y = opposite.y = 0;
                const complex_t even = (complex_t)(here.x + opposite.x, here.y - opposite.y);
                const complex_t odd = (complex_t)(here.x - opposite.x, here.y + opposite.y);
                const complex_t w = real_roots[p];
                const complex_t x = (complex_t)(even.x - odd.y * w.x + odd.x * w.y,
                                                even.y + odd.x * w.x + odd.y * w.y);
% elif REAL == "r2c-full":
                const complex_t x = (complex_t)(from[j + ${i * (N // RADICES[0])}], 0);
% elif REAL == "c2r-full":
                const uint p = j + ${i * (N // RADICES[0])};
                complex_t x = from[min(p, ${length} - p)];
                x.y = p == 0 ? 0 : p > ${length // 2} ? -x.y : x.y;
% elif LOOSE_LOAD:
                const complex_t x = ${half}vload2(${at}, (__global const real_t *)from_j);
% else:
                const complex_t x = ${half}from_j[${at}];
% endif
% if CHIRP:
                const complex_t w = chirp[j + ${i * (N // RADICES[0])}];
                re_0_${turn}_${i} = x.x * w.x - x.y * w.y;
                im_0_${turn}_${i} = x.x * w.y + x.y * w.x;
% else:
                re_0_${turn}_${i} = x.${first};
                im_0_${turn}_${i} = x.${second};
% endif
            }
% endfor
        }
        }
% endfor
    }
${all_passes(not CHIRP and REAL != "r2c-packed")}\
% if CHIRP:

    /* Multiply by the transform of the chirp; exchanged parts make the next one the inverse. */
    {
% for turn in range(turns[-1]):
${owned(passes - 1, turn)}\
% for i in range(RADICES[-1]):
            {
                const complex_t w = chirp_spectrum[j + ${i * before[-2]}];
                const real_t x = re_${passes - 1}_${turn}_${i}, y = im_${passes - 1}_${turn}_${i};
                im_${passes - 1}_${turn}_${i} = x * w.x - y * w.y;
                re_${passes - 1}_${turn}_${i} = x * w.y + y * w.x;
            }
% endfor
        }
% endfor
    }
${swap(passes - 1, 0, False)}\
${all_passes(True)}\
% endif
% if REAL == "r2c-packed":

    /* Of frequencies k and N - k, make those of the signal that was packed, and store them. */
    {
% for turn in range(halves):
        real_t re_a_${turn} = 0, im_a_${turn} = 0, re_b_${turn} = 0, im_b_${turn} = 0;
% endfor
% if EXCHANGE == "two-phase":
${write_points(passes - 1, ("re",))}\
${read_opposites(("re",))}\
        barrier(CLK_LOCAL_MEM_FENCE); /* real parts are read; imaginary ones take their place */
${write_points(passes - 1, ("im",))}\
${read_opposites(("im",))}\
% else:
${write_points(passes - 1, ("re", "im"))}\
${read_opposites(("re", "im"))}\
% endif
        const index_t c = first_lane + lane_${passes - 1};
        __global complex_t *to = target + (target_offset + c * target_lane);
% for turn in range(halves):
        if (${"c < lanes && " if GUARD else ""}${opposite(turn)}) {
            const uint k = j_${passes - 1} + ${turn * W};
            const complex_t w = real_roots[k];
            const complex_t even = (complex_t)(re_a_${turn} + re_b_${turn}, im_a_${turn} - im_b_${turn});
            const complex_t x = (complex_t)(re_a_${turn} - re_b_${turn}, im_a_${turn} + im_b_${turn});
            const complex_t odd = (complex_t)(x.x * w.y + x.y * w.x, x.y * w.y - x.x * w.x);
            const complex_t opposite = even - odd;
${store_real("k", "(even + odd)")}\
            if (2 * k != ${N}) {
${store_real(f"{N} - k", "(complex_t)(opposite.x, -opposite.y)")}\
            }
        }
% endfor
    }
% else:

    /* Store. */
    {
<% last = passes - 1 %>\
        const index_t c = first_lane + lane_${last};
        __global ${"real_t" if REAL == "c2r-full" else "complex_t"} *to = ${"(__global real_t *)" if REAL == "c2r-full" else ""}target
            + (target_offset + b * target_batch + o * target_outer + c * target_lane);
% for turn in range(turns[last]):
        if (${"c < lanes" if GUARD else "1"}) {
${owned(last, turn)}\
            __global ${"real_t" if REAL == "c2r-full" else "complex_t"} *to_j = to + j * target_position;
% if SHIFT:
${turn_between_steps(last, turn)}\
% endif
% for i in range(RADICES[last]):
            ${f"if (j + {i * before[last]} < {stored}) " if stored else ""}{
<% at = f"{i * before[last]} * target_position" %>\
                complex_t x = (complex_t)(re_${last}_${turn}_${i}, im_${last}_${turn}_${i});
% if CHIRP:
                const complex_t w = chirp[j + ${i * before[last]}];
                x = (complex_t)(x.y * w.x - x.x * w.y, x.y * w.y + x.x * w.x);
% endif
% if SCALED:
                x *= scale;
% endif
% if REAL == "c2r-full":
                to_j[${at}] = x.${first};
% elif LOOSE_STORE:
                vstore2(${"x.yx" if INVERSE else "x"}, ${at}, (__global real_t *)to_j);
% else:
                to_j[${at}] = ${"x.yx" if INVERSE else "x"};
% endif
            }
% endfor
        }
        }
% endfor
    }
% endif
}
