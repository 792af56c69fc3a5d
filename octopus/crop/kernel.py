"""A crop-and-resize call, from its arguments to its launch.

One like a call before: `read_call` reads attributes into a key, under which the memo of the thread or plan has a
`PreparedCall`; its `run` makes or finds memory for the result and hands all addresses to machine code, which checks the
values of boxes from the host, and launches. What that refuses goes the long way, too, for a good error: `check`, `work`
and, if one launch does all that the next such call needs, `prepare` of a `CropKernel`.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from octopus.arrays import streams
from octopus.arrays.checks import boxes_view, check_apart
from octopus.arrays.launch import PreparedLaunch
from octopus.arrays.memo import ALIGNMENT, PLAIN, frozen, modes, read
from octopus.arrays.plan import Place, PlanMemory, Stage
from octopus.arrays.results import check_out, result_view
from octopus.arrays.views import ArrayView, view
from octopus.crop import check
from octopus.crop.check import ITEM_NAMES, Call, Items, are_maps
from octopus.crop.cpu import CpuEngine
from octopus.crop.frame import frame_view
from octopus.crop.spec import CropOptions, make_spec
from octopus.errors import InputError

Maker: TypeAlias = Callable[[int | None], tuple[Any, int]]
# A call as it was read: its key, which is all of it but addresses and values; addresses of the caller's `out`, frame,
# boxes, and what items have of their own on the GPU; the handle of the caller's stream; and what keeps memory alive.
Asked: TypeAlias = tuple[tuple[Any, ...] | None, list[int], int | None, Any]
NOT_READ: Asked = None, [], None, None


def read_call(frame: Any, boxes: Any, size: Any, out: Any, stream: Any, options: Mapping[str, Any]) -> Asked:
    """Read the arguments of a call; there is no key if the long way has to tell what is wrong with them."""
    addresses: list[int] = []
    key: list[Any] = []
    recording, tracing = modes
    try:
        if recording() or tracing():
            return NOT_READ
        if out is not None:
            out = out, read(out, result_view, key, addresses)
        held = read(frame, frame_view, key, addresses), read(boxes, boxes_view, key, addresses), out
        if stream is not None:
            key.append(True)
            stream = streams.handle_of(stream)
        key.append(size if type(size) is int else frozen("size", size))
        if options and not _read_options(options, key, addresses):
            return NOT_READ
    except Exception:
        return NOT_READ
    return tuple(key), addresses, stream, held


def _read_options(options: Mapping[str, Any], key: list[Any], addresses: list[int]) -> bool:
    """Add options to a key; False if something comes from the host that each call has to look at."""
    items = {}
    for name, value in options.items():
        key.append(name)
        if type(value) in PLAIN:
            key += type(value), value
            if name in ("count", "flip") and value is not None:
                return False
        elif name not in ITEM_NAMES:
            key.append(frozen(name, value))
        elif not isinstance(value, (list, tuple)) and (array := view(value, name)).device == "cuda":
            key += array.family, array.layout, array.ordinal, array.after, array.pointer & ALIGNMENT
            items[name] = array.pointer
        elif name in ("mean", "std"):
            key.append(frozen(name, value))
        else:
            return False
    addresses += [items[name] for name in ITEM_NAMES if name in items]
    return True


class PreparedCall(NamedTuple):
    """What all calls of one key share."""

    launch: PreparedLaunch
    # The handle of the stream on which the library of the arrays works now; on a CPU how many threads may work.
    where: Callable[[], int]
    place: Place | None  # the only such handle or number that this is for; None if any
    make: Maker  # memory for the result and its address, given the caller's stream; a plan's is always the same
    make_transform: Maker | None  # the same for the transforms of letterboxed items
    both: bool  # whether these are returned, too

    def run(self, asked: Asked, out: Any) -> Any:
        """The result of a call; None if it is to go the long way, since something is not as it was."""
        _, addresses, given, _ = asked
        stream = self.where() if given is None else given
        if self.place is not None and stream != self.place.handle:
            return None
        if out is None:
            out, address = self.make(given)
            addresses.insert(0, address)
        if self.make_transform is not None:
            transform, address = self.make_transform(given)
            addresses.insert(1, address)
        if self.launch(stream, addresses):
            return None
        return (out, transform) if self.both else out


class CropKernel:
    """A kernel for frames and options of one kind, without memory for what it makes; for the GPU `load` is to follow.
    If `maps`, the first boxes to come are affine maps, whose kernel is then loaded first."""

    stage: Stage | None = None  # of a plan for frames that come from the host to the GPU

    def __init__(self, frame: ArrayView, options: CropOptions, max_boxes: int, device: str, maps: bool = False) -> None:
        if maps:
            options.check_maps()
        self.spec = make_spec(frame, options)
        check.check_count(self.spec, max_boxes)
        self.max_boxes, self.device, self._maps_first = max_boxes, device, maps
        self.model = frame.unowned  # the kernel must not keep the frame alive
        self.host_to_gpu = device == "cuda" and frame.device == "cpu"
        self.engine: Any = CpuEngine(self.spec, "maps" if maps else "boxes") if device == "cpu" else None

    def load(
        self, upload_boxes: int, box_dtype: str, index_dtype: str, queue: Any, memory: PlanMemory | None = None
    ) -> None:
        """Load the GPU's kernel, and reserve what up to `upload_boxes` boxes from the host need there."""
        from octopus.crop.cuda import CudaEngine

        self.engine = CudaEngine(self.spec, upload_boxes, self.model, box_dtype, index_dtype, queue, self._maps_first)
        self.memory = memory or PlanMemory(queue)
        self.memory.keep(*self.engine.owned)

    def check(self, frame: ArrayView, boxes: ArrayView, items: Items, most: int | None = None) -> None:
        """Refuse what the kernel is not for; `most` items are made, where the host knows it. `work` checks values."""
        check.check_planned_frame(frame, self.spec, self.model, self.host_to_gpu)
        check.check_planned_boxes(boxes, self.max_boxes, self.device)
        if are_maps(boxes.shape):
            self.spec.options.check_maps()
        if most is not None and not 0 <= most <= boxes.shape[0]:
            raise InputError(f"count must lie between 0 and the {boxes.shape[0]} boxes, found {most}")
        if items.mean is not None and not (self.spec.options.mean is None and self.spec.options.std is None):
            raise InputError("mean and std of each item were given, and others when the plan was made")
        check.check_items(items, frame, boxes, self.spec.frame.channels, self.device)

    def work(
        self, frame: ArrayView, boxes: ArrayView, items: Items, most: int | None, result: Any, transform: Any,
        stream: Any, is_own: bool,
    ) -> Call:  # fmt: skip
        """Do a call that `check` has seen; without `is_own` the result is the caller's `out`."""
        target = result_view(result)
        if is_own:
            check_apart(target, "the plan's result", frame=frame)  # which may be that of the run before
        else:
            check_out(target, self.spec.shape(boxes.shape[0]), self.spec.dtype, self.model.device)
            check_apart(target, frame=frame, boxes=boxes, **items.named)
        call = Call(frame, boxes, target, items, None if transform is None else result_view(transform))
        self._execute(call, most, stream)
        return call

    def prepare(self, call: Call) -> PreparedLaunch | None:
        """What does a call that was done, and others like it; None if that takes more than one launch."""
        boxes = call.boxes
        if not boxes.shape[0] or self.host_to_gpu:
            return None
        if self.device == "cpu":
            alone = call.items == check.NONE and not are_maps(boxes.shape) and check.is_readable(boxes)
            return self.engine.prepare(call) if alone else None
        there = [array for array in call.arrays if array.device == "cuda"]
        foreign = any(array.after is not None or array.family != call.frame.family for array in there)
        if foreign or (boxes.device == "cuda" and self.spec.options.outside == "error"):
            return None
        prepared: PreparedLaunch | None = self.engine.prepare(call)
        return prepared

    def _execute(self, call: Call, most: int | None, stream: Any) -> None:
        """Do the work of a call, after checking the values of what comes from the host."""
        call = call if most is None else call.part(0, most)
        frame, items = call.frame, call.items
        if call.boxes.device == "cpu":
            call = call._replace(boxes=view(self._checked(call.boxes, frame), "boxes"))
        given = check.on_host(items, frame.shape[0])
        if not call.boxes.shape[0]:
            return
        if self.device == "cpu":
            self.engine.run(call, given)
            return
        results = [array for array in (call.out, call.transform) if array is not None]
        queue = self.memory.enter(stream, (*frame.planes, call.boxes, *results, *items.arrays), call.boxes)
        refuses = call.boxes.device == "cuda" and self.spec.options.outside == "error"
        found = self.engine.read_boxes(call.boxes, queue) if refuses else None
        if items.counted is not None and (refuses or self.stage is not None):
            # The host waits anyway, and must know which boxes to check, and which items to bring back.
            known = int(self.engine.read(items.counted, queue).item())
            call = call._replace(items=items._replace(counted=None))
            call = call.part(0, min(max(known, 0), call.boxes.shape[0]))
        if found is not None:
            self._checked(found[: call.boxes.shape[0]], frame)
        if not call.boxes.shape[0]:
            return
        if self.stage is None:
            self.engine.run(call, given, queue)
            return

        def submit(pixels: int, result: int, way_back: int) -> None:
            out, transform = call.out.packed_at(result), call.transform and call.transform.packed_at(way_back)
            self.engine.run(call._replace(frame=frame.packed_at(pixels), out=out, transform=transform), given, queue)

        self.stage.run(frame.planes, (call.out, call.transform), queue, submit)

    def _checked(self, boxes: np.ndarray | ArrayView, frame: ArrayView) -> np.ndarray:
        (height, width), options = frame.shape[-3:-1], self.spec.options
        kind = "maps" if are_maps(boxes.shape) else "boxes"
        return check.check_host_items(kind, boxes, width, height, options.outside, options.size)
