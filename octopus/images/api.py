"""Images of different size, each call in one launch: to one size, to sizes of their own, to patch rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from octopus.arrays import streams
from octopus.arrays.checks import Device, check_stream, check_tensor
from octopus.arrays.memo import dynamo_disabled
from octopus.arrays.results import check_host_memory
from octopus.images.calls import ADVICE, Results, pattern_of, run_on_host
from octopus.images.sizes import smart_sizes
from octopus.images.sources import look
from octopus.images.spec import EachOptions, ResizeOptions, RowOptions
from octopus.images.upload import run_on_gpu
from octopus.ragged.batch import RaggedBatch


@dynamo_disabled
def resize(
    images: Any, size: Any, *, out: Any = None, stream: Any = None, device: Device = "auto",
    **options: Unpack[ResizeOptions],
) -> Any:  # fmt: skip
    """Resize images that all differ in size to one size, and normalise them, in one launch.

    The result is that of Pillow's `Image.resize`, or of torchvision's `resize`, of every image, then
    `(value / scale - mean) / std`: half-pixel centres, rows before columns, pixels beyond an image left out.

    Parameters
    ----------
    images : list of arrays, array, or RaggedBatch
        Images (H, W, C), (C, H, W) or (H, W) of uint8, uint16 or float32, C 1, 3 or 4, all of one dtype, number of
        channels and side. NumPy, torch, CuPy, Numba, or anything with DLPack or `__cuda_array_interface__`; never
        copied where they lie on the device that works, whatever their strides. An array of two or three dimensions is
        one image, one of four is a list.
    size, layout
        As in `octopus.crop_resize`.
    filter : {"bilinear", "bicubic", "lanczos", "nearest"}
        Pillow's: the cubic convolution has a = -0.5, Lanczos three lobes.
    antialias : bool
        When reducing, widen the filter to what an output pixel covers, as Pillow always does. Without it the answer is
        that of torch's `interpolate(antialias=False, align_corners=False)`, whose bicubic has a = -0.75 and repeats the
        image's border. Of no meaning for "nearest".
    rounding : {"none", "uint8", "pillow", "pillow12", "torch"}
        Where values are rounded before they are normalised, for images of uint8. "none": nowhere. "uint8": half to
        even and clamped to 0 to 255 once, as processors on torch's tensors do. "pillow": bit for bit as Pillow 13
        does, in fixed point and to uint8 after each of the two passes: horizontal first, unless more than twice as many
        rows as columns go. "pillow12": always horizontal first, as Pillow up to 12. Every channel stands for itself, as
        in Pillow's modes L, RGB and CMYK; of RGBA Pillow weighs the colours by the last one. "torch": as
        torch's `interpolate(antialias=True)` of uint8, and so torchvision; on a CPU bit for bit, like Pillow but with
        weights of 16 bits (without AVX2 or NEON torch itself does so for "bicubic" alone); on a GPU as "uint8".
    mean, std, scale : float or C floats, optional
        As in `octopus.crop_resize`, in the order of the result's channels.
    dtype : {"float32", "float16", "bfloat16", "uint8"}
        uint8 rounds half to even and saturates; bfloat16 is for tensors of torch.
    letterbox : bool
        Keep each image's aspect ratio: it fills the height or the width, in the middle of the item.
    return_transform : bool
        With `letterbox`, also return the transform that leads back to the image.
    pad_value : float or C floats, optional
        What fills the rest of an item, with `letterbox` (default as in `octopus.crop_resize`) or `crop` (default 0); in
        units of the images' values.
    crop : {"center"}, optional
        Resize each image until its shorter side is `shortest`, and take the middle of it, as processors of CLIP and
        DINOv2 do. What lies beyond an image that is too small is `pad_value`.
    shortest : int, optional
        Pixels; by default the side of a square `size`.
    channels : {"RGB", "BGR", "RGBA", "BGRA"}
        Order of the images' channels; those of the result are red, green, blue. Of "RGBA" and "BGRA" the fourth is left
        out, as in Pillow's `convert("RGB")`. By default all channels are kept as they are, whether one, three or four.
    source : {"HWC", "CHW"}, optional
        Where the images' channels are. By default an axis of length 1, 3 or 4 that comes last holds them, else one that
        comes first; lists may have both. Where both could be, as in three columns of pixels, it is the last, unless
        other images of the list have them first and none last. Images (H, W) have none, whatever is said.
    out : array, optional
        Where to write; must have exactly the result's shape, dtype and device, and memory apart from the images.
    stream : optional
        A CUDA stream of any library; default: the current one of the images' library. The call returns once the work is
        queued on it. One that isn't torch's must outlive the tensors that it works on. None where the CPU works.
    device : {"auto", "cpu", "cuda", "cuda:0", ...} or torch.device
        "auto" works where the images lie. Images on the host with "cuda" are brought to the GPU together, and the
        result stays there.

    Returns
    -------
    array, (N, C, height, width) or (N, height, width, C)
        On the side that worked and of the images' library; where that has no arrays there, or offers DLPack or
        `__cuda_array_interface__` alone, NumPy or `DeviceArray`.
    transform : array, (N, 4), float32
        With `return_transform` only, then the result is a pair: for `octopus.map_back`, as of `octopus.crop_resize`.

    Raises
    ------
    InputError, DeviceError, OutOfMemoryError
        As `octopus.crop_resize`; also for images from the host that don't fit.

    Examples
    --------
    >>> import numpy as np
    >>> images = [np.zeros((480, 640, 3), np.uint8), np.zeros((200, 100, 3), np.uint8)]
    >>> resize(images, 224, filter="bicubic", scale=255, mean=0.5, std=0.5).shape
    (2, 3, 224, 224)
    """
    return run("resize", {"size": size, **options}, images, None, out, stream, device)


@dynamo_disabled
def resize_each(
    images: Any, sizes: Any, *, out: Any = None, stream: Any = None, device: Device = "auto",
    **options: Unpack[EachOptions],
) -> RaggedBatch:  # fmt: skip
    """Resize each image to a size of its own, and normalise it, all in one launch.

    Parameters
    ----------
    images, filter, antialias, rounding, mean, std, scale, channels, source, stream, device
        As in `resize`.
    sizes : array, (N, 2), integer, or callable
        Height and width that each image becomes, in pixels, on the host; or a rule that makes them, a function of the
        images' heights and widths (N, 2) and of nothing else.
    dtype : {"float32", "float16", "uint8"}
    layout : {"NCHW", "NHWC"}
        Order within each item.
    out : array, (T,), optional
        Where to write the values of all items, one after the other.

    Returns
    -------
    RaggedBatch
        Items (C, h, w) or (h, w, C) on the side that worked, of the images' library.

    Raises
    ------
    InputError, DeviceError, OutOfMemoryError
        As `resize`; also for sizes that are none.

    Examples
    --------
    >>> import numpy as np
    >>> images = [np.zeros((480, 640, 3), np.uint8), np.zeros((200, 100, 3), np.uint8)]
    >>> [item.shape for item in resize_each(images, [[240, 320], [50, 25]], dtype="uint8")]
    [(3, 240, 320), (3, 50, 25)]
    """
    batch: RaggedBatch = run("resize_each", options, images, sizes, out, stream, device)
    return batch


@dynamo_disabled
def patch_rows(
    images: Any, sizes: Any, *, out: Any = None, stream: Any = None, device: Device = "auto",
    **options: Unpack[RowOptions],
) -> tuple[Any, ...]:  # fmt: skip
    """Resize each image to a size of its own, and cut all into the patch rows that a model takes, in one launch.

    Every patch of `patch` x `patch` pixels becomes a row of K values, ready for the model's first matrix. Patches of
    one block of `merge` x `merge` follow each other, blocks from left to right and from top to bottom.

    Parameters
    ----------
    images, antialias, mean, std, scale, channels, source, stream, device
        As in `resize`.
    sizes : array, (N, 2), integer, or callable
        As in `resize_each`, but multiples of `patch * merge`. `smart_sizes` is the rule of the Qwen2-VL family,
        `fit_sizes` that of SigLIP2; `functools.partial` gives them other limits.
    patch : int
        Pixels of a patch's side: 14 for Qwen2-VL and Qwen2.5-VL, 16 for Qwen3-VL and SigLIP2.
    merge, temporal : int, optional
        Patches of a merged block's side, and copies of each patch in its row, since these models take two frames at a
        time; by default 2, and 1 with `order="PPC"`. `temporal=1` is for a layer whose weights are summed over the two
        frames, which in a still image are equal.
    order : {"CTPP", "PPC"}
        Of the values of a row: channel, copy, row and column, as in the Qwen2-VL family; or row, column, channel, as in
        SigLIP2 and others of the NaViT kind.
    filter, rounding
        As in `resize`, but by default as these models' processors have them: "bicubic", and "torch", or without
        `antialias` "uint8".
    max_rows : int, optional
        Give every image as many rows, and fill up with 0; by default the rows of all images follow each other.
    row_multiple : int
        Round K up to a multiple of this many values, with zeros behind those of each patch: with 8 a row of 16-bit
        floats begins at a multiple of 16 bytes, as fast matrix products want it. Zeros are 0 in any dtype, and not
        normalised; weights of zero belong there.
    dtype : {"float32", "float16", "bfloat16", "uint8", "int8"}
        As in `resize`; int8 is the byte that uint8 has, less 128, of rows that are not normalised.
    out : array, optional
        Where to write the rows.

    Returns
    -------
    rows : array, (R, K), or with `max_rows` (N, max_rows, K)
        K is C * temporal * patch * patch, rounded up to `row_multiple`. On the side that worked, of the images'
        library.
    grid : array, (N, 3), int64
        Without `max_rows`: frames (1), and patches down and across of each image; on the host, as models take it. The
        rows of image i end at `grid.prod(1).cumsum()[i]`.
    mask : array, (N, max_rows), int32
        With `max_rows`: 1 for rows of the image, 0 for the rest; beside the rows.
    shapes : array, (N, 2), int64
        With `max_rows`: patches down and across of each image, on the host.

    Raises
    ------
    InputError, DeviceError, OutOfMemoryError
        As `resize`; also for sizes that are no multiples, or more rows than an int32 counts.

    Examples
    --------
    >>> import numpy as np
    >>> images = [np.zeros((480, 640, 3), np.uint8), np.zeros((200, 100, 3), np.uint8)]
    >>> rows, grid = patch_rows(images, smart_sizes, scale=255, mean=0.5, std=0.5)
    >>> rows.shape, grid.tolist()
    ((1676, 1176), [[1, 34, 46], [1, 14, 8]])
    """
    made: tuple[Any, ...] = run("patch_rows", options, images, sizes, out, stream, device)
    return made


def run(
    operation: str, options: Mapping[str, Any], images: Any, sizes: Any, out: Any = None, stream: Any = None,
    device: Any = "auto", library: str | None = None, key: Any = None,
) -> Any:  # fmt: skip
    """Check a call, reserve memory for what it makes, and do it.

    The result is of the images' library unless another is named; a key stands for options not to be looked at again.
    """
    found = look(images)
    pattern = pattern_of(operation, options, found, sizes, device, library, key)
    if pattern.prepared is not None and out is None and stream is None:
        made = pattern.prepared.run(found, pattern.geometry)
        if made is not None:
            return pattern.answer(Results(made))
    on_gpu = pattern.model.device == "cuda"
    check_stream(stream, pattern.model.device)
    check_tensor(out, "out")
    if out is None and not on_gpu:
        check_host_memory(pattern.nbytes, "the host for the result", ADVICE)
    queue = streams.stream_for(pattern.model, None, stream) if on_gpu else None
    arrays = pattern.new(out, None if stream is None else queue)  # None: the library's own, which it is
    results = pattern.views(arrays, found, "" if out is None else "out")
    if on_gpu:
        run_on_gpu(pattern, found, results, queue, stream is not None)
    else:
        run_on_host(pattern, found, results)
    return pattern.answer(arrays)


__all__ = ["patch_rows", "resize", "resize_each", "smart_sizes"]
