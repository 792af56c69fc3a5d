"""No check stands there for show: with any one of them taken away, a mis-reading gets through.

So removing a check from the code makes a test fail in two ways: its mutations are no longer refused, and this file no
longer finds what it switches off.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from mutations import PLANTS, refusal

from octopus_study.power import energy, hwmon, ina3221, judges, lint, quantities, selftest
from octopus_study.power.checks import IDS
from octopus_study.power.judges import JUDGES
from octopus_study.power.misreadings import INA3221, MISREADINGS, NVML, RAPL

Patch = pytest.MonkeyPatch


def without_types(patch: Patch) -> None:
    patch.setattr(quantities, "_expect", lambda reading, *kinds: None)
    patch.setattr(quantities, "_WATTS_PER", defaultdict(lambda: 1e-3))


def without_channels(patch: Patch) -> None:
    patch.setattr(quantities.Channel, "__eq__", lambda one, other: True)


def with_shunts(patch: Patch) -> None:
    patch.setattr(hwmon, "INA3221_BUS", range(1, 8))


def without_switches(patch: Patch) -> None:
    patch.setattr(hwmon, "require_enabled", lambda chip, number: None)


def with_the_first_channel(patch: Patch) -> None:
    patch.setattr(ina3221, "_the_channel", lambda chips, rail: (chips[0], 1))


def without_judge(check: str) -> Callable[[Patch], None]:
    assert check in JUDGES
    others = {name: ask for name, ask in JUDGES.items() if name != check}
    return lambda patch: patch.setattr(judges, "JUDGES", others)


def without_scopes(patch: Patch) -> None:
    patch.setattr(selftest.PassedTest, "scope", property(lambda proof: AnyScope()))


class AnyScope(str):
    """Equal to every scope."""

    def __ne__(self, other: object) -> bool:
        return False


def without_drift(patch: Patch) -> None:
    patch.setattr(energy, "MOST_DRIFT", math.inf)


def without_lint(check: str) -> Callable[[Patch], None]:
    assert check in {**lint.MEANING, **lint.CONTENT, **lint.WINDOW_CHECKS}

    def switch_off(patch: Patch) -> None:
        for stage in ("MEANING", "CONTENT", "WINDOW_CHECKS"):
            asked = getattr(lint, stage)
            patch.setattr(lint, stage, {name: ask for name, ask in asked.items() if name != check})

    return switch_off


# What switches a check off, and a mis-reading that nothing else then refuses.
SWITCHES: dict[str, tuple[Callable[[Patch], None], str]] = {
    "typed-units": (without_types, "current-as-power"),
    "same-channel": (without_channels, "neighbour-current"),
    "shunt-channel": (with_shunts, "shunt-as-bus"),
    "enabled": (without_switches, "channel-disabled"),
    "rail-label": (with_the_first_channel, "label-missing"),
    "readable": (without_judge("readable"), "drops-out"),
    "plausible-range": (without_judge("plausible-range"), "thousand-fold"),
    "sibling-voltage": (without_judge("sibling-voltage"), "core-voltage"),
    "hierarchy": (without_judge("hierarchy"), "labels-swapped"),
    "counter-monotonic": (without_judge("counter-monotonic"), "counter-reset"),
    "distinct-values": (without_judge("distinct-values"), "by-state"),
    "rises": (without_judge("rises"), "other-gpu"),
    "load-above-idle": (without_judge("load-above-idle"), "not-alone"),
    "comes-back": (without_judge("comes-back"), "leak"),
    "power-on-test": (without_scopes, "test-of-another"),
    "idle-drift": (without_drift, "moving-idle"),
    "counter-agrees": (without_judge("counter-agrees"), "counter-elsewhere"),
    "identity": (without_lint("identity"), "power-by-name"),
    "scope": (without_lint("scope"), "two-scopes"),
    "missing-not-zero": (without_lint("missing-not-zero"), "silent-gap"),
    "power-times-time": (without_lint("power-times-time"), "power-of-another-run"),
    "same-window": (without_lint("same-window"), "time-of-another-run"),
    "trace-agrees": (without_lint("trace-agrees"), "trace-of-another-run"),
    "window-length": (without_lint("window-length"), "short-windows"),
    "frame-rate": (without_lint("frame-rate"), "late-frames"),
    "window-count": (without_lint("window-count"), "few-windows"),
    "net-of-idle": (without_lint("net-of-idle"), "idle-from-elsewhere"),
}


@pytest.mark.parametrize("check", SWITCHES)
def test_without_the_check_a_misreading_gets_through(check: str, tmp_path: Path, monkeypatch: Patch) -> None:
    switch_off, misreading = SWITCHES[check]
    with monkeypatch.context() as patch:
        switch_off(patch)
        assert refusal(PLANTS[misreading], tmp_path / "without", patch) is None
    refused = refusal(PLANTS[misreading], tmp_path / "with", monkeypatch)
    assert refused is not None
    assert refused[0] == check


def test_without_the_look_at_its_changes_a_sensor_that_freezes_gets_through(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(energy, "LEAST_VALUES", 0)
        assert refusal(PLANTS["freezes-later"], tmp_path / "without", patch) is None
    assert refusal(PLANTS["freezes-later"], tmp_path / "with", monkeypatch)[0] == "distinct-values"


def test_every_check_is_switched_off_once() -> None:
    assert sorted(SWITCHES) == sorted(IDS)
    stopped = {(each.check, each.id) for each in MISREADINGS}
    assert {(check, misreading) for check, (_, misreading) in SWITCHES.items()} <= stopped


def test_without_the_power_on_test_most_misreadings_get_through(tmp_path: Path, monkeypatch: Patch) -> None:
    """The types stop what a program wires wrongly; whatever comes with the right type, only the load can tell."""
    judged = [each for each in MISREADINGS if each.check in JUDGES and each.sensor in (INA3221, NVML, RAPL)]
    caught = [each.id for each in judged if each.check != "readable"]
    with monkeypatch.context() as patch:
        patch.setattr(judges, "JUDGES", {})
        through = [name for name in caught if refusal(PLANTS[name], tmp_path / name, patch) is None]
    assert through == caught
    assert len(caught) >= 12
