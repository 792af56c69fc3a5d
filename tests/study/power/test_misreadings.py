"""Every misreading of the rule table is refused by its rule, healthy sensors are not, and no rule stands for show."""

import math
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from defects import DEFECTS
from misreadings import HEALTHY, INJECTIONS, refusal

from octopus_study.power import energy, hwmon, ina3221, quantities, selftest
from octopus_study.power.judges import FAILED, JUDGES, PASSED, Verdict
from octopus_study.power.lint import LINTS

Patch = pytest.MonkeyPatch
PAGE = Path(__file__).parents[3] / "docs" / "power.md"
# The page's table: check, the stage at which it is first asked, what must hold, and the misreadings that it refuses.
ROWS = [line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:3] == "| `"]
STAGES = {row[0].strip("`"): row[1] for row in ROWS}
MISREADINGS = {name: row[0].strip("`") for row in ROWS for name in re.findall(r"`([\w-]+)`:", row[3])}


# What some reasons say.
SEEN = {
    "shunt-as-bus": "in4_input is a shunt voltage in microvolts",
    "neighbour-current": "V x I of one channel",
    "label-missing": "no channel is labelled VDD_IN; labels: VDD_CPU_CV, VDD_GPU_SOC, VIN_SYS_5V0",
    "current-forbidden": "give read permission",
    "initialises-only": "Not Supported",
    "voltage-as-power": "found MilliVolt",
    "episode": "power in mW and hwmon3/in1_input in mV",
    "thousand-fold": "plausible are 1.4 to 805 W",
    "counter-reset": "the counter went back",
}


@pytest.mark.parametrize("name", MISREADINGS)
def test_a_misreading_is_refused_for_the_right_reason(name: str, tmp_path: Path, monkeypatch: Patch) -> None:
    refused = refusal(INJECTIONS[name], tmp_path, monkeypatch)
    assert refused is not None, f"{name}: nothing refused it"
    assert refused[0] == MISREADINGS[name] and refused[1] and SEEN.get(name, "") in refused[1], refused


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_sensor_passes(name: str, tmp_path: Path, monkeypatch: Patch) -> None:
    test = HEALTHY[name](tmp_path, monkeypatch).test()
    assert test.reason == ""
    assert FAILED not in {verdict.outcome for verdict in test.verdicts.values()}
    assert test.proof().scope == test.scope


def test_the_page_of_the_checks_is_whole() -> None:
    assert sorted(MISREADINGS) == sorted(INJECTIONS)
    assert (len(STAGES), len(MISREADINGS)) == (27, 52)
    assert set(MISREADINGS.values()) == set(STAGES)
    for predicates, words in ((JUDGES, "power-on test"), (LINTS, "stored table")):
        assert {check for check, stage in STAGES.items() if words in stage} <= set(predicates) <= set(STAGES)


class AnyScope(str):
    """Equal to every scope."""

    def __ne__(self, other: object) -> bool:
        return False


def without_types(patch: Patch) -> None:
    patch.setattr(quantities, "_expect", lambda reading, *kinds: None)
    patch.setattr(quantities, "size_of", defaultdict(lambda: 1e-3).__getitem__)


def silenced(predicates: dict[str, Callable], check: str) -> Callable[[Patch], None]:
    """Let a rule find nothing."""
    assert check in predicates
    nothing = "" if predicates is LINTS else Verdict(PASSED, "")
    return lambda patch: patch.setitem(predicates, check, lambda seen: nothing)


# What switches a rule off, and a misreading that nothing else then refuses.
SWITCHES: dict[str, tuple[Callable[[Patch], None], str]] = {
    "typed-units": (without_types, "current-as-power"),
    "same-channel":
        (lambda patch: patch.setattr(quantities.Channel, "__eq__", lambda one, other: True), "neighbour-current"),
    "shunt-channel": (lambda patch: patch.setattr(hwmon, "INA3221_BUS", range(1, 8)), "shunt-as-bus"),
    "enabled": (lambda patch: patch.setattr(hwmon, "require_enabled", lambda chip, number: None), "channel-disabled"),
    "rail-label":
        (lambda patch: patch.setattr(ina3221, "_the_channel", lambda chips, rail: (chips[0], 1)), "label-missing"),
    "power-on-test":
        (lambda patch: patch.setattr(selftest.PassedTest, "scope", property(lambda proof: AnyScope())),
         "test-of-another"),
    "idle-drift": (lambda patch: patch.setattr(energy, "MOST_DRIFT", math.inf), "moving-idle"),
    "distinct-values later": (lambda patch: patch.setattr(energy, "LEAST_VALUES", 0), "freezes-later"),
}  # fmt: skip
JUDGED = {
    "readable": "drops-out", "plausible-range": "thousand-fold", "sibling-voltage": "core-voltage",
    "hierarchy": "labels-swapped", "counter-monotonic": "counter-reset", "distinct-values": "by-state",
    "rises": "other-gpu", "load-above-idle": "not-alone", "comes-back": "leak", "counter-agrees": "counter-elsewhere",
}  # fmt: skip
# Each other rule of tables is switched off in test_lint.py.
LINTED = {"identity": "power-by-name", "scope": "two-scopes"}
SWITCHES |= {check: (silenced(JUDGES, check), name) for check, name in JUDGED.items()}
SWITCHES |= {check: (silenced(LINTS, check), name) for check, name in LINTED.items()}


@pytest.mark.parametrize("check", SWITCHES)
def test_without_the_rule_a_misreading_gets_through(check: str, tmp_path: Path, monkeypatch: Patch) -> None:
    switch_off, misreading = SWITCHES[check]
    assert MISREADINGS[misreading] == check.split()[0]
    with monkeypatch.context() as patch:
        switch_off(patch)
        assert refusal(INJECTIONS[misreading], tmp_path, patch) is None


def test_every_rule_is_switched_off() -> None:
    assert {check.split()[0] for check in SWITCHES} | {each.check for each in DEFECTS.values()} == set(STAGES)
