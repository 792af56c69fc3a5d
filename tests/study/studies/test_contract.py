"""What every study owes, found by its folder: a row or a reason for each method that it plans, right answers, and a
plan that no seed moves; and the committed reference runs: whole, real and vetted. Nothing asks which method is faster:
a run that is worse may stand."""

from importlib import import_module
from pathlib import Path

import pytest
from quick import MANIFESTS, QUICK, quick_config

from octopus_study.config import load_config
from octopus_study.measure import read_rows, validate_provenance, validate_rows
from octopus_study.names import STUDIES
from octopus_study.report.claims import load_claims
from octopus_study.studies.context import make_context

CORE, CLAIMS = (Path(QUICK).with_name(name) for name in ("core.yaml", "claims.yaml"))
AGAIN = "-again"
# Their own rows, beside or in place of the comparisons: counted, or timed by other loops.
UNPLANNED = {"discarded_blocks", "power_capped"}
# Who may give another answer on a CPU, and what is said of it.
DIFFERENT = {
    "published": "rounds to uint8", "n-launches": "rounds to uint8", "n-launches-published": "rounds to uint8",
    "opencv-loop": "rounds to bytes",
    "roi-align": "reads across the edge of a box",
    "padded-torch": "resizes the padded image",
    "padded-onnxruntime": "resizes the padded image",
    "pillow": "Pillow", "pillow-simd": "Pillow", "dali": "Pillow",
}  # fmt: skip


def context_of(study, request, **settings):
    return make_context(study, quick_config(settings), request.getfixturevalue(MANIFESTS.get(study, "manifest")))


def comparisons(context):
    plan = import_module(f"octopus_study.studies.{context.study}.study").plan
    return [comparison for part in plan(context) for comparison in part.comparisons]


@pytest.fixture(params=STUDIES)
def study(request):
    return request.param


@pytest.fixture
def rows(runs, study):
    return read_rows(runs[study])


def timed(rows):
    return rows[rows.value.notna() & (rows.unit == "ms") & ~rows.quantity.isin(UNPLANNED)]


def test_rows_and_provenance_are_valid_and_say_synthetic(runs, study, rows):
    validate_rows(runs[study])
    record = validate_provenance(runs[study].with_suffix(".json"))
    assert record["study"] == study and record["datasets"][0]["synthetic"] is True
    assert record["results"]["rows"] == len(rows)
    assert rows.dataset.str.contains("synthetic").all()


def test_every_method_that_is_planned_has_a_row_or_a_reason(study, rows, request):
    planned = {
        (*comparison.case, comparison.quantity, comparison.layer, comparison.unit, method)
        for comparison in comparisons(context_of(study, request))
        for method in comparison.methods
    }
    columns = ["study", "dataset", "workload", "n", "input", "quantity", "layer", "unit", "method"]
    assert planned and planned <= set(rows[columns].itertuples(index=False, name=None))
    lacking = rows[rows.value.isna()]
    assert lacking.status.eq("unavailable").all()
    assert not rows.status[rows.value.notna()].eq("unavailable").any()


def test_answers_are_right_or_another_one_for_a_known_reason(rows):
    assert set(timed(rows[rows.method == "octopus"]).status) <= {"same", "n/a"}
    other = rows[rows.status.eq("different")]
    for method, answer in set(zip(other.method.str.removesuffix(AGAIN), other.reason, strict=True)):
        assert DIFFERENT.get(method, "?") in answer, (method, answer)


def test_methods_are_timed_in_the_same_blocks_and_octopus_twice(rows):
    found = timed(rows[rows.layer.isin(["host", "device"]) & (rows.quantity != "setup")])
    for key, group in found.groupby(["workload", "n", "input", "layer", "quantity"]):
        blocks = {tuple(sorted(series.block)) for _, series in group.groupby("method")}
        twice = group[group.method.str.endswith(AGAIN)].method.nunique()
        assert len(blocks) == 1 or not twice, key
        assert twice == 1 or "octopus" not in set(group.method) or group.method.nunique() == 1, key


def test_the_plan_is_that_of_the_settings_whatever_the_seed(study, request):
    plans = []
    for seed in (42, 42, 43):
        found = comparisons(context_of(study, request, seed=seed))
        plans.append([(each.case.workload, each.quantity, each.layer, each.methods) for each in found])
    assert plans[0] == plans[1] == plans[2]


@pytest.mark.parametrize("study", ["stage_timing", "arena", "images"])
def test_a_core_run_on_a_cpu_measures_what_claims_name(manifest, study):
    """Facts, growth over batches and crops of 1000 boxes apart, which core.yaml says."""
    context = make_context(study, load_config(CORE, {"device": "cpu"}), manifest)
    cases = {(each.case.workload, f"n{each.case.n}") for each in comparisons(context)}
    named = {
        tuple(name.format(run="", each=each).split(".")[2:4])
        for claim in load_claims(CLAIMS)
        if claim.study == study and claim.needs in ("any", "real-data") and claim.kind != "fact"
        for name in claim.number
        for each in claim.each or [""]
    }
    named = {case for case in named if case[1] != "growth" and (study, case[1]) != ("arena", "n1000")}
    assert named and named <= cases


REFERENCE = Path(__file__).parents[3] / "data" / "reference"
MACHINES = sorted(path for path in REFERENCE.iterdir() if path.is_dir())
FILES = [path for machine in MACHINES for path in sorted(machine.glob("*.csv"))]
KINDS = {path: validate_provenance(path.with_suffix(".json"))["machine"]["device"] for path in FILES}
TIMED = [path for path in FILES if path.stem != "power"]
LEAST_BLOCKS = 20
# What a method's answer was checked for, where that is not the way from end to end; and what is no comparison.
CHECKED = {
    "mapping": "kernel", "total_cost": "total", "sequences": "total", "drone": "frame_time", "pipelines": "crops",
    "reading": "whole",
}  # fmt: skip
NO_OCTOPUS = ("concurrency", "image_shape")  # models alone: their answers stand in rows of their own
# A curve over widths takes few blocks at each, and a trace few runs.
NO_COMPARISON = ("tuner_probe", "forward", "kernel_time")


def test_a_gpu_and_a_cpu_have_all_studies():
    for kind in ("cuda", "cpu"):
        assert {path.stem for path in FILES if KINDS[path] == kind} == {*STUDIES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_run_is_valid_unchanged_real_and_of_a_commit(path):
    validate_rows(path)
    record = validate_provenance(path.with_suffix(".json"))
    assert record["git"]["dirty"] is False
    assert record["git"]["commit"]
    assert not any(data["synthetic"] for data in record["datasets"])
    assert record["config"]["values"]["measure"]["min_blocks"] >= LEAST_BLOCKS


@pytest.mark.parametrize("path", TIMED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_timed_method_has_enough_blocks_or_says_why_not(path):
    rows = read_rows(path)
    timed = rows[(rows.unit == "ms") & rows.value.notna() & ~rows.layer.isin(["cold_start", "deterministic"])]
    timed = timed[~timed.quantity.isin(NO_COMPARISON)]
    if timed.empty:
        assert rows.status.eq("unavailable").any()
        return
    blocks = timed.groupby(["dataset", "workload", "n", "layer", "quantity", "method"]).size()
    assert blocks.min() >= LEAST_BLOCKS
    checked = timed.quantity == CHECKED.get(path.stem, "end_to_end")
    octopus = timed[timed.method.isin(("octopus", "octopus-again", "octopus-steady")) & checked]
    assert path.stem in NO_OCTOPUS or set(octopus.status) == {"same"}
