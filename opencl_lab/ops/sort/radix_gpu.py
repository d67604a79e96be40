"""The radix sort for GPUs: passes over tiles, or one launch where a group sorts a whole row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from opencl_lab.core.device import Device
from opencl_lab.core.kernels import lacks_groups, not_negative, one_of, positive, sub_group
from opencl_lab.core.plan import Argument, Buffer, Launch, Plan, ceil_divide, named
from opencl_lab.core.space import Config, Constraint, Parameter, SearchSpace
from opencl_lab.ops.solver import Algorithm
from opencl_lab.ops.sort.elements import Elements
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.ops.sort.radix_gpu_sizes import (
    ITEM_KEYS,
    TILE_BYTES,
    WARP,
    for_rows,
    for_tiles,
    moved_bytes,
)

TEMPLATE = "sort/radix_gpu.cl.mako"
ROWS = "sort/radix_gpu_rows.cl.mako"
WIDE = 1 << 30
"""Keys of a row from which counts need 64 bits."""
MAX_POLLS = 1 << 12
"""Looks in vain at an earlier tile, after which a group counts its keys itself."""
HISTOGRAM_GROUPS, AGAIN_GROUPS = 8, 4  # per compute unit
MOST_COPIES = 8
"""Most copies of the counts in local memory."""
COPIED = 1 << 20
"""Keys of a row from which neighbouring items count in copies of their own, in other banks."""
LOOKS = 4
"""Earlier tiles that a group looks at together."""
IDLE = (MAX_POLLS, LOOKS)
"""What these two parameters must be in the form `scan`, which has no use for them."""
OWN_REGISTERS = 24
"""Registers of an item besides its keys, their places and their values."""
WG_SIZES = (32, 64, 128, 256, 384, 512)
TOP_KEYS = 1 << 20
"""Keys of 8 bytes in all from which they are sorted by their most significant digits first."""
UNLIKE_BITS = 4
"""Bits of these digits beyond those that would number the keys of a row."""
FORMS = ("scan", "onesweep")
UINT = np.dtype(np.uint32)


def _room(problem: SortProblem, config: Config, device: Device) -> int:
    """Return the local memory, in bytes, in which a tile is ranked and then reordered."""
    wg_size = config.integer("WG_SIZE")
    words = 1 if device.capabilities.inline_ptx else 2
    rank = 4 * (wg_size // WARP) * words << config.integer("DIGIT_BITS")
    return max(rank, wg_size * config.integer("ITEM_KEYS") * moved_bytes(problem))


def local_bytes(problem: SortProblem, config: Config, device: Device) -> int:
    """Return the local memory, in bytes, of the kernel that needs the most."""
    wg_size, radix = config.integer("WG_SIZE"), 1 << config.integer("DIGIT_BITS")
    ptx = device.capabilities.inline_ptx
    index = 8 if problem.n >= WIDE else 4
    digits = ceil_divide(problem.code_bits, config.integer("DIGIT_BITS"))
    sums = 4 * (WARP if ptx else 2 * wg_size)
    counts = 4 * digits * radix + _histogram_bytes(config, device, digits)
    return max(_room(problem, config, device) + 8 + sums + index * radix + 64, counts)


def _histogram_bytes(config: Config, device: Device, digits: int) -> int:
    """Return the local memory, in bytes, in which the counts of all digits are summed."""
    sums = WARP if device.capabilities.inline_ptx else 2 * config.integer("WG_SIZE")
    return (8 << config.integer("DIGIT_BITS")) + 4 * (sums + digits) + 64


def _built_in(problem: SortProblem, device: Device) -> dict[str, Any]:
    """Return the form, and the size of groups and tiles; short rows get smaller groups."""
    limits = device.capabilities
    # Look-back needs words that are read and written in whole, of 64 bits for long rows.
    has_words = problem.n < WIDE or limits.inline_ptx or limits.int64_atomics
    chosen: dict[str, Any] = {
        "FORM": "onesweep" if limits.forward_progress and has_words else "scan"
    }
    wg_size, items = for_rows(problem, device)
    if problem.n <= wg_size * items:
        # Small groups for short rows; a few keys per item hide latency.
        while wg_size > WARP and wg_size * 4 >= 2 * problem.n:
            wg_size //= 2
        items = next(i for i in ITEM_KEYS if wg_size * i >= problem.n)
    else:
        wg_size, items = for_tiles(problem, device)
    chosen |= {"WG_SIZE": wg_size, "ITEM_KEYS": items}
    return chosen | {"DIGIT_BITS": min(8, wg_size.bit_length() - 1)}


def _common(elements: Elements, config: Config, device: Device) -> dict[str, Any]:
    return {
        "ELEMENT": elements.element,
        "WG_SIZE": config.integer("WG_SIZE"),
        "ITEM_KEYS": config.integer("ITEM_KEYS"),
        "DIGIT_BITS": config.integer("DIGIT_BITS"),
        "ROOM": _room(elements.problem, config, device),
        "PTX": device.capabilities.inline_ptx,
        "SUB_GROUP": sub_group(device, _registers(elements, config)),
    }


def _registers(elements: Elements, config: Config) -> int:
    """Return about how many registers an item needs in the kernels that keep keys in them."""
    value, place = elements.value_dtype, UINT.itemsize
    words = (elements.problem.dtype.itemsize, place, 0 if value is None else value.itemsize)
    return OWN_REGISTERS + config.integer("ITEM_KEYS") * sum(ceil_divide(n, 4) for n in words)


class RadixGpu(Algorithm[SortProblem]):
    """Stable radix sort for GPUs, by tiles of work-groups, in two forms.

    ``onesweep`` has one launch per digit, whose groups look back at others. It ends with the right
    result wherever groups run, but counts tiles over and over where these make no progress.
    ``scan`` has three launches per digit, none of which looks at other groups. Rows that fit in a
    group take one launch.
    """

    name = "radix"
    templates = (TEMPLATE, ROWS)
    space = SearchSpace(
        (
            Parameter("FORM", FORMS, "how groups work together"),
            Parameter("DIGIT_BITS", (5, 6, 7, 8), "bits of a digit"),
            Parameter("WG_SIZE", WG_SIZES, "items in a group"),
            Parameter("ITEM_KEYS", ITEM_KEYS, "keys of an item in a tile"),
            Parameter("LOOKS", (1, 4, 8, 16), "tiles that onesweep looks back at together"),
            Parameter("MAX_POLLS", (0, 4096), "how often onesweep polls a tile before it counts"),
        ),
        (
            one_of("FORM", FORMS),
            Constraint(lambda c: 1 <= c.integer("DIGIT_BITS") <= 8, "DIGIT_BITS must be 1 to 8"),
            Constraint(
                lambda c: c.integer("WG_SIZE") % WARP == 0 < c.integer("WG_SIZE"),
                f"WG_SIZE must be a multiple of {WARP}",
            ),
            Constraint(
                lambda c: 1 << c.integer("DIGIT_BITS") <= c.integer("WG_SIZE"),
                "WG_SIZE must not be less than 2 to the power of DIGIT_BITS",
            ),
            Constraint(lambda c: c.integer("ITEM_KEYS") >= 2, "ITEM_KEYS must be at least 2"),
            not_negative("MAX_POLLS"),
            positive("LOOKS"),
            Constraint(
                lambda c: c["FORM"] == "onesweep" or (c["MAX_POLLS"], c["LOOKS"]) == IDLE,
                f"MAX_POLLS must be {MAX_POLLS} and LOOKS {LOOKS} unless FORM is onesweep",
            ),
        ),
    )

    def supports(self, problem: SortProblem, device: Device) -> str | None:
        """Need barriers in loops on devices other than CPUs."""
        return lacks_groups(device)

    def default_config(self, problem: SortProblem, device: Device) -> Config:
        """Return the form that the device allows, and tiles that fit."""
        return Config(**_built_in(problem, device), LOOKS=LOOKS, MAX_POLLS=MAX_POLLS)

    def search_space(self, problem: SortProblem, device: Device) -> SearchSpace:
        """Leave out ``onesweep`` where groups that it looks back at may make no progress."""
        forward = device.capabilities.forward_progress
        return self.space if forward else self.space.among({"FORM": ("scan",)})

    def plan(self, problem: SortProblem, config: Config, device: Device) -> Plan:
        """Plan one launch for rows that fit in a group, else those of the form.

        ``onesweep``: `histograms`, and for each digit `scatter`; for many keys of 8 bytes that for
        the most significant ones, `mend`, and for each digit `scatter_again`. ``scan``:
        `histograms`, `scan_histograms`, and for each digit `count_tiles`, `scan_tiles`, `scatter`.
        """
        elements = Elements(problem)
        if problem.n * problem.rows == 0:
            return Plan(tuple(elements.buffers), ())
        local = local_bytes(problem, config, device)
        if problem.n > config.integer("WG_SIZE") * config.integer("ITEM_KEYS"):
            return _Passes(elements, config, device, local).plan()
        return _one_launch(elements, config, device, local)


def _one_launch(elements: Elements, config: Config, device: Device, local: int) -> Plan:
    """Return the plan for rows that fit in a group."""
    wg_size = config.integer("WG_SIZE")
    launch = Launch(
        template=ROWS,
        kernel="sort_rows",
        params=_common(elements, config, device),
        global_size=(elements.problem.rows * wg_size,),
        local_size=(wg_size,),
        arguments={**elements.arguments, "n": np.uint32(elements.problem.n)},
        local_bytes=local,
    )
    return Plan(tuple(elements.buffers), (launch,))


@dataclass(frozen=True)
class LookBack:
    """How groups look back at earlier tiles, see ``clkernels/common/lookback.mako``."""

    looks: int  # tiles that one looks at together
    max_polls: int  # looks in vain, after which one counts a tile oneself

    @classmethod
    def of(cls, config: Config) -> LookBack | None:
        """Return that of a configuration, or None if groups do not look back."""
        if config["FORM"] != "onesweep":
            return None
        return cls(config.integer("LOOKS"), config.integer("MAX_POLLS"))


@dataclass(frozen=True)
class TopDigits:
    """How rows are sorted by their most significant digits, see ``radix_gpu_top.mako``."""

    passes: int  # over these digits
    alike: float  # other keys that agree with one in them, at most, as expected

    @classmethod
    def of(cls, problem: SortProblem, config: Config) -> TopDigits | None:
        """Return that of a configuration, or None where all digits are sorted at once."""
        digit_bits = config.integer("DIGIT_BITS")
        # Skewed digits, such as the exponents of floats, take one more.
        passes = ceil_divide((problem.n - 1).bit_length() + UNLIKE_BITS, digit_bits) + 1
        fewer = passes < ceil_divide(problem.code_bits, digit_bits)
        many = problem.dtype.itemsize == 8 and problem.n * problem.rows >= TOP_KEYS
        pays = fewer and many and config["FORM"] == "onesweep"
        return cls(passes, 2.0**-UNLIKE_BITS) if pays else None


class _Passes:
    """The launches for long rows."""

    def __init__(self, elements: Elements, config: Config, device: Device, local: int) -> None:
        self.elements, self.problem = elements, elements.problem
        self.wg_size, self.local = config.integer("WG_SIZE"), local
        self.tiles = ceil_divide(self.problem.n, self.wg_size * config.integer("ITEM_KEYS"))
        self.radix = 1 << config.integer("DIGIT_BITS")
        self.digits = ceil_divide(self.problem.code_bits, config.integer("DIGIT_BITS"))
        self.look_back, self.top = LookBack.of(config), TopDigits.of(self.problem, config)
        self.wide = self.problem.n >= WIDE
        self.index: Any = np.uint64 if self.wide else np.uint32
        self.units = device.compute_units
        self.params = {
            **_common(elements, config, device),
            "DIGITS": self.digits,
            "WIDE": self.wide,
            "LOOK_BACK": self.look_back,
            "TOP": self.top,
            "COPIES": self._copies(device),
        }
        counts = 4 * self.digits * self.radix * self.params["COPIES"]
        self.local = max(local, counts + _histogram_bytes(config, device, self.digits))
        self.buffers = {item.name: item for item in elements.buffers}

    def _copies(self, device: Device) -> int:
        """Return how many copies of the counts fit the local memory of the other kernels."""
        if not device.capabilities.inline_ptx or self.problem.n < COPIED:
            return 1
        copies = MOST_COPIES
        while copies > 1 and 4 * self.digits * self.radix * copies > max(TILE_BYTES, self.local):
            copies //= 2
        return copies

    def plan(self) -> Plan:
        """Return the plan."""
        rows, entries = self.problem.rows, self.problem.rows * self.digits * self.radix
        shape, dtype = (rows, self.problem.n), self.problem.dtype
        word = 2 if self.wide else 1
        self.buffers["histogram"] = Buffer("histogram", "zeros", (entries * word + rows,), UINT)
        self._scratch("bases", (entries,), np.dtype(self.index))
        top, every = self.top.passes if self.top else 0, rows * self.tiles
        passes = top + self.digits
        self._scratch("pass_flags", (rows * (passes + 1) + 1,), UINT)
        keys = named("keys", "sorted", "spare")
        if self.problem.indices:
            self._scratch("sorted", shape, dtype)
        self._scratch("spare", shape, dtype)
        values = self._values(shape)
        cells = rows * self.tiles * self.radix
        n, tiles = self.index(self.problem.n), np.uint32(self.tiles)
        few = min(every, AGAIN_GROUPS * self.units)
        groups = max(min(self.tiles, HISTOGRAM_GROUPS * self.units // rows), 1)
        counted, flags = named("histogram"), named("bases", "pass_flags")
        if self.look_back:
            # Passes take turns with two halves; `histograms` clears that of the first one.
            self._scratch("status", (2, cells), np.dtype(self.index))
            self._scratch("tickets", (passes,), UINT)
            counted |= {**flags, **named("status"), "status_words": np.uint64(cells)}
            counted |= named("tickets")
            found = named("bases", "status", "tickets")
        else:
            self._scratch("table", (cells,), np.dtype(self.index))
            found = named("table")
        counted = {**named("keys"), **counted, "n": n, "groups": np.uint32(groups)}
        launches = [self._launch("histograms", rows * groups, counted)]
        if not self.look_back:
            scanned = {**named("histogram"), **flags, "n": n}
            launches.append(self._launch("scan_histograms", rows, scanned))
        for number in map(np.uint32, range(passes)):
            if top and number == top:
                mended = named("sorted", *["sorted_values"] * bool(values), "pass_flags")
                mended |= {"n": n, "tiles": tiles}
                launches.append(self._launch("mend", every, mended))
            where: dict[str, Argument] = {"tiles": tiles, "pass": number}
            if not self.look_back:
                of_tiles = {**keys, **named("pass_flags", "table"), "n": n, **where}
                launches.append(self._launch("count_tiles", every, of_tiles))
                scanned = {**named("bases", "pass_flags", "table"), **where}
                launches.append(self._launch("scan_tiles", rows * self.radix, scanned))
            scattered = {**keys, **values, **named("pass_flags"), **found, "n": n, **where}
            if top and number >= top:
                again = {**scattered, "rows": np.uint32(rows)}
                launches.append(self._launch("scatter_again", few, again))
            else:
                launches.append(self._launch("scatter", every, scattered))
        return Plan(tuple(self.buffers.values()), tuple(launches))

    def _scratch(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.buffers[name] = Buffer(name, "scratch", shape, dtype)

    def _values(self, shape: tuple[int, ...]) -> dict[str, Argument]:
        """Add the buffers of values between passes; return the arguments."""
        dtype = self.elements.value_dtype
        if dtype is None:
            return {}
        names = ["sorted_values", "spare_values"]
        self._scratch("spare_values", shape, dtype)
        if self.problem.indices:
            # Between passes, indices have another type than in the result.
            self._scratch("middle_values", shape, dtype)
            names.append("middle_values")
        else:
            names.insert(0, "values")
        return named(*names)

    def _launch(self, kernel: str, groups: int, arguments: dict[str, Argument]) -> Launch:
        return Launch(
            template=TEMPLATE,
            kernel=kernel,
            params=self.params,
            global_size=(groups * self.wg_size,),
            local_size=(self.wg_size,),
            arguments=arguments,
            local_bytes=self.local,
        )
