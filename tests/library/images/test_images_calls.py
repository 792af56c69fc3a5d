"""Calls of `octopus.images` on the CPU: forms of images, sizes, and what comes back, by the plain reference."""

import math
import random
import warnings
import weakref
from dataclasses import dataclass

import numpy as np
import pytest
from exported import Exported
from images_case import in_blocks, pixels
from wrong_calls import equal

from octopus import InputError, RaggedBatch, crop_resize, images, map_back
from octopus.arrays import checks
from octopus.images import ImagePlan, calls
from octopus.images.sources import geometry_of, look

SIZES = [(4, 8), (12, 4), (8, 8)]
NORMAL = {"mean": 100.0, "std": 50.0}


class Foreign(Exported):
    """What exports memory that only the export holds."""

    def __dlpack__(self, **options):
        copy = self._array.copy()
        self.last = weakref.ref(copy)
        return copy.__dlpack__(**options)


def strided(image):
    """The same pixels with gaps between all of them."""
    wide = np.zeros(tuple(2 * side for side in image.shape), image.dtype)
    wide[::2, ::2, ::2] = image
    return wide[::2, ::2, ::2]


def torch_of(image):
    return pytest.importorskip("torch").from_numpy(image)


FORMS = {
    "channels-first": lambda image: np.ascontiguousarray(image.transpose(2, 0, 1)),
    "column-major": np.asfortranarray,
    "strided": strided,
    "flipped": lambda image: np.ascontiguousarray(image[::-1, ::-1])[::-1, ::-1],
    "dlpack": Foreign,
    "tensors": lambda image: torch_of(np.ascontiguousarray(image)),
    "tensors-first": lambda image: torch_of(image).permute(2, 0, 1),
    "subclass": lambda image: image.view(type("Own", (np.ndarray,), {})),
    "read-only": lambda image: np.frombuffer(image.tobytes(), np.uint8).reshape(image.shape),
    "read-only-strided": lambda image: np.broadcast_to(strided(image), image.shape),
    "pillow": lambda image: pytest.importorskip("PIL.Image").fromarray(image),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_an_image_changes_nothing(form):
    given, formed = pixels(), list(map(FORMS[form], pixels()))
    expected = images.resize(given, (6, 5), **NORMAL)
    assert np.array_equal(images.resize(formed, (6, 5), **NORMAL), expected)
    mixed = [formed[0], *given[1:]] if form != "tensors" else formed
    assert np.array_equal(images.resize(mixed, (6, 5), **NORMAL), expected)


def test_a_broadcast_image_is_read_by_its_steps_of_zero():
    given = [np.broadcast_to(np.arange(21, dtype=np.uint8).reshape(1, 7, 3), (9, 7, 3))]
    assert np.array_equal(images.resize(given, 4), images.resize([given[0].copy()], 4))


@pytest.mark.parametrize(("shapes", "source", "sides"), [
    ([(3, 9, 3)], None, [[3, 9]]),  # three columns of channels-first look like a row of channels-last
    ([(3, 9, 3), (3, 9, 7)], None, [[9, 3], [9, 7]]), ([(3, 9, 3), (9, 7, 3)], None, [[3, 9], [9, 7]]),
    ([(3, 9, 3), (9, 7, 3), (3, 5, 6)], None, [[3, 9], [9, 7], [5, 6]]), ([(4, 4), (4, 4)], None, [[4, 4], [4, 4]]),
    ([(1, 5, 6), (5, 6, 1)], None, [[5, 6], [5, 6]]),
    ([(1, 5, 6), (1, 5, 1), (5, 6)], None, [[5, 6], [5, 1], [5, 6]]),
    ([(3, 9, 3)], "CHW", [[9, 3]]), ([(5, 6), (1, 5, 6)], "CHW", [[5, 6], [5, 6]]),  # (H, W) has none
])  # fmt: skip
def test_where_channels_are(shapes, source, sides):
    given = [np.zeros(shape, np.uint8) for shape in shapes]
    assert geometry_of(look(given), source).sides.tolist() == sides


def test_channels_that_could_be_at_both_ends_are_hinted_at(monkeypatch):
    monkeypatch.setattr(checks, "_hinted", set())
    unclear = np.zeros((3, 9, 3), np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        images.resize([unclear], 3, source="HWC", device="cpu")
        images.resize([unclear, np.zeros((8, 9, 3), np.uint8)], 3, device="cpu")
    with pytest.warns(UserWarning, match=r"image 0 of shape \(3, 9, 3\) .* Say source="):
        images.resize([unclear], 3, device="cpu")


def test_exported_memory_lives_as_long_as_the_call():
    given = [Foreign(np.full((5, 6, 3), level, np.uint8)) for level in (3, 9)]
    found = look(given)
    assert all(one.last() is not None for one in given)
    del found
    assert [image.mean() for image in images.resize(given, 4, device="cpu")] == [3, 9]


@pytest.mark.parametrize("form", ["arrays", "steps"])
def test_which_images_lie_in_memory(form):
    block = np.zeros((3, 4, 5, 3), np.uint8)
    given = list(block if form == "arrays" else block[:, ::-1, ::-1])
    found, begin = look(given), block.ctypes.data
    geometry = geometry_of(found)
    for first, last, expected in [(0, 60, [1, 0, 0]), (59, 61, [1, 1, 0]), (180, 200, [0] * 3), (-9, 0, [0] * 3)]:
        assert geometry.meeting(found.pointers, begin + first, begin + last).tolist() == expected


def test_a_list_of_means_that_changes_later_changes_no_other_call():
    given, means = pixels(), [1, 2, 3]
    expected = images.resize(given, 5, mean=[1, 2, 3])
    images.resize(given, 5, mean=means)
    means[:] = [7, 8, 9]
    floats = [image.astype(np.float32) for image in given]
    found = images.resize(floats, 5, mean=[1, 2, 3])
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert np.abs(images.resize(given, 5, mean=means) - expected).min() > 1


def test_answers_are_tensors_for_tensors():
    torch = pytest.importorskip("torch")
    given = [torch.from_numpy(image) for image in pixels()]
    assert isinstance(images.resize(given, 4), torch.Tensor)
    assert isinstance(images.resize_each(given, SIZES).values, torch.Tensor)
    rows, grid = images.patch_rows(given, torch.tensor(SIZES), patch=2, dtype=torch.bfloat16)
    assert rows.dtype == torch.bfloat16 and grid.dtype == torch.int64
    plain, _ = images.patch_rows(given, SIZES, patch=2)
    assert torch.equal(rows, plain.to(torch.bfloat16))
    own = torch.empty_like(rows)
    assert images.patch_rows(given, SIZES, patch=2, dtype="bfloat16", out=own)[0] is own
    assert torch.equal(own, rows)
    plan = ImagePlan("patch_rows", given, 4, patch=2, dtype="bfloat16", result_rows=50)
    assert torch.equal(plan.run(given, SIZES)[0], rows)
    with pytest.raises(InputError, match="out must be a contiguous bfloat16 array"):
        images.patch_rows(given, SIZES, patch=2, dtype="bfloat16", out=plain)


CALLS = {
    "resize": ({"size": (4, 6), "filter": "bicubic"}, {}, None),
    "resize-boxed": ({"size": (4, 6), "letterbox": True, "return_transform": True}, {}, None),
    "resize_each": ({}, {"result_pixels": 200}, SIZES),
    "patch_rows": ({"patch": 2}, {"result_rows": 60}, SIZES),
    "patch_rows-padded": ({"patch": 2, "max_rows": 20}, {}, SIZES),
}


def same(found, expected):
    shapes = (getattr(one, "shapes", None) for one in (found, expected))
    return np.array_equal(*shapes) and equal(found, expected)


def first_of(answer):
    """The array that holds the pixels of an answer."""
    return getattr(answer[0] if isinstance(answer, tuple) else answer, "values", answer[0])


@pytest.mark.parametrize("name", CALLS)
def test_a_plan_answers_as_the_function_does(name):
    options, capacity, sizes = CALLS[name]
    operation = name.partition("-")[0]
    given, call = pixels(), getattr(images, operation)
    plan = ImagePlan(operation, given[0], 5, **capacity, **options)
    for chosen in (slice(None), slice(1, 2), slice(0, 2)):
        arguments = [given[chosen]] if sizes is None else [given[chosen], sizes[chosen]]
        found = plan.run(*arguments)
        assert same(found, call(*arguments, **options))
    assert plan.table_bytes == 2 * 64 and plan.max_images == 5 and plan.device == "cpu"
    assert np.shares_memory(first_of(found), first_of(plan.run(*arguments)))


def test_a_plan_is_for_one_thread_at_a_time(monkeypatch):
    given = pixels()
    plan = ImagePlan("resize", given, 3, size=4)
    monkeypatch.setattr(plan.engine, "prepared", lambda *rest: plan.run(given))
    with pytest.raises(InputError, match="make a plan per thread"):
        plan.run(given)


@pytest.fixture
def looked_at(monkeypatch):
    """The calls that were not just launched again."""
    found, views = [], calls.Pattern.views
    monkeypatch.setattr(calls.Pattern, "views", lambda *given: found.append(given[2]) or views(*given))
    return found


LISTS = {"ragged": RaggedBatch.from_list, "mixed": lambda given: [FORMS["pillow"](given[0]), *given[1:]]}


@pytest.mark.parametrize("form", ["arrays", "BGR", "tensors", "read-only-strided", "pillow", *LISTS])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_is_like_the_one_before_reads_its_own_images(name, form, looked_at):
    options, capacity, sizes = CALLS[name]
    operation, more = name.partition("-")[0], {"channels": "BGR"} if form == "BGR" else {}
    shaped = LISTS.get(form, lambda given: list(map(FORMS.get(form, np.asarray), given)))
    before, after = shaped(pixels()), shaped([255 - image for image in pixels()])
    plan = ImagePlan(operation, before, 3, **capacity, **options, **more)
    for given in (before, after):
        arguments = [given] if sizes is None else [given, sizes]
        found = plan.run(*arguments)
        assert same(found, ImagePlan(operation, given, 3, **capacity, **options, **more).run(*arguments))
        looked_at.clear()
        assert same(getattr(images, operation)(*arguments, **options, **more), found)
    assert len(looked_at) == ("-" in name or form == "ragged")


def test_images_of_pillow_in_several_pieces_are_put_together_for_each_call(looked_at):
    given = [in_blocks(np.full((60, 40, 3), level, np.uint8)) for level in (3, 9)]
    assert [images.resize(image, 8).mean() for image in given] == [3, 9]
    assert [bool(found.runs) for found in looked_at] == [True, True]


def test_each_call_writes_memory_of_its_own_or_what_it_is_given(looked_at):
    out, given = np.zeros((3, 3, 5, 5), np.float32), (pixels(), [255 - image for image in pixels()])
    first, second = (images.resize(one, 5) for one in given)
    assert not np.shares_memory(first, second) and np.abs(first + second - 255).max() < 1e-3
    for one, expected in zip(given, (first, second), strict=True):
        looked_at.clear()
        assert images.resize(one, 5, out=out) is out and np.array_equal(out, expected) and looked_at


@dataclass
class Divided:
    """A rule that is equal to others, and so has no hash."""

    by: int

    def __call__(self, sides):
        return sides // self.by


@pytest.mark.parametrize("form", [np.asarray, torch_of])
def test_a_rule_makes_the_sizes_of_each_call(form):
    """Also where all but the rule is as in the call before, and where all but the images is."""
    seen = []

    def half(sides):
        seen.append(sides.tolist())
        return sides // 2

    given = [form(np.full((*side, 3), 7, np.uint8)) for side in ((8, 12), (20, 6))]
    for _ in range(2):
        assert [item.shape for item in images.resize_each(given, half)] == [(3, 4, 6), (3, 10, 3)]
    quarter = images.resize_each(given, lambda sides: sides // 4)
    assert [item.shape for item in quarter] == [(3, 2, 3), (3, 5, 1)]
    assert [item.shape for item in images.resize_each(given[::-1], half)] == [(3, 10, 3), (3, 4, 6)]
    assert seen == [[[8, 12], [20, 6]], [[20, 6], [8, 12]]]  # not again for sides of which it is known
    plan = images.ImagePlan("resize_each", given[0], 2, result_pixels=200)
    for rule in (half, Divided(2)):
        for call in (plan.run, images.resize_each):
            assert [item.shape for item in call(given, rule)] == [(3, 4, 6), (3, 10, 3)]


def test_a_rule_may_not_change_the_sides_and_answers_for_its_sizes():
    given = [np.zeros((8, 12, 3), np.uint8)]

    def spoils(sides):
        sides[:] = 4
        return sides

    assert images.resize_each(given, spoils)[0].shape == (3, 4, 4)
    assert images.resize_each(given, lambda sides: sides)[0].shape == (3, 8, 12)
    with pytest.raises(InputError, match=r"sizes must have shape \(1, 2\)"):
        images.resize_each(given, lambda sides: [[3, 4], [5, 6]])
    with pytest.raises(InputError, match="multiples of 28"):
        images.patch_rows(given, lambda sides: sides)


class Numbers(list):
    """Lists that have a hash, as tensors have one."""

    __hash__ = object.__hash__


@pytest.mark.parametrize("form", [np.array, list, tuple, Numbers])
def test_sizes_that_change_in_place_are_seen(form):
    given, other = pixels(), [(2, 3), *SIZES[1:]]
    plan = ImagePlan("resize_each", given, 3, result_pixels=200)
    for call in (plan.run, images.resize_each):
        sizes = form([list(pair) for pair in SIZES])
        before = call(given, sizes).shapes
        sizes[0][:] = 2, 3
        after = call(given, sizes)
        assert before[0].tolist() == [3, 4, 8] and after.shapes[0].tolist() == [3, 2, 3]
        assert same(after, images.resize_each(pixels(), other))
        sizes[0][:] = 1, 1
        assert same(call(given, other), images.resize_each(pixels(), other))
        with pytest.raises(InputError, match="sizes must be an integer array"):
            call(given, tuple((float(rows), columns) for rows, columns in other))


def test_a_grid_that_the_caller_changes_is_the_callers():
    for call in (ImagePlan("patch_rows", pixels(), 3, patch=2, result_rows=60).run, images.patch_rows):
        options = {"patch": 2} if call is images.patch_rows else {}
        for _ in range(2):
            _, grid = call(pixels(), SIZES, **options)
            assert grid.tolist() == [[1, 2, 4], [1, 6, 2], [1, 4, 4]]
            grid[:] = 7


def odd(image):
    """The same pixels one byte behind where NumPy's memory begins."""
    found = np.zeros(image.nbytes + 1, np.uint8)[1:].view(image.dtype).reshape(image.shape)
    found[...] = image
    return found


# After a run that went through: dtype of its images, arguments of the next one, words of its error.
CHANGED = {
    "place": (np.float32, lambda given: [[*given[:2], odd(given[2])]], "image 2 .* multiples of 4 bytes"),
    "dtype": (np.uint8, lambda given: [[image.astype(np.uint16) for image in given]], "found .*'uint16'"),
    "count": (np.uint8, lambda given: [[*given, given[0]]], "the plan is for 3 images, found 4"),
    "library": (np.uint8, lambda given: [list(map(torch_of, given))], "found .'torch'"),
    "sizes": (np.uint8, lambda given: [given, SIZES], "pass no sizes"),
}


@pytest.mark.parametrize(("dtype", "change", "message"), CHANGED.values(), ids=CHANGED)
def test_a_run_like_the_one_before_is_checked_for_what_changed(dtype, change, message):
    given = pixels(dtype=dtype)
    plan = ImagePlan("resize", given, 3, size=4)
    expected = plan.run(given).copy()
    for call in (plan.run, lambda given: images.resize(given, 4)) if dtype == np.float32 else (plan.run,):
        assert np.array_equal(call(given), expected)
        with pytest.raises(InputError, match=message):
            call(*change(given))
        assert np.array_equal(call(given), expected)


def test_the_result_of_a_run_is_no_image_of_one_like_it():
    given = [np.zeros((6, 6, 3), np.uint8) for _ in range(3)]
    plan = ImagePlan("resize", given, 3, size=6, dtype="uint8", layout="NHWC")
    result = plan.run(given)
    with pytest.raises(InputError, match="the plan's result lies in the memory of image 0"):
        plan.run(list(result))
    with pytest.raises(InputError, match="out lies in the memory of image 0"):
        images.resize(list(result), 6, dtype="uint8", layout="NHWC", out=result)


def test_nothing_that_is_kept_for_calls_to_come_holds_images():
    given = pixels()
    plan, seen = ImagePlan("resize", given, 3, size=4), [weakref.ref(image) for image in given]
    plan.run(given)
    images.resize(given, 4)
    del given
    assert [one() for one in seen] == [None] * 3


def smart_size(height, width, factor, least, most):
    """The rule in Python's numbers, of which `smart_sizes` must never differ."""
    rows, columns = round(height / factor) * factor, round(width / factor) * factor
    if rows * columns > most:
        ratio = math.sqrt(height * width / most)
        return tuple(max(factor, math.floor(side / ratio / factor) * factor) for side in (height, width))
    if rows * columns < least:
        ratio = math.sqrt(least / (height * width))
        return tuple(math.ceil(side * ratio / factor) * factor for side in (height, width))
    return rows, columns


@pytest.mark.parametrize(("factor", "least", "most"), [
    (28, 3136, 1_003_520), (32, 65_536, 2**24), (28, 90_000, 99_000),
])  # fmt: skip
def test_smart_sizes_by_the_rule(factor, least, most):
    draw = random.Random(7)
    sides = [(draw.randint(1, 9000), draw.randint(1, 9000)) for _ in range(40_000)]
    sides += [(factor * down // 2, factor * across // 2) for down in range(1, 80) for across in range(1, 80)]
    sides = [pair for pair in sides if max(pair) / min(pair) <= 200]
    expected = [smart_size(*pair, factor, least, most) for pair in sides]
    assert images.smart_sizes(sides, factor, least, most).tolist() == [list(pair) for pair in expected]


def fitted(sides, patch, most):
    """The rule in Python's numbers, of which `fit_sizes` must never differ."""

    def at(scale):
        return [max(patch, math.ceil(side * scale / patch) * patch) for side in sides]

    low, high = 1e-5 / 10, 100.0
    while high - low >= 1e-5:
        middle = (low + high) / 2
        low, high = (middle, high) if math.prod(at(middle)) / patch**2 <= most else (low, middle)
    return at(low)


@pytest.mark.parametrize(("patch", "most"), [(16, 256), (14, 1024), (16, 1), (1, 7)])
def test_fit_sizes_by_the_rule(patch, most):
    draw = random.Random(8)
    sides = [(draw.randint(1, top), draw.randint(1, top)) for top in (4, 600, 9000) for _ in range(700)]
    sides += [(1, 2**20), (2**20, 1), (patch * 16, patch * 16)]
    found = images.fit_sizes(sides, patch, most)
    assert found.tolist() == [fitted(pair, patch, most) for pair in sides]
    assert found[:200].tolist() == [images.fit_sizes([pair], patch, most)[0].tolist() for pair in sides[:200]]
    assert (found.prod(axis=1) <= most * patch**2).all()


@pytest.mark.parametrize(("height", "width", "side"), [(1571, 3775, 1280), (483, 998, 320)])
def test_letterboxes_have_ultralytics_padding_and_lead_back_to_the_image(height, width, side):
    """Sides of which an odd number is missing: ultralytics#23967, #25156."""
    ratio = min(side / height, side / width)
    inner = [round(height * ratio), round(width * ratio)]
    before = [round((side - one) / 2 - 0.1) for one in inner]
    image = np.full((height, width, 3), 255, np.uint8)
    options = {"letterbox": True, "return_transform": True, "pad_value": 0, "dtype": "uint8", "device": "cpu"}
    for made, transform in (
        images.resize([image], side, **options), crop_resize(image, [[0, 0, width, height]], side, **options),
    ):  # fmt: skip
        places = np.argwhere(made[0].min(axis=0) > 0)
        assert places.min(axis=0).tolist() == before and np.ptp(places, axis=0).tolist() == [one - 1 for one in inner]
        corners = np.array([[before[1], before[0], before[1] + inner[1], before[0] + inner[0]]], np.float64)
        assert np.abs(map_back(corners[None], transform)[0] - [0, 0, width, height]).max() < 1e-3
