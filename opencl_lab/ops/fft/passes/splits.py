"""How long transforms are split into steps, and how many transforms a group does at a time.

Both follow from an estimate of the cost of a launch. The unit is the time to read and write all
data once at full speed. A launch costs more where the columns that a group reads or writes are less
than whole memory sectors, where a group holds so many points that few groups run at once, and where
there are few groups in all. The coefficients are fitted to about 3,600 measured launches on an
NVIDIA H200, those of groups that hold many points to an H100; they need to order plans, not to
predict times. The tuning database overrides how many columns a group does (``TRANSFORMS``,
``LAST_TRANSFORMS``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import group_limit
from opencl_lab.core.plan import ceil_divide, round_up
from opencl_lab.core.space import Config
from opencl_lab.ops.fft.passes.factors import radices_of
from opencl_lab.ops.fft.passes.local_schedule import GroupPasses, gap_of, items_of
from opencl_lab.ops.fft.passes.schedule import Schedule

SECTOR = 32
"""Bytes of a memory sector, the smallest transaction."""
LINE = 128
"""Bytes of the most efficient memory transaction."""
CROWD = 4096
"""Points of a group, in single precision, above which little room is left for other groups."""
LAUNCH_BYTES = 8 << 20
"""Overhead of a launch, in bytes that could be moved in that time."""
CANDIDATES = 16
"""How many lengths are tried for each step but the last: those nearest to equal lengths."""
TWO_PHASE = 8192
"""Bytes of the real components of a whole transform, above which the exchange is "two-phase" by
default: in most steps of long transforms that was the faster way on an H200."""
REGISTER_BYTES = 128 << 10
"""Most bytes of the points of a group, which are in registers: half of those of a compute unit."""
SECTIONED = 1.03
"""How much longer a step takes for each further section of local memory."""
MOST_SECTIONS = 4
"""Most sections of a row that go through local memory one after the other."""
NEAR = 1e-5
"""Costs that differ by less may be equal."""
MOST_COLUMNS = 32
MOST_STEPS = 3


@dataclass(frozen=True)
class GroupLimits:
    """The limits that a device and a configuration set to a group."""

    word: int  # bytes of a real number
    # Largest composite radix, fewest points of an item, and most points of a transform.
    max_radix: int
    points: int
    longest: int
    exchange: str  # how points go through local memory: see `GroupPasses`
    # Neighbouring columns of a group, where it reads them and where it only writes them; 0 to
    # choose by cost.
    transforms: int
    last_transforms: int
    # Local memory in bytes, most items of a group, compute units of the device, and registers of an
    # item, 0 if not known.
    local_memory: int
    items: int
    units: int
    registers: int = 0

    @classmethod
    def of(cls, n: int, word: int, config: Config, device: Device) -> GroupLimits:
        """Return the limits of a configuration on a device, for transforms of length `n`."""
        exchange = str(config["EXCHANGE"])
        if exchange == "auto":
            exchange = "two-phase" if n * word > TWO_PHASE else "split"
        return cls(
            word,
            config.integer("MAX_RADIX"),
            config.integer("POINTS"),
            config.integer("LOCAL_LIMIT"),
            exchange,
            config.integer("TRANSFORMS"),
            config.integer("LAST_TRANSFORMS"),
            device.capabilities.local_memory,
            group_limit(device),
            device.compute_units,
            device.capabilities.item_registers,
        )

    def radices(self, n: int) -> tuple[int, ...]:
        """Return the radices of the passes of `n` points."""
        return radices_of(n, self.max_radix)

    def items_of(self, n: int) -> int:
        """Return the items of a transform: more where several butterflies do not fit registers."""
        radices = self.radices(n)
        items, schedule = items_of(n, radices, self.points), Schedule.of(radices)
        while self.registers and items < self.items:
            group = GroupPasses(schedule, 1, items, "rows", "rows", self.exchange, 0)
            fits = group.registers(self.word, multiplied=True) <= self.registers
            if fits or group.points == max(radices):
                break
            items += 1
        return items

    def group(self, n: int, transforms: int, load: str, store: str) -> GroupPasses:
        """Return the schedule of a group."""
        radices = self.radices(n)
        gap = gap_of(radices[0], transforms, load, store, self.exchange)
        items, schedule = self.items_of(n), Schedule.of(radices)
        group = GroupPasses(schedule, transforms, items, load, store, self.exchange, gap)
        if self.exchange == "two-phase" and (transforms == 1 or store == "columns"):
            while self._held(group) > self.local_memory and group.sections < MOST_SECTIONS:
                group = replace(group, sections=group.sections + 1)
        return group

    def _held(self, group: GroupPasses) -> int:
        return group.local_reals * self.word

    def fits(self, n: int, transforms: int, load: str = "rows", store: str = "rows") -> bool:
        """Return whether a group can do so many transforms."""
        if n > self.longest or 2 * self.word * n * transforms > REGISTER_BYTES:
            return False
        group = self.group(n, transforms, load, store)
        return group.work_group <= self.items and self._held(group) <= self.local_memory


@dataclass(frozen=True)
class StepShape:
    """One step, which writes columns: what its cost depends on."""

    n: int  # points of a transform
    lanes: int  # neighbouring transforms; there are `times` such sets
    times: int
    reads_columns: bool  # whether it reads columns, too, as all steps but the last of long rows
    pitch: int  # a divisor of the distance between positions of a column, in elements


def middle_rows(
    n: int, inner: int, lengths: tuple[int, ...], word: int
) -> tuple[tuple[int, int], ...]:
    """Return the rows of an array between two steps, and their distance in whole sectors."""
    done, rows = 1, []
    for length in lengths[:-1]:
        done *= length
        rows.append((done, round_up(n // done * inner, SECTOR // (2 * word))))
    return tuple(rows)


def columns_of(shape: StepShape, limits: GroupLimits) -> int:
    """Return how many neighbouring columns a group transforms."""
    return _cheapest(shape, limits)[1]


def paired_columns(
    first: StepShape, second: StepShape, limits: GroupLimits
) -> tuple[float, tuple[int, int]]:
    """Return the cost of two steps whose groups have equally many items, and the columns per group.

    The cost is infinite if there are no such groups, which cut columns into strips where both
    steps read columns.
    """
    shapes = first, second
    own, other = limits.items_of(first.n), limits.items_of(second.n)
    pairs = {(n, n * own // other) for n in _column_counts(first, limits) if n * own % other == 0}
    pairs |= {(n * other // own, n) for n in _column_counts(second, limits) if n * other % own == 0}
    costs = [
        (sum(_cost(shape, n, limits) for shape, n in zip(shapes, pair, strict=True)), pair)
        for pair in pairs
        if all(_suits_fusion(shape, n, limits) for shape, n in zip(shapes, pair, strict=True))
        and (not second.reads_columns or second.lanes % math.lcm(*pair) == 0)
    ]
    return min(costs, default=(math.inf, (1, 1)))


def paired_axes(columns: StepShape, n: int, limits: GroupLimits) -> tuple[int, int]:
    """Return rows of length `n`, and columns, of groups of equally many items; (0, 0) for none."""
    own, other = limits.items_of(n), limits.items_of(columns.n)
    counts = _column_counts(columns, limits)
    pairs = {(count * other // own, count) for count in counts if count * other % own == 0}
    pairs |= {(count, count * own // other) for count in counts if count * own % other == 0}
    fitting = [
        (_cost(columns, count, limits) + _crowded(n, rows, limits), (rows, count))
        for rows, count in pairs
        if rows and count and _suits_fusion(columns, count, limits) and limits.fits(n, rows)
    ]
    return min(fitting, default=(math.inf, (0, 0)))[1]


def worth_fusing(
    first: StepShape, second: StepShape, columns: tuple[int, int], limits: GroupLimits
) -> bool:
    """Return whether two steps in one launch are likely to be faster than in two.

    On an NVIDIA H200 they were, by 2 to 8 %, where three things hold: items of both steps have
    equally many points, the exchange is not two-phase, and columns are whole cache lines.
    Elsewhere one of the steps lost more, by too many registers or too narrow columns, than the
    cache gained.
    """
    each = first.n // limits.items_of(first.n), second.n // limits.items_of(second.n)
    lines = min(columns) * 2 * limits.word >= LINE
    return limits.exchange != "two-phase" and each[0] == each[1] and lines


@lru_cache(maxsize=4096)
def _cheapest(shape: StepShape, limits: GroupLimits) -> tuple[float, int]:
    """Return the least cost of a step, and the columns per group that give it."""
    return min(_choices(shape, limits), default=(math.inf, 1))


def _choices(shape: StepShape, limits: GroupLimits) -> list[tuple[float, int]]:
    """Return the cost of a step for each number of columns that a group can do."""
    return [(_cost(shape, columns, limits), columns) for columns in _column_counts(shape, limits)]


def _column_counts(shape: StepShape, limits: GroupLimits) -> list[int]:
    """Return the numbers of columns per group to choose from, which all fit.

    They are `MOST_COLUMNS` and its halves; if the configuration sets a number, that one or the
    first of its halves that fits.
    """
    configured = _configured_columns(shape, limits)
    counts = [min(configured or MOST_COLUMNS, shape.lanes)]
    while counts[-1] > 1:
        counts.append(counts[-1] // 2)
    fitting = [columns for columns in counts if _columns_fit(shape, columns, limits)]
    return fitting[:1] if configured else fitting


def _configured_columns(shape: StepShape, limits: GroupLimits) -> int:
    """Return the columns per group that the configuration sets, or 0."""
    return limits.transforms if shape.reads_columns else limits.last_transforms


def _suits_fusion(shape: StepShape, columns: int, limits: GroupLimits) -> bool:
    """Return whether a group of a launch for two steps is allowed so many columns.

    They fit, and are less than a memory sector or whole sectors, unless the configuration sets
    their number.
    """
    if _configured_columns(shape, limits):
        return columns in _column_counts(shape, limits)
    sector = SECTOR // (2 * limits.word)
    whole = columns < sector or columns % sector == 0
    return whole and _columns_fit(shape, columns, limits)


def _columns_fit(shape: StepShape, columns: int, limits: GroupLimits) -> bool:
    """Return whether there are so many columns, and a group of the device has room for them."""
    load = "columns" if shape.reads_columns else "rows"
    return columns <= shape.lanes and limits.fits(shape.n, columns, load, "columns")


def _cost(shape: StepShape, columns: int, limits: GroupLimits) -> float:
    short = SECTOR / (2 * limits.word * columns)
    if shape.reads_columns:
        scattered = 1 + 0.3 * short**2
    else:
        scattered = 1 + 0.05 * short if short <= 1 else 1.5 * short
    aligned = shape.pitch * 2 * limits.word % SECTOR == 0
    crossing = 1.0 if aligned else 1 + 0.75 * short
    groups = ceil_divide(shape.lanes, columns) * shape.times
    idle = math.sqrt(round_up(groups, limits.units) / groups)
    return scattered * crossing * idle * _crowded(shape.n, columns, limits)


def _crowded(n: int, transforms: int, limits: GroupLimits) -> float:
    held = n * transforms * limits.word / 4 / CROWD
    exchanges = len(limits.radices(n)) - 1
    crowded = 1 + 0.04 * exchanges**2 * max(0.0, math.log2(held))
    if not exchanges or limits.exchange != "two-phase":
        return crowded
    sections = ceil_divide(n * transforms * limits.word, limits.local_memory)
    return crowded * SECTIONED ** (sections - 1)


def lengths_of(n: int, batch: int, inner: int, limits: GroupLimits) -> tuple[int, ...] | None:
    """Return the lengths of the steps of a transform: one if a group can do it; None: impossible.

    The middle axis of batch x n x inner elements is transformed. If there are two lengths or more,
    each step but the last reads and writes columns; the last one reads rows where `inner` is 1.
    """
    return cheapest_lengths(n, batch, inner, limits)[1]


def cheapest_exchange(
    n: int, batch: int, inner: int, config: Config, limits: GroupLimits
) -> GroupLimits:
    """Return limits with the exchange by which transforms of columns cost least."""
    if config["EXCHANGE"] != "auto" or inner == 1:
        return limits
    both = [replace(limits, exchange=exchange) for exchange in ("split", "two-phase")]
    return min(both, key=lambda each: cheapest_lengths(n, batch, inner, each)[0])


@lru_cache(maxsize=4096)
def cheapest_lengths(
    n: int, batch: int, inner: int, limits: GroupLimits
) -> tuple[float, tuple[int, ...] | None]:
    """Return what `lengths_of` does, and what it costs with a launch for each step."""
    launch = launch_cost(n * batch * inner, limits)
    best: tuple[float, tuple[int, ...] | None] = (math.inf, None)
    fewest = 0
    for count in range(1, MOST_STEPS + 1):
        for lengths in factorings(n, count, limits.longest):
            cost, left = launch * count, count
            for step in _costs(n, batch, inner, lengths, limits):
                cost, left = cost + step, left - 1
                if cost + left > best[0] + NEAR:  # each remaining step costs at least 1
                    cost = math.inf
                    break
            # Of equal costs, the shortest columns first: their points are furthest apart.
            best = min(
                best, (cost, lengths), key=lambda found: (round(found[0], 6), found[1] or ())
            )
        if best[1] is not None:
            fewest = fewest or count
            if count > fewest:  # more steps cost more
                break
    return best


def launch_cost(elements: int, limits: GroupLimits) -> float:
    """Return what a launch costs besides the work on so many complex numbers."""
    return LAUNCH_BYTES / (4 * limits.word * elements)


def _costs(
    n: int, batch: int, inner: int, lengths: tuple[int, ...], limits: GroupLimits
) -> Iterator[float]:
    if lengths == (n,) and inner == 1:
        yield _crowded(n, 1, limits) if limits.fits(n, 1) else math.inf
        return
    for shape in shapes_of(n, batch, inner, lengths, limits.word):
        yield _cheapest(shape, limits)[0]


def shapes_of(
    n: int, batch: int, inner: int, lengths: tuple[int, ...], word: int
) -> Iterator[StepShape]:
    """Yield the steps of transforms that are too long for a row of a group."""
    done = 1
    for length, (rows, padded) in zip(
        lengths[:-1], middle_rows(n, inner, lengths, word), strict=True
    ):
        rest = n // rows * inner
        yield StepShape(length, rest, batch * done, True, math.gcd(rest, padded))
        done = rows
    last = lengths[-1]
    if inner > 1:
        yield StepShape(last, inner, batch * done, True, inner)
    else:
        yield StepShape(last, lengths[0], batch * done // lengths[0], False, done)


def factorings(n: int, count: int, longest: int) -> Iterator[tuple[int, ...]]:
    """Yield factors of `n` in every order, nearly equal and at most `longest`."""
    if count == 1:
        yield (n,)
        return
    ideal = math.log(n) / count
    fitting = (d for d in _divisors(n) if 1 < d <= min(longest, n // 2))
    near = sorted(fitting, key=lambda d: abs(math.log(d) - ideal))
    for first in near[:CANDIDATES]:
        for rest in factorings(n // first, count - 1, longest):
            yield (first, *rest)


@lru_cache(maxsize=4096)
def _divisors(n: int) -> tuple[int, ...]:
    """Return the divisors of a smooth `n`."""
    found = {1}
    for prime in radices_of(n, 1):
        found |= {prime * d for d in found}
    return tuple(found)
