/*
 * Fast Fourier transforms by work-groups in local memory: the form for GPUs. STEPS holds one
 * step, transforms of length N, or two that follow each other; local_step.mako has the code of
 * one.
 *
 * A group transforms TRANSFORMS sequences. Of each, ITEMS items own the butterflies of a
 * pass in turn and keep them in registers; between two passes all points go through local
 * memory:
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
 * With FEW_TWIDDLES, that is done for about 2 sqrt(R) of the R results of a butterfly, and the
 * roots of the others are products of those.
 *
 * Neighbouring items read neighbouring positions where LOAD is "rows", and neighbouring lanes
 * where it is "columns", and write alike: with rows in and columns out the exchange after the
 * first pass transposes. After every LOCAL_PAD elements of local memory one is left out, which
 * spreads strided accesses over the banks. All items meet every barrier; loads and stores of
 * lanes past the end are guarded.
 *
 * The groups of a launch with two steps take tickets. The second step follows so close behind
 * the first that it reads from the device's cache:
 *
 *     ticket                   0 ..
 *     step 0 of transforms     0 .. AHEAD-1 | AHEAD | AHEAD+1 | ..
 *     step 1 of transforms                  |   0   |    1    | ..  | the last AHEAD
 *
 * Its groups wait until `counters` says that those of the first step have finished with the
 * transform. These have lower tickets, so that they have started before. The last group of a
 * transform, and the one with the last ticket, make the counters zero again.
 *
 * The host guarantees: `source` and `target` of a step do not overlap; element (b, o, p, c) of
 * either lies at offset + b * BATCH + o * OUTER + p * POSITION + c * LANE; there is a group for
 * every TRANSFORMS lanes, these for each `o` < outer, and all of that for each `b`. With two
 * steps, there are more than AHEAD transforms, one after the other; `counters` has a word for
 * each and one more, all zero, and one launch at a time has it; groups that have started make
 * progress, and see what others have written before a fence and an atomic operation.
 *
 * REAL_T       float or double
 * INDEX_T      unsigned type that counts the elements of the arrays
 * INVERSE      whether real and imaginary parts are exchanged on the way in and out
 * LOCAL        reals of local memory
 * PTX          whether the device takes inline PTX
 * AHEAD        of two steps: by how many transforms the first one is ahead
 * STEPS        of each step, all with groups of TRANSFORMS * ITEMS items:
 *   N            length of a transform
 *   RADICES      of the passes, in order; their product is N
 *   TRANSFORMS   transforms of a group
 *   ITEMS        items of a transform
 *   FLAT         whether there is one `o` and one `b`
 *   LOAD, STORE  rows or columns: what neighbouring items take
 *   LOOSE_LOAD   whether `source` is aligned to one real only; LOOSE_STORE: `target`
 *   GUARD        whether the last group has lanes past the end
 *   SHIFT        whether to multiply by the roots between two steps
 *   SHIFT_BITS   binary logarithm of the length of the table `shift_low`
 *   EXCHANGE     what goes through local memory: pairs (complex numbers), parts (real ones, and
 *                imaginary ones elsewhere) or turns (the same room for both, one after the other)
 *   LOCAL_PAD    elements of local memory between two gaps, 0 for no gaps
 *   FEW_TWIDDLES   whether most roots are products of about 2 sqrt(R) loaded ones
 *   CHIRP        0, or a length n for transforms of n points as convolutions of N >= 2n - 1, see
 *                bluestein.cl.mako: all of it happens here, forth and back, in local memory
 *   HALVED       whether what is read is halved first: packed real signals, see real.cl.mako
 *   REAL         nothing for complex rows on both sides; split or join: real rows of 2N numbers
 *                are packed as N complex ones, and to these belong N + 1 frequencies on the way out
 *                or in, see real.cl.mako; from or to: real rows, with the lower half of their
 *                frequencies on the other side, have an imaginary part of zero here
 *   SCALED       whether to multiply by `scale`
 *   KNOWN        numbers that follow from the length, which are no arguments
 *   TILES        of two steps: groups of a transform
 */
<%page args="REAL_T, INDEX_T, INVERSE, LOCAL, STEPS, PTX, AHEAD"/>\
<%include file="/prelude.cl.mako" args="REQUIRE_FP64=REAL_T == 'double'"/>\
% if len(STEPS) > 1:
<%include file="/fence.cl.mako" args="PTX=PTX"/>\
% endif
<%
    joined = len(STEPS) > 1
    numbers = ["outer", "lanes"] + [
        f"{side}_{name}"
        for side in ("source", "target")
        for name in ("offset", "batch", "outer", "position", "lane")
    ]

    def parameters(s):
        """Return the declarations of what a step takes."""
        step = STEPS[s]
        # A convolution reads these tables twice, and Intel's compiler for CPUs gives items the
        # values of others where it may keep one from before a barrier.
        kept = "" if step["CHIRP"] else "restrict "
        # What lies between two steps of a launch changes while it is read.
        source, target = ("" if joined and s == at else "restrict " for at in (1, 0))
        pointers = [f"const complex_t *{source}source", f"complex_t *{target}target"]
        tables = [f"{kept}twiddles"]
        if step["SHIFT"]:
            tables += ["restrict shift_high", "restrict shift_low"]
        if step["REAL"] in ("r2c-packed", "c2r-packed"):
            tables += ["restrict real_roots"]
        if step["CHIRP"]:
            tables += [f"{kept}chirp", "restrict chirp_spectrum"]
        pointers += [f"const complex_t *{table}" for table in tables]
        arguments = (["shift_inner"] if step["SHIFT"] else []) + numbers
        return (
            [f"__global {pointer}" for pointer in pointers]
            + [f"const index_t {name}" for name in arguments if name not in step["KNOWN"]]
            + ["const real_t scale"]
        )

    def arguments(s):
        return ", ".join(declared.split()[-1].lstrip("*") + f"_{s}" for declared in parameters(s))
%>\
typedef ${REAL_T} real_t;
typedef ${REAL_T}2 complex_t;
typedef ${REAL_T} vec_t;
typedef ${INDEX_T} index_t;

% for s, step in enumerate(STEPS):
<%include file="local_step.mako" args="STEP=s, REAL_T=REAL_T, INVERSE=INVERSE, parameters=parameters(s), **{name: value for name, value in step.items() if name != 'TILES'}"/>\

% endfor
__kernel __attribute__((reqd_work_group_size(${STEPS[0]["TRANSFORMS"] * STEPS[0]["ITEMS"]}, 1, 1)))
void fft_local(
% for s in range(len(STEPS)):
% for declared in parameters(s):
    ${declared}_${s}${"" if s + 1 == len(STEPS) and not joined and loop.last else ","}
% endfor
% endfor
% if joined:
    volatile __global uint *counters,
    const uint transforms)
% else:
    )
% endif
{
% if LOCAL:
    __local real_t space[${LOCAL}] __attribute__((aligned(16)));
% else:
    __local real_t *space = 0;
% endif
% if not joined:
    step_0((index_t)get_group_id(0), space, ${arguments(0)});
% else:
<% ones, twos = (step["TILES"] for step in STEPS) %>\
    __local uint taken;
    if (get_local_id(0) == 0)
        taken = atomic_inc(&counters[transforms]);
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint ticket = taken;
    const uint both = ${AHEAD * ones}, second_alone = both + (transforms - ${AHEAD}) * ${ones + twos};
    bool first = true;
    uint transform = ticket / ${ones}, tile = ticket % ${ones};
    if (ticket >= second_alone) {
        first = false;
        transform = transforms - ${AHEAD} + (ticket - second_alone) / ${twos};
        tile = (ticket - second_alone) % ${twos};
    } else if (ticket >= both) {
        /* The groups of two transforms take turns, as evenly as their numbers allow. */
        const uint turn = (ticket - both) % ${ones + twos};
        const uint before = turn * ${ones} / ${ones + twos};
        first = (turn + 1) * ${ones} / ${ones + twos} > before;
        transform = (ticket - both) / ${ones + twos} + (first ? ${AHEAD} : 0);
        tile = first ? before : turn - before;
    }
    if (first) {
        step_0((index_t)transform * ${ones} + tile, space, ${arguments(0)});
    } else {
        if (get_local_id(0) == 0) {
            while (atomic_or(&counters[transform], 0) < ${ones});
            DEVICE_FENCE();
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
        step_1((index_t)transform * ${twos} + tile, space, ${arguments(1)});
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        DEVICE_FENCE();
        if (atomic_inc(&counters[transform]) == ${ones + twos - 1})
            atomic_xchg(&counters[transform], 0);
        if (ticket + 1 == transforms * ${ones + twos})
            atomic_xchg(&counters[transforms], 0);
    }
% endif
}
