"""On which device and stream a call works, and after whose work."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from octopus import backends
from octopus.arrays.views import ArrayView, family
from octopus.backends.cuda.device import LEGACY, current, driver, is_capturing
from octopus.errors import InputError


def stream_for(frame: ArrayView, boxes: ArrayView | None, stream: Any) -> Any:
    """The stream to work on: the caller's, else the current one of the frame's library, else of the boxes'."""
    if stream is None:
        stream = current_stream(frame)
    if stream is None and boxes is not None:
        stream = current_stream(boxes)
    return backends.cuda.stream_of(stream)


def check_ordinals(*arrays: ArrayView) -> None:
    """All arrays must lie on the GPU of this thread's first call, and it must still be current: launches go there."""
    here = current().device_id
    status, now = driver().cuCtxGetDevice()
    if not status and int(now) != here:
        raise InputError(
            f"GPU {int(now)} is current but this thread works with GPU {here} since its first call; make GPU {here} "
            "current, or use another thread for another GPU"
        )
    for array in arrays:
        if array.ordinal is not None and array.ordinal != here and array.device == "cuda":
            raise InputError(
                f"an array lies on GPU {array.ordinal} but GPU {here} is in use; keep all on one GPU and make it "
                "current before the first call in this thread, or choose it with CUDA_VISIBLE_DEVICES"
            )


def handle_of(stream: Any) -> int:
    return int(backends.cuda.stream_of(stream).handle)


def where(model: ArrayView) -> Callable[[], int]:
    """What tells the handle of the stream on which the array's library queues its work on the GPU now."""
    if model.family == "torch":
        return partial(_torch_handle(), model.ordinal)
    if model.family == "cupy":
        return lambda: handle_of(current_stream(model))
    return partial(int, 0)


def device_for(frame: ArrayView, device: Any, name: str = "frame") -> str:
    if frame.device == "cuda":
        if backends.kind_of(device)[0] == "cpu":
            raise InputError(f"{name} is on the GPU but device='cpu' was asked for; copy it to the host first")
        return backends.resolve("cuda" if device == "auto" else device)
    return backends.resolve(device)


def wait_for_producers(queue: Any, *arrays: ArrayView) -> None:
    """Order `queue` behind the streams on which other libraries may still be writing. A tensor of torch that knows such
    a stream was made on the way, so that torch alone looks after its memory. A graph that such a stream is no part of
    would be spoilt by waiting."""
    for array in arrays:
        if array.after is not None:
            producer = backends.cuda.stream_of(array.after)
            if producer is not queue:
                if is_capturing(queue) and not is_capturing(producer):
                    raise InputError(
                        "an array came with a stream (by DLPack or __cuda_array_interface__) that is no part of the "
                        "graph being captured, which can't wait for it; pass arrays of torch, CuPy or Octopus, "
                        "written before"
                    )
                queue.wait(producer)
                used_on(array.owner, queue)


def wait_for_other_families(queue: Any, first: ArrayView, *others: ArrayView) -> None:
    """Order `queue` behind the current streams of libraries other than that of the first array, whose stream it is."""
    for array in others:
        if array.family != first.family and array.device == "cuda":
            producer = current_stream(array)
            if producer is not None and not is_capturing(queue):
                queue.wait(backends.cuda.stream_of(producer))


def current_stream(model: ArrayView) -> Any:
    """The stream on which the array's library queues its work now; None for those without such a notion."""
    if model.device == "cpu":
        return None
    if model.family == "torch":
        return _torch_handle()(model.ordinal)
    if model.family == "cupy":
        import cupy

        return cupy.cuda.get_current_stream()
    return None


def is_current(stream: Any, model: ArrayView) -> bool:
    """Whether a stream (of cuda.core) is the current one of an array's library; the default stream has two names."""
    handle = int(backends.cuda.stream_of(current_stream(model)).handle)
    return int(stream.handle) == handle or {int(stream.handle), handle} <= {0, LEGACY}


@cache
def _torch_handle() -> Callable[[int | None], int]:
    import torch

    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return raw or (lambda ordinal: int(torch.cuda.current_stream(ordinal).cuda_stream))


def used_on(array: Any, stream: Any) -> None:
    """Tell the library of an array in device memory that work on `stream` (of cuda.core) uses it. Torch then gives the
    memory to others behind that work; it asks the stream when the tensor is freed, so a stream that isn't torch's must
    live until then. CuPy has no such notion: its arrays must outlive the work."""
    if array is not None and family(array) == "torch" and array.is_cuda:
        import torch

        array.record_stream(torch.cuda.ExternalStream(int(stream.handle), array.device))
