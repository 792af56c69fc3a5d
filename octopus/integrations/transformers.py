"""Image processors of transformers whose images are resized, rounded, normalised and laid out by one launch.

>>> from transformers import CLIPImageProcessor  # doctest: +SKIP
>>> processor = accelerate(CLIPImageProcessor())  # doctest: +SKIP

`KNOWN` says which code of transformers is stood in for. A processor is known if the methods that make its answer are
those of a row, whatever its class; so a subclass with code of its own is seen. All before that, checks of arguments,
nested lists, files, modes of Pillow, is left to the processor.
"""

from __future__ import annotations

import copy
import platform
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from octopus import images as ops
from octopus.errors import DeviceError, InputError, OutOfMemoryError, shown_type
from octopus.integrations.common import FallbackWarning, UnknownError, check_version, warn_once

TESTED = ("5.17", "5.18", "5.19", "5.20", "5.21", "5.22", "5.23")

# What the driver brings to a GPU sooner than several threads have begun to pack it; it keeps the caller, as it does
# where the original brings images.
FEW_IMAGES, FEW_BYTES = 2, 1 << 23

VERTICAL_FIRST = 13  # the first version of Pillow that begins with the vertical pass where that is less work

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
    images : list of torch.Tensor or ndarray
        Channels first, (C, H, W).
    asked : dict
        Options of the call by transformers' names, each with a value.
    pil : bool
        Whether it is on Pillow and NumPy, not on torchvision and torch.
    """

    processor: Any
    images: list[Any]
    asked: dict[str, Any]
    pil: bool

    @property
    def sides(self) -> list[tuple[int, int]]:
        """Heights and widths."""
        return [tuple(image.shape[-2:]) for image in self.images]

    @property
    def options(self) -> dict[str, Any]:
        """Arguments that all functions of `octopus.images` take."""
        asked, floats = self.asked, "float" in str(self.images[0].dtype)
        whole = not (asked["do_rescale"] or asked["do_normalize"] or floats)
        normal = {"mean": asked["image_mean"], "std": asked["image_std"]} if asked["do_normalize"] else {}
        return {
            "filter": _filter_of(self), "rounding": "none" if floats else _rounding_of(self),
            "scale": 1 / asked["rescale_factor"] if asked["do_rescale"] else 1, **normal,
            "dtype": "uint8" if whole else "float32", "source": "CHW",
            "device": self.device,
        }  # fmt: skip

    @property
    def device(self) -> Any:
        """Where the images go, as `octopus.images` takes it; transformers also takes the number of a GPU."""
        device = None if self.pil else self.asked.get("device")
        return "auto" if device is None else f"cuda:{device}" if type(device) is int else device

    @property
    def on_cpu(self) -> bool:
        """Whether the CPU computes it."""
        device = self.asked.get("device")
        return self.pil or str(self.images[0].device if device is None else device).startswith("cpu")

    def answer(self, **values: Any) -> Any:
        """The processor's output of these values."""
        made = import_module("transformers.image_processing_utils").BatchFeature
        return made(data=values, tensor_type=self.asked["return_tensors"])

    def listed(self, batch: Any) -> Any:
        """A batch as the list that the processor makes, which `return_tensors` would only put together again."""
        return list(batch) if self.asked["return_tensors"] is None else batch


def _filter_of(call: Call) -> Any:
    if not call.asked["do_resize"]:
        return "bilinear"
    resample = call.asked["resample"]
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
    asked, sizes = call.asked, [_size_of(call, *sides) for sides in call.sides]
    images, crop = _in_order(call, sizes), asked["do_center_crop"]
    if crop and asked["do_resize"] and _rule(asked["size"]) == {"shortest_edge"}:
        cut = (asked["crop_size"].height, asked["crop_size"].width)
        if call.pil and (((lack := cut - np.array(sizes)) > 0) & (lack % 2 == 1)).any():
            raise UnknownError(
                "an odd number of pixels is missing to crop_size, which Pillow's backend pads first"
            )
        made = ops.resize(images, cut, crop="center", shortest=asked["size"].shortest_edge, **call.options)
    elif len(set(sizes)) == 1:
        made = ops.resize(images, sizes[0], **call.options)
        made = _middle(made, asked["crop_size"]) if crop else made
    elif crop:
        raise UnknownError(
            "the middle of images of different size is known for size={'shortest_edge': ...} alone"
        )
    else:
        made = list(ops.resize_each(images, sizes, **call.options))
    if asked["do_pad"] and (asked["pad_size"] or isinstance(made, list)):
        made = call.processor.pad(list(made), pad_size=asked["pad_size"], disable_grouping=True)
    return call.answer(pixel_values=made if isinstance(made, list) else call.listed(made))


def _rule(size: Any) -> set[str]:
    """Which sides of a `SizeDict` are given."""
    names = ("height", "width", "shortest_edge", "longest_edge", "max_height", "max_width")
    return {name for name in names if getattr(size, name)}


def _size_of(call: Call, height: int, width: int) -> tuple[int, int]:
    """What an image becomes, by the functions of transformers that its processors call."""
    size, rule = call.asked["size"], import_module("transformers.image_transforms")
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
        limit = import_module("transformers.image_utils").get_image_size_for_max_height_width
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
    asked, size, sizes = call.asked, call.asked["size"], np.array(call.sides)
    if asked["do_resize"]:
        factor = asked["patch_size"] * asked["merge_size"]
        sizes = ops.smart_sizes(sizes, factor, size.shortest_edge, size.longest_edge)
    options = (
        {**call.options, "dtype": "float32"} if call.pil else call.options
    )  # there whatever the values are
    rows, grid = ops.patch_rows(
        _in_order(call, sizes), sizes, patch=asked["patch_size"], merge=asked["merge_size"],
        temporal=asked["temporal_patch_size"], **options,
    )  # fmt: skip
    return call.answer(pixel_values=rows, image_grid_thw=grid)


def fit_rows(call: Call) -> Any:
    """As many patch rows for every image, with a mask: SigLIP2 of the NaViT kind."""
    asked, sizes = call.asked, np.array(call.sides)
    patch, most = asked["patch_size"], asked["max_num_patches"]
    if asked["do_resize"]:
        sizes = ops.fit_sizes(sizes, patch, most)
    rows, _, _ = ops.patch_rows(
        _in_order(call, sizes), sizes, patch=patch, order="PPC", max_rows=most, **call.options
    )
    shapes = sizes // patch
    mask = (np.arange(most) < shapes.prod(1, keepdims=True)).astype(np.int32)  # on the host, as there
    return call.answer(
        pixel_values=call.listed(rows),
        pixel_attention_mask=call.listed(mask if call.pil else import_module("torch").from_numpy(mask)),
        spatial_shapes=[tuple(pair) for pair in shapes.tolist()],
    )


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
    run : callable
        Makes the same answer of a `Call`.
    pil : bool
        As of `Call`.
    """

    module: str
    name: str
    methods: tuple[str, ...]
    run: Callable[[Call], Any]
    pil: bool = False


TORCH = (
    "_preprocess",
    "resize",
    "rescale",
    "normalize",
    "rescale_and_normalize",
    "_fuse_mean_std_and_rescale_factor",
)
PREPARING = (
    "_prepare_image_like_inputs", "_prepare_images_structure", "fetch_images", "process_image", "convert_to_rgb",
)  # fmt: skip
PIL = ("_preprocess", "resize", "rescale", "normalize")
BACKENDS = "transformers.image_processing_backends"
QWEN2_VL, SIGLIP2 = (
    "transformers.models.qwen2_vl.image_processing",
    "transformers.models.siglip2.image_processing",
)
KNOWN = (
    Known(BACKENDS, "TorchvisionBackend", (*TORCH, "center_crop", "pad"), batch),
    Known(BACKENDS, "PilBackend", (*PIL, "center_crop", "pad"), batch, pil=True),
    Known(f"{QWEN2_VL}_qwen2_vl", "Qwen2VLImageProcessor", (*TORCH, "patchify"), smart_rows),
    Known(f"{QWEN2_VL}_pil_qwen2_vl", "Qwen2VLImageProcessorPil", (*PIL, "patchify"), smart_rows, pil=True),
    Known(f"{SIGLIP2}_siglip2", "Siglip2ImageProcessor", TORCH, fit_rows),
    Known(f"{SIGLIP2}_pil_siglip2", "Siglip2ImageProcessorPil", PIL, fit_rows, pil=True),
)  # fmt: skip


def accelerate(processor: Any, *, untested: bool = False) -> Any:
    """A stand-in for an image processor of transformers, or a processor that has one: one launch for all images.

    It is called as the original, and returns the same keys, shapes, dtypes and grids; it is an instance of the
    original's class with its attributes, and is saved as such. What it doesn't know goes to the original's code, with
    a `FallbackWarning` that names the reason. `docs/integrations/transformers.md` says how near values are.

    Parameters
    ----------
    processor : BaseImageProcessor or ProcessorMixin
        Of the latter the image processor alone is replaced, in a copy. It stays unchanged.
    untested : bool
        Work with a version of transformers that is none of `TESTED`. The methods of a processor are looked at in any
        version, but not the functions that these call.

    Returns
    -------
    BaseImageProcessor or ProcessorMixin
        The same object, with a `FallbackWarning`, if its class computes something else.

    Raises
    ------
    InputError
        For what is neither.
    MissingPackageError
        If transformers can't be imported, or its version is not tested.
    """
    check_version("transformers", TESTED, untested)
    image_processor = getattr(processor, "image_processor", None)
    if image_processor is not None:
        made = copy.copy(processor)
        made.image_processor = accelerate(image_processor, untested=untested)
        return made
    if isinstance(processor, _Accelerated):
        return processor
    if not isinstance(processor, import_module("transformers.image_processing_utils").BaseImageProcessor):
        raise InputError(
            "accelerate takes an image processor of transformers, or a processor that has one, found "
            f"{shown_type(processor)}"
        )
    known = _known(type(processor))
    if known is None:
        warn_once(type(processor).__name__, "it computes something that octopus doesn't know")
        return processor
    return _restored(type(processor), dict(processor.__dict__))


def _known(kind: type) -> Known | None:
    """The row whose code makes this class's answer."""
    for row in KNOWN:
        try:
            owner = getattr(import_module(row.module), row.name)
        except (ImportError, AttributeError):  # not in this version, or its requirements are not installed
            continue
        if all(getattr(kind, name, None) is getattr(owner, name) for name in row.methods):
            return row
    return None


class _Accelerated:
    """What a stand-in has beside its original class."""

    _stands_for: Known
    _leaves_plain: bool  # whether `PREPARING` is the code that gives plain images back as they are

    def _prepare_image_like_inputs(self, images: Any, *args: Any, **kwargs: Any) -> Any:
        """As the original, which asks every image several times what it is: half of a call with many small ones."""
        usual = self._leaves_plain and self.__dict__.keys().isdisjoint(PREPARING) and not args
        asked = kwargs.get("input_data_format") is not None or kwargs.get("expected_ndims", 3) != 3
        if usual and not asked and type(images) is list and images and all(map(_is_plain, images)):
            return images
        return super()._prepare_image_like_inputs(images, *args, **kwargs)  # type: ignore[misc]

    def process_image(self, image: Any, *args: Any, **kwargs: Any) -> Any:
        """As the original, but images stay where they are: those that go to a GPU go there at once."""
        return super().process_image(image, *args, **{**kwargs, "device": None})  # type: ignore[misc]

    def _preprocess(self, images: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        row, device = self._stands_for, kwargs.get("device")
        try:
            if args:
                raise UnknownError("options are given by position")
            return row.run(Call(self, _taken(images, kwargs, row.pil), kwargs, row.pil))
        except (UnknownError, InputError, DeviceError, OutOfMemoryError) as error:
            warn_once(type(self).__name__, str(error))
        if device is not None and not row.pil:
            images = [image.to(device) for image in images]
        return super()._preprocess(images, *args, **kwargs)  # type: ignore[misc]

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process the class is made anew."""
        return _restored, (type(self).__mro__[2], self.__dict__)


def _is_plain(image: Any) -> bool:
    """Whether it is a tensor of torch of three channels, which can be the first of its axes alone."""
    kind = type(image)
    if kind.__name__ != "Tensor" or kind.__module__ != "torch":
        return False
    shape = image.shape
    return len(shape) == 3 and shape[0] == 3 and shape[2] not in (1, 3, 4)


def _taken(images: Sequence[Any], asked: dict[str, Any], pil: bool) -> list[Any]:
    """Images as octopus takes them."""
    if not images:
        raise UnknownError("there are no images")
    dtypes = {str(getattr(image, "dtype", type(image))).removeprefix("torch.") for image in images}
    if not dtypes <= ({"uint8"} if pil else {"uint8", "float32"}) or len(dtypes) > 1:
        raise UnknownError(f"images are {', '.join(sorted(dtypes))}")
    if pil:
        if any(image.shape[0] > 3 for image in images):
            raise UnknownError("images have four channels, of which Pillow weighs three by the fourth")
        return list(images)
    device = asked.get("device")
    if device is None:
        return list(images)
    few = len(images) <= FEW_IMAGES and sum(image.nbytes for image in images) <= FEW_BYTES
    # The launch brings those on the host, unless they are few.
    return [image.to(device) if few or image.device.type != "cpu" else image for image in images]


@cache
def _class_of(kind: type) -> type:
    """The class of stand-ins, by the name of their original's class, so that both are saved alike."""
    backend = getattr(import_module(BACKENDS), "TorchvisionBackend", None)
    plain = all(getattr(kind, name, None) is getattr(backend, name, name) for name in PREPARING)
    copied = {"__module__": kind.__module__, "__doc__": kind.__doc__}
    return type(
        kind.__name__, (_Accelerated, kind), {**copied, "_stands_for": _known(kind), "_leaves_plain": plain}
    )


def _restored(kind: type, state: dict[str, Any]) -> Any:
    """A stand-in for an instance of `kind` with these attributes."""
    made: Any = object.__new__(_class_of(kind))
    made.__dict__.update(copy.deepcopy(state))
    return made


__all__ = ["TESTED", "FallbackWarning", "accelerate"]
