"""Every mis-reading of the catalogue is refused by the check that it names; healthy sensors are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutations import HEALTHY, PLANTS, refusal

from octopus_study.power.checks import IDS
from octopus_study.power.judges import FAILED
from octopus_study.power.misreadings import MISREADINGS


@pytest.mark.parametrize("each", MISREADINGS, ids=lambda each: each.id)
def test_a_misreading_is_refused_for_the_right_reason(
    each, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = refusal(PLANTS[each.id], tmp_path, monkeypatch)
    assert refused is not None, f"{each.what}: nothing refused it"
    check, reason = refused
    assert (check, bool(reason)) == (each.check, True), reason


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_sensor_passes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = HEALTHY[name](tmp_path, monkeypatch).test()
    assert test.reason == ""
    assert FAILED not in {verdict.outcome for verdict in test.verdicts.values()}
    assert test.proof().scope == test.scope


def test_the_catalogue_and_what_is_planted_are_the_same() -> None:
    assert sorted(each.id for each in MISREADINGS) == sorted(PLANTS)
    assert len({each.id for each in MISREADINGS}) == len(MISREADINGS) >= 12
    assert {each.check for each in MISREADINGS} <= set(IDS)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("shunt-as-bus", "in4_input, labelled VDD_IN, is a shunt voltage in microvolts"),
        ("neighbour-current", "V x I of one channel"),
        ("label-missing", "no channel is labelled VDD_IN; labels: VDD_CPU_CV, VDD_GPU_SOC, VIN_SYS_5V0"),
        ("current-forbidden", "give read permission"),
        ("initialises-only", "Not Supported"),
        ("voltage-as-power", "found MilliVolt"),
        ("episode", "power in mW and hwmon3/in1_input in mV"),
        ("thousand-fold", "plausible are 1.4 to 805 W"),
        ("package-reset", "the counter went back"),
    ],
)
def test_a_reason_says_what_was_seen(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = refusal(PLANTS[name], tmp_path, monkeypatch)
    assert refused is not None
    assert words in refused[1]
