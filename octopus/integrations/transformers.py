"""Image processors of transformers whose images are resized, rounded, normalised and laid out by one launch.

>>> from transformers import CLIPImageProcessor  # doctest: +SKIP
>>> processor = accelerate(CLIPImageProcessor())  # doctest: +SKIP

`KNOWN` says which code of transformers is stood in for. A processor is known if the methods that make its answer are
those of a row, whatever its class; so a subclass with code of its own is seen. A call's options are checked by the
processor's own code, once for each kind of call. Images of Pillow and arrays of three channels go to the launch as they
are (`_gathered`); what is left, such as files and grey arrays, the processor's own code prepares.
"""

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
from octopus.errors import InputError, shown_type
from octopus.images.api import run
from octopus.integrations import common, folded
from octopus.integrations.common import KNOWN_ERRORS, FallbackWarning, UnknownError, warn_once

TESTED = ("5.17", "5.18", "5.19", "5.20", "5.21", "5.22", "5.23", "5.24")

VERTICAL_FIRST = 13  # the first version of Pillow with rounding="pillow", others have "pillow12"
MOST_KINDS = 16  # of calls whose options are kept, for each processor
DTYPES = ("float32", "float16", "bfloat16")
SIDES = ("height", "width", "shortest_edge", "longest_edge", "max_height", "max_width")  # of a `SizeDict`

# Of Pillow's numbers and torchvision's names.
FILTERS = {
    None: "bilinear", 0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", "lanczos": "lanczos",
    "bilinear": "bilinear", "bicubic": "bicubic",
}  # fmt: skip


class Call(NamedTuple):
    """What a processor is about to compute of `images`, (C, H, W) or (H, W, C), with the options that it was `asked`.
    `pil`: on Pillow and NumPy, not on torchvision and torch. `made`: what calls with the same options share, and their
    number, if that is remembered."""

    processor: Any
    images: list[Any]
    asked: dict[str, Any]
    pil: bool
    dtype: str
    source: str
    made: dict[Any, Any]
    fold: folded.Fold | None

    @property
    def sides(self) -> list[tuple[int, int]]:
        begin = 1 if self.source == "CHW" else 0
        return [tuple(image.shape[begin : begin + 2]) for image in self.images]

    @property
    def floats(self) -> bool:
        return _dtype_text(self.images[0].dtype).startswith("float")

    @property
    def on_cpu(self) -> bool:
        device = self.asked.get("device")
        if device is None:
            device = getattr(self.images[0], "device", "cpu")
        return self.pil or str(device).startswith("cpu")

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """What `make` makes of the options, the images' dtype and where the work is done, kept for other calls."""
        key = name, self.floats, self.on_cpu
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    def launch(self, operation: str, images: list[Any], sizes: Any = None, **own: Any) -> Any:
        """An operation of `octopus.images`, whose results are of the processor's library."""
        options = {**self.once("options", self._options), **own, "source": self.source}
        device = None if self.pil else self.asked.get("device")  # transformers also takes the number of a GPU
        device = "auto" if device is None else f"cuda:{device}" if type(device) is int else device
        number = self.made.get("number")
        key = None if number is None else (number, self.floats, self.source, *own.values())
        return run(operation, options, images, sizes, None, None, device, "numpy" if self.pil else "torch", key)

    def _options(self) -> dict[str, Any]:
        asked, floats, filter = self.asked, self.floats, _filter_of(self)
        whole = not (asked["do_rescale"] or asked["do_normalize"] or floats)
        normal = asked["do_normalize"]
        fixed = "pillow" if self.pil and _pillow() >= VERTICAL_FIRST else "pillow12"
        rounding = fixed if self.pil else "torch" if self.on_cpu and _fixed_point(filter) else "uint8"
        return {
            "filter": filter, "rounding": "none" if floats else rounding, "antialias": True,
            "mean": asked["image_mean"] if normal else None, "std": asked["image_std"] if normal else None,
            "scale": 1 / asked["rescale_factor"] if asked["do_rescale"] else 1,
            "dtype": "uint8" if whole else self.dtype, "channels": "RGB",
        }  # fmt: skip

    def folded(self, patch: int) -> dict[str, Any]:
        if self.fold is None:
            return {}
        options = self.once("options", self._options)
        if (patch, _normal_of(options["mean"], options["std"], options["scale"])) != self.fold[:2]:
            raise UnknownError("the model was folded for other patches, or another normalisation")
        rows = {"temporal": 1, "row_multiple": folded.ROW_MULTIPLE, "dtype": self.dtype}
        return {**rows, "mean": self.fold.middle, "std": None, "scale": None}

    def answer(self, **values: Any) -> Any:
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


@cache
def _fixed_point(filter: str) -> bool:
    """Whether torchvision resizes bytes as such on this CPU, by instructions that others don't have."""
    import torch

    vectors = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
    return filter != "bilinear" or vectors or platform.machine() in ("aarch64", "arm64")


def batch(call: Call) -> Any:
    """One size or one rule for all, perhaps the middle of it or padded: CLIP, SigLIP, ViT, DINOv2 and many others."""
    asked, size = call.asked, call.asked["size"]
    middle = asked["crop_size"] if asked["do_center_crop"] else None
    known = {name for name in SIDES if getattr(size, name)} if asked["do_resize"] else set()
    if known == {"height", "width"}:
        sizes = [(size.height, size.width)] * len(call.images)
    elif call.pil or middle is None or known != {"shortest_edge"}:  # else the launch has the rule
        sizes = [_size_of(call, *sides) for sides in call.sides]
    else:
        sizes = []
    if middle is not None and known == {"shortest_edge"}:
        cut = middle.height, middle.width
        if call.pil and (((lack := cut - np.array(sizes)) > 0) & (lack % 2 == 1)).any():
            raise UnknownError("an odd number of pixels is missing to crop_size, which Pillow's backend pads first")
        made = call.launch("resize", call.images, size=cut, crop="center", shortest=size.shortest_edge)
    elif len(set(sizes)) == 1:
        made = call.launch("resize", call.images, size=sizes[0])
        made = made if middle is None else _middle(made, middle)
    elif middle is not None:
        raise UnknownError("the middle of images of different size is known for size={'shortest_edge': ...} alone")
    elif call.dtype == "bfloat16":
        raise UnknownError("images of several sizes can't be bfloat16 here")
    else:
        made = list(call.launch("resize_each", call.images, sizes))
    if asked["do_pad"] and (asked["pad_size"] or isinstance(made, list)):
        made = call.processor.pad(list(made), pad_size=asked["pad_size"], disable_grouping=True)
    return call.answer(pixel_values=made if isinstance(made, list) else call.listed(made))


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
    asked, size, factor = call.asked, call.asked["size"], call.asked["patch_size"] * call.asked["merge_size"]
    own = {"patch": asked["patch_size"], "merge": asked["merge_size"], "temporal": asked["temporal_patch_size"]}
    if call.pil:
        own["dtype"] = call.dtype
    own |= call.folded(asked["patch_size"])

    def rule() -> Any:
        return partial(ops.smart_sizes, factor=factor, min_pixels=size.shortest_edge, max_pixels=size.longest_edge)

    rows, grid = _rows(call, rule, **own)
    return call.answer(pixel_values=rows, image_grid_thw=grid)


def fit_rows(call: Call) -> Any:
    """As many patch rows for every image, with a mask: SigLIP2 of the NaViT kind."""
    asked, patch, most = call.asked, call.asked["patch_size"], call.asked["max_num_patches"]

    def rule() -> Any:
        return partial(ops.fit_sizes, patch=patch, max_rows=most)

    rows, _, shapes = _rows(call, rule, patch=patch, order="PPC", max_rows=most, **call.folded(patch))
    counts = np.asarray(shapes).prod(1, keepdims=True)
    mask: Any = (np.arange(most) < counts).astype(np.int32)  # on the host, as there
    mask = mask if call.pil else import_module("torch").from_numpy(mask)
    shown = shapes if asked["return_tensors"] == "pt" else [tuple(pair) for pair in shapes.tolist()]
    return call.answer(pixel_values=call.listed(rows), pixel_attention_mask=call.listed(mask), spatial_shapes=shown)


def _rows(call: Call, rule: Callable[[], Any], **own: Any) -> Any:
    """Patch rows at the sizes of a rule, or without `do_resize`, which needs no limits, at those that images have."""
    sizes = call.once("sizes", rule) if call.asked["do_resize"] else np.asarray
    return call.launch("patch_rows", call.images, sizes, **own)


@cache
def _pillow() -> int:
    return int(import_module("PIL").__version__.split(".")[0])


class Known(NamedTuple):
    """Code of transformers that is stood in for: all methods of a class that make its answer, and what these call.
    `run` makes the same answer of a `Call`."""

    module: str
    name: str
    methods: tuple[str, ...]
    functions: tuple[str, ...]
    run: Callable[[Call], Any]
    pil: bool = False

    @property
    def owner(self) -> Any:
        """The class; None if this version doesn't have it, or what it requires is not installed."""
        try:
            return getattr(import_module(self.module), self.name)
        except (ImportError, AttributeError):
            return None

    @property
    def code(self) -> list[Any]:
        return [*(getattr(self.owner, name) for name in self.methods), *self.functions]

    @property
    def backend(self) -> Any:
        """The class whose code brings options and images of a call to `_preprocess`."""
        return getattr(import_module(BACKENDS), "PilBackend" if self.pil else "TorchvisionBackend")

    @property
    def preparing(self) -> list[Any]:
        names = (*PREPARING, "preprocess")
        return [*(getattr(self.backend, name, f"{BACKENDS}.{name}") for name in names), *CONVERTING]


BACKENDS, TRANSFORMS, UTILS = (
    f"transformers.{name}" for name in ("image_processing_backends", "image_transforms", "image_utils")
)
TORCH = (
    "_preprocess", "resize", "rescale", "normalize", "rescale_and_normalize", "_fuse_mean_std_and_rescale_factor",
)  # fmt: skip
PIL = ("_preprocess", "resize", "rescale", "normalize")
# What makes arrays of the images of a call, and gets its options.
PREPARING = (
    "_prepare_image_like_inputs", "_prepare_images_structure", "fetch_images", "process_image", "convert_to_rgb",
    "__call__", "_preprocess_image_like_inputs",
)  # fmt: skip
CONVERTING = (f"{TRANSFORMS}.convert_to_rgb", f"{UTILS}.make_flat_list_of_images")
RULES = (
    f"{TRANSFORMS}.get_size_with_aspect_ratio", f"{TRANSFORMS}.get_resize_output_image_size",
    f"{UTILS}.get_image_size_for_max_height_width",
)  # fmt: skip
PIL_RULES = tuple(f"{TRANSFORMS}.{name}" for name in ("resize", "rescale", "normalize"))


def _known_as(model: str, name: str, methods: tuple[str, ...], rule: str, run: Callable[[Call], Any]) -> list[Known]:
    """Both processors of a model: on torchvision, and on Pillow and NumPy."""
    here, pil = (f"transformers.models.{model}.image_processing_{kind}{model}" for kind in ("", "pil_"))
    return [
        Known(here, name, (*TORCH, *methods), (f"{here}.{rule}",), run),
        Known(pil, f"{name}Pil", (*PIL, *methods), (f"{pil}.{rule}", *PIL_RULES), run, pil=True),
    ]


KNOWN = (
    Known(BACKENDS, "TorchvisionBackend", (*TORCH, "center_crop", "pad"), RULES, batch),
    Known(
        BACKENDS, "PilBackend", (*PIL, "center_crop", "pad"), (*RULES, *PIL_RULES, f"{TRANSFORMS}.center_crop"), batch,
        pil=True,
    ),
    *_known_as("qwen2_vl", "Qwen2VLImageProcessor", ("patchify",), "smart_resize", smart_rows),
    *_known_as("siglip2", "Siglip2ImageProcessor", (), "get_image_size_for_max_num_patches", fit_rows),
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
    newer = common.check_version("transformers", TESTED, untested)
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
    why = "it computes something that octopus doesn't know" if known is None else ""
    if known is not None and newer and (changed := common.moved(known.code)):
        why = f"this version of transformers has changed {', '.join(changed)}"
    if why:
        warn_once(kind.__name__, why if dtype is None else f"{why}, and dtype={wanted} has no effect")
        return processor
    return _restored(kind, dict(processor.__dict__), wanted)


class Folded(NamedTuple):
    """A processor and a model that `fold` made fit each other."""

    processor: Any
    model: Any
    layer: Any  # what was changed of the model, if anything was

    def undo(self) -> None:
        """Let the model be as it was, and the processor one of `accelerate`."""
        image_processor = getattr(self.processor, "image_processor", self.processor)
        kind = type(image_processor)
        image_processor.__class__ = _class_of(kind.__mro__[2], kind._dtype)
        if isinstance(self.layer, folded.FoldedLayer):
            self.layer.__class__ = type(self.layer).__mro__[2]
            self.layer.__dict__.pop("_kept", None)
            del self.layer._fold


def fold(processor: Any, model: Any, *, untested: bool = False) -> Folded:
    """Have a processor make rows that a model's first layer takes faster, and change that layer with it.

    Rows hold each patch once, in the model's dtype, as pixels less a whole number near their mean, with zeros up to a
    multiple of 8 values; the layer becomes a matrix product whose weights see to time steps and normalisation (see
    `octopus.torch.fold_patch_embed`). What the model computes stays. It keeps its weights under their names, takes rows
    of videos and of other processors as before, and follows weights that are loaded or trained.

    Parameters
    ----------
    processor : BaseImageProcessor or ProcessorMixin
        As in `accelerate`: of Qwen2-VL's family or SigLIP2. It stays unchanged.
    model : torch.nn.Module
        With a patch embedding for rows of that processor, on its device and in its dtype: Qwen2-VL, Qwen2.5-VL,
        Qwen3-VL and others like them, also where transformers has fused the layer (`fusion_config`), and SigLIP2 of
        variable resolution. It is changed in place. Models that take whole images, such as CLIP, have no rows: for
        them there is `accelerate(processor, dtype=model.dtype)`.
    untested : bool
        As in `accelerate`.

    Returns
    -------
    Folded
        `processor`, a stand-in for this `model` alone, and `undo()`, which makes both as they were. Another model
        refuses the shape of its rows. Calls with other patches or another normalisation than the processor's own are
        answered by the original's code, with a `FallbackWarning`, as rows that the model takes, too.

    Raises
    ------
    InputError
        For a processor or model of another kind, or that don't fit each other; nothing is changed then.
    MissingPackageError
        As `accelerate`.
    """
    layer, name = folded.embedding_of(model)
    dtype = str(folded.linear_in(layer).weight.dtype).removeprefix("torch.")
    made = accelerate(processor, dtype=dtype, untested=untested)
    own: Any = getattr(made, "image_processor", made)
    kind: Any = type(own)
    if not issubclass(kind, _Accelerated) or kind._stands_for.run is not EMBEDDINGS[name]:
        raise InputError(f"the model's {name} wants rows that {kind.__name__} doesn't make; pass its own processor")
    if own._fold is not None or isinstance(layer, folded.FoldedLayer):
        raise InputError("the processor or the model is folded already; undo() that first")
    agreed = _agreed(own, folded.linear_in(layer), name)
    if agreed is None:
        return Folded(made, model, None)
    own = _restored(kind.__mro__[2], own.__dict__, dtype, agreed)
    if hasattr(made, "image_processor"):  # a copy
        made.image_processor = own
    else:
        made = own
    layer.__class__, layer._fold = folded.folded_class(layer.__class__), agreed
    both = Folded(made, model, layer)
    try:
        folded.check_embeddings(layer, agreed)
    except Exception:
        both.undo()
        raise
    return both


def _agreed(own: Any, linear: Any, name: str) -> folded.Fold | None:
    """What a processor and a layer can agree on; None if the shape wouldn't tell such rows from the original's."""
    frames, order = (own.temporal_patch_size, "CTPP") if name == "patch_embed" else (1, "PPC")
    normal = _normal_of(
        own.image_mean if own.do_normalize else None, own.image_std if own.do_normalize else None,
        1 / own.rescale_factor if own.do_rescale else None,
    )  # fmt: skip
    middle = tuple(np.rint(np.multiply(normal[0], normal[2])).tolist())
    filled, taken = len(middle) * own.patch_size**2, linear.weight[0].numel()
    if taken != filled * frames:
        raise InputError(
            f"the model's {name} takes rows of {taken} values, and the processor makes {filled * frames} of a patch; "
            "pass the model's own processor"
        )
    width = -(-filled // folded.ROW_MULTIPLE) * folded.ROW_MULTIPLE
    moved = import_module("octopus.torch").linear_of(*normal, middle, len(middle))
    return None if width == taken else folded.Fold(own.patch_size, normal, middle, moved, frames, order, width)


EMBEDDINGS = {"patch_embed": smart_rows, "patch_embedding": fit_rows}  # by the last part of a layer's name


def _normal_of(mean: Any, std: Any, scale: Any) -> tuple[Any, ...]:
    """A normalisation of three channels as tuples, which can be compared."""
    given = (0.0 if mean is None else mean, 1.0 if std is None else std, 1.0 if scale is None else scale)
    return tuple(tuple(np.broadcast_to(np.asarray(value, np.float64), 3).tolist()) for value in given)


def _known(kind: type) -> Known | None:
    for row in KNOWN:
        owner = row.owner
        if owner is not None and all(getattr(kind, name, None) is getattr(owner, name, owner) for name in row.methods):
            return row
    return None


def relied_on() -> list[Any]:
    """All code of transformers that is stood in for, as far as this version has it."""
    return [code for row in KNOWN if row.owner is not None for code in (*row.code, *row.preparing)]


_numbers = count()
_RESOLVE = object()  # in the place of images: what is wanted are the options of a call with their defaults


class _Kind(NamedTuple):
    """Calls with the same options: what the processor looked like, these options, and what all of the calls share."""

    state: dict[str, Any]
    asked: dict[str, Any]
    made: dict[Any, Any]


class _Accelerated:
    """What a stand-in has beside its original class."""

    __slots__ = ("_kinds",)  # none of its attributes, which are saved
    _kinds: dict[Any, _Kind]
    _stands_for: Known
    _dtype: str
    _fold: folded.Fold | None
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
                    return row.run(Call(self, taken, asked, row.pil, self._dtype, given[1], kind.made, self._fold))
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
        if not self.__dict__.keys().isdisjoint((*PREPARING, *self._stands_for.methods)):
            return None  # methods of this object alone
        asked = super().preprocess(_RESOLVE, **given)  # type: ignore[misc]
        try:
            kind = _Kind(*copy.deepcopy((self.__dict__, asked)), {"number": next(_numbers)})
        except Exception:  # attributes may be anything
            return None
        if type(asked) is not dict or not _same(kind.state, self.__dict__):
            return None
        if len(kinds) >= MOST_KINDS:
            kinds.clear()
        kinds[key] = kind
        return kind

    def _preprocess_image_like_inputs(self, images: Any, *args: Any, **kwargs: Any) -> Any:
        if images is _RESOLVE:
            return kwargs
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
            taken = _taken(images, kwargs, row.pil)
            return row.run(Call(self, taken, kwargs, row.pil, self._dtype, "CHW", {}, self._fold))
        except KNOWN_ERRORS as error:
            warn_once(type(self).__name__, str(error))
        if device is not None and not row.pil:
            images = [image.to(device) for image in images]
        made = super()._preprocess(images, *args, **kwargs)  # type: ignore[misc]
        if self._dtype != "float32":
            made["pixel_values"] = _cast(made["pixel_values"], self._dtype)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self).__mro__[2], self.__dict__, self._dtype, self._fold)


def _same(state: dict[str, Any], other: dict[str, Any]) -> bool:
    try:
        return state == other
    except Exception:
        return False


def _cast(values: Any, dtype: str) -> Any:
    if isinstance(values, (list, tuple)):
        return [_cast(one, dtype) for one in values]
    if "float" not in str(values.dtype):
        return values
    return values.astype(dtype) if isinstance(values, np.ndarray) else values.to(getattr(import_module("torch"), dtype))


def _gathered(images: Any, asked: dict[str, Any], pil: bool) -> tuple[list[Any], str] | None:
    """Images as octopus takes them, without a copy, and where their channels are: those of Pillow, and arrays of NumPy
    and torch of three channels. None if one is of another kind, or may be read in two ways."""
    made, convert = _flat(images), asked.get("do_convert_rgb")
    if not made or asked.get("input_data_format") is not None:
        return None
    first, pillow = False, []
    for number, image in enumerate(made):
        kind = type(image)
        if kind is np.ndarray or (kind.__name__ == "Tensor" and kind.__module__ == "torch"):
            ends = image.shape[::2]
            if len(image.shape) != 3 or 3 not in ends or (ends[0] in (1, 3, 4) and ends[1] in (1, 3, 4)):
                return None
            first |= ends[0] == 3
        elif is_pillow(kind):
            pillow.append(number)
        else:
            return None
    if pillow:
        opened = [made[number] for number in pillow]
        decode(opened, "image", pillow)
        opened = _as_rgb(opened) if convert else opened
        if any(image.mode not in ("RGB", "L") for image in opened):
            return None
        for number, raster in zip(pillow, rasters(opened, "image", pillow), strict=True):
            if len(raster.shape) == 2:  # the same grey in each channel
                grey = (*raster.shape, 3 if convert else 1)
                raster = raster._replace(shape=grey, strides=(*raster.strides, 0))
            made[number] = raster
    if pil or first:
        return [_channels_first(image, pil) for image in made], "CHW"
    return made, "HWC"


def _flat(images: Any) -> list[Any]:
    """Images of a call as a list of its own: one, several, several lists, or a batch."""
    if isinstance(images, (list, tuple)):
        nested = images and all(isinstance(one, (list, tuple)) for one in images)
        return [image for one in images for image in one] if nested else list(images)
    return list(images) if getattr(images, "ndim", 0) == 4 else [images]


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
    if pil and any(image.shape[0] > 3 for image in images):
        raise UnknownError("images have four channels, of which Pillow weighs three by the fourth")
    device = None if pil else asked.get("device")
    if device is None:
        return list(images)
    return [image.to(device) if getattr(image, "is_cuda", False) else image for image in images]


@cache
def _class_of(kind: type, dtype: str, fold: folded.Fold | None = None) -> type:
    """The class of stand-ins, by the name of their original's class, so that both are saved alike."""
    known: Any = _known(kind)
    copied = {"__module__": kind.__module__, "__doc__": kind.__doc__, "__slots__": ()}
    own = {**copied, "_stands_for": known, "_dtype": dtype, "_forwards": _has_known_preparation(kind, known)}
    return type(kind.__name__, (_Accelerated, kind), {**own, "_fold": fold})


def _has_known_preparation(kind: type, row: Known) -> bool:
    """Whether options and images of a class reach `_preprocess` by known code alone, called from there at most."""
    if any(getattr(kind, name, None) is not getattr(row.backend, name, kind) for name in PREPARING):
        return False
    *others, last = (unwrap(one.__dict__["preprocess"]) for one in kind.__mro__ if "preprocess" in one.__dict__)
    if last is not unwrap(row.backend.preprocess) or any(
        set(one.__code__.co_names) - {"super", "preprocess"} for one in others
    ):
        return False
    return not (common.is_newer("transformers", TESTED) and common.moved(row.preparing))


def _restored(kind: type, state: dict[str, Any], dtype: str = "float32", fold: folded.Fold | None = None) -> Any:
    made: Any = object.__new__(_class_of(kind, dtype, fold))
    made.__dict__.update(copy.deepcopy(state))
    return made


__all__ = ["TESTED", "FallbackWarning", "Folded", "accelerate", "fold"]
