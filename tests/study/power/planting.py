"""Healthy sensors on a bench, and how a mis-reading is planted in one.

A plant builds the sensor in a folder, opens it as a run would, and returns a bench on which it can be tested. Nothing
here takes real time: the bench moves the clock, the device and the sensor together.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench import STEP_NS, Bench, Device
from fake_sensors import FakeBoard, JetsonTree, RaplTree

from octopus_study.power import rapl
from octopus_study.power.choose import SourceSpec
from octopus_study.power.quantities import Watt
from octopus_study.power.source import Sample

Spoil = Callable[[JetsonTree, float], None]
Wire = Callable[[Path], Watt]
Plant = Callable[[Path, pytest.MonkeyPatch], object]


def planted_in(kept: dict[str, Plant]) -> Callable[[str], Callable[[Plant], Plant]]:
    """Return a decorator that keeps plants by the id of their mis-reading."""

    def planted(name: str) -> Callable[[Plant], Plant]:
        def keep(plant: Plant) -> Plant:
            assert name not in kept
            kept[name] = plant
            return plant

        return keep

    return planted


def jetson(folder: Path, spoil: Spoil | None = None, wire: Wire | None = None) -> Bench:
    """Return a Jetson on the bench.

    `spoil` changes its files whenever they were written; `wire` is the program that makes a power of them.
    """
    tree, device = JetsonTree(folder, shared=False), Device(5.73, 8.7, noise=0.05)

    def apply(seconds: float, working: bool) -> None:
        watts = device.watts(seconds, working)
        tree.set_watts(watts)
        if spoil:
            spoil(tree, watts)

    bench = Bench(apply, 2 * STEP_NS)  # writing the files is what takes the time of these tests
    apply(0.0, False)
    bench.source = SourceSpec("ina3221", str(folder)).open()
    if wire:
        bench.source.read = lambda: Sample(0, 0, wire(tree.chip), None)
        bench.source.read()  # a source reads once while it is made
    return bench


def board(
    device: Device | None = None,
    spoil: Callable[[FakeBoard, float], None] = lambda board, seconds: None,
    instant: bool = True,
) -> Bench:
    """Return a GPU board on the bench, with an update each 100 ms; `spoil` changes what NVML then says."""
    device, fake = device or Device(125.5, 480.0, noise=1.5), FakeBoard(instant=instant)
    since = 0.0

    def apply(seconds: float, working: bool) -> None:
        nonlocal since
        before = device.joules
        watts = device.watts(seconds, working)
        since += device.joules - before
        if round(seconds * 1e3) % 100 == 0:
            fake.watts = watts
            fake.add_joules(since)
            since = 0.0
            spoil(fake, seconds)

    bench = Bench(apply)
    apply(0.0, False)
    bench.source = SourceSpec("nvml").open(fake, "board")
    return bench


def package(
    folder: Path, patch: pytest.MonkeyPatch, spoil: Callable[[RaplTree, float], None], **tree: int
) -> Bench:
    """Return a processor package on the bench."""
    fake, device = RaplTree(folder, **tree, shared=False), Device(12.0, 60.0, noise=0.5)

    def apply(seconds: float, working: bool) -> None:
        before = device.joules
        device.watts(seconds, working)
        fake.add_joules(device.joules - before)
        spoil(fake, seconds)

    bench = Bench(apply)
    apply(0.0, False)
    patch.setattr(rapl, "time", SimpleNamespace(monotonic_ns=bench.monotonic_ns))
    bench.source = SourceSpec("rapl", str(folder)).open()
    return bench


def forbid(patch: pytest.MonkeyPatch, name: str) -> None:
    """Let a file answer as to a user who may not read it; tests may run as root, whom no mode stops."""
    healthy = Path.read_text

    def read_text(path: Path, *arguments: object, **options: object) -> str:
        if path.name == name:
            raise PermissionError(13, "Permission denied", str(path))
        return healthy(path, *arguments, **options)

    patch.setattr(Path, "read_text", read_text)
