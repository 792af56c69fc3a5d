"""What Ultralytics does frame by frame and box by box, as one launch: letterboxed batches, crops for trackers.

>>> model = YOLO("yolo26n.pt")  # doctest: +SKIP
>>> model.predict(frames)  # makes its predictor  # doctest: +SKIP
>>> accelerate(model.predictor)  # doctest: +SKIP

Sizes, padding and what a predictor asks for are computed by Ultralytics' own code, which its user has installed.
"""

import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from octopus import images
from octopus.crop.api import crop_resize
from octopus.errors import InputError, shown_type
from octopus.images.sizes import inner_places
from octopus.integrations.common import KNOWN_ERRORS, FallbackWarning, UnknownError, check_version, moved, warn_once

TESTED = ("8.4.179", "8.4.190")

# What is stood in for, and what that calls.
PREDICTING, ENCODING = ("preprocess", "pre_transform"), ("__call__", "_crop_detections", "_crops_to_tensor")
AUGMENT, UTILS = "ultralytics.data.augment", "ultralytics.utils"
PADDING = tuple(f"{AUGMENT}.LetterBox.{name}" for name in ("__call__", "get_params", "apply_image"))
CUTTING = f"{UTILS}.plotting.save_one_box", f"{UTILS}.ops.xywh2xyxy"

# Boxes grow by this factor and so many pixels before they are cut out for re-identification.
GROWTH, MARGIN = 1.02, 10
BILINEAR = 1  # cv2.INTER_LINEAR
LIKE_BGR: dict[str, Any] = {"channels": "BGR", "scale": 255}


def letterbox(frames: Sequence[Any], box: Any, *, half: bool = False, device: Any = "auto") -> Any:
    """Frames of any sizes as the batch that `BasePredictor.preprocess` makes of them, in one launch.

    Parameters
    ----------
    frames : list of arrays, (H, W, C) uint8
        As OpenCV reads them, three channels being blue, green and red; one or four stay as they are. On the host or the
        GPU.
    box : ultralytics.data.augment.LetterBox
        With `center`, and cv2.INTER_LINEAR as `interpolation`, as it is by default. `auto` needs frames of one shape.
    half : bool
        float16 instead of float32.
    device
        As in `octopus.images.resize`.

    Returns
    -------
    array, (N, C, height, width)
        Red, green and blue in 0 to 1, of the frames' library.

    Raises
    ------
    InputError
        For frames that are no images of uint8, or a `LetterBox` that asks for something else.
    MissingPackageError
        If Ultralytics can't be imported, or its version is older than those tested.
    """
    check_version("ultralytics", TESTED)
    try:
        return _batch(frames, [(box, box.get_params({"img": frame})) for frame in frames], half, device)
    except UnknownError as error:
        raise InputError(f"letterbox can't do that: {error}") from None


def _batch(frames: Sequence[Any], asked: list[tuple[Any, dict[str, Any]]], half: bool, device: Any) -> Any:
    if len({(box.padding_value, box.interpolation) for box, _ in asked}) > 1 or not asked:
        raise UnknownError("there are no frames, or several ways to pad them")
    if any(frame.ndim != 3 for frame in frames):
        raise UnknownError("a frame has no axis of channels")
    if asked[0][0].interpolation != BILINEAR:
        raise UnknownError(f"interpolation={asked[0][0].interpolation} is not cv2.INTER_LINEAR")
    inner = np.array([(*params["new_unpad"][::-1], params["top"], params["left"]) for _, params in asked])
    after = np.array([(params["bottom"], params["right"]) for _, params in asked])
    sizes = inner[:, :2] + inner[:, 2:] + after
    height, width = sizes[0].tolist()
    if (sizes != sizes[0]).any():
        raise UnknownError(f"items would be of several sizes: {height}x{width} and others")
    options: dict[str, Any] = {}
    if (inner[:, :2] != sizes).any():
        rows, columns, top, left = inner_places(height, width, np.array([frame.shape[:2] for frame in frames]))
        if (np.column_stack([rows, columns, -top, -left]) != inner).any():
            raise UnknownError("a frame is not in the middle, not as large as it could be, or rounded otherwise")
        options = {"letterbox": True, "pad_value": asked[0][0].padding_value}
    return images.resize(
        frames, (height, width), antialias=False, rounding="uint8", source="HWC", device=device,
        dtype="float16" if half else "float32", scale=255,
        channels="BGR" if frames[0].shape[2] == 3 else "RGB", **options,
    )  # fmt: skip


def reid_crops(
    frame: Any, dets: Any, size: Any = (224, 224), *, half: bool = False, device: Any = "auto"
) -> tuple[Any, Any]:
    """The crops of a frame that Ultralytics' trackers give to a model for re-identification, in one launch.

    Parameters
    ----------
    frame : array, (H, W, 3) uint8
        Blue, green and red, on the host or the GPU.
    dets : array, (N, 4 or more), float32 or float64
        Centre, width and height in pixels, such as `Results.boxes.xywh`; NumPy or torch, on the frame's side. Each
        grows by 2 % and 10 pixels, and is cut to whole pixels and to the frame.
    size, device
        As in `octopus.crop_resize`.
    half : bool
        float16 instead of float32.

    Returns
    -------
    crops : array, (M, 3, height, width)
        Red, green and blue in 0 to 1, like the result of `octopus.crop_resize`. On the host of the boxes that are not
        empty; boxes on the GPU are not read by the host, there M is N and an empty one gives NaN.
    kept : array, (N,), bool
        Which boxes are not empty, of the boxes' library.
    """
    boxes = _grown(dets, *frame.shape[:2])
    kept = (boxes[:, :2] < boxes[:, 2:]).all(1)
    chosen = boxes if boxes.is_cuda else boxes[kept].numpy()
    options: dict[str, Any] = {"dtype": "float16" if half else "float32", "device": device, **LIKE_BGR}
    return crop_resize(frame, chosen, size, **options), kept.numpy() if isinstance(dets, np.ndarray) else kept


def _grown(dets: Any, height: int, width: int) -> Any:
    """Boxes x1, y1, x2, y2 as they are cut out, a tensor (N, 4) of int64 on the side of `dets`."""
    torch = import_module("torch")
    given = torch.as_tensor(dets)[:, :4]
    if not given.is_floating_point():
        raise InputError(f"dets must be float32 or float64, found {given.dtype}")
    # In Ultralytics' order and precision, so that what is truncated is the same: corners as given, then float32.
    low, high = (given[:, :2] - given[:, 2:] / 2).float(), (given[:, :2] + given[:, 2:] / 2).float()
    middle, reach = (low + high) / 2, ((high - low) * GROWTH + MARGIN) / 2
    corners = torch.cat([middle - reach, middle + reach], 1).long()
    return corners.clamp_(min=0).minimum(corners.new_tensor([width, height, width, height]))


def accelerate(target: Any, *, untested: bool = False) -> Any:
    """Let one predictor, tracker or encoder of Ultralytics prepare its frames or crops by one launch.

    Methods of that object are replaced, on it alone; `del predictor.preprocess` brings the original back. What they
    don't know goes to the original's code, with a `FallbackWarning` that names the reason.
    `docs/integrations/ultralytics.md` says how near values are.

    Parameters
    ----------
    target : BasePredictor, ReID or tracker
        Of a predictor `preprocess` is replaced, and what its trackers have; of a tracker what its encoder has; of an
        encoder (`ReID`) how it cuts out and stacks crops.
    untested : bool
        Work with a version of Ultralytics older than those of `TESTED`. One that is newer is worked with anyway, after
        a warning, where the code that is stood in for is known; where it is not, the original answers.

    Returns
    -------
    The same object, with a `FallbackWarning` if its class computes something else.

    Raises
    ------
    InputError
        For what is none of these.
    MissingPackageError
        If Ultralytics can't be imported, or its version is older than those tested.
    """
    newer = check_version("ultralytics", TESTED, untested)
    predictor = import_module("ultralytics.engine.predictor").BasePredictor
    # Without it there is no encoder; and importing it would let Ultralytics install what trackers need.
    encoder: Any = getattr(sys.modules.get("ultralytics.trackers.utils.reid"), "ReID", ())
    if isinstance(target, predictor):
        _replace(target, predictor, PREDICTING, PADDING if newer else (), preprocess=_preprocess)
        for tracker in getattr(target, "trackers", ()):
            if isinstance(getattr(tracker, "encoder", None), encoder):
                accelerate(tracker, untested=untested)
    elif isinstance(target, encoder):
        new = {"_crop_detections": _crop_detections, "_crops_to_tensor": _crops_to_tensor}
        _replace(target, encoder, ENCODING, CUTTING if newer else (), **new)
    elif isinstance(getattr(target, "encoder", None), encoder):
        accelerate(target.encoder, untested=untested)
    else:
        raise InputError(
            "accelerate takes a predictor of Ultralytics (model.predictor, after a first call), a tracker with a model "
            f"for re-identification, or that model's ReID, found {shown_type(target)}"
        )
    return target


def _replace(target: Any, owner: type, methods: tuple[str, ...], compared: tuple[str, ...], **new: Any) -> None:
    """Put functions in the place of methods of one object, if its class has those of the class that is known. With
    `compared`, what these call, it must also be code that is known."""
    own = [getattr(owner, name) for name in methods]
    if [getattr(type(target), name) for name in methods] != own:
        warn_once(type(target).__name__, "it computes something that octopus doesn't know")
    elif compared and (changed := moved([*own, *compared])):
        warn_once(type(target).__name__, f"this version of Ultralytics has changed {', '.join(changed)}")
    else:
        for name, function in new.items():
            setattr(target, name, MethodType(function, target))


def relied_on() -> list[Any]:
    """All code of Ultralytics that is stood in for; imports what trackers need."""
    predictor = import_module("ultralytics.engine.predictor").BasePredictor
    encoder = import_module("ultralytics.trackers.utils.reid").ReID
    owned = {predictor: PREDICTING, encoder: ENCODING}
    return [*(getattr(owner, name) for owner, names in owned.items() for name in names), *PADDING, *CUTTING]


def _preprocess(self: Any, im: Any) -> Any:
    """In the place of `BasePredictor.preprocess`; a tensor is prepared already."""
    if not isinstance(im, import_module("torch").Tensor):
        try:
            frames, where = _brought(im, self.device)
            return _tensor(_batch(frames, _pre_transform()(self, im), self.model.fp16, where), self.device)
        except KNOWN_ERRORS as error:
            warn_once(type(self).__name__, str(error))
    return type(self).preprocess(self, im)


@cache
def _pre_transform() -> Any:
    """The predictor's own `pre_transform`, with a `LetterBox` that says what it would do to each frame. So the rules of
    when it does what stay Ultralytics', whatever the version."""
    letter_box = import_module("ultralytics.data.augment").LetterBox

    def call(self: Any, image: Any) -> Any:
        return self, self.get_params({"img": image})

    asking = type("LetterBox", (letter_box,), {"__call__": call})
    original = import_module("ultralytics.engine.predictor").BasePredictor.pre_transform
    return FunctionType(original.__code__, {**original.__globals__, "LetterBox": asking})


def _crop_detections(self: Any, img: Any, dets: Any) -> list[Any]:
    """In the place of `ReID._crop_detections`: all boxes at once; crops are views of the frame, as there."""
    try:
        boxes = _grown(dets, *img.shape[:2])
    except KNOWN_ERRORS as error:
        warn_once(type(self).__name__, str(error))
        original: list[Any] = type(self)._crop_detections(img, dets)
        return original
    return [img[y1:y2, x1:x2] for x1, y1, x2, y2 in boxes.tolist()]


def _crops_to_tensor(self: Any, crops: list[Any]) -> Any:
    try:
        given, where = _brought(crops, self.device)
        options: dict[str, Any] = {"dtype": "float16" if self.fp16 else "float32", "device": where, **LIKE_BGR}
        return _tensor(images.resize(given, self.imgsz, antialias=False, source="HWC", **options), self.device)
    except KNOWN_ERRORS as error:
        warn_once(type(self).__name__, str(error))
    return type(self)._crops_to_tensor(self, crops)


def _brought(arrays: Sequence[Any], device: Any) -> tuple[Sequence[Any], Any]:
    """Arrays of NumPy as the launch takes them that works for a device of torch, and where it works. For a GPU they are
    tensors, so that the result is one; torch has none that is read-only or goes backwards."""
    if device.type != "cuda":
        return arrays, "cpu"
    tensor = import_module("torch").from_numpy
    plain = [one if one.flags.writeable and min(one.strides) >= 0 else one.copy() for one in arrays]
    return [tensor(one) for one in plain], device


def _tensor(made: Any, device: Any) -> Any:
    return import_module("torch").as_tensor(made).to(device)


__all__ = ["TESTED", "FallbackWarning", "accelerate", "letterbox", "reid_crops"]
