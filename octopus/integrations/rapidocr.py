"""What RapidOCR does beside its networks, as a few launches; on a GPU the page goes up once, and texts come down.

>>> engine = accelerate(RapidOCR())  # doctest: +SKIP
>>> engine("page.png").txts  # doctest: +SKIP

Sizes, order, batches, thresholds and decoding are the engine's own code, which its user has installed. A line of text
is a place on its page until a network asks for it: then all lines of a batch are cut out, resized and normalised by
one launch, with one interpolation where the engine has two.
"""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from importlib import import_module
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus import images
from octopus.arrays import checks
from octopus.arrays.launch import Cuda, PreparedLaunch, launch
from octopus.backends import resolve
from octopus.backends.cuda import compile, memory
from octopus.backends.cuda.device import compute_capability, current
from octopus.crop.api import crop_resize
from octopus.crop.check import check_host_items
from octopus.errors import DeviceError, InputError, shown_type
from octopus.integrations.common import KNOWN_ERRORS, FallbackWarning, check_version, moved, warn_once
from octopus.kernels import built
from octopus.kernels.arguments import BEST

TESTED = ("3.10", "3.10")

# What is stood in for, and what stand-ins are called by: methods of each class, functions of each module.
RELIED_ON = tuple(
    f"rapidocr.{owner}.{name}"
    for owner, names in {
        "main.RapidOCR": "run_ocr_steps detect_and_crop crop_text_regions cls_and_rotate recognize_txt "
        "build_final_output calc_word_boxes _load_det_model _load_cls_model _load_rec_model",
        "ch_ppocr_det.main.TextDetector": "__call__ get_preprocess",
        "ch_ppocr_det.utils.DetPreProcess": "__call__ normalize permute resize",
        "ch_ppocr_cls.main.TextClassifier": "__call__ resize_norm_img",
        "ch_ppocr_rec.main.TextRecognizer": "__call__ resize_norm_img",
        "ch_ppocr_rec.utils.CTCLabelDecode": "__call__",
        "inference_engine.onnxruntime.main.OrtInferSession": "__call__",
        "utils.process_img": "get_rotate_crop_image map_img_to_original",
        "cal_rec_boxes.main.CalRecBoxes": "__call__",
    }.items()
    for name in names.split()
)
TOGETHER = 256  # lines that one launch makes at most, beyond the batch that is asked for
TALL = 1.5  # height / width from which on a line is turned by a quarter
STEP = 320  # of widths of lines' batches, where shapes are steady: the least width that the engine has
MOST_SESSIONS = 6  # of a network, one for each shape
LEVELS = {"mean": 127.5, "std": 127.5, "pad_value": 127.5}  # what lies beside a line is 0 once it is normalised


def accelerate(engine: Any, *, steady_shapes: bool = False) -> Any:
    """An engine like the one given, whose pages, lines and batches are made by Octopus.

    It shares the other's networks and settings, and answers as it does; the other stays as it is. What Octopus doesn't
    know goes to the engine's code, with a `FallbackWarning` that names the reason. `docs/integrations/rapidocr.md` says
    how near pixels and texts are.

    Parameters
    ----------
    engine : rapidocr.RapidOCR
        With any of its inference engines. Where ONNX Runtime works on a GPU (`EngineConfig.onnxruntime.use_cuda`),
        inputs and the recogniser's scores stay there; else the CPU prepares the inputs.
    steady_shapes : bool
        True: batches of lines have few shapes. They are filled up to the engine's number of lines, by the last one, and
        the recogniser's to a width that is a multiple of 320; each shape has a session of its own, six of a network at
        most. With CUDA, ONNX Runtime chooses convolutions anew, which is slow, where a shape isn't that of the run
        before: without this at most batches, with it at the first of each shape. More padding behind a line
        changes scores a little, and a text in rare cases; on a CPU it only takes time.

    Returns
    -------
    RapidOCR
        The engine itself, with a `FallbackWarning`, if its class or this version of RapidOCR computes something else.

    Raises
    ------
    InputError
        For what is no engine, or one that was accelerated otherwise.
    MissingPackageError
        If RapidOCR can't be imported, or its version is older than those tested.
    """
    newer = check_version("rapidocr", TESTED)
    original = import_module("rapidocr.main").RapidOCR
    if not isinstance(engine, original):
        raise InputError(f"accelerate takes an engine, rapidocr.RapidOCR(), found {shown_type(engine)}")
    steady = checks.switch("steady_shapes", steady_shapes)
    if isinstance(engine, _Accelerated):
        if engine._steady != steady:
            raise InputError(f"the engine was accelerated with steady_shapes={not steady}; pass the one it was made of")
        return engine
    if type(engine) is not original:
        warn_once(type(engine).__name__, "it computes something that octopus doesn't know")
        return engine
    if newer and (changed := moved(RELIED_ON)):
        warn_once(original.__name__, f"this version of RapidOCR has changed {', '.join(changed)}")
        return engine
    for name in ("det", "cls", "rec"):  # so that both have the same networks
        if getattr(engine, f"use_{name}"):
            getattr(engine, f"_load_{name}_model")()
    made = _like(engine, _Accelerated)
    made._uploaded, made._steady = threading.local(), steady
    return made


def relied_on() -> list[Any]:
    """All code of RapidOCR that is stood in for, or that calls what stands in."""
    return list(RELIED_ON)


class _Accelerated:
    """Before the engine's class: its networks' stand-ins, and lines that are no pixels yet."""

    _uploaded: threading.local  # `page`: the last page of this thread, on the host and where the detector works
    _steady: bool

    def _load_det_model(self) -> Any:
        return self._stand_in("det", _Detector)

    def _load_cls_model(self) -> Any:
        return self._stand_in("cls", _Classifier)

    def _load_rec_model(self) -> Any:
        return self._stand_in("rec", _Recogniser)

    def _stand_in(self, name: str, kind: type) -> Any:
        model = getattr(self, f"text_{name}")
        if not isinstance(model, kind):
            original = getattr(super(), f"_load_{name}_model")()
            model = _like(original, kind)
            made = model.session = _Session(original.session, name == "rec")
            if self._steady and name != "det":
                config, like = self.cfg[name.capitalize()], type(original.session)  # type: ignore[attr-defined]
                made.least, made.make = config[f"{name}_batch_num"], lambda: like(config)
            model.uploaded = self._uploaded
            setattr(self, f"text_{name}", model)
        return model

    def crop_text_regions(self, img: Any, det_boxes: Any) -> list[Any]:
        page, self._uploaded.page = getattr(self._uploaded, "page", None), None  # the lines keep it as long as need be
        there = page[1] if page is not None and page[0] is img else img
        try:
            quads, shapes = quads_of(det_boxes)
            check_host_items("quads", quads, img.shape[1], img.shape[0], "clip", (0, 0))
            return Sheet(there, quads, shapes).lines()
        except KNOWN_ERRORS as error:
            warn_once(type(self).__name__, str(error))
        return super().crop_text_regions(img, det_boxes)  # type: ignore[misc,no-any-return]

    def build_final_output(
        self, ori_img: Any, det_res: Any, cls_res: Any, rec_res: Any, crops: Any, record: Any
    ) -> Any:
        finish = type(self).__mro__[2].build_final_output  # type: ignore[attr-defined]
        if crops and isinstance(crops[0], Line):
            finish = _with(finish, map_img_to_original=_mapped)
        return finish(self, ori_img, det_res, cls_res, rec_res, crops, record)


class _Detector:
    """Before the class of the detector: the page is resized and normalised by one launch."""

    session: _Session
    uploaded: threading.local

    def get_preprocess(self) -> Any:
        return partial(_page, super().get_preprocess(), self.session.device, self.uploaded)  # type: ignore[misc]


class _Classifier:
    """Before the class of the classifier: a line is turned by half a turn where its corners are."""

    def __call__(self, img_list: Any) -> Any:
        call = type(self).__mro__[2].__call__
        if isinstance(img_list, list) and img_list and isinstance(img_list[0], Line):
            call = _with(call, cv2=SimpleNamespace(rotate=lambda line, code: line.turned()))
        return call(self, img_list)

    def resize_norm_img(self, img: Any) -> Any:
        if not isinstance(img, Line):
            return super().resize_norm_img(img)  # type: ignore[misc]
        _, height, width = self.cls_image_shape  # type: ignore[attr-defined]
        return _Item(img, height, width, squeezed=True)


class _Recogniser:
    def resize_norm_img(self, img: Any, max_wh_ratio: float) -> Any:
        if not isinstance(img, Line):
            return super().resize_norm_img(img, max_wh_ratio)  # type: ignore[misc]
        height = self.rec_image_shape[1]  # type: ignore[attr-defined]
        return _Item(img, height, int(height * max_wh_ratio))


class Sheet:
    """The lines of a page, which is an array on the host or on the GPU, in the order in which networks take them.

    A batch that is asked for is made together with those that will be asked for next: one launch makes all lines that
    are no wider, so that most batches are parts of an array.
    """

    def __init__(self, page: Any, quads: NDArray[np.float32], shapes: NDArray[np.int64]) -> None:
        order = np.argsort(np.array([width / float(height) for height, width in shapes.tolist()]))  # as the engine does
        self.page, self.quads, self.shapes, self.ranks = page, quads[order], shapes[order], np.argsort(order)
        self._made: dict[Any, tuple[int, Any]] = {}

    def lines(self) -> list[Line]:
        return [Line(self, rank, (*self.shapes[rank].tolist(), 3)) for rank in self.ranks.tolist()]

    def batch(self, items: Sequence[_Item], least: int = 0, step: int = 1) -> Any:
        """The lines of items, (N, 3, height, width), and others behind them until there are so many at `least`; the
        width is a multiple of `step`."""
        ranks, first = [item.line.rank for item in items], items[0]
        filled, others = -(-first.width // step) * step, max(least - len(ranks), 0)
        begin, end = ranks[0], ranks[0] + len(ranks) + others
        if ranks != list(range(begin, end - others)):  # not in the order of their widths
            return self._cut(np.array(ranks + ranks[-1:] * others), first, filled)
        key = first.height, first.width, first.squeezed
        start, made = self._made.get(key, (0, ()))
        if not start <= begin < end <= start + len(made):
            fitting = len(self.shapes) if first.squeezed else np.searchsorted(self._widths(first), first.width, "right")
            ahead = np.arange(begin, max(min(int(fitting), begin + TOGETHER), end)).clip(max=len(self.shapes) - 1)
            start, made = self._made[key] = begin, self._cut(ahead, first, filled)
        if isinstance(made, np.ndarray):
            return made[begin - start : end - start]
        return made.part((begin - start) * math.prod(made.shape[1:]), (end - begin, *made.shape[1:]))

    def _widths(self, item: _Item) -> NDArray[np.int64]:
        widths: NDArray[np.int64] = np.ceil(item.height * (self.shapes[:, 1] / self.shapes[:, 0])).astype(np.int64)
        return widths

    def _cut(self, ranks: NDArray[np.int64], item: _Item, filled: int) -> Any:
        widths = np.minimum(self._widths(item)[ranks], item.width)
        sizes = np.stack([np.full_like(widths, item.height), widths], axis=1)
        options: dict[str, Any] = {"pad_to": (item.height, filled), **LEVELS}
        device = "cpu" if isinstance(self.page, np.ndarray) else "cuda"
        return crop_resize(self.page, self.quads[ranks], sizes, device=device, **options)[0]


@dataclass(frozen=True, eq=False)
class Line:
    """A line of text on its page: what the engine asks of its pixels before a network does."""

    sheet: Sheet
    rank: int
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __deepcopy__(self, memo: Any) -> Line:
        return self

    def turned(self) -> Line:
        """The line upside down, for all networks to come."""
        self.sheet.quads[self.rank] = np.roll(self.sheet.quads[self.rank], 2, 0)
        return self


@dataclass(frozen=True, eq=False)
class _Item:
    """A line that belongs to a batch; what the engine does with its pixels ends in the batch of all of them."""

    line: Line
    height: int
    width: int
    squeezed: bool = False  # to the width, however long it is

    def __getitem__(self, key: Any) -> _Item:
        return self

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _Batch(args[0]) if function is np.concatenate else NotImplemented


class _Batch:
    def __init__(self, items: Sequence[_Item]) -> None:
        self.items = items

    def astype(self, dtype: Any) -> _Batch:
        """As it is: float32."""
        return self

    def made(self, least: int = 0, step: int = 1) -> Any:
        """The batch (N, 3, height, width) where the page lies, as `Sheet.batch` has it."""
        return self.items[0].line.sheet.batch(self.items, least, step)


def quads_of(boxes: Any) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Where the engine's crops lie on the page, and their heights and widths, as `get_rotate_crop_image` has them.

    The engine maps the middles of pixels at its boxes' corners to the middles of the crop's corner pixels; quads are of
    their outer corners, half a pixel beyond. A tall crop is turned by a quarter.
    """
    corners = np.asarray(boxes, np.float32)

    def side(first: int, second: int) -> NDArray[np.float32]:
        length: NDArray[np.float32] = np.sqrt(((corners[:, first] - corners[:, second]) ** 2).sum(-1))
        return length

    widths = np.maximum(side(0, 1), side(2, 3)).astype(int)
    heights = np.maximum(side(0, 3), side(1, 2)).astype(int)
    half = np.stack([0.5 / widths, 0.5 / heights], -1)[:, None]
    unit = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]]) - half
    quads = (_projected(corners.astype(np.float64), unit) + 0.5).astype(np.float32)
    tall = heights * 1.0 / widths >= TALL
    quads[tall] = np.roll(quads[tall], -1, 1)
    return quads, np.where(tall, [widths, heights], [heights, widths]).T


def _projected(quads: NDArray[np.float64], unit: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points (N, 4, 2) of the unit square where the perspective maps to quads (N, 4, 2) take them.

    P. Heckbert, "Fundamentals of Texture Mapping and Image Warping" (1989), section 2.2.3.
    """
    p0, p1, p2, p3 = (quads[:, number] for number in range(4))
    excess, right, below = p0 - p1 + p2 - p3, p1 - p2, p3 - p2

    def cross(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        made: NDArray[np.float64] = (a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])[:, None]
        return made

    area = cross(right, below)
    g, h = cross(excess, below) / area, cross(right, excess) / area
    u, v = unit[..., :1], unit[..., 1:]
    across, down = (p1 - p0 + g * p1)[:, None], (p3 - p0 + h * p3)[:, None]
    made: NDArray[np.float64] = (across * u + down * v + p0[:, None]) / (g[:, None] * u + h[:, None] * v + 1)
    return made


def _page(original: Any, device: str, uploaded: Any, img: Any) -> Any:
    """In the place of `DetPreProcess.__call__`: the page as the detector takes it."""
    try:
        size = _with(type(original).resize, cv2=SimpleNamespace(resize=lambda img, size: size))(original, img)
        if size is None:
            return None
        there = memory.upload(img) if device == "cuda" else img
        uploaded.page = (img, there)
        return images.resize(
            [there], size[::-1], antialias=False, rounding="uint8", source="HWC", device=device, scale=255,
            mean=original.mean, std=original.std,
        )  # fmt: skip
    except KNOWN_ERRORS as error:
        warn_once("TextDetector", str(error))
        return original(img)


def _mapped(lines: list[Line], ratio_h: float, ratio_w: float) -> list[Line]:
    """In the place of `map_img_to_original`, of whose crops the sizes alone are read."""
    return [replace(one, shape=(round(one.shape[0] * ratio_h), round(one.shape[1] * ratio_w), 3)) for one in lines]


class _Session:
    """In the place of a network's session: makes batches, and keeps on the GPU what ONNX Runtime reads there."""

    least = 0  # lines of a batch
    make: Callable[[], Any] | None = None  # a session for each shape, where shapes are steady

    def __init__(self, session: Any, is_text: bool) -> None:
        self._session, self._is_text, self.device = session, is_text, "cpu"
        self.of_shapes, self._alone = dict[tuple[int, ...], Any](), threading.Lock()  # the last used is the last
        found = getattr(session, "session", None)
        providers: dict[str, Any] = getattr(found, "get_provider_options", dict)()
        if "CUDAExecutionProvider" in providers:
            try:
                resolve("cuda")
                self._ordinal = int(providers["CUDAExecutionProvider"].get("device_id", 0))
                self.device = "cuda" if self._ordinal == current().device_id else "cpu"
            except DeviceError as error:
                warn_once("RapidOCR", str(error))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def __call__(self, given: Any) -> Any:
        array, count, kept = given, len(given.items) if isinstance(given, _Batch) else None, 1.0
        if count is not None:
            array = given.made(self.least, STEP if self.make and self._is_text else 1)
            kept = given.items[0].width / array.shape[3]
        session = self._session if self.make is None else self._of_shape(array.shape)
        if isinstance(array, memory.DeviceArray):
            made = self._run(session.session, array) if self.device == "cuda" else session(array.copy_to_host())
        else:
            made = session(array)
        if self._is_text:
            return Scores(made, count, kept)
        return (made if isinstance(made, np.ndarray) else made.copy_to_host())[:count]

    def _of_shape(self, shape: tuple[int, ...]) -> Any:
        assert self.make is not None
        with self._alone:
            found = self.of_shapes[shape] = self.of_shapes.pop(shape, None) or self.make()
            if len(self.of_shapes) > MOST_SESSIONS:
                del self.of_shapes[next(iter(self.of_shapes))]
        return found

    def _run(self, session: Any, array: memory.DeviceArray) -> Any:
        given, made = session.get_inputs()[0].name, session.get_outputs()[0].name
        binding = session.io_binding()
        binding.bind_input(given, "cuda", self._ordinal, np.float32, array.shape, array.pointer)
        binding.bind_output(made, "cuda", self._ordinal)
        current().default_stream.sync()  # ONNX Runtime works on a stream of its own
        session.run_with_iobinding(binding)
        (result,) = binding.get_outputs()
        shape = tuple(result.shape())
        return memory.DeviceArray(shape, np.float32, buffer=result, pointer=result.data_ptr(), ordinal=self._ordinal)


class Scores:
    """Scores (N, T, C) of characters, of which the decoder asks the best of each place, and nothing else.

    Of more lines the first `count` are told, and of each line's places that part that isn't beyond the engine's width.
    """

    def __init__(self, scores: Any, count: int | None = None, kept: float = 1.0) -> None:
        self._scores, self._part = scores, (slice(count), slice(math.ceil(kept * scores.shape[1])))

    @cached_property
    def _best(self) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """Places and values: on the host in one pass, not two; from the GPU these alone are copied."""
        scores = self._scores
        if isinstance(scores, np.ndarray):
            places = scores.argmax(axis=2)
            return places, np.take_along_axis(scores, places[..., None], axis=2)[..., 0]
        shape, count = scores.shape[:2], scores.shape[2]
        found = [memory.DeviceArray(shape, dtype) for dtype in (np.int32, np.float32)]
        if rows := math.prod(shape):
            words = BEST.words({"count": count})
            arrays = [(None, BEST.place(name)) for name in ("places", "values", "scores")]
            function = compile.function_of(_kernel(compute_capability()))
            prepared = PreparedLaunch(words, arrays, Cuda(function, (rows, 1, 1, 256, 1, 1), current().device_id))
            launch(prepared, [array.pointer for array in (*found, scores)], current().default_stream)
        places, values = (array.copy_to_host() for array in found)
        return places, values

    def argmax(self, axis: int) -> NDArray[Any]:
        return self._best[0][self._part]

    def max(self, axis: int) -> NDArray[np.float32]:
        return self._best[1][self._part]


@cache
def _kernel(capability: tuple[int, int]) -> Any:
    return compile.load("best", partial(built, "cuda.best"))


def _like(original: Any, first: type) -> Any:
    made = copy.copy(original)
    kind: Any = type(original)
    made.__class__ = _class(first, kind)
    return made


@cache
def _class(first: type, kind: type) -> type:
    return type(kind.__name__, (first, kind), {})


def _with(function: Callable[..., Any], **names: Any) -> Callable[..., Any]:
    """A function of the engine that sees something else by some of its global names."""
    return FunctionType(function.__code__, {**function.__globals__, **names}, argdefs=function.__defaults__)


__all__ = ["TESTED", "FallbackWarning", "accelerate"]
