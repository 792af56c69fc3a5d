"""The instruments: the check of answers, clocks, baselines and sensors, tried on inputs whose outcome is known.

No GPU is needed: what a GPU would do is noted by stand-ins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from types import SimpleNamespace
from typing import Any

import numpy as np

from octopus_study.baselines.fused import Octopus
from octopus_study.baselines.job import CropJob, make_job
from octopus_study.baselines.method import CropMethod
from octopus_study.baselines.opencv import OpenCv, OpenCvInPlace
from octopus_study.measure import Budget, Case, HostClock, Method, run_paired
from octopus_study.power.ina3221 import Ina3221Source
from octopus_study.power.lint import lint_file
from octopus_study.reference import crops as reference
from octopus_study.status import NO_ANSWER
from octopus_study.studies.arena import layers
from octopus_study.verify.scene import Outcome, Scene

_SIZE, _MEAN, _STD = (64, 64), (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
_BOXES = 24
_SLEEP_MS = 20.0
# A clock is called right within this share: a sleep is never shorter, and a busy machine wakes late.
_EARLY = 0.02
# A baseline may take this multiple of the same calls in a plain loop, each as its quickest of `_TRIES`.
_SLOWER, _TRIES = 2.0, 7
_WATTS = (4992, 1148)  # mV, mA


def _check(find: Callable[[Scene], Iterable[tuple[str, bool]]]) -> Callable[[Scene], Outcome]:
    """Make a check of what yields findings, each with whether it is right."""

    @wraps(find)
    def check(scene: Scene) -> Outcome:
        found = list(find(scene))
        return Outcome(len(found), [name for name, right in found if not right], "right")

    return check


def _job() -> CropJob:
    """A small job on the CPU: boxes of every size within a frame of noise."""
    rng = np.random.default_rng(1)
    frame = rng.integers(0, 256, (160, 240, 3), np.uint8)
    corner = rng.integers(0, 90, (_BOXES, 2))
    boxes = np.concatenate([corner, corner + rng.integers(8, 70, (_BOXES, 2))], axis=1).astype(np.int32)
    return make_job(frame, boxes, _SIZE, _MEAN, _STD, "cpu")


def _crops(job: CropJob, boxes: np.ndarray) -> np.ndarray:
    """The right answer, by NumPy."""
    found = reference.crop_resize(job.frame, boxes, job.size, np.array(_MEAN), np.array(_STD))
    return found.astype(np.float32)


class _Forgetful(Octopus):
    """Does its work once, and then leaves the result as it is."""

    done = False

    def run(self) -> None:
        if not self.done:
            super().run()
        self.done = True


class _LastWrong(Octopus):
    """Takes the last box one pixel too far to the right."""

    def run(self) -> None:
        super().run()
        self.job.out[-1:] = _crops(self.job, self.job.boxes[-1:] + np.array([[1, 0, 1, 0]], np.int32))


@_check
def answers(_: Scene) -> Iterator[tuple[str, bool]]:
    """The check of answers accepts the right one, and refuses one wrong crop and memory that nobody wrote."""
    job = _job()
    right = _crops(job, job.boxes)
    for kind, same in ((Octopus, True), (OpenCv, True), (_LastWrong, False), (_Forgetful, False)):
        answer = _judged(job, kind(job), right)
        expected = "same" if same else "another answer"
        yield f"{kind.__name__.strip('_')}: {answer!r}, expected {expected}", (answer == "same") is same


def _judged(job: CropJob, method: CropMethod, right: np.ndarray) -> str:
    batch: Any = SimpleNamespace(methods=[method], every=1, expected={method.edge: right}, locked=None, job=job)
    return layers._answer(batch, method.timed(), HostClock(), {})


@_check
def clocks(_: Scene) -> Iterator[tuple[str, bool]]:
    """Host times against a sleep, units of rows against milliseconds, and a cold L2 before each device time."""
    start = time.monotonic_ns()
    inner = HostClock().time(lambda: time.sleep(_SLEEP_MS / 1000))
    outer = (time.monotonic_ns() - start) / 1e6
    fits = _SLEEP_MS * (1 - _EARLY) <= inner <= outer * (1 + _EARLY)
    yield f"HostClock gives {inner:.2f} ms of a sleep of {_SLEEP_MS:g} ms that took {outer:.2f} ms", fits
    yield from (*_row_units(), *_device_order())


class _Fixed:
    """A clock that takes every run for 1.5 ms."""

    layer = "host"
    watches_throttling = False

    def time(self, run: Callable[[], object]) -> float:
        run()
        return 1.5

    def settle(self) -> None: ...

    def throttled(self) -> None: ...


def _row_units() -> Iterator[tuple[str, bool]]:
    budget = Budget(min_blocks=1, max_blocks=1, min_seconds=0, max_seconds=0)
    for unit, expected in (("ns", 1_500_000.0), ("us", 1500.0), ("ms", 1.5), ("s", 0.0015)):
        case = Case("stage_timing", "n/a", "none", 1)
        rows = run_paired(case, "end_to_end", unit, [Method("one", lambda: None)], _Fixed(), budget, NO_ANSWER, 0)
        value = next(row.value for row in rows if row.quantity == "end_to_end")
        yield f"1.5 ms are stored as {value:g} {unit}", abs(value / expected - 1) < 1e-9


def _device_order() -> Iterator[tuple[str, bool]]:
    """Yield what a device clock queues, in its order, on stand-ins for stream, events and memory."""
    from octopus_study.measure import cuda

    queued: list[str] = []
    clock = object.__new__(cuda.CudaEventClock)
    start, stop = _Event("start", 0.0), _Event("stop", 1.25)
    stand_ins = {
        "_events": [start, stop],
        "_stream": SimpleNamespace(record=lambda event: queued.append(event.name)),
        "_wait": lambda: queued.append("wait"),
        "_writes": 0,
        "_flush": SimpleNamespace(fill=lambda *_, **__: queued.append("fill")),
    }
    clock.__dict__.update(stand_ins)
    elapsed = clock.time(lambda: queued.append("run"))
    expected = ["fill", "wait", "start", "run", "stop"]
    yield f"{', '.join(queued)} gives {elapsed} ms", queued == expected and elapsed == stop.at
    yield "the buffer that is rewritten has at least the size of the L2", _flush_bytes(1 << 26) >= 1 << 26


def _flush_bytes(l2: int) -> int:
    """Return the bytes of the buffer that a clock rewrites on a GPU with such an L2."""
    from octopus_study.measure import cuda

    kept = cuda.l2_bytes, cuda.allocate
    cuda.l2_bytes, cuda.allocate = lambda: l2, lambda size: size  # type: ignore[assignment]
    try:
        return int(object.__new__(cuda.CudaEventClock)._flush)
    finally:
        cuda.l2_bytes, cuda.allocate = kept  # type: ignore[assignment]


class _Event:
    """Stands for an event of a device; the difference of two is milliseconds."""

    def __init__(self, name: str, at: float) -> None:
        self.name, self.at = name, at

    def sync(self) -> None: ...

    def __sub__(self, other: _Event) -> float:
        return self.at - other.at


@_check
def baselines(_: Scene) -> Iterator[tuple[str, bool]]:
    """OpenCV's methods against the same calls in a plain loop: as many calls, and no more time."""
    import cv2

    job = _job()
    for kind in (OpenCv, OpenCvInPlace):
        method, resize, calls = kind(job), cv2.resize, []
        cv2.resize = lambda *args, calls=calls, resize=resize, **options: calls.append(1) or resize(*args, **options)
        try:
            method.run()
        finally:
            cv2.resize = resize
        yield f"{kind.name}: {len(calls)} calls of cv2.resize for {_BOXES} boxes", len(calls) == _BOXES
        times = _quickest(method.run) / _quickest(lambda: _plain_loop(job))
        yield f"{kind.name} takes {times:.2f} times a plain loop", times <= _SLOWER


def _plain_loop(job: CropJob) -> None:
    """OpenCV and NumPy as a user writes them."""
    import cv2

    cv2.setNumThreads(1)
    mean, inverse = np.array(_MEAN, np.float32), (1 / np.array(_STD)).astype(np.float32)
    for index, (x1, y1, x2, y2) in enumerate(job.boxes.tolist()):
        crop = cv2.resize(job.frame[y1:y2, x1:x2].astype(np.float32), _SIZE[::-1], interpolation=cv2.INTER_LINEAR)
        job.out[index] = ((crop - mean) * inverse).transpose(2, 0, 1)


def _quickest(run: Callable[[], object]) -> float:
    return min(_seconds(run) for _ in range(_TRIES))


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


@_check
def sensors(scene: Scene) -> Iterator[tuple[str, bool]]:
    """A board's voltage and current give their product, and the linter refuses the tables of voltages alone."""
    root, (volts, amperes) = scene.scratch / "board", _WATTS
    chip = root / "sys" / "class" / "hwmon" / "hwmon3"
    chip.mkdir(parents=True, exist_ok=True)
    files = {"name": "ina3221", "in1_label": "VDD_IN", "in1_enable": 1, "curr1_crit": 8000}
    for name, value in (files | {"in1_input": volts, "curr1_input": amperes}).items():
        (chip / name).write_text(f"{value}\n")
    power = Ina3221Source(root).read().power
    watts, expected = power.watts if power else 0.0, volts * amperes / 1e6
    right = abs(watts / expected - 1) < 1e-9
    yield f"{volts} mV and {amperes} mA are {watts:.4g} W, expected {expected:.4g}", right
    for name in ("power_voltage_misread", "power_voltage_relabelled", "power"):
        refused = bool(lint_file(scene.paths.published / f"{name}.csv"))
        yield f"{name}.csv is {'refused' if refused else 'accepted'}", refused is (name != "power")
