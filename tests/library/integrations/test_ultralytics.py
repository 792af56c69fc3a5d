"""Stand-ins for Ultralytics' letterboxing and crops give its own answers, or say that they leave it the work.

OpenCV resizes bytes in fixed point of 11 bits and rounds halves up; this rounds once, halves to even. So a share of the
bytes is one level off, the more the more values lie at halves: up to 13 % at factors such as 2 and 1.25. Crops are
rounded by neither, and differ by 1e-5 at most. No weights are fetched: models are made of Ultralytics' descriptions.
"""

import copy
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed")
ultralytics = pytest.importorskip("ultralytics", reason="Ultralytics is not installed")
predictors = pytest.importorskip("ultralytics.engine.predictor")
reid = pytest.importorskip("ultralytics.trackers.utils.reid", reason="Ultralytics without trackers")

from ultralytics.data.augment import LetterBox  # noqa: E402

from octopus.errors import InputError  # noqa: E402
from octopus.integrations.ultralytics import FallbackWarning, accelerate, letterbox, reid_crops  # noqa: E402

SIDES = [(360, 640), (240, 426), (480, 640), (500, 375), (97, 143), (640, 360), (33, 320), (20, 3)]
SHARE = 0.13  # of bytes that may be one level off; the page of the docs says so
BYTE = 1 / 255
CPU = torch.device("cpu")


def pictures(sides=SIDES, channels=3):
    """Waves with a little noise, as smooth as photographs, (H, W, C) of uint8."""
    generator = np.random.default_rng(3)
    made = []
    for height, width in sides:
        rows, columns = np.mgrid[:height, :width]
        waves = np.stack([127 + 100 * np.sin(columns / 37 + rows / 23 + c) for c in range(channels)], -1)
        made.append((waves + generator.normal(0, 8, waves.shape)).clip(0, 255).astype(np.uint8))
    return made


class Plain(predictors.BasePredictor):
    """A predictor with no more than `preprocess` asks for."""

    def __init__(self, size=(320, 320), rect=True, fill=False, fp16=False, form="pt", device=CPU):
        self.imgsz, self.args, self.scale_fill, self.device = size, SimpleNamespace(rect=rect), fill, device
        self.model = SimpleNamespace(format=form, stride=32, fp16=fp16, dynamic=False)


def compare(given, share=SHARE, **options):
    """The original's batch and the stand-in's, which must not ask the original."""
    expected = Plain(**options).preprocess(given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = accelerate(Plain(**options)).preprocess(given)
    check(expected, found, share)
    return found


def check(expected, found, share=SHARE):
    assert isinstance(found, torch.Tensor)
    assert (found.shape, found.dtype, found.device) == (expected.shape, expected.dtype, expected.device)
    apart, last = (found.float() - expected.float()).abs(), 1e-3 if found.dtype == torch.float16 else 1e-6
    assert apart.max() <= BYTE + last
    assert (apart > last).float().mean() <= share


@pytest.mark.parametrize("options", [
    {}, {"rect": False}, {"form": "onnx"}, {"fill": True}, {"fp16": True}, {"size": (256, 448)}, {"size": (800, 800)},
], ids=["as made", "square", "another form of model", "stretched", "half", "oblong", "enlarged"])  # fmt: skip
def test_a_batch_of_frames_of_different_size(options):
    found = compare(pictures(), **options)
    assert found.shape[1:] == (3, *options.get("size", (320, 320)))


@pytest.mark.parametrize(("side", "size"), [((320, 320), 320), ((960, 960), 320), ((300, 320), 320)])
def test_no_byte_is_off_where_no_position_lies_between_pixels(side, size):
    compare(pictures([side] * 2), share=0.0, size=(size, size))


def test_sizes_of_all_kinds():
    """Frames of one size take the least rectangle; rounded sides, and padding of odd length, are the same."""
    generator = np.random.default_rng(7)
    for side in [*SIDES, *generator.integers(8, 700, (60, 2)).tolist()]:
        found = compare(pictures([side] * 2))
        assert found.shape[2] % 32 == 0 and found.shape[3] % 32 == 0
        compare(pictures([side]), fp16=True)
        compare([*pictures([side]), *pictures([(50, 60)])], size=(96, 160))


@pytest.mark.parametrize("channels", [1, 4])
def test_other_channels_stay_in_their_order(channels):
    compare(pictures(channels=channels))


def test_frames_of_any_strides():
    frames = pictures()
    frames[0] = frames[0][..., ::-1]
    frames[1] = frames[1][::-1]
    frames[2] = frames[2][10:200, 33:]
    frames[3].flags.writeable = False
    compare(frames)


def test_a_tensor_is_the_originals_business():
    given = torch.rand(2, 3, 64, 64)
    assert torch.equal(accelerate(Plain()).preprocess(given), given)


@pytest.mark.parametrize(("given", "reason"), [
    ([one.astype(np.uint16) for one in pictures()], "uint16"), ([pictures()[0], pictures(channels=4)[1]], "channels"),
    ([pictures()[0][..., 0]] * 2, "no axis of channels"), ([], "no frames"),
    ([np.zeros((3712, 1421, 3), np.uint8)], "rounded otherwise"),  # of 40,000 random sizes the only one
])  # fmt: skip
def test_what_is_not_known_is_left_to_the_original_and_said(given, reason):
    try:
        expected = Plain().preprocess(given)
    except Exception as error:
        expected = error
    predictor = accelerate(Plain())
    with pytest.warns(FallbackWarning, match=f"Plain works without octopus: .*{reason}"):
        if isinstance(expected, Exception):
            with pytest.raises(type(expected), match=re.escape(str(expected)[:30])):
                predictor.preprocess(given)
        else:
            assert torch.equal(predictor.preprocess(given), expected)


def test_the_function_takes_a_letterbox():
    frames = pictures()
    expected = Plain().preprocess(frames)
    check(expected, torch.from_numpy(letterbox(frames, LetterBox(320))))
    given = [torch.from_numpy(one) for one in frames]
    check(expected.half(), letterbox(given, LetterBox(320, padding_value=114), half=True))
    other = letterbox(frames[:1], LetterBox(320, padding_value=7, scaleup=False))
    assert np.unique(other[0, :, 0]).tolist() == pytest.approx([7 / 255])
    for box, reason in (
        (LetterBox(320, center=False), "not in the middle"),
        (LetterBox(1000, scaleup=False), "not as large"),
        (LetterBox(320, interpolation=cv2.INTER_NEAREST), "INTER_LINEAR"),
        (LetterBox(320, auto=True), "several sizes"),
    ):
        with pytest.raises(InputError, match=reason):
            letterbox(frames, box)


class Embedding(torch.nn.Module):
    def forward(self, batch):
        return torch.nn.functional.adaptive_avg_pool2d(batch, 4).flatten(1)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A model for re-identification in a file."""
    path = tmp_path_factory.mktemp("reid") / "embedding.torchscript"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.trace(Embedding(), torch.zeros(1, 3, 64, 64)).save(str(path))
    return str(path)


def encoder(size=(64, 64), fp16=False, device=CPU):
    """A `ReID` without a model."""
    made = reid.ReID.__new__(reid.ReID)
    made.imgsz, made.fp16, made.device = size, fp16, device
    return made


def boxes_of(height, width, dtype, count=400):
    """Centres, sides and a score: inside, across the border, outside, empty, turned inside out, not finite."""
    generator = np.random.default_rng(11)
    centres = generator.uniform([-50, -50], [width + 50, height + 50], (count, 2))
    sides = generator.uniform(-30, 200, (count, 2))
    dets = np.column_stack([centres, sides, np.ones(count)])
    dets[:40, :4] = dets[:40, :4].round()
    dets[40:44, :4] = [[np.nan] * 4, [np.inf, 5, 5, 5], [5, 5, np.inf, 5], [5, 5, 0, 0]]
    return dets.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("side", [(240, 426), (33, 20)])
def test_crops_are_the_same_views(side, dtype):
    frame, dets = pictures([side])[0], boxes_of(*side, dtype)
    expected = reid.ReID._crop_detections(frame, dets)
    found = accelerate(encoder())._crop_detections(frame, dets)
    assert 0 < sum(one.size > 0 for one in found) < len(found)
    for one, other in zip(expected, found, strict=True):
        assert one.shape == other.shape and one.strides == other.strides
        assert one.size == 0 or one.ctypes.data == other.ctypes.data


@pytest.mark.parametrize(("size", "fp16"), [((64, 64), False), ((256, 128), False), ((64, 48), True)])
def test_crops_for_a_model(size, fp16):
    """By the stand-in, and by the function from a frame and boxes of either library."""
    frame, dets = pictures([(240, 426)])[0], boxes_of(240, 426, np.float32)
    cut, within = reid.ReID._crop_detections(frame, dets), {"rtol": 0, "atol": 1e-3 if fp16 else 1e-5}
    crops = [one for one in cut if one.size]
    expected = encoder(size, fp16)._crops_to_tensor(crops)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = accelerate(encoder(size, fp16))._crops_to_tensor(crops)
    torch.testing.assert_close(found, expected, **within)
    for form in (np.asarray, torch.from_numpy):
        found, kept = reid_crops(form(frame), form(dets), size, half=fp16, device="cpu")
        assert type(found) is type(kept) is type(form(dets))
        assert kept.tolist() == [one.size > 0 for one in cut]
        torch.testing.assert_close(torch.as_tensor(found), expected, **within)


def test_no_boxes():
    frame = pictures([(240, 426)])[0]
    crops, kept = reid_crops(frame, np.zeros((0, 5), np.float32), 64, device="cpu")
    assert crops.shape == (0, 3, 64, 64) and kept.shape == (0,)
    assert accelerate(encoder())._crop_detections(frame, np.zeros((0, 5), np.float32)) == []


def test_crops_that_are_not_known_are_left_to_the_original_and_said():
    frame, stand_in = pictures([(240, 426)])[0], accelerate(encoder())
    whole = np.array([[100, 100, 40, 60], [20, 30, 7, 9]])
    with pytest.warns(FallbackWarning, match="ReID works without octopus: dets must be float32"):
        found = stand_in._crop_detections(frame, whole)
    assert [one.shape for one in found] == [one.shape for one in reid.ReID._crop_detections(frame, whole)]
    with pytest.raises(InputError, match="dets must be float32 or float64, found torch"):
        reid_crops(frame, whole)
    grey = [frame[:50, :60, :1]]
    with pytest.warns(FallbackWarning, match="ReID works without octopus: .*channels"):
        assert torch.equal(stand_in._crops_to_tensor(grey), encoder()._crops_to_tensor(grey))


@pytest.mark.filterwarnings("ignore::FutureWarning")  # torch's of TorchScript
def test_an_encoder_and_the_tracker_that_has_it(weights):
    from ultralytics.trackers.bot_sort import BOTSORT
    from ultralytics.utils import YAML, IterableSimpleNamespace
    from ultralytics.utils.checks import check_yaml

    asked = {**YAML.load(check_yaml("botsort.yaml")), "with_reid": True, "model": weights, "device": "cpu"}
    frame, dets = pictures([(240, 426)])[0], boxes_of(240, 426, np.float32)
    expected = reid.ReID(weights, imgsz=64, device="cpu")(frame, dets)
    tracker = BOTSORT(IterableSimpleNamespace(**asked))
    tracker.encoder.imgsz = (64, 64)
    assert accelerate(tracker) is tracker
    predictor = Plain()
    predictor.trackers = [tracker, object()]
    accelerate(predictor)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        found = tracker.encoder(frame, dets)
    for one, other in zip(expected, found, strict=True):
        assert (one is None) == (other is None)
        assert one is None or np.abs(one - other).max() < 1e-5
    assert any(one is None for one in found)


def test_a_model_finds_the_same():
    """Of real architecture and random weights; what it finds depends on every value a little."""
    model = ultralytics.YOLO("yolo26n.yaml")
    asked = {"imgsz": 160, "conf": 0.0, "max_det": 5, "device": "cpu", "verbose": False, "save": False}
    frames = pictures(SIDES[:4])
    expected = model.predict(frames, **asked)
    predictor = accelerate(model.predictor)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        found = model.predict(frames, **asked)
    assert model.predictor is predictor and "preprocess" in vars(predictor)
    for one, other in zip(expected, found, strict=True):
        assert one.orig_shape == other.orig_shape and len(other.boxes) == len(one.boxes) == 5
        assert (one.boxes.conf - other.boxes.conf).abs().max() < 1e-3
    with pytest.warns(FallbackWarning, match="DetectionPredictor works without octopus"):
        predictor.preprocess([one.astype(np.uint16) for one in frames])


def test_it_is_undone():
    predictor = accelerate(accelerate(Plain()))
    assert copy.deepcopy(predictor).preprocess.__func__ is predictor.preprocess.__func__
    del predictor.preprocess
    assert predictor.preprocess.__func__ is predictors.BasePredictor.preprocess


class Doubled(Plain):
    """One with code of its own."""

    def pre_transform(self, im):
        return [one * 2 for one in super().pre_transform(im)]


class OtherCrops(reid.ReID):
    """One with code of its own."""

    @staticmethod
    def _crop_detections(img, dets):
        return []


def test_a_class_that_is_not_known_stays_as_it_is():
    for made in (Doubled(), OtherCrops.__new__(OtherCrops)):
        with pytest.warns(FallbackWarning, match=f"{type(made).__name__} works without octopus"):
            assert accelerate(made) is made
        assert not {"preprocess", "_crop_detections", "_crops_to_tensor"} & set(vars(made))


@pytest.mark.parametrize("wrong", [None, "yolo26n.pt", SimpleNamespace(encoder=print), Plain])
def test_what_is_none_of_these(wrong):
    with pytest.raises(InputError, match="accelerate takes a predictor of Ultralytics"):
        accelerate(wrong)


@pytest.mark.gpu
@pytest.mark.parametrize("fp16", [False, True])
def test_on_a_gpu(fp16):
    """Frames from the host and on the GPU, boxes that the host doesn't read."""
    device = torch.device("cuda")
    compare(pictures(), fp16=fp16, device=device)
    check(Plain().preprocess(pictures()).cuda(), letterbox([torch.from_numpy(one).cuda() for one in pictures()],
          LetterBox(320)))  # fmt: skip
    frame, dets = pictures([(240, 426)])[0], boxes_of(240, 426, np.float32)
    dets = dets[np.isfinite(dets).all(1)]
    crops = [one for one in reid.ReID._crop_detections(frame, dets) if one.size]
    expected = encoder(fp16=fp16, device=device)._crops_to_tensor(crops)
    found = accelerate(encoder(fp16=fp16, device=device))._crops_to_tensor(crops)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-3 if fp16 else 1e-5)
    found, kept = reid_crops(torch.from_numpy(frame).cuda(), torch.from_numpy(dets).cuda(), 64, half=fp16)
    assert len(found) == len(kept) == len(dets)
    torch.testing.assert_close(found[kept], expected, rtol=0, atol=1e-3 if fp16 else 1e-5)
    assert found[~kept].isnan().all()
