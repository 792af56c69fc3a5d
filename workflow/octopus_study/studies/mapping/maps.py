"""What the strategies must have before their kernels run: built on the host, uploaded, and kept in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from octopus.ragged import blockmap
from octopus_study.baselines.ragged_methods import ON_DEVICE, build_of, table_on_device
from octopus_study.measure import Case, HostClock, Method, Row
from octopus_study.studies.comparison import Comparison, Part, compare
from octopus_study.studies.context import Context

METHODS = ("octopus", "thread-search", "block-metadata", "block-metadata-tuned", "lookup")
LARGEST_TABLE = 1 << 30  # bytes; building larger ones would take most of the study's time
SETUP, UPLOAD = "setup", "upload"


def comparisons(context: Context, case: Case, elements: int) -> list[Comparison]:
    """Setup of the maps and, beside a GPU, their upload; a table is also built on the device if it is built at all."""
    if context.device == "cpu":
        return [Comparison(case, SETUP, "host", METHODS)]
    on_device = (ON_DEVICE,) if 4 * elements <= LARGEST_TABLE else ()
    return [Comparison(case, SETUP, "host", METHODS + on_device), Comparison(case, UPLOAD, "host", METHODS)]


def map_rows(context: Context, part: Part, offsets: NDArray[np.int64]) -> Iterator[Row]:
    """Rows of `map_bytes`, `setup` and `upload` of one batch."""
    case, table, missing = part.case, 4 * int(offsets[-1]), {}
    if table > LARGEST_TABLE:
        missing["lookup"] = f"a table of {table:,} bytes; its setup is measured up to {LARGEST_TABLE:,}"
    for comparison in part.of(SETUP):
        for name in comparison.methods:
            yield case.row(name, "deterministic", "map_bytes", "bytes", map_bytes(name, offsets))
    makers = {SETUP: partial(_setup, offsets), UPLOAD: partial(_upload, offsets)}
    clock = HostClock(context.host_clock().synchronize, context.throttle)
    budget = context.budget_within(context.config.mapping.max_seconds)
    for comparison in part.of(SETUP, UPLOAD):
        names = [name for name in comparison.methods if name not in missing]
        methods = [Method(name, makers[comparison.quantity](name)) for name in names]
        yield from compare(context, comparison, methods, missing=missing, clock=clock, budget=budget)


def map_bytes(name: str, offsets: NDArray[np.int64]) -> int:
    """Bytes of all that a strategy's kernel reads to find owners."""
    if name.startswith("lookup"):  # without building a table that may be larger than the memory
        return 4 * int(offsets[-1]) + blockmap.narrowed(offsets).nbytes
    return build_of(name, offsets)().nbytes


def _setup(offsets: NDArray[np.int64], name: str) -> Callable[[], object]:
    return _device_table(offsets) if name == ON_DEVICE else build_of(name, offsets)


def _upload(offsets: NDArray[np.int64], name: str) -> Callable[[], object]:
    from octopus.backends.cuda import stream_of
    from octopus.ragged.cuda import Upload

    arrays = build_of(name, offsets)().arrays
    return lambda: Upload(arrays, stream_of(None))


def _device_table(offsets: NDArray[np.int64]) -> Callable[[], object]:
    """The table built by a kernel: upload of the offsets, and the launch."""
    from octopus.backends.cuda import memory

    total, items = int(offsets[-1]), len(offsets) - 1
    narrow = blockmap.narrowed(offsets)
    on_gpu, owner = memory.upload(narrow), memory.DeviceArray((total,), np.int32)
    launch = table_on_device(on_gpu, items, total, owner)

    def build() -> None:
        on_gpu.copy_from_host(narrow)
        launch()

    return build
