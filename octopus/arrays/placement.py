"""Where a call works: on which device, on which stream, and after whose work."""

from __future__ import annotations

from typing import Any

from octopus import backends
from octopus.arrays import views as interop
from octopus.arrays.views import ArrayView
from octopus.backends.cuda import device as cuda_device
from octopus.errors import InputError


def stream_for(frame: ArrayView, boxes: ArrayView | None, stream: Any) -> Any:
    """The stream to work on: the caller's, else the current one of the frame's library, else of the boxes'."""
    if stream is None:
        stream = interop.current_stream(frame)
    if stream is None and boxes is not None:
        stream = interop.current_stream(boxes)
    return backends.cuda.stream_of(stream)


def check_ordinals(*arrays: ArrayView) -> None:
    """All arrays must lie on the GPU in use, and it must be current."""
    here = cuda_device.current().device_id
    _check_current(here)
    for array in arrays:
        if array.ordinal is not None and array.ordinal != here and array.device == "cuda":
            raise InputError(
                f"an array lies on GPU {array.ordinal} but GPU {here} is in use; keep all on one GPU and make it "
                "current before the first call in this thread, or choose it with CUDA_VISIBLE_DEVICES"
            )


def _check_current(here: int) -> None:
    """The GPU of the first call in this thread must still be current: a launch goes to the current one."""
    from cuda.bindings import driver

    status, now = driver.cuCtxGetDevice()
    if not status and int(now) != here:
        raise InputError(
            f"GPU {int(now)} is current but this thread works with GPU {here} since its first call; make GPU {here} "
            "current, or use another thread for another GPU"
        )


def device_for(frame: ArrayView, device: str, name: str = "frame") -> str:
    """Where to work on this frame, or what else the caller calls it."""
    if device not in backends.DEVICES:
        backends.resolve(device)
    if frame.device == "cuda":
        if device == "cpu":
            raise InputError(
                f"{name} is on the GPU but device='cpu' was asked for; copy it to the host first"
            )
        return backends.resolve("cuda")
    return backends.resolve(device)


def wait_for_producers(queue: Any, *arrays: ArrayView) -> None:
    """Order `queue` behind the streams on which other libraries may still be writing."""
    for array in arrays:
        if array.after is not None:
            producer = backends.cuda.stream_of(array.after)
            if producer is not queue:
                queue.wait(producer)


def wait_for_other_families(queue: Any, first: ArrayView, *others: ArrayView) -> None:
    """Order `queue` behind the current streams of libraries other than that of the first array, whose stream it is."""
    for array in others:
        if array.family != first.family and array.device == "cuda":
            producer = interop.current_stream(array)
            if producer is not None and not cuda_device.is_capturing(queue):
                queue.wait(backends.cuda.stream_of(producer))
