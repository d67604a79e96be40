"""Filters with the signatures of `scipy.ndimage`: results beside SciPy's, and rules of our own."""

from __future__ import annotations

import inspect

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from ndimage_checks import both, is_near, numbers

import opencl_lab as ol
from opencl_lab import ndimage
from opencl_lab.core.errors import InvalidProblem
from opencl_lab.ops.filters.numbers import TYPES
from opencl_lab.ops.filters.problem import MODES, LinesProblem, Window
from opencl_lab.ops.filters.solver import LINES, WINDOW

scipy_ndimage = pytest.importorskip("scipy.ndimage")
CROSS = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 1]], bool)
SHAPE = 23, 37
CALLS = {
    "correlate1d": ([1.5, -2, 0.25, 3], {"axis": 0, "origin": 1}),
    "convolve1d": ([1.5, -2, 0.25, 3], {"axis": 1, "origin": -2}),
    "gaussian_filter1d": (1.3, {"order": 1, "axis": 0}),
    "gaussian_filter": ((2.0, 0.7), {"order": (0, 2), "truncate": 3.0}),
    "gaussian_laplace": (1.1, {}),
    "gaussian_gradient_magnitude": (1.1, {"radius": 3}),
    "uniform_filter1d": (6, {"axis": 0, "origin": -2}),
    "uniform_filter": ((5, 8), {"origin": (1, -3)}),
    "sobel": (0, {}),
    "prewitt": (-1, {}),
    "laplace": (None, {}),
    "correlate": (np.arange(12).reshape(3, 4) / 7 - 0.6, {"origin": (-1, 1)}),
    "convolve": (np.arange(20).reshape(4, 5) / 7 - 0.6, {"origin": (1, -2)}),
    "minimum_filter1d": (21, {"axis": 1, "origin": 7}),
    "maximum_filter1d": (4, {"axis": 0}),
    "minimum_filter": ((3, 40), {}),
    "maximum_filter": (None, {"footprint": CROSS, "origin": (1, 0)}),
    "median_filter": (3, {}),
    "rank_filter": (-2, {"footprint": CROSS}),
    "percentile_filter": (70, {"size": (9, 7)}),
}
"""The first argument after the array, and others, of a call of each function."""


def test_all_calls_are_known():
    assert set(CALLS) == set(ndimage.__all__)


@pytest.mark.parametrize("name", ndimage.__all__)
def test_signatures_are_those_of_scipy(name):
    ours = inspect.signature(getattr(ndimage, name)).parameters
    theirs = inspect.signature(getattr(scipy_ndimage, name)).parameters
    named = [p for p in theirs.values() if p.kind is not p.VAR_KEYWORD]
    assert list(ours)[: len(named)] == [p.name for p in named]
    for parameter in named:
        assert ours[parameter.name].default == parameter.default, parameter
        assert ours[parameter.name].kind == parameter.kind


@pytest.mark.parametrize("name", ndimage.__all__)
def test_results_are_those_of_scipy(name, rng):
    argument, options = CALLS[name]
    x = numbers(rng, "float32")
    for mode in ("reflect", "constant"):
        right, found = both(name, x, argument, mode=mode, cval=2.0, **options)
        assert is_near(found, right), mode


@pytest.mark.full
@pytest.mark.parametrize("name", ndimage.__all__)
def test_results_of_all_types_are_those_of_scipy(name, rng):
    argument, options = CALLS[name]
    for dtype in TYPES:
        x, output = numbers(rng, dtype, (9, 8, 31)), np.dtype("float32")
        some = {key: item for key, item in options.items() if key not in ("order", "origin")}
        if name not in ("sobel", "prewitt") and not name.endswith("1d"):
            some["axes"] = (1, 2)
        for given in ({}, {"output": output}):
            right, found = both(name, x, argument, mode="wrap", **some, **given)
            if found.dtype != bool:  # SciPy's may be others than 0 and 1
                assert is_near(found, right), (dtype, given)


@pytest.mark.parametrize("mode", ["wrap", ("wrap", "mirror", "constant", "nearest")])
def test_four_axes(mode, rng):
    """A launch of two of them, neither the first nor the last, must not write where it reads."""
    x = numbers(rng, "float32", (8, 9, 33, 8))
    right, found = both("prewitt", x, -1, mode=mode, cval=2.5)
    assert is_near(found, right)


@pytest.mark.parametrize("mode", MODES)
def test_lines_shorter_than_the_window(mode, rng):
    """By windows, too, which SciPy has as lines alone here."""
    for name in ("correlate1d", "uniform_filter1d", "minimum_filter1d"):
        for n, size in ((1, 2), (2, 9), (5, 31), (7, 40)):
            x = rng.standard_normal(n)
            argument = rng.standard_normal(size) if name == "correlate1d" else size
            for origin in (0, -(size // 2), (size - 1) // 2):
                options = {"mode": mode, "cval": 0.5, "origin": origin}
                right, found = both(name, x, argument, **options)
                assert is_near(found, right), (n, size, origin)
                if name == "correlate1d":
                    assert is_near(ndimage.correlate(x, argument, **options), right)


@pytest.mark.parametrize("name", ["gaussian_filter", "sobel", "median_filter", "uniform_filter"])
def test_any_strides_axes_and_sides(name, rng, queue):
    argument = {"sobel": 1, "median_filter": (3, 3)}.get(name, (2, 4))
    options = {} if name == "sobel" else {"axes": (0, 2)}
    whole = numbers(rng, "float32", (9, 20, 31))
    device_array = cl.array.to_device(queue, whole)
    for cut in (np.s_[:], np.s_[::-1, ::2], np.s_[:, 3, 1:], np.s_[2:2]):
        x, some = whole[cut], dict(options)
        if x.ndim == 2 and some:
            some["axes"] = (1, 0)
        right, found = both(name, x, argument, **some)
        if x.size:
            assert is_near(found, right)
        if cut == np.s_[::-1, ::2]:
            continue  # pyopencl has no negative steps
        on_device = getattr(ndimage, name)(device_array[cut], argument, **some)
        np.testing.assert_array_equal(on_device.get(), found)
        again = getattr(ndimage, name)(device_array[cut], argument, **some)
        np.testing.assert_array_equal(again.get(), found)


def test_output_is_an_array_or_a_type(rng, queue):
    x = numbers(rng, "uint8")
    right = scipy_ndimage.gaussian_filter(x, 2, output=np.float32)
    for output in (np.float32, "float32", np.dtype("float32")):
        assert is_near(ndimage.gaussian_filter(x, 2, output=output), right)
    out = np.zeros(SHAPE[::-1], np.float32).T
    assert ndimage.gaussian_filter(x, 2, output=out) is out and is_near(out, right)
    y = x.copy()
    assert ndimage.median_filter(y, 5, output=y) is y
    np.testing.assert_array_equal(y, scipy_ndimage.median_filter(x, 5))
    to = cl.array.empty(queue, SHAPE, np.float32)
    assert ndimage.gaussian_filter(cl.array.to_device(queue, x), 2, output=to) is to
    assert is_near(to.get(), right)
    ranks = ndimage.rank_filter(x, 3, 3, output=np.float64)
    np.testing.assert_array_equal(ranks, scipy_ndimage.rank_filter(x, 3, 3, output=np.float64))


def test_complex_numbers(rng):
    x = numbers(rng, "complex64")
    w = rng.standard_normal(5) + 1j * rng.standard_normal(5)
    options = {"mode": "constant", "cval": 1 - 2j}
    for name, argument in (("gaussian_filter", 1.5), ("uniform_filter", 4), ("sobel", 0)):
        right, found = both(name, x, argument, **options)
        assert is_near(found, right), name
    for name, argument in (("convolve1d", w), ("correlate", w[None]), ("convolve", w[:, None])):
        for given in (x, x.real.copy()):
            some = options if given is x else {"mode": "nearest"}
            right, found = both(name, given, argument, **some)
            assert is_near(found, right), name
    with pytest.raises(InvalidProblem, match=r"scipy\.ndimage\.median_filter takes no complex"):
        ndimage.median_filter(x, 3)


def test_modes_for_each_axis(rng):
    x = numbers(rng, "float32", (6, 9, 11))
    modes = ["wrap", "nearest", "mirror"]
    calls = {"gaussian_filter": 2, "gaussian_laplace": 1, "laplace": None, "maximum_filter": 5}
    for name, argument in calls.items():
        right, found = both(name, x, argument, mode=modes)
        assert is_near(found, right), name
    windows = ndimage.median_filter(x, 3, mode=modes)  # SciPy has one mode for all axes
    padded = np.pad(x, ((1, 1), (0, 0), (0, 0)), mode="wrap")
    padded = np.pad(padded, ((0, 0), (1, 1), (0, 0)), mode="edge")
    padded = np.pad(padded, ((0, 0), (0, 0), (1, 1)), mode="reflect")
    right = scipy_ndimage.median_filter(padded, 3)[1:-1, 1:-1, 1:-1]
    np.testing.assert_array_equal(windows, right)


def test_a_window_longer_than_local_memory(rng):
    x, w = rng.standard_normal(999).astype(np.float32), np.zeros(600_001)
    w[::1000] = rng.standard_normal(601)
    found = ndimage.correlate1d(x, w, mode="wrap")
    at = np.arange(x.size)[:, None] + np.arange(0, w.size, 1000) - w.size // 2
    right = (x.astype(np.float64)[at % x.size] * w[::1000]).sum(1)
    np.testing.assert_allclose(found, right, atol=1e-4)


def test_nan_stays_in_its_windows(rng):
    """SciPy loses it in ranks, and keeps it for the rest of the line in running sums."""
    x = rng.standard_normal((30, 40)).astype(np.float32)
    x[11, 17] = np.nan
    under = np.zeros(x.shape, bool)
    under[10:13, 16:19] = True
    weights = np.array([[1.0, 0, 2], [0, 0, 0], [3, 0, 1]])
    for call in (
        lambda: ndimage.median_filter(x, 3),
        lambda: ndimage.rank_filter(x, 1, 3),
        lambda: ndimage.minimum_filter(x, 3),
        lambda: ndimage.maximum_filter(x, footprint=np.ones((3, 3))),
        lambda: ndimage.uniform_filter(x, 3),
        lambda: ndimage.sobel(x),
        lambda: ndimage.correlate(x, weights),
    ):
        np.testing.assert_array_equal(np.isnan(call()), under)
    np.testing.assert_array_equal(np.isnan(ndimage.median_filter(x, 9)).sum(), 81)


def test_integers_are_exact():
    """SciPy compares and sums 64 bits in float64."""
    big = np.array([2**53 + 1, 2**53 + 3, 2**62 + 1, -(2**62) - 1, 5], np.int64)
    right = [2**53 + 1, 2**53 + 1, -(2**62) - 1, -(2**62) - 1, -(2**62) - 1]
    assert ndimage.minimum_filter(big, 3).tolist() == right
    assert ndimage.median_filter(big[None], (1, 3))[0, 1] == 2**53 + 3
    assert ndimage.correlate1d(big, [1, 0, 1], mode="wrap")[2] == 2**53 + 3 - 2**62 - 1
    top = np.full(9, 2**32 - 1, np.uint32)
    assert (ndimage.uniform_filter1d(top, 7) == top).all()


def test_sums_in_single_precision_have_no_bias(rng):
    """Rounded one by one, the weights would add up to 1 + 4e-8 at sigma 1."""
    x = rng.random((300, 400), np.float32) + 1
    for sigma in (0.7, 1.0, 1.9, 3.3, 8.1):
        mean = ndimage.gaussian_filter(x, sigma, mode="wrap").mean(dtype=np.float64)
        assert abs(mean / x.mean(dtype=np.float64) - 1) < 1e-9, sigma


def test_large_numbers_do_not_overflow_in_pairs():
    flat = np.full((40, 40), 3e38, np.float32)
    assert np.isfinite(ndimage.gaussian_filter(flat, 2)).all()


def test_whole_results_are_cut_as_those_of_scipy():
    for value in (1, 100, 255):
        flat = np.full((20, 30), value, np.uint8)
        for sigma in (0.6, 1.0, 2.5, 7.0):
            right, found = both("gaussian_filter", flat, sigma)
            np.testing.assert_array_equal(found, right)
    signs = ndimage.correlate1d(np.array([3, 1, 5]), [0.5])
    assert signs.tolist() == [1, 0, 2]
    flags = ndimage.correlate1d(np.array([True, False, True]), [-1, 1])
    assert flags.dtype == bool and flags.tolist() == [False, True, True]
    far = np.full((40, 50), 2**63 + 2**40, np.uint64)
    for name, argument in (("gaussian_filter", 1.0), ("uniform_filter", 3)):
        right, found = both(name, far, argument)
        np.testing.assert_array_equal(found, right)
    numbers = np.array([2.0**63, 1e19, 2.0**64, np.nan, np.inf, -3.5, 1e12 + 1])
    cut = ndimage.minimum_filter(numbers, 1, output="uint64").tolist()
    assert cut == [2**63, 10**19, 0, 0, 0, 2**64 - 3, 10**12 + 1]


@pytest.mark.parametrize("shape", [(12, 13), (60, 200)])
def test_results_that_are_bool_are_cut_after_each_axis(shape, rng):
    """For arrays of all sizes, and added up as NumPy adds."""
    x = rng.random(shape) < 0.5
    steps = np.roll(x, 1, 0) ^ np.roll(x, -1, 0)
    right = steps | np.roll(steps, 1, 1) | np.roll(steps, -1, 1)
    assert np.array_equal(ndimage.prewitt(x, 0, mode="wrap").view(np.uint8), right)
    lines = [ndimage.correlate1d(x, [1, -2, 1], axis) for axis in (0, 1)]
    assert np.array_equal(ndimage.laplace(x).view(np.uint8), lines[0] | lines[1])


def test_whole_weights_of_any_size():
    """By lines, and by the kernels of `conv2d`."""
    x, large = np.arange(12).reshape(3, 4), int(1e30)
    right = [[(large * value + 2**63) % 2**64 - 2**63 for value in row] for row in x.tolist()]
    assert ndimage.correlate1d(x, [large * 1.0]).tolist() == right
    assert ndimage.correlate(x, [[0.0], [1e30], [0.0]]).tolist() == right


def test_cval_is_converted_as_numpy_converts():
    x = np.full((1, 3), 7, np.uint8)
    high = ndimage.maximum_filter(x, 3, mode="constant", cval=300)
    assert high.tolist() == [[44, 44, 44]]
    assert ndimage.median_filter(x[0], 3, mode="constant", cval=300).tolist() == [7, 7, 7]
    assert ndimage.minimum_filter(x[0], 3, mode="constant", cval=2**70 + 5).tolist() == [5, 7, 5]
    assert ndimage.correlate1d(x[0], [1, 0, 0], mode="constant", cval=0.75)[0] == 0


def test_the_order_of_axes(rng):
    """Footprints have that of the array, all else that of `axes`."""
    x = rng.standard_normal((4, 12, 15))
    places = rng.random((3, 5)) < 0.7
    turned = ndimage.median_filter(x, footprint=places, axes=(2, 1), origin=(1, 0))
    right = ndimage.median_filter(x, footprint=places, axes=(1, 2), origin=(0, 1))
    np.testing.assert_array_equal(turned, right)
    turned = ndimage.median_filter(x, (5, 3), axes=(2, 1))
    np.testing.assert_array_equal(turned, scipy_ndimage.median_filter(x, (1, 3, 5)))
    right, found = both("gaussian_laplace", x, 0.7, axes=(2, 0), mode="constant", cval=1.5)
    assert is_near(found, right)
    weights = rng.standard_normal((3, 5))
    right = scipy_ndimage.correlate(x, weights[:, None], origin=(-1, 0, 1))
    assert is_near(ndimage.correlate(x, weights, axes=(2, 0), origin=(1, -1)), right)


def test_derivatives_leave_axes_out(rng):
    x = numbers(rng, "float32", (20, 3, 30))
    planes = [scipy_ndimage.sobel(x[:, i], 0, mode=("wrap", "nearest")) for i in range(3)]
    found = ndimage.sobel(x, 0, mode=("nearest", "wrap"), axes=(2, 0))
    assert is_near(found, np.stack(planes, 1))
    with pytest.raises(InvalidProblem, match="axis 1 is not among the axes"):
        ndimage.prewitt(x, 1, axes=(0, 2))


@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_all_algorithms_have_the_same_results(reduce, rng):
    kind, shape = np.dtype(np.float32), (5, 60, 50, 2)
    windows = (Window(0, 4, 1, "wrap"), Window(2, 7, 6, "mirror"), Window(1, 3, 1, "nearest"))
    problem = LinesProblem(shape, *[kind] * 3, reduce, (0, 0), False, (windows,))
    inputs = {"image": numbers(rng, kind, shape), "weights": np.arange(14, dtype=np.float32)}
    device, found = ol.select_device(), {}
    for name in LINES.registry:
        if LINES.algorithm(name).supports(problem, device) is None:
            run = LINES.run(problem, inputs, algorithm=name, queue=device.queue())
            found[name] = run.outputs["result"]
    assert {"tiled", "padded"} <= set(found)
    assert all(is_near(one, found["padded"]) for one in found.values())


def test_sizes_and_modes_share_programs(rng):
    device = ol.select_device()
    kinds = np.dtype(np.float32), np.dtype(np.float32), np.dtype(np.float32)

    def programs(windows, shape):
        problem = LinesProblem(shape, *kinds, "sum", (0, 0), False, (windows,))
        return {(one.template, repr(one.params)) for one in LINES.plan(problem, device).launches}

    small = programs((Window(0, 3, 1, "wrap"), Window(1, 5, 2, "mirror")), (9, 10))
    large = programs((Window(0, 81, 40, "constant"), Window(2, 17, 0, "reflect")), (70, 900, 80))
    assert small == large and len(small) == 1


def test_without_axes_or_width_the_array_is_copied(rng):
    x = rng.standard_normal((4, 5))
    for found in (
        ndimage.gaussian_filter(x, 0),
        ndimage.uniform_filter(x, 1),
        ndimage.minimum_filter(x, 3, axes=()),
        ndimage.laplace(x, axes=()),
    ):
        assert found is not x
        np.testing.assert_array_equal(found, x)
    assert ndimage.gaussian_filter(np.float32(3), 1) == 3


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda x: ndimage.correlate1d(x, []), "one dimension"),
        (lambda x: ndimage.correlate1d(x, [1, 2], origin=1), "from -1 to 0"),
        (lambda x: ndimage.correlate1d(x, [1], axis=2), "axis 2 is out of bounds"),
        (lambda x: ndimage.correlate(x, [1, 2]), "as many dimensions"),
        (lambda x: ndimage.correlate1d(x, ["a"]), "weights must be numbers"),
        (lambda x: ndimage.gaussian_filter(x, 1, order=-1), "order"),
        (lambda x: ndimage.gaussian_filter(x, 1, mode="edge"), "mode must be one of"),
        (lambda x: ndimage.gaussian_filter(x, (1, 2, 3)), "sigma must be one value, or 2"),
        (lambda x: ndimage.gaussian_filter(x, 1, radius=-1), "radius"),
        (lambda x: ndimage.gaussian_filter1d(x, np.nan), "sigma must be"),
        (lambda x: ndimage.gaussian_filter(x, 1, axes=(0, 0)), "unique"),
        (lambda x: ndimage.gaussian_filter(x, 1, output=np.zeros(3)), "output must have shape"),
        (lambda x: ndimage.gaussian_filter(x, 1, cval=1j), "cval must be a real number"),
        (lambda x: ndimage.uniform_filter(x, 0), "positive"),
        (lambda x: ndimage.median_filter(x), "needs the size"),
        (lambda x: ndimage.median_filter(x, footprint=[[0]]), "no place"),
        (lambda x: ndimage.rank_filter(x, 9, 3), "no rank 9"),
        (lambda x: ndimage.percentile_filter(x, 101, 3), "percentile"),
        (lambda x: ndimage.gaussian_filter1d(x, 0), "sigma must be finite and not 0"),
        (lambda x: ndimage.gaussian_filter(x, np.inf), "sigma must be finite"),
        (lambda x: ndimage.median_filter(x.astype(np.float16), 3), "convert them"),
        (lambda x: ndimage.sobel(x, output="complex64"), "real"),
    ],
)
def test_what_is_refused(call, sentence):
    with pytest.raises(InvalidProblem, match=sentence):
        call(np.ones((4, 5), np.float32))


@pytest.mark.parametrize("name", ["median_filter", "correlate"])
def test_windows_of_one_value_cost_no_axis(name, rng, monkeypatch):
    """A window of 3 x 3 x 1 of an image with colours takes the problem of 3 x 3 on two axes."""
    problems, run = [], WINDOW.run
    monkeypatch.setattr(
        WINDOW,
        "run",
        lambda problem, *rest, **more: problems.append(problem) or run(problem, *rest, **more),
    )
    x = rng.integers(0, 99, (19, 21, 3)).astype(np.uint8)
    window = CROSS if name == "correlate" else 3
    wide = CROSS[:, :, None] if name == "correlate" else (3, 3, 1)
    right, found = both(name, x, wide, mode="wrap")
    np.testing.assert_array_equal(found, right)
    np.testing.assert_array_equal(
        getattr(ndimage, name)(x, window, axes=(0, 1), mode="wrap"), right
    )
    assert problems[0] == problems[-1]


def test_warnings_name_the_line_of_the_caller(rng):
    x = rng.random((4, 5))
    with pytest.warns(UserWarning, match="ignoring size") as warned:
        ndimage.median_filter(x, 3, np.ones((3, 3)))
    with pytest.warns(UserWarning, match="promoting") as promoted:
        ndimage.correlate1d(x, [1j], output=float)
    with pytest.warns(UserWarning, match="promoting") as again:
        ndimage.gaussian_filter(x + 1j, 1, output=float)
    for one in (*warned, *promoted, *again):
        assert one.filename == __file__
