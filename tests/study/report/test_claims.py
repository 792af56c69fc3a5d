"""Verdicts follow from rules, on the whole interval, and only where a claim can be measured."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from committed_runs import CLAIMS, PUBLISHED
from frames import number, text

from octopus.errors import InputError
from octopus_study.cli.ending import run_ended
from octopus_study.measure.statistics import FEW_PROCESSES, MIN_BLOCKS, Interval
from octopus_study.report.claims import Claim, Judgement, judge, load_claims, read_claims
from octopus_study.report.claims.formula import evaluate
from octopus_study.report.claims.rules import DATES, OWN
from octopus_study.report.claims.tally import GOALS, MAJOR, PUBLISHED_GROUPS, tally
from octopus_study.report.frame import Frame, Key, Number
from octopus_study.report.published import published_numbers

CLAIM = {
    "id": "c", "claim": "…", "source": "P1", "study": "stage_timing", "kind": "magnitude", "needs": "any",
    "number": "{run}.x", "operator": "about", "value": 10, "tolerance": 0.1, "unit": "ms", "why": "because",
}  # fmt: skip
LIMIT = CLAIM | {"tolerance": 0}
ENOUGH = 100
X = Key("m", "x")
REPRODUCED, NOT, AMBIGUOUS, NOWHERE = "reproduced", "not reproduced", "ambiguous", "not measurable here"
# Of each operator with the limit 10: intervals below, across and above its ends.
UPPER = {(8, 9): REPRODUCED, (9.5, 10.5): AMBIGUOUS, (11, 12): NOT}
LOWER = {(8, 9): NOT, (9.5, 10.5): AMBIGUOUS, (11, 12): REPRODUCED}
BOTH = {(7, 8): NOT, (8.5, 9.5): AMBIGUOUS, (9.5, 10.5): REPRODUCED, (10.5, 11.5): AMBIGUOUS, (12, 13): NOT}
ENDS = {"at_most": (10, UPPER), "below": (10, UPPER), "at_least": (10, LOWER), "above": (10, LOWER)}
ENDS |= {"between": ([9, 11], BOTH), "about": (10, BOTH)}


def frame(*numbers: Number, kind: str = "gpu") -> Frame:
    """Return numbers of a machine that has run the study of `CLAIM`."""
    return Frame([*facts("m", kind), *numbers])


def facts(machine: str, kind: str) -> list[Number]:
    run = Key(machine, "stage_timing", quantity="measured_on")
    return [text(Key(machine, "machine", quantity="kind"), kind), text(run, "2026-11-21")]


def judged(claim: dict, numbers: Frame) -> Judgement:
    (judgement,) = judge(Claim(**claim), numbers)
    return judgement


def verdict(claim: dict, numbers: Frame) -> str:
    return judged(claim, numbers).verdict


def at(low: float, high: float, unit: str = "ms", *, blocks: int = ENOUGH, key: Key = X, **columns: object) -> Number:
    return number(key, unit, (low + high) / 2, low, high, blocks)._replace(**columns)


def one(low: float, high: float) -> Frame:
    return frame(at(low, high))


@pytest.mark.parametrize(
    ("operator", "value", "low", "high", "expected"),
    [(name, value, *ends, expected) for name, (value, cases) in ENDS.items() for ends, expected in cases.items()],
)
def test_both_ends_of_an_interval_count(operator: str, value: object, low: float, high: float, expected: str) -> None:
    tolerance = 0.1 if operator == "about" else 0
    claim = CLAIM | {"operator": operator, "value": value, "tolerance": tolerance}
    assert verdict(claim, one(low, high)) == expected


EQUAL = {"operator": "between", "value": [0.98, 1.02], "tolerance": 0, "unit": "ratio", "noise": "m.x.floor"}
TENTH = EQUAL | {"value": [0.10, 0.20], "unit": "fraction"}
FASTER = LIMIT | {"operator": "above", "value": 1, "unit": "ratio", "kind": "direction"}
TIME = Key("m", "stage_timing", "w", 9, "octopus", "t", "host")
SHARE, OVER = TIME.derive("share", "write-bound"), TIME.but(method="published").speedup("n-launches")
SHARED = {"operator": "at_least", "value": 0.7, "unit": "fraction", "number": f"{{run}}.{SHARE.id[2:]}"}
OURS = FASTER | {"number": f"{{run}}.{OVER.id[2:]}"}
ONCE = number(X, "ms", 10)
EXACT = {"operator": "at_most", "tolerance": 0, "kind": "arithmetic"}
PARTLY = FASTER | {"number": [f"{{run}}.{X.id[2:]}", "{run}.z.y"]}
NEAR = at(1.001, 1.2, "ratio")


FLOOR, BESIDE, AGAIN = X.but(workload="floor"), TIME.derive("noise_floor"), Key("m", "y")


def floor(value: float, key: Key = FLOOR) -> Number:
    return number(key, "fraction", value)


@pytest.mark.parametrize(("claim", "numbers", "expected", "reason"), [
    (EXACT, [ONCE], REPRODUCED, ""),
    (EXACT | {"operator": "below"}, [ONCE], NOT, ""),  # a strict limit excludes its end
    ({}, [ONCE], AMBIGUOUS, "measured once, without an interval"),
    ({"exact": "It is counted."}, [ONCE], REPRODUCED, ""),
    ({}, [at(9.9, 10.1, processes=1, layer="host")], REPRODUCED, "of one process"),
    ({}, [at(9.9, 10.1, processes=2)], AMBIGUOUS, FEW_PROCESSES),
    ({}, [at(9.9, 10.1, blocks=MIN_BLOCKS)], REPRODUCED, ""),
    ({}, [at(9.9, 10.1, blocks=MIN_BLOCKS - 1)], AMBIGUOUS, "19 blocks are too few, 20 are needed"),
    ({"windows": True}, [at(9.9, 10.1, blocks=5)], REPRODUCED, ""),
    ({"windows": True}, [at(9.9, 10.1, blocks=4)], AMBIGUOUS, "4 windows are too few, 5 are needed"),
    # A margin on both sides has room for a smaller noise floor, as in `compare`.
    (EQUAL, [at(0.993, 1.0055, "ratio"), floor(0.017)], REPRODUCED, ""),
    (EQUAL, [at(0.993, 1.0055, "ratio"), floor(0.021)], AMBIGUOUS, "ends nearer"),
    (EQUAL, [at(1.025, 1.030, "ratio"), floor(0.003)], NOT, ""),
    (EQUAL, [at(1.025, 1.030, "ratio"), floor(0.010)], AMBIGUOUS, "ends nearer"),
    (TENTH, [at(0.14, 0.16, "fraction"), floor(0.04)], REPRODUCED, ""),  # in points, as the floor widens it
    (TENTH, [at(0.14, 0.16, "fraction"), floor(0.06)], AMBIGUOUS, "ends nearer"),
    (TENTH, [at(0.01, 0.08, "fraction"), floor(0.06)], AMBIGUOUS, "ends nearer"),
    # A difference, or a share of a bound, must exceed the floor beside it.
    (FASTER | {"noise": "m.x.floor"}, [at(1.03, 1.05, "ratio"), floor(0.01)], REPRODUCED, ""),
    (FASTER | {"noise": "m.x.floor"}, [at(1.03, 1.05, "ratio"), floor(0.05)], AMBIGUOUS, "ends nearer"),
    (FASTER | {"noise": "m.x.floor"}, [at(1.03, 1.05, "ratio")], AMBIGUOUS, "there is no noise floor to judge by"),
    (FASTER | {"noise": "m.y"}, [at(1.03, 1.05, "ratio"), at(1 / 1.05, 1, "ratio", key=AGAIN)], AMBIGUOUS, "ends"),
    (OURS, [at(1.03, 1.05, "ratio", key=OVER), floor(0.05, BESIDE)], AMBIGUOUS, "ends"),
    (SHARED, [at(0.685, 0.695, "fraction", key=SHARE), floor(0.004, BESIDE)], NOT, ""),
    (SHARED, [at(0.685, 0.695, "fraction", key=SHARE), floor(0.006, BESIDE)], AMBIGUOUS, "ends"),
    # An interval that no seed made needs no margin for one.
    (FASTER, [NEAR], REPRODUCED, ""),
    (FASTER, [NEAR._replace(resampled=True)], AMBIGUOUS, "ends nearer to the limit than resampling"),
    # A number that is there refutes where another is lacking.
    (PARTLY, [at(0.89, 0.91, "ratio")], NOT, ""),
    (PARTLY, [at(1.19, 1.21, "ratio")], NOWHERE, "not in the rows"),
    ({"number": "{run}.absent"}, [at(9, 11)], NOWHERE, "not in the rows"),
    ({"number": (), "unmeasured": "no arm does it"}, [at(9, 11)], NOWHERE, "no arm does it"),
    ({"needs": "gpu"}, [at(9.9, 10.1)], REPRODUCED, ""),
    ({"needs": "cpu"}, [at(9.9, 10.1)], NOWHERE, "needs a run without a GPU"),
    ({"needs": "jetson"}, [at(9.9, 10.1)], NOWHERE, "needs a Jetson Orin Nano"),
    ({"needs": "real-data"}, [at(9.9, 10.1)._replace(dataset="synthetic-visdrone")], NOWHERE, "needs the real"),
])  # fmt: skip
def test_a_verdict_follows_from_the_rule(claim: dict, numbers: list[Number], expected: str, reason: str) -> None:
    rule = claim if "id" in claim else (LIMIT if claim is SHARED or "noise" in claim else CLAIM) | claim
    found = judged(rule, frame(*numbers))
    assert (found.verdict, found.reason[: len(reason)]) == (expected, reason)
    assert bool(reason) == bool(found.reason)


def test_a_number_of_the_other_kind_of_machine_is_said_to_be_measured_there() -> None:
    there = number(Key("cpu", "x"), "ms", 10, 9, 11)
    found = {one.scope: one.reason for one in judge(Claim(**CLAIM), Frame([*frame(), *facts("cpu", "cpu"), there]))}
    assert found["m"] == "measured on CPUs alone"


def test_no_seed_of_the_resampling_turns_a_verdict() -> None:
    """The interval of one mean ratio of 200 frames for 200 seeds, scaled until about half of the seeds put the lower
    end above 1."""
    ratios, found = np.random.default_rng(16).lognormal(0.0165, 0.11, 200), []
    for seed in range(200):
        drawn = ratios[np.random.default_rng(seed).integers(0, 200, (1000, 200))].mean(axis=1)
        found.append(Interval(ratios.mean(), *np.quantile(drawn, (0.025, 0.975)), 200))
    intervals = [interval.scaled(1 / np.mean([one.low for one in found])) for interval in found]
    assert 20 < sum(interval.low > 1 for interval in intervals) < 180
    frames = [frame(number(X, "ratio", *one)._replace(resampled=True, processes=None)) for one in intervals]
    for operator in ("above", "at_most"):
        assert {verdict(FASTER | {"operator": operator}, one) for one in frames} == {AMBIGUOUS}


def test_all_of_several_numbers_must_satisfy_the_rule() -> None:
    y, z = (number(Key("m", name), "ms", value, value - 1, value + 1, ENOUGH) for name, value in (("y", 20), ("z", 9)))
    numbers = Frame([*one(9.5, 10.5), y, z])
    each = LIMIT | {"number": "{run}.{each}", "operator": "at_most"}
    for names, most, expected in (
        ("xy", 12, NOT), ("xy", 22, REPRODUCED), ("xz", 10, AMBIGUOUS), ("xyz", 10, NOT), ("xv", 22, NOWHERE),
    ):  # fmt: skip
        assert verdict(each | {"each": list(names), "value": most}, numbers) == expected
    assert judged(each | {"each": ["x", "y"], "value": 12}, numbers).measured == "10.0 ms, 20.0 ms"
    many = judged(each | {"number": [f"{{run}}.{name}" for name in "xyzx"], "each": {}, "value": 22}, numbers)
    assert many.measured == "9.00\u201320.0 ms (4 numbers)"


TABLE = Key("published", "t")
PRINTED = Frame([
    number(TABLE.but(quantity="a"), "s", 0.02), number(TABLE.but(quantity="b"), "ms", 5),
    number(TABLE.but(quantity="range"), "percent", float("nan"), 5, 9)._replace(text="5\u20139 %"),
    number(TABLE.but(quantity="words"), "ms", 10)._replace(text="about ten"),
    number(TABLE.but(quantity="digits"), "percent", 1.5)._replace(text="1.50 %"),
])  # fmt: skip
HALF, WIDE = (0.01495, 0.01505), (0.915, 1.115)
RULES = [
    ({"published": "published.t.a"}, "0.0200 s ± 10 %", (0.018, 0.022)),
    ({"published": "published.t.a", "unit": "ms"}, "0.0200 s ± 10 %", (0.018, 0.022)),
    ({"published": "published.t.a / published.t.b", "unit": "count"}, "4 ± 10 %", (3.6, 4.4)),
    ({"published": "1 + published.t.digits", "unit": "px", "room": 0.1, "tolerance": 0}, "1.01 px ± 0.1 px", WIDE),
    ({"published": "published.t.range", "tolerance": 0, "room": 1}, "5\u20139 % ± 1 points", (0.04, 0.1)),
    ({"published": "published.t.words"}, "10 ms ± 10 %", (0.009, 0.011)),
    ({"published": "published.t.digits", "operator": "rounds_to", "tolerance": 0}, "rounds to 1.50 %", HALF),
    ({"published": "published.t.range", "operator": "at_most", "tolerance": 0}, "≤ 5\u20139 %", (-np.inf, 0.09)),
    ({"value": 0.01, "operator": "at_most", "unit": "fraction", "tolerance": 0}, "≤ 1 %", (-np.inf, 0.01)),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "expected", "ends"), RULES)
def test_rules_read_published_values_in_their_units(rule: dict, expected: str, ends: tuple) -> None:
    claim = Claim(**{name: value for name, value in CLAIM.items() if name not in ("value", "unit")} | rule)
    limits = claim.limits("", PRINTED.__getitem__)
    assert limits.text == expected
    assert limits[:2] == pytest.approx(ends)


def test_a_part_of_a_mapping_is_judged_by_its_own_published_value() -> None:
    x, y = (
        number(Key("m", name), "ms", value, 0.99 * value, 1.01 * value, ENOUGH) for name, value in (("x", 20), ("y", 5))
    )
    claim = {name: value for name, value in CLAIM.items() if name not in ("value", "unit")}
    claim |= {"number": "{run}.{each}", "each": {"a": "x", "b": "y"}, "published": "published.t.{each}"}
    assert verdict(claim, Frame([*frame(x, y), *PRINTED])) == REPRODUCED
    assert verdict(claim | {"each": {"a": "y", "b": "x"}}, Frame([*frame(x, y), *PRINTED])) == NOT


FORMULAS = ["a.b +", "( a.b", "a.b)", "a.b ** 2", "__import__('os')", "a.b a.b", "open", "a.b.__class__()", "1e400", ""]


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_can_only_compute(formula: str) -> None:
    with pytest.raises(InputError, match="formula"):
        evaluate(formula, lambda name: 1.0)


def test_a_condition_that_is_not_met_leaves_a_claim_open() -> None:
    condition = {"text": "kernels fill the GPU", "number": "{run}.filled", "operator": "at_least", "value": 0.9}
    claim = CLAIM | {"precondition": condition | {"unit": "fraction", "why": "because"}}
    for filled, expected in ((0.95, REPRODUCED), (0.8, NOWHERE)):
        filling = number(Key("m", "filled"), "fraction", filled)
        assert verdict(claim, Frame([*one(9.9, 10.1), filling])) == expected
    assert judged(claim, Frame([*one(9.9, 10.1), filling])).reason.startswith("precondition not met: kernels fill")
    assert judged(claim, one(9.9, 10.1)).reason.startswith("precondition not measured: kernels fill the GPU")
    beside = claim | {"precondition": claim["precondition"] | {"beside": True}}
    found = judged(beside, Frame([*one(9.9, 10.1), filling]))
    assert found.verdict == REPRODUCED and found.reason.startswith("precondition not met: kernels fill")


@pytest.mark.parametrize("broken", [
    {"operator": "roughly"}, {"needs": "luck"}, {"kind": "fancy"}, {"surprise": 1}, {"why": ""}, {"tolerance": 0},
    {"value": None}, {"published": "published.t.a"}, {"value": None, "published": "m.x"}, {"number": ()},
    {"unmeasured": "no arm"}, {"operator": "between"}, {"precondition": {"text": "…"}, "unmeasured": "no arm"},
])  # fmt: skip
def test_a_broken_claim_is_refused(tmp_path: Path, broken: dict) -> None:
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump({"claims": [CLAIM | broken]}))
    with pytest.raises(InputError, match="Claim c"):
        load_claims(path)


def test_every_rule_has_a_date_that_it_loses_when_it_changes(tmp_path: Path) -> None:
    renew = "run workflow/scripts/rules_age.py --renew"
    assert [claim.id for claim in load_claims(CLAIMS) if not claim.dated] == [], renew
    shutil.copy(CLAIMS.with_name(DATES), tmp_path)
    copy, text = tmp_path / "claims.yaml", CLAIMS.read_text(encoding="utf-8")
    line = "    tolerance: 0.05\n    why: It is printed as a round number"
    reworded, changed = line.replace("It is", "The share is"), line.replace("0.05", "0.06")
    for other, undated in ((reworded, []), (changed, ["sample-crop"])):
        assert line in text
        copy.write_text(text.replace(line, other), encoding="utf-8")
        assert [claim.id for claim in load_claims(copy) if not claim.dated] == undated


def test_seconds_are_not_judged_as_bytes() -> None:
    with pytest.raises(InputError, match="Claim c: a number in 'bytes'"):
        verdict(CLAIM, frame(number(X, "bytes", 10, 9, 11, ENOUGH)))


def test_every_claim_is_judged_on_every_machine(full: Path) -> None:
    assert len(read_claims(full / "claims.csv")) == 3 * len(load_claims(CLAIMS))


def test_every_claim_rests_on_numbers_that_a_study_writes(references: Path) -> None:
    reasons: dict[str, set[str]] = {}
    for judgement in read_claims(references / "claims.csv"):
        why = judgement.reason if judgement.verdict == NOWHERE else ""
        reasons.setdefault(judgement.claim_id, set()).add(why)
    # An id that no study writes is never judged: only a machine, a scene, or what a row says of itself may be lacking.
    unknown = [name for name, why in reasons.items() if "" not in why and any("not in the rows" in one for one in why)]
    assert unknown == []


def test_published_values_are_read_and_never_typed() -> None:
    printed = Frame(published_numbers(PUBLISHED))
    for claim in load_claims(CLAIMS):
        if claim.published:
            assert all(claim.limits(part, printed.__getitem__) for part in claim.parts()), claim.id
        assert not (claim.kind == "magnitude" and claim.value is not None and not claim.why and not claim.neutral)
        assert claim.source == OWN or claim.source.startswith(("P1", "P2", "P3", "P4"))
        # A size that was printed is read, whatever reason a typed one would be given.
        printed_size = claim.number and claim.operator in ("about", "rounds_to") and claim.source != OWN
        assert not printed_size or claim.published, claim.id


def test_each_verdict_is_counted_in_one_group_and_facts_apart(full: Path) -> None:
    judged = read_claims(full / "claims.csv")
    counts = tally(judged)
    assert json.loads((full / "claims.json").read_text("utf-8")) == counts
    for scope, groups in counts.items():
        mine = [one for one in judged if one.scope == scope]
        published = [one for one in mine if one.source != OWN and one.kind != "fact"]
        assert sum(sum(groups[name].values()) for name in (*PUBLISHED_GROUPS, MAJOR, GOALS, "fact")) == len(mine)
        for verdict in (REPRODUCED, NOT, AMBIGUOUS, NOWHERE):
            found = [one for one in published if one.verdict == verdict]
            assert groups["published"][verdict] == len(found)
            assert groups["measured"][verdict] == sum(one.kind != "arithmetic" for one in found)


def test_the_last_lines_of_a_run_count_each_claim_once_and_name_the_gpus(references: Path) -> None:
    said = run_ended(references, references)[0]
    assert said.startswith("claims on NVIDIA H200, committed: published: ")
    on_gpus = {one.claim_id: one for one in read_claims(references / "claims.csv") if one.scope.startswith("nvidia")}
    judged = [one for one in on_gpus.values() if one.kind not in ("fact", "goal")]
    assert sum(int(word) for word in said.split() if word.isdigit()) == len(judged)
