"""RapidOCR's pages, lines and batches by a few launches: its own texts, from inputs that are near its own.

OpenCV resizes bytes in fixed point and rounds halves up, so that values of a page are up to one level off. A line that
lies straight is as near; a tilted one is interpolated once here and twice there.
"""

import warnings

import numpy as np
import pytest

cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed")
rapidocr = pytest.importorskip("rapidocr", reason="RapidOCR is not installed")
pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")

from PIL import Image, ImageDraw, ImageFont  # noqa: E402
from rapidocr.main import RapidOCR  # noqa: E402
from rapidocr.utils.process_img import get_rotate_crop_image  # noqa: E402

from octopus.errors import InputError  # noqa: E402
from octopus.integrations import rapidocr as stand_ins  # noqa: E402
from octopus.integrations.rapidocr import FallbackWarning, accelerate  # noqa: E402

TEXTS = {"crops of all sizes 0123": 40, "one launch for every box": 22, "read": 60, "as wide as it is long 57": 16}
LEVEL = 1 / 127.5
QUIET = {"Global.log_level": "error"}
CORNERS = np.float32([[0, 0], [1, 0], [1, 1], [0, 1]])


@pytest.fixture(scope="module")
def engine():
    return RapidOCR(params=QUIET)


@pytest.fixture(scope="module")
def stand_in(engine):
    return accelerate(engine)


@pytest.fixture(scope="module")
def page():
    """Straight lines, a tilted one, one upright and one on its head."""
    canvas, y = Image.new("L", (740, 500), 255), 20
    for text, size in TEXTS.items():
        ImageDraw.Draw(canvas).text((30, y), text, fill=0, font=ImageFont.load_default(size))
        y += size + 30
    turned = {"tilted line": (8, (300, 330)), "upright": (-90, (660, 60)), "head over": (180, (40, 400))}
    for text, (degrees, place) in turned.items():
        line = Image.new("L", (30 * len(text) // 2, 40), 0)
        ImageDraw.Draw(line).text((4, 0), text, fill=255, font=ImageFont.load_default(30))
        canvas.paste(0, place, line.rotate(degrees, Image.Resampling.BICUBIC, expand=True))
    return np.repeat(np.asarray(canvas)[..., None], 3, 2).copy()


@pytest.fixture(scope="module")
def read(engine, page):
    return engine(page)


def test_the_same_lines_are_read_and_the_engine_stays_as_it_is(engine, stand_in, read, page):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = stand_in(page)
    assert set(TEXTS) < set(read.txts) and len(read.txts) == len(TEXTS) + 3
    assert found.txts == read.txts
    assert np.abs(found.boxes - read.boxes).max() <= 2
    assert np.allclose(found.scores, read.scores, atol=0.05)
    assert type(engine) is RapidOCR and isinstance(stand_in, RapidOCR) and accelerate(stand_in) is stand_in
    assert type(engine.text_det).__mro__[0] is type(engine.text_det) is not type(stand_in.text_det)
    assert stand_in.text_rec.session.session is engine.text_rec.session.session  # the same network, once in memory


@pytest.mark.parametrize("shape", [(736, 960), (500, 740), (1400, 900)])
def test_a_page_is_one_level_off_at_most(engine, stand_in, shape):
    image = np.random.default_rng(1).integers(0, 256, (*shape, 3), np.uint8)
    expected, found = engine.text_det.get_preprocess()(image), stand_in.text_det.get_preprocess()(image)
    assert found.shape == expected.shape and found.dtype == expected.dtype == np.float32
    off = np.abs(found - expected)
    assert off.max() <= (1e-6 if shape == (736, 960) else 1.001 * LEVEL)


def smooth(height=300, width=400):
    rows, columns = np.mgrid[:height, :width]
    waves = np.stack([127 + 100 * np.sin(columns / 9 + rows / 13 + c) for c in range(3)], -1)
    return waves.astype(np.uint8)


def batches(engine, stand_in, boxes, image):
    """A batch of the recogniser by both, from boxes (N, 4, 2)."""
    for made in (engine, stand_in):
        lines = made.crop_text_regions(image, boxes)
        ratio = max(one.shape[1] / one.shape[0] for one in lines)
        items = np.concatenate([made._load_rec_model().resize_norm_img(one, ratio)[np.newaxis] for one in lines])
        yield lines, items if isinstance(items, np.ndarray) else items.made()


def test_straight_lines_are_one_level_off_at_most(engine, stand_in):
    corners, sides = np.float32([[10, 20], [5, 100], [100, 150], [300, 10]]), [[200, 30], [80, 48], [250, 90], [20, 90]]
    boxes = corners[:, None] + np.float32(sides)[:, None] * CORNERS
    (crops, expected), (lines, found) = batches(engine, stand_in, boxes, smooth())
    assert [line.shape for line in lines] == [crop.shape for crop in crops] and lines[3].shape[0] == 20
    assert found.shape == expected.shape
    off = np.abs(found - expected)
    assert off[2, :, 2:-2, 2:132].max() < 1.5 * LEVEL  # at its edge a line reads the page where the engine repeats it
    assert off.max() < 8 * LEVEL  # half a step of the waves


def test_other_quadrilaterals_are_where_the_engine_has_them(engine, stand_in):
    generator = np.random.default_rng(4)
    straight = (60, 60) + CORNERS * (200, 50)
    boxes = np.round(straight + generator.uniform(-25, 25, (40, 4, 2))).astype(np.float32)
    image = smooth()
    (crops, expected), (lines, found) = batches(engine, stand_in, boxes, image)
    assert [line.shape for line in lines] == [crop.shape for crop in crops]
    assert np.abs(found - expected).mean() < 1.5 * LEVEL  # half a pixel beside it would be 9 levels
    upside_down = stand_ins._Item(lines[0].turned(), 48, 200)
    turned = cv2.rotate(get_rotate_crop_image(image, boxes[0].copy()), cv2.ROTATE_180)
    width = int(np.ceil(48 * (turned.shape[1] / turned.shape[0])))
    batch = np.concatenate([upside_down]).made()[0][..., :width]
    resized = cv2.resize(turned, (width, 48)).transpose(2, 0, 1) / 127.5 - 1
    assert np.abs(batch - resized).mean() < 1.5 * LEVEL


def test_batches_are_the_same_however_many_lines_are_made_at_a_time(stand_in, monkeypatch):
    generator = np.random.default_rng(2)
    corner, sides = generator.uniform(0, 150, (9, 1, 2)), generator.uniform(10, 120, (9, 1, 2))
    boxes = (corner + sides * CORNERS).astype(int)

    def made(together, order):
        monkeypatch.setattr(stand_ins, "TOGETHER", together)
        lines = sorted(stand_in.crop_text_regions(smooth(), boxes), key=lambda line: line.rank)
        found = []
        for numbers, width, squeezed in ((order[:4], 40, False), (order[4:], 240, False), (order, 64, True)):
            items = [stand_ins._Item(lines[number], 48, width, squeezed) for number in numbers]
            found += list(np.concatenate(items).made())
        return dict(zip([*order, *(9 + number for number in order)], found, strict=True))

    one, other, mixed = made(1, range(9)), made(256, range(9)), made(256, [3, 1, 2, 0, 8, 5, 6, 7, 4])
    for number, batch in one.items():
        assert np.array_equal(batch, other[number]) and np.array_equal(batch, mixed[number])


def test_steady_shapes_are_few_and_lines_are_read_the_same(engine, read, page, monkeypatch):
    steady = accelerate(engine, steady_shapes=True)
    found = steady(page)
    assert found.txts == read.txts and np.allclose(found.scores, read.scores, atol=0.05)
    shapes = [list(model.session.of_shapes) for model in (steady.text_cls, steady.text_rec)]
    assert shapes[0] == [(6, 3, 48, 192)] and set(shapes[1]) <= {(6, 3, 48, 320 * times) for times in (1, 2, 3)}
    expected, found = (one(page, return_word_box=True).word_results for one in (engine, steady))
    for line, other in zip(expected, found, strict=True):
        assert [word for word, _, _ in line] == [word for word, _, _ in other]
        assert np.abs(np.subtract([box for _, _, box in line], [box for _, _, box in other])).max() <= 12
    engine.update_params(return_word_box=False)
    monkeypatch.setattr(stand_ins, "MOST_SESSIONS", 1)
    steady(page)
    assert len(steady.text_rec.session.of_shapes) == 1
    for wrong, asked in ((engine, "few"), (steady, False)):
        with pytest.raises(InputError, match="steady_shapes"):
            accelerate(wrong, steady_shapes=asked)


def test_what_an_engine_can_be_asked_for(engine, stand_in, page):
    for asked in ({"use_rec": False}, {"use_det": False, "use_rec": True}, {"use_det": True, "return_word_box": True}):
        expected, found = engine(page, **asked), stand_in(page, **asked)
        assert type(found) is type(expected)
        for name in ("txts", "boxes"):
            one, other = getattr(found, name, None), getattr(expected, name, None)
            assert (one is None) == (other is None) and (one is None or len(one) == len(other))
    words = [[word for word, _, _ in line] for line in expected.word_results]
    assert words == [[word for word, _, _ in line] for line in found.word_results]
    assert stand_in(np.full((500, 500, 3), 255, np.uint8)).txts is None
    for made in (engine, stand_in):
        made.update_params(return_word_box=False)


def test_what_is_not_known_is_left_to_the_original_and_said(engine):
    class Own(RapidOCR):
        pass

    own = Own.__new__(Own)
    with pytest.warns(FallbackWarning, match="Own works without octopus: it computes something"):
        assert accelerate(own) is own
    crossed = np.array([[[10, 10], [90, 10], [20, 15], [10, 40]]], np.float32)  # as a box is that was cut at a corner
    with pytest.warns(FallbackWarning, match="RapidOCR works without octopus: .* is not convex"):
        assert isinstance(accelerate(engine).crop_text_regions(smooth(), crossed)[0], np.ndarray)
    with pytest.raises(InputError, match=r"accelerate takes an engine, rapidocr\.RapidOCR\(\), found a str"):
        accelerate("page.png")


@pytest.mark.parametrize("side", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_scores_are_reduced_where_they_lie(side):
    from octopus.backends.cuda.memory import upload

    scores = np.random.default_rng(0).random((3, 7, 18710), np.float32)
    scores[0, 0, [5, 9, 18709]] = 2  # of equal ones the first counts
    found = stand_ins.Scores(scores if side == "cpu" else upload(scores))
    assert np.array_equal(found.argmax(axis=2), scores.argmax(axis=2))
    assert np.array_equal(found.max(axis=2), scores.max(axis=2))


@pytest.mark.gpu
def test_on_a_gpu(page):
    onnxruntime = pytest.importorskip("onnxruntime")
    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        pytest.skip("this ONNX Runtime has no CUDA")
    engine = RapidOCR(params={**QUIET, "EngineConfig.onnxruntime.use_cuda": True})
    stand_in = accelerate(engine)
    assert stand_in._load_det_model().session.device == "cuda"
    assert stand_in(page).txts == engine(page).txts == accelerate(engine, steady_shapes=True)(page).txts
