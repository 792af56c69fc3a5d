"""Verdicts follow from rules, on the whole interval, and only where a claim can be measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from frames import number, text
from synthetic_runs import CLAIMS

from octopus.errors import InputError
from octopus_study.report.claims import BOARDS, Claim, judge, load_claims, read_claims
from octopus_study.report.frame import Frame, Key

CLAIM = {
    "id": "c", "claim": "…", "source": "P1", "study": "stage_timing", "needs": "any", "number": "{run}.x",
    "operator": "about", "value": 10, "tolerance": 0.1, "unit": "ms", "why": "because",
}  # fmt: skip


X = Key("m", "x")


def one_number(
    value: float, low: float, high: float, kind: str = "cpu", dataset: str = "visdrone-val"
) -> Frame:
    return Frame(
        [
            number(X, "ms", value, low, high, dataset=dataset),
            text(Key("m", "machine", quantity="kind"), kind),
            text(Key("m", "stage_timing", quantity="measured_on"), "2026-11-21"),
        ]
    )


def rule_text(claim: dict) -> str:
    return Claim(**claim).rule


def verdict(claim: dict, numbers: Frame) -> str:
    (judgement,) = judge(Claim(**claim), numbers)
    return judgement.verdict


def test_the_whole_interval_must_satisfy_the_rule() -> None:
    assert verdict(CLAIM, one_number(10, 9.5, 10.5)) == "reproduced"
    assert verdict(CLAIM, one_number(10, 8.5, 10.5)) == "not reproduced"


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        ("at_most", 11, "reproduced"),
        ("at_most", 10.2, "not reproduced"),
        ("at_least", 9, "reproduced"),
        ("above", 10, "not reproduced"),
        ("between", [9, 11], "reproduced"),
        ("rounds_to", 10, "reproduced"),
        ("rounds_to", 9, "not reproduced"),
    ],
)
def test_operators(operator: str, value: object, expected: str) -> None:
    claim = CLAIM | {"operator": operator, "value": value}
    assert verdict(claim, one_number(10, 9.5, 10.5)) == expected


@pytest.mark.parametrize(
    ("needs", "kind", "dataset", "expected"),
    [
        ("gpu", "cpu", "visdrone-val", "not measurable here"),
        ("gpu", "gpu", "visdrone-val", "reproduced"),
        ("jetson", "gpu", "visdrone-val", "not measurable here"),
        ("real-data", "cpu", "synthetic-visdrone", "not measurable here"),
    ],
)
def test_needs(needs: str, kind: str, dataset: str, expected: str) -> None:
    assert verdict(CLAIM | {"needs": needs}, one_number(10, 9.9, 10.1, kind, dataset)) == expected


def test_a_missing_number_is_not_measurable_here() -> None:
    assert verdict(CLAIM | {"number": "{run}.absent"}, one_number(10, 9, 11)) == "not measurable here"


def test_all_of_several_numbers_must_satisfy_the_rule() -> None:
    other = number(Key("m", "y"), "ms", 20, 19, 21)
    numbers = Frame([*one_number(10, 9.5, 10.5), other])
    both = CLAIM | {"number": ["{run}.x", "{run}.y"], "operator": "at_most"}
    assert [verdict(both | {"value": most}, numbers) for most in (11, 22)] == ["not reproduced", "reproduced"]
    (judgement,) = judge(Claim(**both), numbers)
    assert judgement.measured == "10.00 ms [9.500\u201310.50 ms] and 20.0 ms"
    assert verdict(both | {"number": ["{run}.x", "{run}.z"]}, numbers) == "not measurable here"


def test_what_a_verdict_rests_on_can_be_seen() -> None:
    most = CLAIM | {"operator": "at_most", "value": 10.2}
    for value, low, high, shown in (
        (10.2, 10.1, 10.2, "10.2 ms"),
        (10.21, 10.1, 10.3, "10.21 ms"),
        (10.1, 10.0, 10.3, "10.10 ms [10.00\u201310.30 ms]"),
        (11, 10.3, 12, "11.0 ms"),
    ):
        (judgement,) = judge(Claim(**most), one_number(value, low, high))
        assert judgement.measured == shown


def test_rules_read_as_a_reader_would_say_them() -> None:
    assert rule_text(CLAIM) == "10 ms ± 10 %"
    assert rule_text(CLAIM | {"operator": "at_most", "value": 0.01, "unit": "fraction"}) == "≤ 1 %"


@pytest.mark.parametrize("broken", [{"operator": "roughly"}, {"needs": "luck"}, {"surprise": 1}, {"why": ""}])
def test_a_broken_claim_is_refused(tmp_path: Path, broken: dict) -> None:
    import yaml

    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump({"claims": [CLAIM | broken]}))
    with pytest.raises(InputError, match="Claim c"):
        load_claims(path)


def test_every_claim_is_judged_on_every_machine_and_measurable_somewhere(full: Path) -> None:
    judged = read_claims(full / "claims.csv")
    claims = load_claims(CLAIMS)
    assert len(judged) == 3 * len(claims)
    reasons = {claim.id: set() for claim in claims}
    for judgement in judged:
        reasons[judgement.claim_id].add(judgement.reason)
    # An id that no study writes would never be measurable: only a machine, TensorRT or an arm of ONNX Runtime may be
    # what a claim lacks.
    boards = [{f"needs {name}"} for _, name in BOARDS.values()]
    # The full scene is another machine's; test_edge_report has one.
    scene = {
        "needs the full scene of 8192 \u00d7 8192 px, not a window of it",
        "needs the real scene, not generated data",
    }
    lacking = (
        *boards,
        {"needs a GPU", "unavailable: TensorRT is not installed"},
        {f"unavailable: {why}" for why in scene},
        {"needs a GPU", "unavailable: no arm of this study runs ONNX Runtime"},
    )
    assert all("" in found or found in lacking for found in reasons.values())


def test_claims_on_tensorrt_are_judged_where_it_is(tensorrt: Path, full: Path) -> None:
    directions = ("arena-kernel-faster", "arena-end-to-end-faster", "arena-memory-larger")
    known = {one.claim_id: one.verdict for one in read_claims(tensorrt / "claims.csv")}
    assert [known[name] for name in directions] == ["reproduced"] * 3
    assert known["arena-kernel-size"] == "not measurable here"
    missing = {one.claim_id: one for one in read_claims(full / "claims.csv") if one.scope == "pretended-gpu"}
    assert {missing[name].verdict for name in directions} == {"not measurable here"}
    assert {missing[name].reason for name in directions} == {"unavailable: TensorRT is not installed"}


def test_padding_is_judged_on_every_machine(full: Path) -> None:
    judged = {(one.claim_id, one.scope): one.verdict for one in read_claims(full / "claims.csv")}
    for scope in ("here", "pretended-gpu", "pretended-cpu"):
        for name in ("arena-padded-uniform", "arena-metadata"):
            assert judged[name, scope] == "reproduced"
    assert judged["arena-padded-visdrone", "here"] == "not measurable here"
    assert judged["arena-padded-visdrone", "pretended-gpu"] == "reproduced"
