"""Crops, images and patch rows as operators of torch, which `torch.compile` and `torch.export` keep in their graphs.

    import octopus.torch

    crops = octopus.torch.crop_resize(frame, boxes, 224, scale=255)

The functions here take, give and raise what those of the same names in `octopus` and `octopus.images` do, for tensors;
called as usual they are those. While torch compiles or exports they are operators, `torch.ops.octopus.*`: one node of
the graph, whose shapes and errors are known before anything runs. Their arguments are then numbers of Python, words and
tensors, and `out`, `stream` and `device` are the compiler's business. No gradient passes through them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

import octopus
from octopus import images as of_images
from octopus.arrays.checks import check_choice, check_return_transform, dtype_text, is_count, normalisation, per_channel
from octopus.arrays.views import ArrayView, c_strides
from octopus.crop.check import check_box_shape
from octopus.crop.frame import upright
from octopus.crop.spec import CropOptions, make_spec
from octopus.errors import InputError, shown
from octopus.images import spec as image_spec
from octopus.images.sizes import items_of
from octopus.images.sources import geometry_of, look

__all__ = ["CropResize", "crop_resize", "fold_patch_embed", "patch_rows", "resize"]

_RULES: dict[str, Callable[..., Any]] = {"smart": of_images.smart_sizes, "fit": of_images.fit_sizes}
_LIMITS = {"smart": ("factor", "min_pixels", "max_pixels"), "fit": ("patch", "max_rows")}
_LISTS = ("mean", "std", "scale", "pad_value")
_OPTIONAL = (
    *_LISTS, "frame_index", "flip", "count", "source", "crop", "shortest", "merge", "temporal", "max_rows",
    "rounding",
)  # fmt: skip

_ITEMS = ("frame_index", "flip", "count", "mean", "std")  # tensors of `_CROP`, in its order
_NUMBERS = "float[]? mean=None, float[]? std=None, float[]? scale=None, ScalarType? dtype=None"
_CROP = (  # torch wants tensors before the star
    "(Tensor frame, Tensor boxes, int[2] size, Tensor? frame_index=None, Tensor? flip=None, Tensor? count=None, "
    f"Tensor? item_mean=None, Tensor? item_std=None, *, {_NUMBERS}, str layout='NCHW', str edge='box', "
    "bool antialias=False, str filter='bilinear', str outside='clip', str pad_mode='constant', "
    "float[]? pad_value=None, str channels='RGB')"
)
_IMAGES = f"{_NUMBERS}, str channels='RGB', str? source=None, bool antialias=True"
_RESIZE = (
    f"(Tensor[] images, int[2] size, *, {_IMAGES}, str filter='bilinear', str rounding='none', str layout='NCHW', "
    "float[]? pad_value=None, str? crop=None, int? shortest=None)"
)
_ROWS = (
    f"(Tensor[] images, int[] sizes, *, str rule='', int[] limits=[], {_IMAGES}, str filter='bicubic', "
    "str? rounding=None, int patch=14, int? merge=None, int? temporal=None, str order='CTPP', int? max_rows=None, "
    "int row_multiple=1)"
)


def crop_resize(frame: Tensor, boxes: Tensor, size: Any = (224, 224), **options: Any) -> Any:
    """`octopus.crop_resize` of tensors, which torch may compile and export.

    `frame` is (H, W, C) or (F, H, W, C), uint8, uint16 or float32; `boxes` (N, 4) or maps (N, 2, 3), int32, int64,
    float32 or float64. Returns a tensor (N, C, height, width) or (N, height, width, C), with `return_transform` a pair
    of it and the transforms (N, 4), float32; raises `InputError` as `octopus.crop_resize`, while compiling, too.

    While torch compiles `mean` and `std` of each item are tensors (N, C), and there are no frames of video.
    """
    if not torch.compiler.is_compiling():
        return octopus.crop_resize(frame, boxes, size, **options)
    for name in ("mean", "std"):
        if isinstance(options.get(name), Tensor):
            options[f"item_{name}"] = options.pop(name)
    if isinstance(options.get("count"), int):
        options["count"] = torch.full((), options["count"], dtype=torch.int32, device=boxes.device)
    return _one_of("crop_resize", "crop_letterbox", (frame, boxes, _pair(size)), options)


def resize(images: Sequence[Tensor], size: Any, **options: Any) -> Any:
    """`octopus.images.resize` of a list of tensors, which torch may compile and export.

    `images` are (H, W, C), (C, H, W) or (H, W), uint8, uint16 or float32. Returns a tensor (N, C, height, width) or
    (N, height, width, C), with `return_transform` a pair of it and the transforms (N, 4), float32; raises `InputError`
    as `octopus.images.resize`, while compiling, too.
    """
    if not torch.compiler.is_compiling():
        return of_images.resize(images, size, **options)
    _check_list(images)
    return _one_of("resize", "letterbox", (list(images), _pair(size)), options)


def patch_rows(images: Sequence[Tensor], sizes: Any, **options: Any) -> tuple[Tensor, ...]:
    """`octopus.images.patch_rows` of a list of tensors, which torch may compile and export.

    `images` as in `resize`. Returns `rows, grid`, or with `max_rows` `rows, mask, shapes`; raises `InputError` as
    `octopus.images.patch_rows`, while compiling, too; then also for a rule of another name.

    While torch compiles a rule for `sizes` is `smart_sizes` or `fit_sizes` of `octopus.images`, or a
    `functools.partial` of one with limits by name.
    """
    if not torch.compiler.is_compiling():
        return of_images.patch_rows(images, sizes, **options)
    _check_list(images)
    rule, limits = _rule_of(sizes) if callable(sizes) else ("", [])
    flat = [] if rule else [int(side) for pair in sizes for side in pair]
    return tuple(torch.ops.octopus.patch_rows(list(images), flat, rule=rule, limits=limits, **_numbers(options)))


def fold_patch_embed(
    layer: torch.nn.Module, *, mean: Any = None, std: Any = None, scale: Any = None, offset: Any = None,
    temporal: int = 1, frames: int | None = None, channels: int = 3, order: str = "CTPP", row_multiple: int = 1,
    dtype: Any = None,
) -> torch.nn.Linear:  # fmt: skip
    """The first layer of a vision model as one matrix product of patch rows, with less in each row.

    A still image is the same at every time step of a video model, so that weights summed over the steps give the
    same embeddings of rows with one copy of a patch. Normalisation is linear, too, and can be part of weights and bias:
    the rows are pixels then, in as few bits as these take. Weights are worked out in float64 and rounded once.

    Parameters
    ----------
    layer : Conv2d, Conv3d or Linear of torch.nn
        A convolution of square patches whose stride is its kernel, without padding, dilation and groups; or a linear
        layer of rows in this `order`. It stays as it is.
    mean, std, scale : float or C floats, optional
        What rows for `layer` are normalised by, as in `octopus.images.patch_rows`, and those for the result are not.
    offset : float or C floats, optional
        What the rows for the result hold less than pixels: 128 with `dtype="int8"`, or what they were made with as
        `mean`. In float16 and bfloat16 whole numbers up to 256 are exact, where normalised pixels are rounded.
    temporal : int
        Copies of a patch in the rows for the result: 1, or as many as `layer` has time steps.
    frames : int, optional
        Time steps of a linear `layer`; by default 2, and 1 with `order="PPC"`, as in `patch_rows`.
    channels : int
        Of the images of a linear `layer`.
    order : {"CTPP", "PPC"}
        Of the values of a row.
    row_multiple : int
        As in `patch_rows`: there are as many weights of zero as there are zeros behind a row.
    dtype : dtype of torch, or its name, optional
        Of the result; by default that of `layer`.

    Returns
    -------
    torch.nn.Linear
        From rows (..., K) to embeddings (..., D), on the device of `layer`. Rows of zeros, as `max_rows` adds them,
        give its bias; the mask says which they are.

    Raises
    ------
    InputError
        For layers of another kind, and options that don't fit the layer.

    Examples
    --------
    >>> layer = torch.nn.Conv3d(3, 32, (2, 14, 14), stride=(2, 14, 14))  # of Qwen2-VL, but for its width
    >>> fold_patch_embed(layer, row_multiple=8)
    Linear(in_features=592, out_features=32, bias=True)
    """
    check_choice("order", order, ("CTPP", "PPC"))
    for name, value in (("row_multiple", row_multiple), ("channels", channels), ("temporal", temporal)):
        if not is_count(value) or value < 1:
            raise InputError(f"{name} must be a positive integer, found {shown(value)}")
    normal = None
    if any(value is not None for value in (mean, std, scale, offset)):
        number = channels if isinstance(layer, torch.nn.Linear) else getattr(layer, "in_channels", 1)
        normal = linear_of(mean, std, scale, offset, number)
    frames = (2 if order == "CTPP" else 1) if frames is None else frames
    weight, bias = folded(layer, normal, temporal, frames, channels, order, row_multiple)
    kind = getattr(torch, dtype_text(dtype, ()) or "", None) if dtype is not None else layer.weight.dtype
    if not isinstance(kind, torch.dtype) or not kind.is_floating_point:
        raise InputError(f"dtype must be a float of torch, found {shown(dtype)}")
    made: torch.nn.Linear = torch.nn.utils.skip_init(
        torch.nn.Linear, weight.shape[1], weight.shape[0], bias=bias is not None, device=weight.device, dtype=kind
    )
    with torch.no_grad():
        made.weight.copy_(weight)
        if bias is not None:
            made.bias.copy_(bias)
    return made.requires_grad_(layer.weight.requires_grad).train(layer.training)


def linear_of(mean: Any, std: Any, scale: Any, offset: Any, channels: int) -> tuple[Any, ...]:
    """Gain and bias of each channel by which pixels less `offset` become normalised ones, in float64."""
    gain, bias = normalisation(mean, std, scale, channels, np.float64)
    return tuple(gain.tolist()), tuple((bias + gain * per_channel("offset", offset, 0.0, channels)).tolist())


def folded(
    layer: Any, normal: Any, temporal: int, frames: int, channels: int, order: str, row_multiple: int
) -> tuple[Tensor, Tensor | None]:
    """Weights (D, K) and bias of `fold_patch_embed`, float64; gradients reach those of the layer.

    `normal` is `linear_of`, or None.
    """
    parts = _parts(layer, frames, channels, order)
    steps = parts.shape[2]
    if temporal not in (1, steps) or (order == "PPC" and temporal > 1):
        raise InputError(f"temporal must be 1, or the {steps} time steps of the layer in CTPP, found {temporal}")
    bias = None if layer.bias is None else layer.bias.double()
    if normal is not None:
        gains, shifts = torch.tensor(normal, dtype=torch.float64, device=parts.device)
        moved = parts.sum((2, 3)) @ shifts
        parts, bias = parts * gains[:, None, None], moved if bias is None else bias + moved
    if temporal < steps:
        parts = parts.sum(2, keepdim=True)
    rows = (parts if order == "CTPP" else parts.permute(0, 2, 3, 1)).flatten(1)
    return torch.nn.functional.pad(rows, (0, -rows.shape[1] % row_multiple)), bias


def _parts(layer: Any, frames: int, channels: int, order: str) -> Tensor:
    """A layer's weights by channel, time step and pixel, (D, C, T, P * P), float64."""
    nn = torch.nn
    if not isinstance(layer, (nn.Conv2d, nn.Conv3d, nn.Linear)) or not layer.weight.is_floating_point():
        raise InputError(
            f"layer must be a Conv2d, Conv3d or Linear of torch.nn with weights that are floats, found {shown(layer)}"
        )
    weight = layer.weight.double()
    if isinstance(layer, nn.Linear):
        pixels, rest = divmod(layer.in_features, channels * frames)
        if rest or math.isqrt(pixels) ** 2 != pixels:
            raise InputError(
                f"the layer takes rows of {layer.in_features} values, which are no square patches of {channels} "
                f"channels and {frames} time steps; say which with channels= and frames="
            )
        if order == "PPC":
            return weight.unflatten(1, (frames, pixels, channels)).permute(0, 3, 1, 2)
        return weight.unflatten(1, (channels, frames, pixels))
    *_, height, width = layer.kernel_size
    plain = layer.padding == "valid" or not any(layer.padding), {*layer.dilation, layer.groups} == {1}
    if height != width or layer.stride != layer.kernel_size or not all(plain):
        raise InputError(
            f"layer must have square patches, its kernel as stride, and no padding, dilation or groups, found {layer}"
        )
    return (weight if weight.ndim == 5 else weight[:, :, None]).flatten(3)


class CropResize(torch.nn.Module):
    """A layer that crops boxes out of a frame: `crop_resize` with what doesn't change from frame to frame.

    Parameters
    ----------
    size : (int, int) or int
    **options
        Keyword arguments of `crop_resize`, but those of `forward`.

    Examples
    --------
    >>> layer = CropResize(32, scale=255)
    >>> layer(torch.zeros(90, 160, 3, dtype=torch.uint8), torch.tensor([[10, 20, 60, 80]])).shape
    torch.Size([1, 3, 32, 32])
    """

    def __init__(self, size: Any = (224, 224), **options: Any) -> None:
        super().__init__()
        CropOptions(size=size, **options)  # refuses what can't be, before the first frame
        self.size = size
        self.options = {name: _lasting(value) for name, value in options.items()}

    def forward(
        self, frame: Tensor, boxes: Tensor, frame_index: Tensor | None = None, flip: Tensor | None = None,
        count: Tensor | None = None,
    ) -> Any:  # fmt: skip
        """The crops; see `octopus.crop_resize` for all of these."""
        return crop_resize(frame, boxes, self.size, frame_index=frame_index, flip=flip, count=count, **self.options)

    def extra_repr(self) -> str:
        return ", ".join([f"size={self.size}", *(f"{name}={value}" for name, value in self.options.items())])


def _one_of(plain: str, boxing: str, given: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The answer of one of two operators, of which the second returns transforms, too."""
    boxed, back = (options.pop(name, False) for name in ("letterbox", "return_transform"))
    check_return_transform(boxed, back)
    made = getattr(torch.ops.octopus, boxing if boxed else plain)(*given, **_numbers(options))
    return made[0] if boxed and not back else made


def _check_list(images: Any) -> None:
    if isinstance(images, Tensor):
        raise InputError("images is one tensor; while torch compiles, pass a list of tensors: list(images)")


def _lasting(value: Any) -> Any:
    """An option as numbers of Python, which compiled code may hold, where it is one of NumPy."""
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def _pair(size: Any) -> list[int]:
    return [size, size] if isinstance(size, (int, torch.SymInt)) else list(size)


def _numbers(options: dict[str, Any]) -> dict[str, Any]:
    """Options as an operator takes them: lists of floats, torch's own dtypes, and nothing where None is the default."""
    given = {name: value for name, value in options.items() if value is not None or name not in _OPTIONAL}
    for name in _LISTS:
        if given.get(name) is not None:
            value = given[name]
            given[name] = [float(value)] if isinstance(value, (int, float)) else [float(part) for part in value]
    if isinstance(given.get("dtype"), str):
        given["dtype"] = getattr(torch, given["dtype"])
    return given


def _rule_of(sizes: Any) -> tuple[str, list[int]]:
    """The name of a rule for sizes, and its limits; -1 where the rule has its own."""
    base, limits = (sizes.func, sizes.keywords) if isinstance(sizes, partial) else (sizes, {})
    for name, rule in _RULES.items():
        whole = all(type(limit) is int and limit > 0 for limit in limits.values())
        if base is rule and set(limits) <= set(_LIMITS[name]) and whole:
            return name, [limits.get(limit, -1) for limit in _LIMITS[name]]
    raise InputError(
        f"sizes is {shown(sizes)}; while torch compiles, pass octopus.images.smart_sizes or fit_sizes, a "
        "functools.partial of one with positive integers by name, or pairs of numbers"
    )


def _sizes(sizes: list[int], rule: str, limits: Sequence[int]) -> Any:
    if not rule:
        return np.array(sizes, np.int64).reshape(-1, 2)
    given = {name: limit for name, limit in zip(_LIMITS[rule], limits, strict=True) if limit >= 0}
    return partial(_RULES[rule], **given) if given else _RULES[rule]


# An operator is given what differs from the defaults of its schema, which are those of the functions that it calls.
def _crop(frame: Tensor, boxes: Tensor, size: list[int], *items: Any, **options: Any) -> Any:
    given = {name: value for name, value in zip(_ITEMS, items, strict=False) if value is not None}
    return octopus.crop_resize(frame, boxes, tuple(size), **given, **options)


def _resize(images: list[Tensor], size: list[int], **options: Any) -> Any:
    return of_images.resize(images, tuple(size), **options)


def _rows(
    images: list[Tensor], sizes: list[int], rule: str = "", limits: Sequence[int] = (), **options: Any
) -> list[Tensor]:
    return list(of_images.patch_rows(images, _sizes(sizes, rule, limits), **options))


def _fake_crop(frame: Tensor, boxes: Tensor, size: list[int], *_: Any, **options: Any) -> Any:
    """Results without values, after the checks that need none."""
    *sides, channels = frame.shape
    shape = (*(side if type(side) is int else 8 for side in sides), int(channels))  # a side may be unknown
    dtype = _numpy_dtype(frame, "frame")
    side = "cuda" if frame.is_cuda else "cpu"
    model = upright(ArrayView(0, shape, c_strides(shape, dtype), dtype, side, "torch", None), copied=False)
    check_box_shape((1, *(int(side) for side in boxes.shape[1:])), _numpy_dtype(boxes, "boxes"))
    checked = CropOptions(tuple(size), **_named(options))
    return _empty(frame, (boxes.shape[0], *make_spec(model, checked).item), options, checked.letterbox)


def _fake_resize(images: list[Tensor], size: list[int], **options: Any) -> Any:
    spec, items = _images_as_asked("resize", images, None, size=tuple(size), **options)
    return _empty(images[0], items.shape, options, spec.return_transform)


def _fake_rows(
    images: list[Tensor], sizes: list[int], rule: str = "", limits: Sequence[int] = (), **options: Any
) -> list[Tensor]:
    spec, items = _images_as_asked("patch_rows", images, _sizes(sizes, rule, limits), **options)
    made = _empty(images[0], items.shape, options)
    grid = torch.empty((len(images), 3), dtype=torch.int64, device="cpu")
    if spec.max_rows is None:
        return [made, grid]
    return [made, images[0].new_empty(items.shape[:2], dtype=torch.int32), grid[:, 1:].clone()]


def _images_as_asked(operation: str, images: list[Tensor], sizes: Any, **options: Any) -> tuple[Any, Any]:
    """Spec and items of a call, checked against images of which the sides are known, and no values."""
    stand_ins = [
        np.empty([int(side) for side in image.shape], _numpy_dtype(image, f"image {number}"))
        for number, image in enumerate(images)
    ]
    geometry = geometry_of(look(stand_ins), options.get("source"), options.get("channels", "RGB"))
    spec = image_spec.make_spec(geometry.dtype, geometry.channels, operation, **_named(options))
    return spec, items_of(spec, geometry.sides, sizes)


def _empty(model: Tensor, shape: Sequence[Any], options: dict[str, Any], transforms: bool = False) -> Any:
    made = model.new_empty(shape, dtype=options.get("dtype", torch.float32))
    return (made, model.new_empty((shape[0], 4), dtype=torch.float32)) if transforms else made


def _numpy_dtype(tensor: Tensor, name: str) -> np.dtype:
    try:
        return np.dtype(_name(tensor.dtype))
    except TypeError:
        text = f"{name} has the dtype {_name(tensor.dtype)}, which NumPy doesn't know; convert it first"
        raise InputError(text) from None


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _named(options: dict[str, Any]) -> dict[str, Any]:
    return {**options, "dtype": _name(options.get("dtype", torch.float32))}


def _no_gradient(*_: Any) -> None:
    raise InputError("no gradient passes through Octopus; pass tensors that require one with .detach()")


def _registered() -> Any:
    """Operators that take their arguments as they are: torch's own wrappers would cost more than a launch."""
    library, pair, boxed = (
        torch.library.Library("octopus", "DEF"),
        "(Tensor, Tensor)",
        {"letterbox": True, "return_transform": True},
    )
    tags: tuple[Any, ...] = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
    # Images reserve memory for their table, which a CUDA graph can't; torch 2.11 has no word for that.
    unsafe = (torch.Tag.cudagraph_unsafe,) if hasattr(torch.Tag, "cudagraph_unsafe") else ()
    for name, schema, result, run, fake in (
        ("crop_resize", _CROP, "Tensor", _crop, _fake_crop),
        ("crop_letterbox", _CROP, pair, partial(_crop, **boxed), partial(_fake_crop, **boxed)),
        ("resize", _RESIZE, "Tensor", _resize, _fake_resize),
        ("letterbox", _RESIZE, pair, partial(_resize, **boxed), partial(_fake_resize, **boxed)),
        ("patch_rows", _ROWS, "Tensor[]", _rows, _fake_rows),
    ):
        library.define(f"{name}{schema} -> {result}", tags=tags + (unsafe if "images" in schema else ()))
        library.impl(name, run, "CompositeExplicitAutograd")
        torch.library.register_fake(f"octopus::{name}", fake, lib=library)
        torch.library.register_autograd(f"octopus::{name}", _no_gradient, lib=library)
    return library


_LIBRARY = _registered()  # the operators live as long as this


def __dir__() -> list[str]:
    """The public names alone."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
