"""Where the calls of the tables are made: on the CPU, and on a GPU, be it real or pretended."""

from typing import Any

import numpy as np

from cases import crops, images, ragged, tiles
from octopus import NV12, P010, RaggedBatch


class Cpu:
    """Answers of calls, by the function or by a plan, on the host; `put` takes arrays to the device, `get` back."""

    device = "cpu"

    def put(self, array: Any) -> Any:
        return array

    def get(self, array: Any) -> np.ndarray:
        return array

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return np.zeros(shape, dtype)

    def crops(self, call: crops.Crops, boxes_there: bool) -> Any:
        frame, options = call.frame, dict(call.options)
        if isinstance(frame, NV12 | P010):
            planes = self.put(frame.y), self.put(frame.uv)
            frame = type(frame)(*planes, matrix=frame.coding.matrix, range=frame.coding.range)
        else:
            frame = self.put(frame)
        boxes = self.put(np.ascontiguousarray(call.boxes, np.float32)) if boxes_there else call.boxes
        for name in ("frame_index", "flip", "count", "mean", "std"):
            if boxes_there and (name in ("flip", "count", "frame_index") or np.ndim(options.get(name)) == 2):
                value = options.get(name)
                options |= {} if value is None else {name: self.put(_narrow(value))}
        if options.get("dtype") == "bfloat16":
            shape = call.right()[0].shape
            options["out"] = self.empty(shape, np.uint16)
        make = crops.planned if boxes_there and self.device == "cpu" else crops.called
        answer = make(frame, boxes, call.size, device=self.device, **options)
        return tuple(map(self.get, answer)) if isinstance(answer, tuple) else self.get(answer)

    def images(self, call: images.Pictures, planned: bool) -> Any:
        if call.form == "ragged":
            batch = RaggedBatch.from_list(call.images)
            given = RaggedBatch(self.put(batch.values), batch.offsets, batch.shapes)
        else:
            given = list(map(self.put, call.images))
        answer = images.called(given, call, planned, device=self.device)
        return tuple(map(self.get, answer)) if isinstance(answer, tuple) else self.get(answer)

    def ragged(self, call: ragged.Operation, planned: bool) -> np.ndarray:
        batch = call.batch
        return self.get(call.call(batch.like(self.put(batch.values)), planned, device=self.device))

    def tiles(self, call: tiles.Tiles, kind: str, tiles_there: bool) -> tuple[Any, np.ndarray]:
        given = self.put(np.asarray(call.tiles)) if tiles_there else call.tiles
        flags, means = call.call(self.put(call.image), given, kind, device=self.device)
        return None if flags is None else self.get(flags), self.get(means)


def _narrow(value: np.ndarray) -> np.ndarray:
    return np.asarray(value, np.float32 if value.dtype.kind == "f" else np.int32)


class Gpu(Cpu):
    """Arrays of the library in the memory of the GPU in use."""

    device = "cuda"

    def put(self, array: Any) -> Any:
        from octopus.backends.cuda import memory

        return memory.upload(array)

    def get(self, array: Any) -> np.ndarray:
        return array.copy_to_host() if hasattr(array, "copy_to_host") else array

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        from octopus.backends.cuda import memory

        return memory.DeviceArray(shape, dtype)
