/*
 * Fast Fourier transforms of length N by work-groups in local memory: the form for GPUs.
 *
 * A group transforms TRANSFORMS sequences. Of each, ITEMS items own the butterflies of a
 * pass in turn and keep them in registers; between two passes all points go through local
 * memory, parts together or (SPLIT_PARTS) first the real and then the imaginary ones, in
 * half the room:
 *
 *     global --load--> registers --butterfly--> local --butterfly--> ... --store--> global
 *
 *     item of a transform    0    1    2   ..  ITEMS-1   0    1   ...
 *     butterfly j            0    1    2   ..            ITEMS     ...     of N / R in a pass
 *
 *     butterfly j reads positions j + i * N/R, i < R; multiplies by w^(i * (j mod S));
 *     writes positions (j / S) * S * R + (j mod S) + i * S    S = product of the radices before
 *
 * Source: Stockham's autosort algorithm (W. T. Cochran et al., 1967) as given for GPUs by
 * N. K. Govindaraju et al., "High performance discrete Fourier transforms on graphics
 * processors", SC 2008. With SHIFT, position p of lane c is multiplied by a root to the power
 * p * (c / shift_inner) at the end, which makes this the first step of a four-step transform
 * (D. H. Bailey, 1990); its root is the product of two from tables of about sqrt(n) entries.
 * With FEW_ROOTS, that is done for about 2 sqrt(R) of the R results of a butterfly, and the
 * roots of the others are products of those.
 *
 * Neighbouring items read neighbouring positions where LOAD is "rows", and neighbouring lanes
 * where it is "columns", and write alike: with rows in and columns out the exchange after the
 * first pass transposes. After every LOCAL_PAD elements of local memory one is left out, which
 * spreads strided accesses over the banks. All items meet every barrier; loads and stores of
 * lanes past the end are guarded.
 *
 * The host guarantees: `source` and `target` do not overlap; element (b, o, p, c) of either lies
 * at offset + b * BATCH + o * OUTER + p * POSITION + c * LANE; there is a group for every
 * TRANSFORMS lanes, these for each `o` < outer, and all of that for each `b`.
 *
 * REAL_T       float or double
 * INDEX_T      unsigned type that counts the elements of the arrays
 * N            length of a transform
 * RADICES      of the passes, in order; their product is N
 * TRANSFORMS   transforms of a group
 * ITEMS        items of a transform
 * LOAD, STORE  rows or columns: what neighbouring items take
 * LOOSE_LOAD   whether `source` is aligned to one real only; LOOSE_STORE: `target`
 * GUARD        whether the last group has lanes past the end
 * SHIFT        whether to multiply by the roots between two steps
 * SHIFT_BITS   binary logarithm of the length of the table `shift_low`
 * SPLIT_PARTS  whether real and imaginary parts are exchanged one after the other
 * LOCAL_PAD    elements of local memory between two gaps, 0 for no gaps
 * FEW_ROOTS    whether most roots are products of about 2 sqrt(R) loaded ones
 * CHIRP        0, or a length n for transforms of n points as convolutions of N >= 2n - 1, see
 *              bluestein.cl.mako: all of it happens here, forth and back, in local memory
 * INVERSE      whether real and imaginary parts are exchanged on the way in and out
 * SCALED       whether to multiply by `scale`
 */
<%page args="REAL_T, INDEX_T, N, RADICES, TRANSFORMS, ITEMS, LOAD, STORE, LOOSE_LOAD, LOOSE_STORE, GUARD, SHIFT, SHIFT_BITS, SPLIT_PARTS, LOCAL_PAD, FEW_ROOTS, CHIRP, INVERSE, SCALED"/>\
<%namespace name="codelets" file="codelets.mako"/>\
<%include file="/prelude.cl.mako" args="REQUIRE_FP64=REAL_T == 'double'"/>\
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
    size = T * N
    padded = size + size // LOCAL_PAD if LOCAL_PAD else size
    first, second = ("y", "x") if INVERSE else ("x", "y")
    # A convolution reads these tables twice, and Intel's compiler for CPUs gives items the values
    # of others where it may keep one from before a barrier.
    KEPT = "" if CHIRP else "restrict "

    def place_of(lane, position):
        """Return where a point lies in local memory."""
        at = f"({position}) * {T} + {lane}" if STORE == "columns" else f"{lane} * {N} + {position}"
        return f"PADDED({at})" if LOCAL_PAD else at

    def stride_of_roots(radix):
        """Return how far apart the roots are that are not products of two others."""
        return max(2, round(math.sqrt(radix))) if FEW_ROOTS and radix >= 4 else 1
%>\
typedef ${REAL_T} real_t;
typedef ${REAL_T}2 complex_t;
typedef ${REAL_T} vec_t;
typedef ${INDEX_T} index_t;
% if LOCAL_PAD:
#define PADDED(at) ((at) + (at) / ${LOCAL_PAD})
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
<%def name="exchange(index, after, part)">\
<%
    parts = {"both": ("re", "im"), "re": ("re",), "im": ("im",)}[part]
    array = {"re": "local_re", "im": "local_re" if SPLIT_PARTS else "local_im"}
    R, S, Q = RADICES[index], before[index], RADICES[after]
%>\
% for turn in range(turns[index]):
${owned(index, turn)}\
            const uint at = j / ${S} * ${S * R} + j % ${S};
% for i in range(R):
% for name in parts:
            ${array[name]}[${place_of(f"lane_{index}", f"at + {i * S}")}] = ${name}_${index}_${turn}_${i};
% endfor
% endfor
        }
% endfor
        barrier(CLK_LOCAL_MEM_FENCE); /* all points are there */
% for turn in range(turns[after]):
${owned(after, turn)}\
% for i in range(Q):
% for name in parts:
            ${name}_${after}_${turn}_${i} = ${array[name]}[${place_of(f"lane_{after}", f"j + {i * (N // Q)}")}];
% endfor
% endfor
        }
% endfor
</%def>\
<%def name="swap(index, after, last)">\
    {
% if SPLIT_PARTS:
${exchange(index, after, "re")}\
        barrier(CLK_LOCAL_MEM_FENCE); /* real parts are read; imaginary ones take their place */
${exchange(index, after, "im")}\
% else:
${exchange(index, after, "both")}\
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
            const uint k = j % ${S};
% for i in range(1, R):
% if i < step or i % step == 0:
            const complex_t w_${i} = roots[${places[index] + (i - 1) * S} + k];
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
__kernel __attribute__((reqd_work_group_size(${T * W}, 1, 1)))
void fft_groups(__global const complex_t *restrict source,
                __global complex_t *restrict target,
                __global const complex_t *${KEPT}roots,
% if SHIFT:
                __global const complex_t *restrict shift_high,
                __global const complex_t *restrict shift_low,
                const index_t shift_inner,
% endif
% if CHIRP:
                __global const complex_t *${KEPT}chirp,
                __global const complex_t *restrict kernel_roots,
% endif
                const index_t outer,
                const index_t lanes,
                const index_t source_offset,
                const index_t source_batch,
                const index_t source_outer,
                const index_t source_position,
                const index_t source_lane,
                const index_t target_offset,
                const index_t target_batch,
                const index_t target_outer,
                const index_t target_position,
                const index_t target_lane,
                const real_t scale)
{
% if passes > 1:
    __local real_t local_re[${padded}];
% if not SPLIT_PARTS:
    __local real_t local_im[${padded}];
% endif
% endif
    const uint item = (uint)get_local_id(0);
    const index_t group = (index_t)get_group_id(0); /* index_t divides faster than size_t may */
    const index_t lane_groups = (lanes + ${T - 1}) / ${T};
    const index_t first_lane = group % lane_groups * ${T};
    const index_t o = group / lane_groups % outer, b = group / lane_groups / outer;
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
        __global const complex_t *from = source + (source_offset + b * source_batch
            + o * source_outer + c * source_lane);
% for turn in range(turns[0]):
        if (${"c < lanes" if GUARD else "1"}) {
${owned(0, turn)}\
% for i in range(RADICES[0]):
            ${f"if (j + {i * (N // RADICES[0])} < {CHIRP}) " if CHIRP else ""}{
<% at = f"(j + {i * (N // RADICES[0])}) * source_position" %>\
% if LOOSE_LOAD:
                const complex_t x = vload2(${at}, (__global const real_t *)from);
% else:
                const complex_t x = from[${at}];
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
${all_passes(not CHIRP)}\
% if CHIRP:

    /* Multiply by the transform of the chirp; exchanged parts make the next one the inverse. */
    {
% for turn in range(turns[-1]):
${owned(passes - 1, turn)}\
% for i in range(RADICES[-1]):
            {
                const complex_t w = kernel_roots[j + ${i * before[-2]}];
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

    /* Store. */
    {
<% last = passes - 1 %>\
        const index_t c = first_lane + lane_${last};
        __global complex_t *to = target + (target_offset + b * target_batch
            + o * target_outer + c * target_lane);
% for turn in range(turns[last]):
        if (${"c < lanes" if GUARD else "1"}) {
${owned(last, turn)}\
% if SHIFT:
${turn_between_steps(last, turn)}\
% endif
% for i in range(RADICES[last]):
            ${f"if (j + {i * before[last]} < {CHIRP}) " if CHIRP else ""}{
                const uint p = j + ${i * before[last]};
                complex_t x = (complex_t)(re_${last}_${turn}_${i}, im_${last}_${turn}_${i});
% if CHIRP:
                const complex_t w = chirp[p];
                x = (complex_t)(x.y * w.x - x.x * w.y, x.y * w.y + x.x * w.x);
% endif
% if SCALED:
                x *= scale;
% endif
% if LOOSE_STORE:
                vstore2(${"x.yx" if INVERSE else "x"}, p * target_position, (__global real_t *)to);
% else:
                to[p * target_position] = ${"x.yx" if INVERSE else "x"};
% endif
            }
% endfor
        }
        }
% endfor
    }
}
