"""What every sort and selection must do, whatever the keys: all algorithms and forms on the same.

Data, sizes and options that are no part of a program are drawn; configurations are few, and their
tiles small, so that sizes lie around the limits of tiles, groups and parts.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from radix_checks import SORTS, specials

from opencl_lab.lab.ops.sort.operation import SORT
from opencl_lab.ops.select.problem import SearchProblem, TopkProblem, UniqueProblem
from opencl_lab.ops.select.search import SEARCH
from opencl_lab.ops.select.topk import SELECTION
from opencl_lab.ops.select.unique import HEADS
from opencl_lab.ops.sort.problem import SortProblem
from opencl_lab.runtime.execute import execute
from opencl_lab.runtime.session import session_of

TILES = {"WG_SIZE": 64, "ITEM_KEYS": 4, "DIGIT_BITS": 6}
FORMS = {
    "radix cpu": (SORTS["radix-cpu"], {"DIGIT_BITS": 5, "CAPACITY": 64}),
    "scan": (SORTS["radix-gpu"], {"FORM": "scan", **TILES}),
    "onesweep": (SORTS["radix-gpu"], {"FORM": "onesweep", **TILES, "MAX_POLLS": 0, "LOOKS": 2}),
    "merge cpu": (SORTS["merge-cpu"], {"TILE": 64, "STRETCH": 64}),
    "merge gpu": (SORTS["merge-gpu"], {"WG_SIZE": 4, "ITEM_KEYS": 9}),
    "odd-even-merge": (
        SORT.algorithm("odd-even-merge"),
        {"WG_SIZE": 16, "TILE": 64, "WORK_PER_ITEM": 8, "BLOCKED": False, "NARROW": True},
    ),
}
SELECTIONS = {
    "alone": {"WG_SIZE": 1, "ITEM_KEYS": 16},
    "groups": {"WG_SIZE": 64, "ITEM_KEYS": 4},
}
# Around an item, a warp, a group, a tile of each form, what is cut, and two and more of them.
EDGES = (1, 2, 9, 10, 18, 19, 31, 32, 33, 36, 37, 63, 64, 65, 72, 73, 128, 129, 255, 256, 257, 300,
         301, 512, 513, 700, 701)  # fmt: skip
COUNTS = st.one_of(st.sampled_from(EDGES), st.integers(1, 1500))
SHAPES = (
    "few", "any", "organ-pipe", "saw", "runs", "one-differs", "halves", "down",
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def cut_early():
    """Rows of the forms for CPUs, and of selections, are cut from a few hundred keys on."""
    with pytest.MonkeyPatch.context() as patch:
        # Networks are for some processors alone, and take long to build.
        patch.setattr("opencl_lab.ops.sort.radix_cpu.LONGEST_NETWORKS", {})
        limits = {"CUT": 700, "WHOLE": 700, "KEYS_OF_CHUNK": 128, "KEYS_OF_RUN": 8, "LEAST_BITS": 5}
        for name, value in limits.items():
            patch.setattr(f"opencl_lab.ops.sort.radix_cpu.{name}", value)
        for name in ("WHOLE", "WHOLE_OF_MANY"):
            patch.setattr(f"opencl_lab.ops.select.topk.{name}", 300)
        yield


def bits(array):
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def made(dtype, shape, seed, kind):
    """Return rows of keys of one kind; of floats a third is NaN, zero or infinite if `any`."""
    rng, (rows, n) = np.random.default_rng(seed), shape
    dtype = np.dtype(dtype)
    place = np.arange(n)
    if kind == "any":
        keys = rng.integers(0, 256, rows * n * dtype.itemsize, np.uint8).view(dtype)
        keys = keys.reshape(shape)
        if dtype.kind == "f":
            keys = np.where(rng.random(shape) < 0.3, rng.choice(specials(dtype), shape), keys)
        return keys
    if kind == "few":
        numbers = rng.integers(-2, 2, shape)
    elif kind == "organ-pipe":
        numbers = np.minimum(place, n - place)
    elif kind == "saw":
        numbers = place % rng.integers(1, 100, (rows, 1))
    elif kind == "runs":  # of lengths that no tile has
        numbers = (place * 37) % (n + 1)
        numbers = np.where(place < rng.integers(0, n + 1), np.sort(numbers), numbers)
    elif kind == "one-differs":
        numbers = np.where(place == rng.integers(0, n), rng.integers(-1, 2), 0)
    elif kind == "halves":  # of which one goes wholly before the other
        numbers = np.where(place < rng.integers(0, n + 1), 1, -1) * rng.integers(1, 200, shape)
    else:
        numbers = n - place
    return np.broadcast_to(numbers, shape).astype(dtype)


def keys_of(counts):
    """Draw what `made` needs: how many keys in how many rows, a seed, and their kind."""
    seeds = st.integers(0, 2**32 - 1)
    return st.tuples(counts, st.integers(1, 3), seeds, st.sampled_from(SHAPES))


KEYS = keys_of(COUNTS)
LONG = st.one_of(st.sampled_from([n for n in EDGES if n > 256]), st.integers(257, 1500))


def forms_of(queue):
    """Return the forms that the device has; those of single items are for CPUs."""
    cpu = session_of(queue).device.kind == "cpu"
    return [name for name in FORMS if cpu or not name.endswith("cpu")]


def run(algorithm, problem, config, arrays, queue):
    """Return what a plan makes of arrays."""
    session = session_of(queue)

    def plan():
        return algorithm.plan(
            problem, algorithm.configure(problem, session.device, config), session.device
        )

    label = ("properties", algorithm.name, problem, *config.values())
    return execute(session.executable(label, plan), arrays, queue).outputs


def sorted_by_all(problem, arrays, queue, but=()):
    """Return what each form makes of the same arrays."""
    return {
        name: run(FORMS[name][0], problem, FORMS[name][1], arrays, queue)
        for name in forms_of(queue)
        if name not in but
    }


@pytest.mark.full
@settings(max_examples=50)
@given(KEYS)
@example((1500, 2, 3, "any"))
@example((1500, 2, 3, "few"))
def test_all_forms_sort_floats_to_the_same_bits(queue, keys):
    """Descending: a permutation, in order, and so stable that NaN and zeros keep theirs."""
    n, rows, seed, kind = keys
    given_keys = made("float32", (rows, n), seed, kind)
    problem = SortProblem(n, given_keys.dtype, rows, descending=True)
    found = sorted_by_all(problem, {"keys": given_keys}, queue)
    first, *others = found.values()
    numbers = first["sorted"]
    np.testing.assert_array_equal(np.sort(bits(numbers)), np.sort(bits(given_keys)))
    in_order = (numbers[:, :-1] >= numbers[:, 1:]) | np.isnan(numbers[:, 1:])
    assert in_order.all()
    for row, given_row in zip(numbers, given_keys, strict=True):
        for alike in (np.isnan, lambda part: part == 0):
            np.testing.assert_array_equal(bits(row[alike(row)]), bits(given_row[alike(given_row)]))
    for name, other in zip(list(found)[1:], others, strict=True):
        np.testing.assert_array_equal(bits(other["sorted"]), bits(numbers), err_msg=name)


@pytest.mark.full
@settings(max_examples=50)
@given(keys_of(LONG))
@example((1500, 1, 3, "few"))
def test_forms_move_values_with_long_rows(queue, keys):
    """Each key with its own, which are positions here: a permutation, in order, stable.

    But for `scan`, whose last part is that of `onesweep`.
    """
    n, rows, seed, kind = keys
    given_keys = made("int16", (rows, n), seed, kind)
    arrays = {
        "keys": given_keys,
        "values": np.tile(np.arange(n, dtype=np.int32), (rows, 1)).view("V4"),
    }
    problem = SortProblem(n, given_keys.dtype, rows, value_bytes=4)
    for name, outputs in sorted_by_all(problem, arrays, queue, but=("scan",)).items():
        numbers, order = outputs["sorted"], outputs["sorted_values"].view(np.int32)
        assert (np.sort(order) == np.arange(n)).all(), name
        np.testing.assert_array_equal(np.take_along_axis(given_keys, order, -1), numbers, name)
        ahead = numbers[:, :-1] < numbers[:, 1:]
        equal = numbers[:, :-1] == numbers[:, 1:]
        assert (ahead | (equal & (order[:, :-1] < order[:, 1:]))).all(), name


@pytest.mark.full
@pytest.mark.parametrize("form", SELECTIONS)
@settings(max_examples=50)
@given(keys=KEYS, share=st.floats(0, 1))
@example(keys=(1500, 2, 3, "few"), share=0.3)
@example(keys=(1500, 2, 3, "any"), share=0.1)
def test_selections_agree_with_sorting(queue, form, keys, share):
    """The first k, each key once, and places of keys, from what a stable sort gives."""
    n, rows, seed, kind = keys
    if form == "alone" and session_of(queue).device.kind != "cpu":
        pytest.skip("a form for CPUs")
    config = SELECTIONS[form]
    given_keys = made("int16", (rows, n), seed, kind)
    order = np.argsort(given_keys, axis=-1, kind="stable")
    ordered = np.take_along_axis(given_keys, order, -1)

    k = 1 + int(share * (n - 1))
    problem = TopkProblem(n, k, given_keys.dtype, rows, largest=False)
    select = SELECTION
    chosen = run(select, problem, {**config, "DIGIT_BITS": 6}, {"keys": given_keys}, queue)
    places = np.sort(order[:, :k])  # in the order of the row
    np.testing.assert_array_equal(chosen["places"], places)
    np.testing.assert_array_equal(chosen["values"], np.take_along_axis(given_keys, places, -1))

    row = ordered[0]
    outputs = run(HEADS, UniqueProblem(n, row.dtype, True), config, {"keys": row}, queue)
    m = int(outputs["found"][0])
    once, counts = outputs["values"][:m], outputs["counts"][:m]
    assert (once[:-1] < once[1:]).all() and (counts > 0).all()
    np.testing.assert_array_equal(np.repeat(once, counts), row)

    values = given_keys[-1]
    right = form == "local-memory"
    problem = SearchProblem(n, values.size, row.dtype, right)
    search = {"WG_SIZE": config["WG_SIZE"], "VALUES": 4}
    arrays = {"keys": row, "values": values}
    places = run(SEARCH.algorithm("binary-search"), problem, search, arrays, queue)["places"]
    padded = np.concatenate([[-(2**20)], row, [2**20]])
    before, after = padded[places], padded[places + 1]
    if right:
        assert (before <= values).all() and (values < after).all()
    else:
        assert (before < values).all() and (values <= after).all()
