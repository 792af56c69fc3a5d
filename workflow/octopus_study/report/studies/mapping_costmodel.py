"""A model of the kernels that find an item's elements: memory traffic or searches, whichever takes longer.

It has a handful of parameters per machine, of which the time of one step of a search is the only one that is fitted.
Functions are pure: what was measured comes in as numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from octopus.errors import InputError

STRATEGIES: tuple[str, ...] = (
    "lookup",
    "thread-search-scalar",
    "thread-search",
    "block-metadata-scalar",
    "block-metadata",
    "block-metadata-tuned",
    "octopus",
)
TABLE_BYTES = 4  # an owner is an int32
OFFSET_BYTES = 4  # int32, up to 2**31 elements
ENTRY_BYTES = 12  # of a block: its item in int32, and where it starts in int64
PARAMETER_BYTES = 4
BLOCK_THREADS = 128  # of block search
METADATA_THREADS = 256  # of block metadata
LANES_BITS = 5  # 32 lanes probe at once and leave a 32nd part to look at
PER_THREAD = 4  # elements of a thread that searches once for several
BLOCK_ELEMENTS = 2048
TUNED_BLOCK_ELEMENTS = 16_384
PUBLISHED_BLOCK_ELEMENTS = 65_536
# A step whose offset comes from memory and not from a cache takes about twice as long (H100: some 560 against 260
# cycles, by "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture", 2024).
FROM_MEMORY = 2.0
# An empty kernel between two events; the model's launch time on a GPU.
LAUNCH_MS = 0.003


class Machine(NamedTuple):
    """What the model knows of a machine.

    Attributes
    ----------
    bandwidth : float
        GB/s of reading and writing at once.
    cache : float
        Bytes of the last cache before memory.
    threads : float
        Threads in flight at once.
    step_ns : float
        Nanoseconds of one step of a search; NaN before it is fitted.
    launch_ms : float
    """

    bandwidth: float
    cache: float
    threads: float
    step_ns: float = math.nan
    launch_ms: float = LAUNCH_MS


class Load(NamedTuple):
    """A batch: elements in all, items, and the bytes that an operation reads and writes per element."""

    elements: float
    items: float
    bytes_each: float = 8.0


class Fit(NamedTuple):
    """A fitted step.

    Attributes
    ----------
    step_ns : float
    identified : bool
        False where memory traffic hides the searches of all cases: then `step_ns` is the longest that it could be.
    error : float
        Median of |predicted / measured - 1| over the cases of the fit.
    """

    step_ns: float
    identified: bool
    error: float


class Hardware(NamedTuple):
    """Documented facts of a GPU that its results don't hold.

    Attributes
    ----------
    name : str
        What the device's name contains.
    multiprocessors, threads_each : int
        Threads in flight are their product.
    clock_mhz : float
        Highest clock in normal operation.
    cache : float
        Bytes of L2.
    """

    name: str
    multiprocessors: int
    threads_each: int
    clock_mhz: float
    cache: float


# Multiprocessors, clocks and caches: NVIDIA's data sheets of Jetson Orin Nano 8 GB, T4, H100 SXM and H200, white paper
# of the Ada architecture. Threads per multiprocessor: CUDA C++ Programming Guide, compute capabilities 8.7, 7.5, 8.9
# and 9.0.
HARDWARE = {
    "jetson-orin-nano": Hardware("Orin", 8, 1536, 625, 4e6),
    "t4": Hardware("T4", 40, 1024, 1590, 4e6),
    "rtx-4090": Hardware("4090", 128, 1536, 2520, 72e6),
    "h100": Hardware("H100", 132, 2048, 1980, 50e6),
    "h200": Hardware("H200", 132, 2048, 1980, 50e6),
}


def hardware_of(device: str) -> Hardware | None:
    """Return the facts of a device by its name; None for one that the table lacks."""
    return next((one for one in HARDWARE.values() if one.name.lower() in device.lower()), None)


def steps(machine: Machine, items: float) -> float:
    """Return how many steps from a cache a search among so many items is worth.

    The upper levels of the search are the same for all threads and stay in the cache; half of it is taken as theirs,
    since elements stream through it. Levels beyond come from memory.
    """
    levels = math.ceil(math.log2(items + 1))
    cached = machine.cache / 2 / OFFSET_BYTES
    beyond = max(0.0, math.log2(items / cached)) if items > 0 and math.isfinite(cached) else 0.0
    return levels + (FROM_MEMORY - 1) * beyond


def traffic_ms(strategy: str, machine: Machine, load: Load) -> float:
    """Return the milliseconds of a strategy's memory traffic.

    Raises
    ------
    InputError
        There is no such strategy.
    """
    entries = ENTRY_BYTES * _blocks(load, PUBLISHED_BLOCK_ELEMENTS)
    extra = {
        "lookup": TABLE_BYTES * load.elements,
        "thread-search-scalar": OFFSET_BYTES * load.items,
        "thread-search": OFFSET_BYTES * load.items,
        "block-metadata-scalar": entries,
        "block-metadata": entries,
        "block-metadata-tuned": ENTRY_BYTES * _blocks(load, TUNED_BLOCK_ELEMENTS),
        "octopus": OFFSET_BYTES * load.items,
    }
    if strategy not in extra:
        raise InputError(f"The model has no strategy {strategy!r}; it has {', '.join(STRATEGIES)}.")
    whole = load.bytes_each * load.elements + PARAMETER_BYTES * load.items + extra[strategy]
    return whole / machine.bandwidth / 1e6


def search_steps(strategy: str, machine: Machine, load: Load) -> float:
    """Return the steps that each thread in flight takes one after the other.

    A block's warps search for all of it, first and last element, 32 probes at a time; an entry of block metadata is one
    step, however many elements a thread takes at once. Both wait in as many blocks as are in flight.
    """
    search = steps(machine, load.items)
    by_warp = 2 * math.ceil(search / LANES_BITS)
    searching, told = (max(1.0, machine.threads / size) for size in (BLOCK_THREADS, METADATA_THREADS))
    serial = {
        "lookup": 0.0,
        "thread-search-scalar": load.elements * search / machine.threads,
        "thread-search": load.elements / PER_THREAD * search / machine.threads,
        "block-metadata-scalar": _blocks(load, PUBLISHED_BLOCK_ELEMENTS) / told,
        "block-metadata": _blocks(load, PUBLISHED_BLOCK_ELEMENTS) / told,
        "block-metadata-tuned": _blocks(load, TUNED_BLOCK_ELEMENTS) / told,
        "octopus": math.ceil(load.elements / BLOCK_ELEMENTS) * by_warp / searching,
    }
    return serial[strategy]


def kernel_ms(strategy: str, machine: Machine, load: Load) -> float:
    """Return the predicted milliseconds of a kernel: launch + the longer of traffic and searches.

    Raises
    ------
    InputError
        There is no such strategy.
    """
    traffic = traffic_ms(strategy, machine, load)
    serial = search_steps(strategy, machine, load)
    search = serial * machine.step_ns / 1e6 if serial else 0.0
    return machine.launch_ms + max(traffic, search)


def ratio(strategy: str, other: str, machine: Machine, load: Load) -> float:
    """Return the predicted time of the other strategy / time of the strategy."""
    return kernel_ms(other, machine, load) / kernel_ms(strategy, machine, load)


def fit_step(machine: Machine, loads: Sequence[Load], times: Sequence[float], strategy: str) -> Fit:
    """Fit the time of a step to the measured milliseconds of a strategy that searches.

    The logarithms of predicted over measured are least in squares; where the searches hide behind memory traffic in
    every case, nothing but an upper end is known.

    Raises
    ------
    InputError
        There is no case, or a time isn't positive.
    """
    if not loads or len(loads) != len(times) or min(times) <= 0:
        raise InputError(f"A fit needs positive times of at least one case; {len(times)} were given.")
    hidden = min(
        1e6 * traffic_ms(strategy, machine, load) / search_steps(strategy, machine, load) for load in loads
    )
    # Each case alone would say this much; the answer lies between the ends of these.
    alone = [
        1e6 * max(time - machine.launch_ms, 1e-9) / search_steps(strategy, machine, load)
        for load, time in zip(loads, times, strict=True)
    ]
    low, high = min(hidden, *alone), max(hidden, *alone)
    grid = [low * (high / low) ** (index / 2000) for index in range(2001)]
    best = min(grid, key=lambda step: _loss(machine._replace(step_ns=step), loads, times, strategy))
    identified = best > hidden * 1.001
    step = best if identified else hidden
    return Fit(step, identified, error_of(machine._replace(step_ns=step), loads, times, strategy))


def error_of(machine: Machine, loads: Sequence[Load], times: Sequence[float], strategy: str) -> float:
    """Return the median of |predicted / measured - 1|."""
    errors = sorted(
        abs(kernel_ms(strategy, machine, load) / time - 1) for load, time in zip(loads, times, strict=True)
    )
    middle = len(errors) // 2
    return errors[middle] if len(errors) % 2 else (errors[middle - 1] + errors[middle]) / 2


def _loss(machine: Machine, loads: Sequence[Load], times: Sequence[float], strategy: str) -> float:
    return sum(
        math.log(kernel_ms(strategy, machine, load) / time) ** 2
        for load, time in zip(loads, times, strict=True)
    )


def _blocks(load: Load, most: int) -> float:
    """Return the blocks of a batch whose items are split at so many elements."""
    return load.items + load.elements // most
