"""What is special in some studies, and how runs of all are made: processes, threads, memory, code that changes."""

import dataclasses

import pytest
from quick import quick_config

from octopus.backends import cpu
from octopus.errors import InputError
from octopus_study.errors import MeasureError
from octopus_study.measure import read_rows, validate_provenance
from octopus_study.measure.dependence import PROCESS_BLOCKS
from octopus_study.studies import processes, run_study
from octopus_study.studies.context import make_context, write_run


def test_boxes_alone_are_measured_where_times_are_switched_off(quick_rows):
    rows = quick_rows("distribution", **{"distribution.times": False, "distribution.count": 7})
    timed = rows[rows.layer == "host"]
    assert timed.value.isna().all()
    assert set(timed.reason) == {"not measured in this run (distribution.times is false)"}
    assert {"padding_waste", "width_quantile"} <= set(rows.quantity)


SHARED = {"measure.processes": 2, "arena.workloads": ["uniform"], "arena.counts": [3], "measure.min_blocks": 4}


def test_several_processes_share_the_blocks_of_a_comparison(manifest, tmp_path):
    config = quick_config(SHARED)
    path = run_study("arena", config=config, manifest=manifest, out=tmp_path / "arena.csv")
    rows = read_rows(path)
    timed = rows[rows.unit.eq("ms") & rows.value.notna()]
    numbered = timed.assign(process=timed.block // PROCESS_BLOCKS)
    per_method = numbered.groupby(["workload", "method"]).process.agg(["nunique", "size"])
    assert (per_method["nunique"] == 2).all() and (per_method["size"] == 4).all()
    assert {"uniform", "visdrone-1thread"} <= set(timed.workload)
    record = validate_provenance(path.with_suffix(".json"))
    assert record["extra"]["processes"] == {"measured": 2, "failed": []}


@pytest.mark.parametrize(
    ("code", "limit", "said"),
    [
        ("raise SystemExit('no room')", 60, "process 1 ended with code 1: no room"),
        ("import time; time.sleep(60)", 1, "process 1 gave no answer for "),
        ("raise MemoryError('no room')", 60, "process 1: too little memory was free"),
    ],
)
def test_a_further_process_that_fails_is_noted_and_costs_only_its_blocks(
    manifest, tmp_path, monkeypatch, code, limit, said
):
    (tmp_path / "failing.py").write_text(f"def measure(task): exec({code!r})")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(processes, "MEASURE", "failing:measure")
    monkeypatch.setattr(processes, "LEAST_SECONDS", limit)
    context, plan = make_context("arena", quick_config(SHARED), manifest), len
    assert processes.further_rows(context, manifest, plan) == [] and not context.notes
    context.shared["a", "comparison"] = ["octopus"]
    assert processes.further_rows(context, manifest, plan) == []
    notes = context.notes["processes"]
    assert notes["measured"] == 1 and len(notes["failed"]) == 1 and notes["failed"][0].startswith(said)


def test_code_that_changes_while_it_is_measured_gives_no_result(manifest, tmp_path):
    context = make_context("stage_timing", quick_config({}), manifest)
    with pytest.raises(MeasureError, match="was changed while stage_timing ran"):
        write_run(dataclasses.replace(context, code="0" * 64), [], tmp_path / "stage_timing.csv")
    assert not list(tmp_path.iterdir())


def test_threads_are_set_and_put_back(manifest):
    import numba

    context = make_context("stage_timing", quick_config({}), manifest)
    before = cpu.get_num_threads(), numba.get_num_threads()
    with context.threads(1):
        assert (cpu.get_num_threads(), numba.get_num_threads()) == (1, 1)
    assert (cpu.get_num_threads(), numba.get_num_threads()) == before
    with pytest.raises(InputError, match="number of threads must be"), context.threads(10_000):
        pass


def test_an_unknown_study_is_named(manifest, tmp_path):
    with pytest.raises(InputError, match="no study 'power_timing'"):
        run_study("power_timing", config=quick_config({}), manifest=manifest, out=tmp_path / "x.csv")
