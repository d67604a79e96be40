## Butterflies: transforms of a few points in registers, as straight-line code.
##
##   declare(radices, element, of)   butterfly_<R>(x) for each radix R: transforms x[0] .. x[R - 1] in place
##                                   and in order, with the negative exponent
##
## `of` says what x points to: ("points_t", "vec_t", "re", "im"), its type, that of its components, and
## their names; so that x[j] may be a point of many transforms, one in each lane. INLINE is that of
## complex.mako.
##
## Composite radices are split into smaller ones (J. W. Cooley and J. W. Tukey, 1965), with constant
## twiddle factors, where a multiplication by a power of i costs nothing and one by an eighth root two
## multiplications. An odd prime p pairs x[j] with x[p - j], which halves its multiplications
## (R. C. Singleton, "An algorithm for computing the mixed radix fast Fourier transform", 1969). Above
## LOOPS it does so in loops, with factors from a table in constant memory.
##
## The host plans with the radices in `RADICES` of factors.py: 2, the odd primes, and those of SPLIT.
<%!
    import itertools
    import math

    SPLIT = {
        4: (2, 2), 6: (2, 3), 8: (2, 4), 9: (3, 3), 10: (2, 5), 12: (3, 4), 14: (2, 7), 15: (3, 5),
        16: (4, 4), 20: (4, 5), 21: (3, 7), 25: (5, 5), 27: (3, 9), 32: (4, 8),
    }

    LOOPS = 13  # the last of SMALL_PRIMES in factors.py
    TOGETHER = 2  # frequencies whose sums a loop has in registers

    def factors(p):
        """Return, for the frequencies of each round of the outer loop, their factors by point."""
        half = range(1, (p + 1) // 2)
        for first in half[::TOGETHER]:
            for j in half:
                for k in range(first, first + TOGETHER):
                    yield root(j * k, p) if k in half else (0.0, 0.0)

    def root(power, n):
        """Return cosine and minus sine of 2 pi power / n, from an angle below an eighth turn."""
        quarter, rest = divmod(4 * (power % n), n)
        mirrored = 2 * rest > n
        angle = math.pi / 2 * ((n - rest if mirrored else rest) / n)
        x, y = math.cos(angle), math.sin(angle)
        if mirrored:
            x, y = y, x
        for _ in range(quarter):
            x, y = -y, x
        return x, -y

    class Writer:
        """Straight-line code in which every variable is written once."""

        def __init__(self, type, suffix):
            self.lines = []
            self.type = type
            self.suffix = suffix
            self.numbers = itertools.count()

        def literal(self, value):
            return f"{value!r}{self.suffix}"

        def let(self, expression):
            name = f"v{next(self.numbers)}"
            self.lines.append(f"const {self.type} {name} = {expression};")
            return name

        def add(self, a, b):
            return tuple(self.let(f"{x} + {y}") for x, y in zip(a, b))

        def sub(self, a, b):
            return tuple(self.let(f"{x} - {y}") for x, y in zip(a, b))

        def times(self, a, power, n):
            """Multiply by a constant root."""
            power %= n
            x, y = a
            if power == 0:
                return a
            if 2 * power == n:
                return self.let(f"-{x}"), self.let(f"-{y}")
            if 4 * power == n:  # -i
                return y, self.let(f"-{x}")
            if 4 * power == 3 * n:  # i
                return self.let(f"-{y}"), x
            c, s = root(power, n)
            if 8 * power % n == 0:
                h = self.literal(math.sqrt(0.5))
                first = self.let(f"{x} + {y}" if (c > 0) == (s < 0) else f"{x} - {y}")
                second = self.let(f"{y} - {x}" if (c > 0) == (s < 0) else f"{x} + {y}")
                sign = "" if c > 0 else "-"
                return self.let(f"{sign}{h} * {first}"), self.let(f"{sign}{h} * {second}")
            c, s = self.literal(c), self.literal(s)
            return self.let(f"{x} * {c} - {y} * {s}"), self.let(f"{x} * {s} + {y} * {c}")

        def transform(self, points):
            n = len(points)
            if n == 1:
                return points
            if n == 2:
                return [self.add(*points), self.sub(*points)]
            if n == 4:
                return self.four(points)
            if n in SPLIT:
                return self.split(points, *SPLIT[n])
            return self.prime(points)

        def four(self, p):
            a, b = self.add(p[0], p[2]), self.sub(p[0], p[2])
            c, d = self.add(p[1], p[3]), self.sub(p[1], p[3])
            return [
                self.add(a, c),
                (self.let(f"{b[0]} + {d[1]}"), self.let(f"{b[1]} - {d[0]}")),
                self.sub(a, c),
                (self.let(f"{b[0]} - {d[1]}"), self.let(f"{b[1]} + {d[0]}")),
            ]

        def split(self, points, rows, columns):
            """Transform columns of a rows x columns arrangement, twiddle, transform rows."""
            n = rows * columns
            result = [None] * n
            inner = [self.transform(points[c::columns]) for c in range(columns)]
            for r in range(rows):
                line = [self.times(inner[c][r], r * c, n) for c in range(columns)]
                for c, value in enumerate(self.transform(line)):
                    result[r + rows * c] = value
            return result

        def prime(self, points):
            p = len(points)
            half = range(1, (p + 1) // 2)
            plus = {j: self.add(points[j], points[p - j]) for j in half}
            minus = {j: self.sub(points[j], points[p - j]) for j in half}
            total = points[0]
            for j in half:
                total = self.add(total, plus[j])
            result = [total] + [None] * (p - 1)
            for k in half:
                even, odd = list(points[0]), [None, None]
                for j in half:
                    c, s = root(j * k, p)
                    for component in range(2):
                        e, o = plus[j][component], minus[j][component]
                        even[component] = self.let(f"{even[component]} + {e} * {self.literal(c)}")
                        term = f"{o} * {self.literal(s)}"
                        known = odd[component]
                        odd[component] = self.let(term if known is None else f"{known} + {term}")
                result[k] = self.let(f"{even[0]} - {odd[1]}"), self.let(f"{even[1]} + {odd[0]}")
                result[p - k] = self.let(f"{even[0]} + {odd[1]}"), self.let(f"{even[1]} - {odd[0]}")
            return result

    def lines_of(radix, element, of):
        _, type, re, im = of
        writer = Writer(type, "" if element.double else "f")
        points = [(f"x[{j}].{re}", f"x[{j}].{im}") for j in range(radix)]
        for j, (x, y) in enumerate(writer.transform(points) if radix > 1 else ()):
            writer.lines += [f"x[{j}].{re} = {x};", f"x[{j}].{im} = {y};"]
        return writer.lines
%>\
<%def name="declare(radices, element, of)">\
% for radix in sorted(set(radices)):
% if radix > LOOPS and radix not in SPLIT:
${prime_in_loops(radix, element, *of)}\
% else:
/* Transform ${radix} points in place. */
INLINE void butterfly_${radix}(${of[0]} *x)
{
% for line in lines_of(radix, element, of):
    ${line}
% endfor
}

% endif
% endfor
</%def>\
<%def name="prime_in_loops(p, element, points_t, vec_t, re, im)">\
<% half, sides = p // 2, (re, im) %>\
/* Cosine and minus sine of 2 pi j k / ${p}: for each ${TOGETHER} frequencies k, by point j. */
__constant ${element.real} FACTORS_${p}[] = {
    ${", ".join(f"{number!r}{'' if element.double else 'f'}" for pair in factors(p) for number in pair)}
};

/* Transform ${p} points in place. */
INLINE void butterfly_${p}(${points_t} *x)
{
    enum { P = ${p}, HALF = ${half}, TOGETHER = ${TOGETHER} };
    ${points_t} plus[HALF], minus[HALF];
    const ${points_t} first = x[0];
    for (uint j = 0; j < HALF; ++j) {
% for c in sides:
        plus[j].${c} = x[1 + j].${c} + x[P - 1 - j].${c};
        minus[j].${c} = x[1 + j].${c} - x[P - 1 - j].${c};
        x[0].${c} += plus[j].${c};
% endfor
    }
    for (uint k = 1; k <= HALF; k += TOGETHER) {
        __constant ${element.real} *factors = FACTORS_${p} + (k - 1) * (2 * HALF);
        ${vec_t} even_re[TOGETHER], even_im[TOGETHER], odd_re[TOGETHER], odd_im[TOGETHER];
#pragma unroll
        for (uint t = 0; t < TOGETHER; ++t) {
            even_re[t] = first.${re};
            even_im[t] = first.${im};
            odd_re[t] = odd_im[t] = 0;
        }
        for (uint j = 0; j < HALF; ++j)
#pragma unroll
            for (uint t = 0; t < TOGETHER; ++t) {
                const ${element.real} c = factors[2 * (TOGETHER * j + t)], s = factors[2 * (TOGETHER * j + t) + 1];
                even_re[t] += plus[j].${re} * c;
                even_im[t] += plus[j].${im} * c;
                odd_re[t] += minus[j].${re} * s;
                odd_im[t] += minus[j].${im} * s;
            }
#pragma unroll
        for (uint t = 0; t < TOGETHER; ++t)
            if (k + t <= HALF) {
                x[k + t].${re} = even_re[t] - odd_im[t];
                x[k + t].${im} = even_im[t] + odd_re[t];
                x[P - k - t].${re} = even_re[t] + odd_im[t];
                x[P - k - t].${im} = even_im[t] - odd_re[t];
            }
    }
}

</%def>\
