"""Image processors of transformers whose images are resized, rounded, normalised and laid out by one launch.

>>> from transformers import CLIPImageProcessor  # doctest: +SKIP
>>> processor = accelerate(CLIPImageProcessor())  # doctest: +SKIP

`KNOWN` says which code of transformers is stood in for. A processor is known if the methods that make its answer are
those of a row, whatever its class; so a subclass with code of its own is seen. A call's options are checked by the
processor's own code, once for each kind of call. Images of Pillow and arrays of three channels go to the launch as they
are (`_gathered`); what is left, such as files and grey arrays, the processor's own code prepares.
"""

from __future__ import annotations

import copy
import platform
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from inspect import signature, unwrap
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from octopus import images as ops
from octopus.arrays.checks import dtype_text
from octopus.arrays.memo import UnreadableError, dynamo_disabled, frozen
from octopus.arrays.pillow import DecodeError, Raster, decode, is_pillow, is_transparent, rasters, rgb
from octopus.backends.cpu.threads import get_num_threads, share
from octopus.errors import DeviceError, InputError, OutOfMemoryError, shown_type
from octopus.images.api import run
from octopus.integrations.common import FallbackWarning, UnknownError, check_version, is_newer, moved, warn_once

TESTED = ("5.17", "5.18", "5.19", "5.20", "5.21", "5.22", "5.23", "5.24")

VERTICAL_FIRST = 13  # the first version of Pillow that begins with the vertical pass where that is less work
MOST_KINDS = 16  # of calls whose options are kept, for each processor
CHANNELS = (1, 3, 4)  # of images, as transformers looks for them
DTYPES = ("float32", "float16", "bfloat16")
KNOWN_ERRORS = (UnknownError, InputError, DeviceError, OutOfMemoryError)

# Of Pillow's numbers and torchvision's names.
FILTERS = {
    None: "bilinear", 0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", "lanczos": "lanczos",
    "bilinear": "bilinear", "bicubic": "bicubic",
}  # fmt: skip


class Call(NamedTuple):
    """What a processor is about to compute.

    Attributes
    ----------
    processor : BaseImageProcessor
    images : list of torch.Tensor, ndarray or Raster
        (C, H, W) or (H, W, C), as `source` says.
    asked : dict
        Options of the call by transformers' names, each with a value.
    pil : bool
        Whether it is on Pillow and NumPy, not on torchvision and torch.
    dtype : str
        Of results that are floats.
    source : {"CHW", "HWC"}
    made : dict or None
        What calls with the same options share, if they are remembered.
    """

    processor: Any
    images: list[Any]
    asked: dict[str, Any]
    pil: bool
    dtype: str = "float32"
    source: str = "CHW"
    made: dict[Any, Any] | None = None

    @property
    def sides(self) -> list[tuple[int, int]]:
        """Heights and widths."""
        begin = 1 if self.source == "CHW" else 0
        return [tuple(image.shape[begin : begin + 2]) for image in self.images]

    @property
    def floats(self) -> bool:
        """Whether the images are."""
        return _dtype_text(self.images[0].dtype).startswith("float")

    @property
    def on_cpu(self) -> bool:
        """Whether the CPU computes it."""
        device = self.asked.get("device")
        if device is None:
            device = getattr(self.images[0], "device", "cpu")
        return self.pil or str(device).startswith("cpu")

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """What `make` makes of the options, the images' dtype and where the work is done, kept for other calls."""
        if self.made is None:
            return make()
        key = name, self.floats, self.on_cpu
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    def launch(self, operation: str, images: list[Any], sizes: Any = None, **own: Any) -> Any:
        """An operation of `octopus.images`, whose results are of the processor's library."""
        options = {**self.once("options", self._options), **own, "source": self.source}
        library = "numpy" if self.pil else "torch"
        key = None if self.made is None else (self.made["number"], self.floats, self.source, *own.values())
        return run(operation, options, images, sizes, None, None, self._device, library, key)

    def _options(self) -> dict[str, Any]:
        asked, floats = self.asked, self.floats
        whole = not (asked["do_rescale"] or asked["do_normalize"] or floats)
        normal = asked["do_normalize"]
        return {
            "filter": _filter_of(self), "rounding": "none" if floats else _rounding_of(self), "antialias": True,
            "mean": asked["image_mean"] if normal else None, "std": asked["image_std"] if normal else None,
            "scale": 1 / asked["rescale_factor"] if asked["do_rescale"] else 1,
            "dtype": "uint8" if whole else self.dtype, "channels": "RGB",
        }  # fmt: skip

    @property
    def _device(self) -> Any:
        """Where the images go, as `octopus.images` takes it; transformers also takes the number of a GPU."""
        device = None if self.pil else self.asked.get("device")
        return "auto" if device is None else f"cuda:{device}" if type(device) is int else device

    def answer(self, **values: Any) -> Any:
        """The processor's output of these values."""
        tensors, made = self.asked["return_tensors"], _module("image_processing_utils").BatchFeature
        done = tensors == "pt" and not any(isinstance(value, (list, np.ndarray)) for value in values.values())
        return made(data=values, tensor_type=None if done else tensors)

    def listed(self, batch: Any) -> Any:
        """A batch as the list that the processor makes, which `return_tensors` would only put together again."""
        return list(batch) if self.asked["return_tensors"] is None else batch


@cache
def _dtype_text(dtype: Any) -> str:
    """A dtype's name, which NumPy puts together anew each time."""
    return str(dtype).removeprefix("torch.")


@cache
def _module(name: str) -> Any:
    return import_module(f"transformers.{name}")


def _filter_of(call: Call) -> Any:
    if not call.asked["do_resize"]:
        return "bilinear"
    resample = call.asked["resample"]
    if call.pil and isinstance(resample, str):
        raise UnknownError(f"resample={resample!r}: Pillow's backend knows no names and takes them for bilinear")
    name = FILTERS.get(getattr(resample, "value", resample))
    if name is None:
        raise UnknownError(f"resample={resample} is none of {', '.join(sorted(set(FILTERS.values())))}")
    if name == "nearest" and not call.pil:
        raise UnknownError(f"resample={resample}: torchvision's nearest pixels are others than Pillow's")
    if name == "lanczos" and not call.on_cpu:
        raise UnknownError("resample=LANCZOS is bicubic in transformers on a GPU")
    return name


def _rounding_of(call: Call) -> str:
    """Which rounding is the processor's, for images of uint8.

    On a CPU torchvision resizes bytes in fixed point; without the instructions for it, and elsewhere, in float.
    """
    if call.pil:
        return "pillow"
    return "torch" if call.on_cpu and _fixed_point(_filter_of(call)) else "uint8"


@cache
def _fixed_point(filter: str) -> bool:
    """Whether torchvision resizes bytes as such on this CPU."""
    import torch

    vectors = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
    return filter != "bilinear" or vectors or platform.machine() in ("aarch64", "arm64")


def batch(call: Call) -> Any:
    """One size or one rule for all, perhaps the middle of it or padded: CLIP, SigLIP, ViT, DINOv2 and many others."""
    asked, size, crop = call.asked, call.asked["size"], call.asked["do_center_crop"]
    known = call.once("rule", lambda: _rule(size)) if asked["do_resize"] else set()
    if crop and known == {"shortest_edge"}:
        cut, images = (asked["crop_size"].height, asked["crop_size"].width), call.images
        if call.pil:
            sizes = np.array([_size_of(call, *sides) for sides in call.sides])
            if (((lack := cut - sizes) > 0) & (lack % 2 == 1)).any():
                raise UnknownError("an odd number of pixels is missing to crop_size, which Pillow's backend pads first")
            images = _in_order(call, sizes)
        made = call.launch("resize", images, size=cut, crop="center", shortest=size.shortest_edge)
    elif known == {"height", "width"}:
        images = call.images
        if call.pil:
            images = _in_order(call, np.full((len(images), 2), (size.height, size.width)))
        made = call.launch("resize", images, size=(size.height, size.width))
        made = _middle(made, asked["crop_size"]) if crop else made
    else:
        made = _of_any_size(call, [_size_of(call, *sides) for sides in call.sides])
    if asked["do_pad"] and (asked["pad_size"] or isinstance(made, list)):
        made = call.processor.pad(list(made), pad_size=asked["pad_size"], disable_grouping=True)
    return call.answer(pixel_values=made if isinstance(made, list) else call.listed(made))


def _of_any_size(call: Call, sizes: list[tuple[int, int]]) -> Any:
    """Images at sizes that a rule made of each."""
    images = _in_order(call, sizes)
    if len(set(sizes)) == 1:
        made = call.launch("resize", images, size=sizes[0])
        return _middle(made, call.asked["crop_size"]) if call.asked["do_center_crop"] else made
    if call.asked["do_center_crop"]:
        raise UnknownError("the middle of images of different size is known for size={'shortest_edge': ...} alone")
    if call.dtype == "bfloat16":
        raise UnknownError("images of several sizes can't be bfloat16 here")
    return list(call.launch("resize_each", images, sizes))


def _rule(size: Any) -> set[str]:
    """Which sides of a `SizeDict` are given."""
    names = ("height", "width", "shortest_edge", "longest_edge", "max_height", "max_width")
    return {name for name in names if getattr(size, name)}


def _size_of(call: Call, height: int, width: int) -> tuple[int, int]:
    """What an image becomes, by the functions of transformers that its processors call."""
    size, rule = call.asked["size"], _module("image_transforms")
    if not call.asked["do_resize"]:
        return height, width
    if size.shortest_edge and size.longest_edge:
        found = rule.get_size_with_aspect_ratio((height, width), size.shortest_edge, size.longest_edge)
    elif size.shortest_edge:
        blank = np.broadcast_to(np.uint8(0), (1, height, width))
        found = rule.get_resize_output_image_size(
            blank, size.shortest_edge, default_to_square=False, input_data_format="channels_first"
        )
    elif size.max_height and size.max_width:
        limit = _module("image_utils").get_image_size_for_max_height_width
        found = limit((height, width), size.max_height, size.max_width)
    elif size.height and size.width:
        found = size.height, size.width
    else:
        raise UnknownError(f"size={size} gives neither both sides nor a rule")
    return int(found[0]), int(found[1])


def _middle(made: Any, size: Any) -> Any:
    """The middle of a batch, which is normalised already: no pixel knows of its neighbours then."""
    (height, width), (rows, columns) = (size.height, size.width), made.shape[-2:]
    if height > rows or width > columns:
        raise UnknownError(f"crop_size={size} is larger than the images of {rows}x{columns}")
    top, left = (rows - height) // 2, (columns - width) // 2
    cut = made[..., top : top + height, left : left + width]
    return np.ascontiguousarray(cut) if isinstance(cut, np.ndarray) else cut.contiguous()


def smart_rows(call: Call) -> Any:
    """Patch rows at sizes that the images choose: the Qwen2-VL family."""
    asked, sizes = call.asked, _sides
    if asked["do_resize"]:
        size, factor = asked["size"], asked["patch_size"] * asked["merge_size"]
        sizes = call.once(
            "sizes", lambda: partial(ops.smart_sizes, factor=factor, min_pixels=size.shortest_edge,
                                     max_pixels=size.longest_edge)
        )  # fmt: skip
    own = {"patch": asked["patch_size"], "merge": asked["merge_size"], "temporal": asked["temporal_patch_size"]}
    rows, grid = _rows(call, sizes, **own, **({"dtype": call.dtype} if call.pil else {}))
    return call.answer(pixel_values=rows, image_grid_thw=grid)


def fit_rows(call: Call) -> Any:
    """As many patch rows for every image, with a mask: SigLIP2 of the NaViT kind."""
    asked, sizes = call.asked, _sides
    patch, most = asked["patch_size"], asked["max_num_patches"]
    if asked["do_resize"]:
        sizes = call.once("sizes", lambda: partial(ops.fit_sizes, patch=patch, max_rows=most))
    rows, _, shapes = _rows(call, sizes, patch=patch, order="PPC", max_rows=most)
    counts = np.asarray(shapes).prod(1, keepdims=True)
    mask: Any = (np.arange(most) < counts).astype(np.int32)  # on the host, as there
    mask = mask if call.pil else _torch().from_numpy(mask)
    shown = shapes if asked["return_tensors"] == "pt" else [tuple(pair) for pair in shapes.tolist()]
    return call.answer(pixel_values=call.listed(rows), pixel_attention_mask=call.listed(mask), spatial_shapes=shown)


def _sides(sides: Any) -> Any:
    """The rule of sizes that stay as they are."""
    return sides


def _rows(call: Call, rule: Any, **own: Any) -> Any:
    """Patch rows at the sizes that a rule makes."""
    if not call.pil:
        return call.launch("patch_rows", call.images, rule, **own)
    sizes = rule(np.array(call.sides))
    return call.launch("patch_rows", _in_order(call, sizes), sizes, **own)


@cache
def _torch() -> Any:
    return import_module("torch")


def _in_order(call: Call, sizes: Any) -> list[Any]:
    """The images, those at their final size already whose vertical pass comes first in Pillow.

    Since version 13 that is so where more than twice as many rows as columns go. Such images are resized lying on their
    side, so that the pass that is first here is that one; the launch for all then finds nothing left to resize.
    """
    images, filter = list(call.images), _filter_of(call)
    if not call.pil or filter == "nearest" or _pillow() < VERTICAL_FIRST:
        return images
    lost = np.array(call.sides) - sizes
    turned = np.flatnonzero((lost[:, 0] > 0) & (lost[:, 0] > 2 * lost[:, 1]))
    if len(turned):
        lying, goals = [images[i].swapaxes(1, 2) for i in turned], np.array(sizes)[turned, ::-1]
        made = ops.resize_each(lying, goals, filter=filter, rounding="pillow", dtype="uint8", source="CHW")
        for i, item in zip(turned, made, strict=True):
            images[i] = item.swapaxes(1, 2)
    return images


@cache
def _pillow() -> int:
    """The first number of Pillow's version."""
    return int(import_module("PIL").__version__.split(".")[0])


class Known(NamedTuple):
    """Code of transformers that is stood in for.

    Attributes
    ----------
    module, name : str
        The class that the code is of.
    methods : tuple of str
        All that make its answer of images and options.
    functions : tuple of str
        What these call, by module and name.
    run : callable
        Makes the same answer of a `Call`.
    pil : bool
        As of `Call`.
    """

    module: str
    name: str
    methods: tuple[str, ...]
    functions: tuple[str, ...]
    run: Callable[[Call], Any]
    pil: bool = False


TORCH = (
    "_preprocess", "resize", "rescale", "normalize", "rescale_and_normalize", "_fuse_mean_std_and_rescale_factor",
)  # fmt: skip
PIL = ("_preprocess", "resize", "rescale", "normalize")
# What gets the options of a call, and makes arrays of its images.
RESOLVING = ("__call__", "_preprocess_image_like_inputs")
PREPARING = (
    "_prepare_image_like_inputs", "_prepare_images_structure", "fetch_images", "process_image", "convert_to_rgb",
)  # fmt: skip
CONVERTING = ("transformers.image_transforms.convert_to_rgb", "transformers.image_utils.make_flat_list_of_images")
RULES = (
    "transformers.image_transforms.get_size_with_aspect_ratio",
    "transformers.image_transforms.get_resize_output_image_size",
    "transformers.image_utils.get_image_size_for_max_height_width",
)
PIL_RULES = (
    "transformers.image_transforms.resize", "transformers.image_transforms.rescale",
    "transformers.image_transforms.normalize",
)  # fmt: skip
UTILS, BACKENDS = "transformers.image_processing_utils", "transformers.image_processing_backends"
QWEN2_VL, SIGLIP2 = ("transformers.models.qwen2_vl.image_processing", "transformers.models.siglip2.image_processing")
FITTING = "get_image_size_for_max_num_patches"
KNOWN = (
    Known(BACKENDS, "TorchvisionBackend", (*TORCH, "center_crop", "pad"), RULES, batch),
    Known(
        BACKENDS, "PilBackend", (*PIL, "center_crop", "pad"),
        (*RULES, *PIL_RULES, "transformers.image_transforms.center_crop"), batch, pil=True,
    ),
    Known(
        f"{QWEN2_VL}_qwen2_vl", "Qwen2VLImageProcessor", (*TORCH, "patchify"),
        (f"{QWEN2_VL}_qwen2_vl.smart_resize",), smart_rows,
    ),
    Known(
        f"{QWEN2_VL}_pil_qwen2_vl", "Qwen2VLImageProcessorPil", (*PIL, "patchify"),
        (f"{QWEN2_VL}_pil_qwen2_vl.smart_resize", *PIL_RULES), smart_rows, pil=True,
    ),
    Known(
        f"{SIGLIP2}_siglip2", "Siglip2ImageProcessor", TORCH, (f"{SIGLIP2}_siglip2.{FITTING}",), fit_rows,
    ),
    Known(
        f"{SIGLIP2}_pil_siglip2", "Siglip2ImageProcessorPil", PIL,
        (f"{SIGLIP2}_pil_siglip2.{FITTING}", *PIL_RULES), fit_rows, pil=True,
    ),
)  # fmt: skip


def accelerate(processor: Any, *, dtype: Any = None, untested: bool = False) -> Any:
    """A stand-in for an image processor of transformers, or a processor that has one: one launch for all images.

    It is called as the original, and returns the same keys, shapes, dtypes and grids; it is an instance of the
    original's class with its attributes, and is saved as such. What it doesn't know goes to the original's code, with
    a `FallbackWarning` that names the reason. `docs/integrations/transformers.md` says how near values are.

    Parameters
    ----------
    processor : BaseImageProcessor or ProcessorMixin
        Of the latter the image processor alone is replaced, in a copy. It stays unchanged.
    dtype : {"float32", "float16", "bfloat16"} or a dtype of NumPy or torch, optional
        Of the pixels, where the original makes float32: that of the model, which saves it the cast. bfloat16 is for
        processors on torchvision.
    untested : bool
        Work with a version of transformers that is older than those of `TESTED`. One that is newer is worked with
        anyway, after a warning, where the code that is stood in for is known; where it is not, the original answers.

    Returns
    -------
    BaseImageProcessor or ProcessorMixin
        The same object, with a `FallbackWarning`, if its class computes something else.

    Raises
    ------
    InputError
        For what is neither, or a dtype that it can't make.
    MissingPackageError
        If transformers can't be imported, or its version is older than those tested.
    """
    newer = check_version("transformers", TESTED, untested)
    image_processor = getattr(processor, "image_processor", None)
    if image_processor is not None:
        made = copy.copy(processor)
        made.image_processor = accelerate(image_processor, dtype=dtype, untested=untested)
        return made
    if not isinstance(processor, _module("image_processing_utils").BaseImageProcessor):
        raise InputError(
            "accelerate takes an image processor of transformers, or a processor that has one, such as "
            f"AutoImageProcessor.from_pretrained(name), found {shown_type(processor)}"
        )
    kind, wanted = type(processor), "float32" if dtype is None else dtype_text(dtype, DTYPES)
    if isinstance(processor, _Accelerated):
        if dtype is None or wanted == processor._dtype:
            return processor
        kind = kind.__mro__[2]
    known = _known(kind)
    if wanted not in DTYPES:
        raise InputError(f"dtype={wanted} is none of {', '.join(DTYPES)}")
    if known is not None and known.pil and wanted == "bfloat16":
        raise InputError(f"dtype=bfloat16 needs a processor on torchvision, found {kind.__name__}; ask for float16")
    why = "it computes something that octopus doesn't know" if known is None else _changed(known) if newer else ""
    if why:
        warn_once(kind.__name__, why if dtype is None else f"{why}, and dtype={wanted} has no effect")
        return processor
    return _restored(kind, dict(processor.__dict__), wanted)


def _known(kind: type) -> Known | None:
    """The row whose code makes this class's answer."""
    for row in KNOWN:
        owner = _owner(row)
        if owner is not None and all(getattr(kind, name, None) is getattr(owner, name, owner) for name in row.methods):
            return row
    return None


def _owner(row: Known) -> Any:
    try:
        return getattr(import_module(row.module), row.name)
    except (ImportError, AttributeError):  # not in this version, or its requirements are not installed
        return None


def _changed(row: Known) -> str:
    """Which code of a row is another than in all versions that were tested; "" if none is."""
    found = moved(_answering(row))
    return f"this version of transformers has changed {', '.join(found)}" if found else ""


def _answering(row: Known) -> list[Any]:
    """The code of a row."""
    return [*(getattr(_owner(row), name) for name in row.methods), *row.functions]


def _preparing(pil: bool) -> list[Any]:
    """The code by which options and images of a call reach `_preprocess`."""
    backend = getattr(import_module(BACKENDS), "PilBackend" if pil else "TorchvisionBackend")
    names = (*PREPARING, *RESOLVING, "preprocess")
    return [*(getattr(backend, name, f"{BACKENDS}.{name}") for name in names), *CONVERTING]


def relied_on() -> list[Any]:
    """All code of transformers that is stood in for, as far as this version has it."""
    rows = [row for row in KNOWN if _owner(row) is not None]
    return [code for row in rows for code in (*_answering(row), *_preparing(row.pil))]


_numbers = count()


class _Resolved(NamedTuple):
    """What a processor makes of the options of a call."""

    asked: dict[str, Any]


class _Kind:
    """Calls of one processor with the same options: what it looked like, the options with their defaults, and what all
    of these calls share."""

    __slots__ = ("asked", "made", "state")

    def __init__(self, state: dict[str, Any], asked: dict[str, Any]) -> None:
        self.state, self.asked, self.made = state, asked, {"number": next(_numbers)}


class _Accelerated:
    """What a stand-in has beside its original class."""

    __slots__ = ("_kinds",)  # none of its attributes, which are saved
    _kinds: dict[Any, _Kind]
    _stands_for: Known
    _dtype: str
    _forwards: bool  # whether nothing but known code comes before `_preprocess`

    @dynamo_disabled
    def preprocess(self, images: Any, *args: Any, **kwargs: Any) -> Any:
        """As the original, which checks options and images one by one at each call."""
        kind = self._kind(kwargs) if self._forwards and not args else None
        if kind is not None:
            row, asked = self._stands_for, kind.asked
            try:
                given = _gathered(images, asked, row.pil)
                if given is not None:
                    taken = _taken(given[0], asked, row.pil)
                    return row.run(Call(self, taken, asked, row.pil, self._dtype, given[1], kind.made))
            except DecodeError as error:  # another attempt of Pillow's would give what it has so far
                raise error.__cause__ or error from None
            except KNOWN_ERRORS:
                pass  # said below, if it holds for what the original prepares
        return super().preprocess(images, *args, **kwargs)  # type: ignore[misc]

    def _kind(self, given: dict[str, Any]) -> _Kind | None:
        """What is known of calls with these options; None if they can't be remembered."""
        try:
            key = tuple((name, frozen(name, value)) for name, value in given.items())
            kinds = self._kinds
        except (UnreadableError, InputError):
            return None
        except AttributeError:
            kinds = self._kinds = {}
        kind: _Kind | None = kinds.get(key)
        if kind is not None and _same(kind.state, self.__dict__):
            return kind
        own = (*PREPARING, *RESOLVING, *self._stands_for.methods)
        if not self.__dict__.keys().isdisjoint(own):
            return None  # methods of this object alone
        found = super().preprocess(_Resolved, **given)  # type: ignore[misc]
        if not isinstance(found, _Resolved):
            return None
        try:
            state, asked = copy.deepcopy((self.__dict__, found.asked))
        except Exception:  # attributes may be anything
            return None
        if not _same(state, self.__dict__):
            return None
        if len(kinds) >= MOST_KINDS:
            kinds.clear()
        kind = kinds[key] = _Kind(state, asked)
        return kind

    def _preprocess_image_like_inputs(self, images: Any, *args: Any, **kwargs: Any) -> Any:
        if images is _Resolved:
            return _Resolved(kwargs)
        return super()._preprocess_image_like_inputs(images, *args, **kwargs)  # type: ignore[misc]

    def process_image(self, image: Any, *args: Any, **kwargs: Any) -> Any:
        """As the original, but images stay where they are: those that go to a GPU go there at once."""
        return super().process_image(image, *args, **{**kwargs, "device": None})  # type: ignore[misc]

    def _preprocess(self, images: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        row, device = self._stands_for, kwargs.get("device")
        try:
            if args:
                raise UnknownError("options are given by position")
            if not self.__dict__.keys().isdisjoint(row.methods):
                raise UnknownError("this object has methods of its own")
            return row.run(Call(self, _taken(images, kwargs, row.pil), kwargs, row.pil, self._dtype))
        except KNOWN_ERRORS as error:
            warn_once(type(self).__name__, str(error))
        if device is not None and not row.pil:
            images = [image.to(device) for image in images]
        made = super()._preprocess(images, *args, **kwargs)  # type: ignore[misc]
        return made if self._dtype == "float32" else _cast(made, self._dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process the class is made anew."""
        return _restored, (type(self).__mro__[2], self.__dict__, self._dtype)


def _same(state: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether attributes are the same, as far as they can be compared: arrays can't."""
    try:
        return state == other
    except Exception:
        return False


def _cast(made: Any, dtype: str) -> Any:
    """The original's output with its floats in another dtype."""

    def cast(values: Any) -> Any:
        if isinstance(values, (list, tuple)):
            return [cast(one) for one in values]
        if "float" not in str(values.dtype):
            return values
        return values.astype(dtype) if isinstance(values, np.ndarray) else values.to(getattr(_torch(), dtype))

    made["pixel_values"] = cast(made["pixel_values"])
    return made


def _gathered(images: Any, asked: dict[str, Any], pil: bool) -> tuple[list[Any], str] | None:
    """Images as octopus takes them, without a copy, and where their channels are: those of Pillow, and arrays of NumPy
    and torch of three channels. None if one is of another kind, or may be read in two ways."""
    flat, convert = _flat(images), asked.get("do_convert_rgb")
    if not flat or asked.get("input_data_format") is not None:
        return None
    first, pillow = [], []
    for number, image in enumerate(flat):
        kind = type(image)
        if kind is np.ndarray or (kind.__name__ == "Tensor" and kind.__module__ == "torch"):
            shape = image.shape
            if len(shape) != 3 or (shape[0] in CHANNELS) == (shape[2] in CHANNELS) or 3 not in (shape[0], shape[2]):
                return None
            first.append(shape[0] == 3)
        elif is_pillow(kind):
            pillow.append(number)
        else:
            return None
    made = list(flat)
    if pillow:
        opened = [made[number] for number in pillow]
        decode(opened, "image", pillow)
        opened = _as_rgb(opened) if convert else opened
        if any(image.mode not in ("RGB", "L") for image in opened):
            return None
        for number, raster in zip(pillow, rasters(opened, "image", pillow), strict=True):
            made[number] = raster if len(raster.shape) == 3 else _with_channels(raster, 3 if convert else 1)
    if pil or any(first):
        return [_channels_first(image, pil) for image in made], "CHW"
    return made, "HWC"


def _flat(images: Any) -> Sequence[Any]:
    """Images of a call as a list: one, several, several lists, or a batch."""
    if isinstance(images, (list, tuple)):
        nested = images and all(isinstance(one, (list, tuple)) for one in images)
        return [image for one in images for image in one] if nested else images
    return list(images) if getattr(images, "ndim", 0) == 4 else [images]


def _with_channels(grey: Raster, channels: int) -> Raster:
    """A grey image with the same values in each of its channels."""
    return grey._replace(shape=(*grey.shape, channels), strides=(*grey.strides, 0))


def _channels_first(image: Any, pil: bool) -> Any:
    """An image of three channels, or a grey raster, as (C, H, W), without a copy."""
    if type(image) is Raster:
        return image.array.transpose(2, 0, 1)
    if type(image) is not np.ndarray:
        if not pil:
            return image if image.shape[0] == 3 else image.permute(2, 0, 1)
        image = image.numpy()
    return image if image.shape[0] == 3 else image.transpose(2, 0, 1)


def _as_rgb(images: list[Any]) -> list[Any]:
    """Images of Pillow that are RGB or grey, made by several threads of those that are not."""
    made, white = {id(image): image for image in images}, _composites()

    def convert(image: Any) -> None:
        made[id(image)] = rgb(image, white)

    plain = ("RGB", "L")
    others = [one for one in made.values() if one.mode not in plain or (white and is_transparent(one))]
    share([partial(convert, image) for image in others], get_num_threads())
    return [made[id(image)] for image in images]


@cache
def _composites() -> bool:
    """Whether this transformers puts what is transparent on white, as it does from 5.21 on; before it drops the fourth
    channel."""
    return "return_numpy" in signature(_module("image_transforms").convert_to_rgb).parameters


def _taken(images: Sequence[Any], asked: dict[str, Any], pil: bool) -> list[Any]:
    """Images as octopus takes them; the launch brings those on the host to a GPU."""
    if not images:
        raise UnknownError("there are no images")
    kinds: set[Any] = {getattr(image, "dtype", type(image)) for image in images}
    dtypes = {_dtype_text(kind) for kind in kinds}
    if not dtypes <= ({"uint8"} if pil else {"uint8", "float32"}) or len(dtypes) > 1:
        raise UnknownError(f"images are {', '.join(sorted(dtypes))}")
    if pil:
        if any(image.shape[0] > 3 for image in images):
            raise UnknownError("images have four channels, of which Pillow weighs three by the fourth")
        return list(images)
    device = asked.get("device")
    if device is None:
        return list(images)
    return [image.to(device) if getattr(image, "is_cuda", False) else image for image in images]


@cache
def _class_of(kind: type, dtype: str) -> type:
    """The class of stand-ins, by the name of their original's class, so that both are saved alike."""
    known: Any = _known(kind)
    copied = {"__module__": kind.__module__, "__doc__": kind.__doc__, "__slots__": ()}
    own = {**copied, "_stands_for": known, "_dtype": dtype, "_forwards": _has_known_preparation(kind, known)}
    return type(kind.__name__, (_Accelerated, kind), own)


def _has_known_preparation(kind: type, row: Known) -> bool:
    """Whether options and images of a class reach `_preprocess` by known code alone, called from there at most."""
    backend = getattr(import_module(BACKENDS), "PilBackend" if row.pil else "TorchvisionBackend")
    if any(getattr(kind, name, None) is not getattr(backend, name, kind) for name in (*PREPARING, *RESOLVING)):
        return False
    *others, last = (unwrap(one.__dict__["preprocess"]) for one in kind.__mro__ if "preprocess" in one.__dict__)
    if last is not unwrap(backend.preprocess) or any(
        set(one.__code__.co_names) - {"super", "preprocess"} for one in others
    ):
        return False
    return not (is_newer("transformers", TESTED) and moved(_preparing(row.pil)))


def _restored(kind: type, state: dict[str, Any], dtype: str = "float32") -> Any:
    """A stand-in for an instance of `kind` with these attributes."""
    made: Any = object.__new__(_class_of(kind, dtype))
    made.__dict__.update(copy.deepcopy(state))
    return made


__all__ = ["TESTED", "FallbackWarning", "accelerate"]
