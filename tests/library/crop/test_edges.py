"""What a user may pass in many forms, and what is refused since it would be ignored or answered wrongly."""

import copy
import inspect
import os
import pickle
import re
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import octopus
from octopus import CropPlan, FrameStream, InputError, backends, crop_resize, images
from octopus.arrays import checks
from octopus.backends.cpu import threads
from octopus.crop.spec import CALL_OPTIONS

RNG = np.random.default_rng(7)
FRAME = RNG.integers(0, 256, (40, 60, 3), np.uint8)
DEEP = RNG.integers(0, 65536, (40, 60, 3), np.uint16)
BOXES = np.array([[1, 2, 30, 30], [0, 0, 9, 9]])
MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
RIGHT = crop_resize(FRAME, BOXES, (8, 8), mean=255 * MEAN, std=255 * STD, device="cpu")


class Named:
    """Such as a `torch.device`."""

    def __init__(self, text):
        self.text = text

    def __str__(self):
        return self.text


@pytest.fixture
def unsaid(monkeypatch):
    monkeypatch.setattr(checks, "_hinted", set())


@pytest.mark.parametrize("options", [
    {"mean": MEAN, "std": STD, "scale": 255}, {"mean": MEAN.tolist(), "std": tuple(STD), "scale": [255, 255, 255.0]},
    {"mean": MEAN[:, None, None], "std": STD[None, :, None, None], "scale": np.float32(255)},
    {"mean": MEAN.astype(object).tolist(), "std": STD.reshape(1, 1, 3), "scale": np.array(255)},
], ids=["arrays", "lists", "broadcast", "scalars"])  # fmt: skip
@pytest.mark.parametrize("size", [8, np.int64(8), np.array([8, 8]), [8, 8], np.array(8)], ids=repr)
def test_numbers_of_any_form(options, size):
    for _ in range(2):  # the second time as a call like one before
        assert np.allclose(crop_resize(FRAME, BOXES, size, device="cpu", **options), RIGHT, atol=1e-5)


def test_scale_counts_padding_in_values_of_the_frame():
    crops = crop_resize(FRAME, BOXES[:1], (8, 80), letterbox=True, pad_value=51, scale=255, device="cpu")
    assert np.allclose(crops[..., 0], 0.2)
    crops = crop_resize(FRAME, BOXES[:1], (8, 80), letterbox=True, device="cpu")
    assert (crops[..., 0] == 114).all()


@pytest.mark.parametrize("frame", [FRAME.astype(np.float32), DEEP], ids=["float32", "uint16"])
def test_padding_without_a_value_is_grey_of_the_range(frame):
    for made in (
        lambda **o: crop_resize(frame, BOXES[:1], (8, 80), letterbox=True, device="cpu", **o),
        lambda **o: crop_resize(frame, [[-9, 0, 9, 9]], 8, outside="pad", device="cpu", **o),
        lambda **o: images.resize([frame[:8, :4]], (8, 80), source="HWC", letterbox=True, **o)[0],
    ):
        assert np.allclose(made(scale=[1000, 500, 2000])[..., 0], 114 / 255)
        assert np.allclose(made(pad_value=7)[..., 0], 7)
        with pytest.raises(InputError, match=r"no range is known.*give pad_value in units of its values, or scale="):
            made()


def test_a_gpus_number_must_be_that_of_the_gpu_in_use(monkeypatch):
    monkeypatch.setattr(backends.cuda, "require", lambda: None)
    monkeypatch.setattr(backends.cuda.device, "current", lambda: SimpleNamespace(device_id=1))
    assert backends.resolve("cuda:1") == backends.resolve(Named("cuda")) == "cuda"
    with pytest.raises(InputError, match="'cuda:0' was asked for, but GPU 1 is in use"):
        backends.resolve(Named("cuda:0"))


@pytest.mark.parametrize("none", [[], (), np.empty(0), np.empty((0, 4)), SimpleNamespace(xyxy=[])], ids=repr)
def test_nothing_is_no_boxes(none):
    assert crop_resize(FRAME, none, 8, device="cpu").shape == (0, 3, 8, 8)
    assert CropPlan(FRAME, 2, 8, device="cpu").run(FRAME, none).shape == (0, 3, 8, 8)
    assert FrameStream(FRAME, 2, 8, device="cpu").submit(none).shape == (0, 3, 8, 8)


@pytest.mark.parametrize("name", ["frame", "boxes", "frame_index"])
def test_a_result_must_not_lie_in_what_is_read(name):
    memory = np.zeros(4 * 40 * 60, np.float32)
    call = {"frame": FRAME[None] if name == "frame_index" else FRAME, "boxes": BOXES.astype(np.float32)}
    given = {
        "frame": memory.view(np.uint8)[100:7300].reshape(40, 60, 3),
        "boxes": memory[8:16].reshape(2, 4),
        "frame_index": memory[383:385].view(np.int32),
    }
    given["boxes"][:] = BOXES
    beside, within = (memory[first : first + 384].reshape(2, 3, 8, 8) for first in (4000, 0))
    call[name] = given[name]
    for run in (partial(crop_resize, size=8, device="cpu"), CropPlan(call["frame"], 2, 8, device="cpu").run):
        for _ in range(2):  # at a first call, and at one like another
            with pytest.raises(InputError, match=f"out lies in the memory of {name}"):
                run(**call, out=within)
            assert run(**call, out=beside) is beside


@pytest.mark.parametrize(("frame", "seen"), [
    (np.ones((8, 8, 3), np.float32), lambda result: result),
    (np.ones((8, 8, 4), np.uint8), lambda result: result.view(np.uint8).reshape(8, 32, 4)),
], ids=["as it is", "as bytes"])  # fmt: skip
def test_a_plan_does_not_write_over_the_frame_that_it_reads(frame, seen):
    plan = CropPlan(frame, 1, 8, layout="NHWC", device="cpu")
    (result,) = map(seen, plan.run(frame, [[0, 0, 8, 8]]))
    for _ in range(2):
        with pytest.raises(InputError, match="the plan's result lies in the memory of frame"):
            plan.run(result, [[0, 0, 3, 3]])
    assert plan.run(result.copy(), [[0, 0, 3, 3]]).shape == (1, 8, 8, frame.shape[-1])


def test_boxes_and_index_that_another_thread_changes_are_as_they_were_checked(monkeypatch, set_threads):
    frames, boxes, index = np.stack([FRAME, FRAME + 1]), BOXES.astype(np.float32), np.array([1, 0], np.int32)
    start = threads.start

    def spoil(*work):
        boxes[...], index[...] = 3e7, 99
        start(*work)

    set_threads(2)
    for frame, more in ((frames, {"frame_index": index}), (FRAME, {})):
        found = []
        for begin in (start, spoil):
            monkeypatch.setattr(threads, "start", begin)
            boxes[...], index[...] = BOXES, (1, 0)
            found.append(crop_resize(frame, boxes, 200, device="cpu", **more))
        assert np.array_equal(*found) and boxes[0, 0] > 1e7


def test_a_block_waits_for_its_stream(monkeypatch):
    waited = []
    monkeypatch.setattr(FrameStream, "wait", lambda stream: waited.append(stream))
    with pytest.raises(KeyError), FrameStream(FRAME, 2, 8, device="cpu") as stream:
        assert stream.submit(BOXES).shape == (2, 3, 8, 8)
        assert not waited
        raise KeyError
    assert waited == [stream]


@pytest.mark.usefixtures("unsaid")
@pytest.mark.parametrize(("frame", "options", "words"), [
    (FRAME, {"mean": MEAN, "std": STD}, "units of 1, but the frame is uint8.*0 to 255. Give scale=255"),
    (FRAME, {"mean": 0.5, "std": 0.5}, "Give scale=255"), (DEEP, {"mean": 0.5, "std": 0.5}, "Give scale=65535"),
    (FRAME, {"mean": 0, "std": (0.2, 0.2, 1)}, "Give scale=255"), (FRAME, {"std": 57, "scale": 255}, "Leave scale out"),
    (FRAME, {"mean": 255 * MEAN, "std": 255 * STD, "scale": 255}, "far beyond the uint8.*Leave scale out"),
    (DEEP, {"mean": 1300, "std": 500, "scale": 10_000}, "far beyond the uint16"),
    (DEEP, {"dtype": "uint8"}, "uint16.*saturates at 255. Give scale= or std="),
    (DEEP, {"dtype": "float16"}, "uint16.*overflows to infinity above 65504"),
    (FRAME, {"scale": 65535}, "scale=65535 is far beyond the largest value of the uint8 frame, 255"),
    (DEEP, {"scale": 255}, "scale=255 goes with uint8, but the frame is uint16.*Give scale=65535"),
    (FRAME.astype(np.float32), {"scale": 1 / 255}, "below 1, but it is the value that counts as 1.*say scale=255"),
    (FRAME, {"dtype": "uint8", "scale": 255}, "these values lie between 0 and 1. Ask for another dtype"),
    (FRAME, {"dtype": "uint8", "mean": 127.5, "std": 127.5}, "lie between -1 and 1"),
    (FRAME.astype(np.float32), {"dtype": "uint8", "scale": 255, "mean": MEAN, "std": STD}, "lie between -2.12 and"),
    (FRAME.astype(np.float32), {"dtype": "uint8", "mean": MEAN, "std": STD}, "lie between -2.12 and"),
])  # fmt: skip
def test_unusual_units_are_hinted_at_once(frame, options, words):
    with pytest.warns(UserWarning, match=words) as caught:
        for size in (8, 9):
            CropPlan(frame, 1, size, device="cpu", **options)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.usefixtures("unsaid")
@pytest.mark.parametrize(("boxes", "hinted"), [
    ([[0.1, 0.2, 0.5, 0.9]], True), ([[[0.1, 0.1], [0.9, 0.1], [0.9, 0.5], [0.1, 0.5]]], True),
    ([[0, 0, 1, 1]], False), ([[0.5, 0, 1, 1], [3, 3, 9, 9]], False), ([[0.5, 0.5, 1.5, 1]], False), ([], False),
])  # fmt: skip
def test_boxes_that_are_shares_are_hinted_at(boxes, hinted):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        crop_resize(FRAME, boxes, 4, device="cpu")
    assert ["multiply boxes" in str(each.message) for each in caught] == [True] * hinted


@pytest.mark.usefixtures("unsaid")
@pytest.mark.parametrize(("frame", "options"), [
    (FRAME, {"mean": 0, "std": 1}), (FRAME, {"mean": MEAN}), (FRAME, {"std": STD}),
    (FRAME, {"mean": MEAN, "std": STD, "scale": 255}), (FRAME, {"mean": 127.5, "std": 127.5}),
    (FRAME, {"mean": 127.5, "std": 127.5, "scale": 1}), (FRAME, {"mean": 0.5, "std": 2, "scale": 255}),
    (FRAME.astype(np.float32), {"mean": 123, "std": 57, "scale": 255}), (DEEP, {"dtype": "uint8", "std": 257}),
    (DEEP, {"dtype": "float16", "scale": 10_000}), (DEEP, {}), (DEEP, {"scale": 4095}), (FRAME, {"std": 0.5}),
    (DEEP, {"dtype": "uint8", "scale": 255}), (FRAME, {"dtype": "uint8", "std": 2}), (FRAME, {"dtype": "uint8"}),
    (FRAME.astype(np.float32), {"dtype": "uint8", "std": 1 / 255}),
])  # fmt: skip
def test_usual_units_are_not(frame, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CropPlan(frame, 1, 8, device="cpu", **options)


class Slow:
    """Detections that are read late."""

    def __init__(self):
        self.inside, self.over = threading.Event(), threading.Event()

    @property
    def xyxy(self):
        self.inside.set()
        assert self.over.wait(60)
        return BOXES


def test_a_plan_at_work_refuses_a_second_thread():
    plan, stream = CropPlan(FRAME, 2, 8, device="cpu"), FrameStream(FRAME, 2, 8, device="cpu")
    for run in (partial(plan.run, FRAME), stream.submit) * 2:  # the second time one is refused that is like another
        slow = Slow()
        with ThreadPoolExecutor(1) as pool:
            at_work = pool.submit(run, slow)
            assert slow.inside.wait(60)
            with pytest.raises(InputError, match="at work in another thread"):
                run(BOXES)
            slow.over.set()
        assert at_work.result().shape == run(BOXES).shape == (2, 3, 8, 8)


def test_a_plan_that_was_at_work_at_a_fork_is_free_in_the_child():
    alone = checks.OneAtATime()
    with alone:
        child = os.fork()
        if not child:
            with alone:
                pass
            try:
                with alone, alone:
                    os._exit(2)
            except InputError:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda plan: pickle.loads(pickle.dumps(plan))])
def test_a_plan_may_be_copied_and_sent(copied):
    plan = CropPlan(FRAME, 2, 8, mean=255 * MEAN, std=255 * STD, device="cpu")
    plan.run(FRAME, BOXES)
    assert np.array_equal(copied(plan).run(FRAME, BOXES), RIGHT)


def test_results_of_kept_kernels_are_new_memory_in_every_thread():
    def work(number):
        return [crop_resize(FRAME, BOXES + number, 8, device="cpu") for _ in range(50)]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(8)))
    for number, results in enumerate(found):
        right = CropPlan(FRAME, 2, 8, device="cpu").run(FRAME, BOXES + number)
        assert all(np.array_equal(result, right) for result in results)
        assert not np.shares_memory(results[0], results[1])


@pytest.mark.parametrize("name", ["mean", "std", "scale"])
def test_arrays_of_options_may_change_between_calls(name):
    values = np.array([2.0, 3.0, 4.0])
    for _ in range(2):
        values += 1
        found = crop_resize(FRAME, BOXES, 8, device="cpu", **{name: values})
        right = CropPlan(FRAME, 2, 8, device="cpu", **{name: values.copy()}).run(FRAME, BOXES)
        assert np.array_equal(found, right)


def test_a_plan_shows_what_is_documented():
    shown = {name for name in dir(CropPlan(FRAME, 1, 8, device="cpu")) if not name.startswith("_")}
    assert shown == {"run", "spec", "engine", "max_boxes", "device", "gpu_bytes"}


SNIPPET = """
import numpy as np
import octopus

frame = np.zeros((40, 60, 3), np.uint8)
crops, transform = octopus.crop_resize(frame, [[0, 0, 9, 9]], 32, letterbox=True, return_transform=True)
reveal_type(octopus.crop_resize(frame, [], letterbox=True, return_transform=True))
octopus.crop_resize(frame, [], np.array([8, 8]), dtype=np.float32, device="cuda:0", edge="image")
octopus.crop_resize(frame, [], edge="imagee")
octopus.crop_resize(frame, [], dtype="float64")
octopus.CropPlan(frame, 1, layout="HWC")
octopus.crop_resise(frame, [])
where: str = "cuda:8"
octopus.FrameStream(frame, 1, device=where)
octopus.tile_means(frame, [], device="cuda:8")
octopus.keep_tiles(frame, [], 0.5, device=0)
octopus.ops.multiply(octopus.RaggedBatch.from_list([frame]), 2)
octopus.ops.narrowed
octopus.blockmap.np
"""


def test_types_find_wrong_words(tmp_path, root):
    api = pytest.importorskip("mypy.api")
    (tmp_path / "snippet.py").write_text(SNIPPET)
    arguments = [str(tmp_path / "snippet.py"), "--config-file=", f"--cache-dir={tmp_path}", "--follow-imports=silent"]
    arguments += ["--ignore-missing-imports", "--no-error-summary"]
    found = api.run(arguments)[0].splitlines()
    assert {int(line.split(":")[1]) for line in found if " error: " in line} == {9, 10, 11, 12, 16, 18, 19}, found
    assert any("tuple[Any, Any]" in line for line in found)


def test_a_refused_call_writes_nothing():
    out = np.full((3, 3, 8, 8), 5, np.float32)
    for frame, boxes, more in (
        (FRAME, [*BOXES, (5, 5, 5, 9)], {}),
        (FRAME, [*BOXES, (0, 0, 61, 9)], {"outside": "error"}),
        (FRAME[None], [*BOXES, (0, 0, 9, 9)], {"frame_index": [0, 0, 9]}),
    ):
        with pytest.raises(InputError, match=r"box 2 = |frame_index\[2\] = 9"):
            crop_resize(frame, boxes, 8, out=out, device="cpu", **more)
        assert (out == 5).all()


def test_too_little_memory_says_how_much(monkeypatch):
    monkeypatch.setattr(backends.cpu, "free_bytes", lambda: 1000)
    with pytest.raises(octopus.OutOfMemoryError, match=r"201,326,592 bytes are needed on the host, 1,000 are free"):
        crop_resize(FRAME, BOXES[:1], 4096, device="cpu")
    assert crop_resize(FRAME, BOXES, 8, device="cpu").shape == (2, 3, 8, 8)


def test_one_flip_is_that_of_all_items():
    plan = CropPlan(FRAME, 4, 8, device="cpu")
    for flip in (True, 2, False):
        expected = crop_resize(FRAME, BOXES, 8, flip=[int(flip)] * 2, device="cpu")
        for _ in range(2):
            assert np.array_equal(crop_resize(FRAME, BOXES, 8, flip=flip, device="cpu"), expected)
            assert np.array_equal(plan(FRAME, BOXES, flip=flip), expected)


MIXED = np.array([[1, 2, 30, 30], [5, 5, 1, 9], [0, 0, 9, 9], [np.nan, 0, 3, 3], [90, 0, 95, 9]])
GOOD = np.array([0, 2])
TURNED = np.array([[[1, 0, 2], [0, 1, 3]], [[1, 0, np.nan], [0, 1, 3]], [[0, 1, 2], [1, 0, 3]]])
QUADS = np.array(
    [[[1, 1], [30, 3], [28, 30], [2, 20]], [[0, 0], [9, 9], [9, 0], [0, 9]], [[0, 0], [9, 0], [9, 9], [0, 9]]]
)


@pytest.mark.parametrize(("boxes", "options"), [
    (MIXED, {}), (MIXED, {"dtype": "uint8", "layout": "NHWC"}), (TURNED, {"filter": "nearest"}), (QUADS, {}),
    (MIXED, {"letterbox": True, "return_transform": True, "outside": "error"}), (MIXED.tolist(), {"mean": [1, 2, 3]}),
    (MIXED[[0, 1, 2]], {"mean": [1, 2, 3], "std": np.array([4, 5, 6])}), (MIXED[:0], {}), (MIXED[:2] * [-1], {}),
    (MIXED, {"flip": [0, 1, 2, 3, 0], "mean": np.arange(15.0).reshape(5, 3), "std": np.ones((5, 3))}),
], ids=["boxes", "bytes", "maps", "quads", "boxed", "list", "channels", "empty", "none", "own"])  # fmt: skip
def test_boxes_that_cannot_be_cut_out_are_left_out_or_nan(boxes, options):
    def listed(made):
        return list(made) if isinstance(made, tuple) else [made]

    def of_good(name):
        value = options.get(name)
        return {} if value is None or len(np.ravel(value)) in (3, 1) else {name: np.asarray(value)[numbers]}

    numbers = GOOD if len(boxes) > 2 else GOOD[:0]
    own = {key: value for name in ("flip", "mean", "std") for key, value in of_good(name).items()}
    call = partial(crop_resize, FRAME, size=8, device="cpu")
    expected = listed(call(np.asarray(boxes)[numbers], **{**options, **own}))
    made, kept = call(boxes, invalid="drop", **options)
    assert kept.tolist() == numbers.tolist()
    whole = listed(call(boxes, invalid="nan", **options))
    for one, other, all_ in zip(listed(made), expected, whole, strict=True):
        assert np.array_equal(one, other) and np.array_equal(all_[numbers], other) and len(all_) == len(boxes)
        rest = np.delete(all_, numbers, axis=0)
        assert not rest.any() if all_.dtype == np.uint8 else np.isnan(rest).all()
    if len(numbers) < len(boxes):
        with pytest.raises(InputError, match=r"wrong .* of .*which crop_resize leaves out"):
            call(boxes, invalid="error", **options)


def test_what_can_be_cut_out_of_lists_of_frames_and_sizes():
    call = partial(crop_resize, device="cpu", invalid="drop")
    batch, kept = call(FRAME, MIXED, [[4, 5]] * 2 + [[6, 7]] * 3)
    assert [item.shape for item in batch] == [(3, 4, 5), (3, 6, 7)] and kept.tolist() == [0, 2]
    batch, kept = call([FRAME, FRAME[:20]], [MIXED, MIXED[:2]], octopus.FitHeight(8))
    assert [item.shape for item in batch] == [(3, 8, 9), (3, 8, 8), (3, 8, 13)] and kept.tolist() == [0, 2, 5]
    frames = np.stack([FRAME, FRAME[::-1]])
    for count, made in ((1, 1), (2, 1), (3, 2), (5, 2)):
        found, _ = call(frames, MIXED, 8, frame_index=[0, 1, 1, 0, 0], count=count)
        expected = crop_resize(frames, MIXED[GOOD], 8, frame_index=[0, 1], device="cpu")
        assert np.array_equal(found[:made], expected[:made])
    out = np.full((5, 3, 8, 8), 7, np.float32)
    crop_resize(FRAME, MIXED, 8, count=2, out=out, invalid="nan", device="cpu")
    assert np.isnan(out[1]).all() and (out[2:] == 7).all()


BANDS = RNG.integers(0, 65536, (12, 40, 90), np.uint16)
WIDE = RNG.integers(0, 256, (40, 90, 3), np.uint8)


@pytest.mark.parametrize(("frame", "last", "boxes"), [
    (WIDE.transpose(2, 0, 1).copy(), WIDE, BOXES), (WIDE.transpose(2, 0, 1), WIDE, BOXES),
    (WIDE.transpose(2, 0, 1).copy().transpose(1, 2, 0), WIDE, BOXES), (WIDE[::-1, ::2, ::-1],) * 2 + (BOXES,),
    (BANDS, BANDS.transpose(1, 2, 0), BOXES), (WIDE[..., 1], WIDE[..., 1:2], BOXES),
    (WIDE[..., 1].T, WIDE[..., 1:2].transpose(1, 0, 2), BOXES), (WIDE[None].transpose(0, 3, 1, 2), WIDE[None], BOXES),
    ([WIDE.transpose(2, 0, 1), WIDE[:, ::-1]], [WIDE, WIDE[:, ::-1]], [BOXES, BOXES]),
], ids=["first", "view", "planes", "flipped", "bands", "grey", "turned", "frames", "list"])  # fmt: skip
def test_frames_on_the_host_may_have_any_axes_and_strides(frame, last, boxes):
    options = {"frame_index": [0, 0]} if getattr(frame, "ndim", 0) == 4 else {}
    last = [np.ascontiguousarray(one) for one in last] if isinstance(last, list) else np.ascontiguousarray(last)
    plan, array = CropPlan(frame, 4, 8, device="cpu"), frame[0] if isinstance(frame, list) else frame
    for _ in range(3):
        expected = crop_resize(last, boxes, 8, device="cpu", **options)
        assert np.array_equal(crop_resize(frame, boxes, 8, device="cpu", **options), expected)
        assert np.array_equal(plan.run(frame, boxes, **options), expected)
    kept, array[...] = array.copy(), 7  # a copy must not outlive its call
    assert (crop_resize(frame, boxes, 8, device="cpu", **options)[0] == 7).all()
    array[...] = kept


def test_strides_of_axes_of_length_one_do_not_matter():
    out = np.zeros((2, 8, 8, 1), np.float32).transpose(0, 3, 1, 2)
    assert crop_resize(FRAME[..., :1].copy(), BOXES, (8, 8), out=out, device="cpu") is out


def test_the_documentation_of_crop_resize_names_every_argument():
    section = inspect.getdoc(crop_resize).partition("Parameters\n")[2].partition("Returns\n")[0]
    lines = re.findall(r"^(\w[\w, ]*) :", section, re.MULTILINE)
    given = set(inspect.signature(inspect.unwrap(crop_resize)).parameters) - {"options"}
    assert {name for line in lines for name in line.split(", ")} == given | {*CALL_OPTIONS, "return_transform"}
