"""What the strategies must have before their kernels run: built on the host, uploaded, and kept in memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from octopus.ragged import blockmap
from octopus_study.measure import Case, HostClock, Method, Row, run_paired, unavailable
from octopus_study.peers.ragged_maps import ON_DEVICE, build_of, table_on_device
from octopus_study.studies.context import Context

COST_METHODS = ("octopus", "thread-search", "block-metadata", "block-metadata-tuned", "lookup")
LARGEST_TABLE = 1 << 30  # bytes; building larger ones would take most of the study's time


def map_rows(context: Context, case: Case, offsets: NDArray[np.int64]) -> list[Row]:
    """Rows of `setup`, `upload`, `map_bytes` and `blocks` of one batch."""
    found: list[Row] = []
    names = list(COST_METHODS)
    if 4 * int(offsets[-1]) > LARGEST_TABLE:
        names.remove("lookup")
        why = f"a table of {4 * int(offsets[-1]):,} bytes; its setup is measured up to {LARGEST_TABLE:,}"
        found += [
            unavailable(case, "lookup", "host", quantity, "ms", why) for quantity in _quantities(context)
        ]
        found.append(case.row("lookup", "deterministic", "map_bytes", "bytes", map_bytes("lookup", offsets)))
    for name in names:
        found += _facts(case, name, offsets)
    setup = {name: build_of(name, offsets) for name in names}
    if context.device == "cuda" and "lookup" in names:
        setup[ON_DEVICE] = _device_table(offsets)
        found.append(case.row(ON_DEVICE, "deterministic", "map_bytes", "bytes", map_bytes("lookup", offsets)))
    found += _timed(context, case, "setup", setup)
    if context.device == "cuda":
        found += _timed(context, case, "upload", {name: _upload(name, offsets) for name in names})
    return found


def map_bytes(name: str, offsets: NDArray[np.int64]) -> int:
    """Bytes of all that a strategy's kernel reads to find owners."""
    if name.startswith("lookup"):  # without building a table that may be larger than the memory
        return 4 * int(offsets[-1]) + blockmap.narrowed(offsets).nbytes
    return build_of(name, offsets)().nbytes


def _facts(case: Case, name: str, offsets: NDArray[np.int64]) -> list[Row]:
    found = [case.row(name, "deterministic", "map_bytes", "bytes", map_bytes(name, offsets))]
    if name.startswith("block-metadata"):
        blocks = build_of(name, offsets)().blocks
        found.append(case.row(name, "deterministic", "blocks", "count", blocks))
    return found


def _quantities(context: Context) -> tuple[str, ...]:
    return ("setup", "upload") if context.device == "cuda" else ("setup",)


def _timed(context: Context, case: Case, quantity: str, runs: dict[str, Callable[[], object]]) -> list[Row]:
    methods = [Method(name, run) for name, run in runs.items()]
    clock = HostClock(context.host_clock().synchronize, context.throttle)
    return run_paired(case, quantity, "ms", methods, clock, context.budget, "n/a", context.seed, "octopus")


def _upload(name: str, offsets: NDArray[np.int64]) -> Callable[[], object]:
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
