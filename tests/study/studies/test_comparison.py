"""Comparisons find wrong answers before the timing and give reasons for gaps; processes and threads of all runs."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from quick import quick_config

from octopus.backends import cpu
from octopus.errors import InputError
from octopus_study.baselines.availability import Unavailable
from octopus_study.baselines.fused import Octopus
from octopus_study.baselines.job import make_job
from octopus_study.errors import MeasureError
from octopus_study.measure import Budget, Case, HostClock, Method, read_rows, validate_provenance, validate_rows
from octopus_study.measure.dependence import PROCESS_BLOCKS
from octopus_study.studies import context as studies_context
from octopus_study.studies import processes, run_study
from octopus_study.studies.comparison import Comparison, Part, compare, measure_plan
from octopus_study.studies.context import make_context, write_run
from octopus_study.studies.crops import ReferenceCrops, check

FRAME = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)
BOXES = np.array([[1, 2, 30, 40], [5, 5, 6, 6], [0, 0, 80, 60]], np.int32)
MEAN, STD = (1.0, 2.0, 3.0), (2.0, 4.0, 8.0)


@pytest.fixture
def expected():
    return ReferenceCrops(FRAME, (16, 12), MEAN, STD).of(BOXES)


def test_a_method_that_writes_nothing_or_one_wrong_value_does_not_pass(expected):
    job = make_job(FRAME, BOXES, (16, 12), MEAN, STD, "cpu")
    octopus = Octopus(job)

    def nearly():
        octopus.run()
        job.out[2, 1, 15, 11] += 0.5

    methods = [octopus.timed(), job.method("lazy", lambda: None), job.method("nearly", nearly, "adds")]
    answers = check(job, methods, expected)
    assert answers["octopus"] == "same"
    assert answers["lazy"].startswith("different: ") and "NaN" in answers["lazy"]
    assert answers["nearly"] == "different: adds" and 0 < answers["nearly"].error < 1


@pytest.mark.parametrize("part", ["frame", "boxes"])
def test_who_writes_into_the_inputs_is_named_and_the_others_get_them_mended(expected, part):
    job = make_job(FRAME.copy(), BOXES.copy(), (16, 12), MEAN, STD, "cpu")
    octopus = Octopus(job)

    def vandal():
        octopus.run()
        getattr(job, part)[0] = 1

    answers = check(job, [job.method("vandal", vandal), octopus.timed()], expected)
    assert answers == {"vandal": f"different: it wrote into the {part}", "octopus": "same"}


class Context:
    """As much of a study's context as a comparison needs."""

    budget, seed = Budget(min_blocks=2, max_blocks=2, min_seconds=0.0), 1
    processes, measures = studies_context.Context.processes, studies_context.Context.measures

    def __init__(self, processes=1, process=0, shared=None):
        self.config = SimpleNamespace(measure=SimpleNamespace(processes=processes))
        self.process, self.shared = process, {} if shared is None else shared

    def clock(self, layer):
        return HostClock(layer=layer)


CASE = Case("arena", "synthetic", "uniform", 3)
PAIR = Comparison(CASE, "end_to_end", "host", ("octopus", "baseline"))


def quick(name):
    return Method(name, lambda: None)


def test_processes_share_the_blocks_and_the_further_ones_measure_what_the_first_one_could():
    whole = Budget(min_blocks=6, max_blocks=6, min_seconds=0.0)
    methods = [quick("octopus"), Method("baseline", lambda: 1 / 0)]
    first = Context(processes=3)
    rows = compare(first, PAIR, methods, budget=whole)
    assert first.shared == {PAIR.key: ["octopus"]}
    for process in (1, 2):
        further = Context(3, process, first.shared)
        rows += compare(further, PAIR, methods, budget=whole)
    blocks = sorted(row.block for row in rows if row.method == "octopus")
    assert blocks == [process * PROCESS_BLOCKS + block for process in range(3) for block in range(2)]
    failed = [row.answer for row in rows if row.method == "baseline"]
    assert failed == ["unavailable: ZeroDivisionError: division by zero"]
    validate_rows(rows)


def broken_plan(context):
    """A part that works in the first process alone, and one that works in all."""

    def measure(context, part):
        if context.process and part.case.n == 3:
            raise ValueError("no memory\nhere")
        yield from compare(context, part.comparisons[0], [quick("octopus"), quick("baseline")])

    return [Part(measure, (dataclasses.replace(PAIR, case=CASE._replace(n=n)),)) for n in (3, 4)]


def test_what_fails_in_a_further_process_is_said(monkeypatch):
    first = Context(processes=3)
    rows = [row for part in broken_plan(first) for row in part.rows(first)]
    monkeypatch.setattr(processes, "make_context", lambda *given: None)
    monkeypatch.setattr(processes, "replace", lambda context, **changed: Context(3, **changed))
    task = {"study": "arena", "config": None, "manifest": None, "plan": broken_plan, "process": 1}
    rows, failed = processes.measure({**task, "shared": first.shared})
    assert failed == ["uniform, 3: ValueError: no memory here"]
    shared = {key: [*names, "gone"] for key, names in first.shared.items()}
    assert processes.measure({**task, "shared": shared})[1][1:] == ["uniform, 4, end_to_end: gone: no row"]
    assert {row.n for row in rows} == {4} and {row.block // PROCESS_BLOCKS for row in rows} == {1}


@pytest.mark.parametrize("layer", ["device", "memory", "paced"])
def test_what_is_not_on_the_host_is_measured_by_one_process(layer):
    first, other = Context(processes=3), dataclasses.replace(PAIR, layer=layer)
    rows = compare(first, other, [quick("octopus"), quick("baseline")])
    assert len([row for row in rows if row.method == "octopus"]) == 2 and not first.shared
    further = Context(3, 1, {PAIR.key: ["octopus"]})
    assert compare(further, other, [quick("octopus"), quick("baseline")]) == []
    assert Part(lambda *_: pytest.fail("it is not asked for"), (other,)).rows(further) == []


def test_a_budget_shared_by_processes_is_not_exceeded_by_them():
    shared = Budget(min_blocks=20, max_blocks=200, min_seconds=0.6, max_seconds=3.0).shared_by(3)
    assert (shared.min_blocks, shared.max_blocks, shared.max_seconds) == (7, 67, 1.0)
    assert shared.target_halfwidth == pytest.approx(0.02 * 3**0.5)
    assert Budget().shared_by(1) == Budget()


@pytest.mark.parametrize("names", [("octopus",), ("octopus", "baseline", "stranger")])
def test_who_is_neither_measured_nor_explained_is_an_error(names):
    with pytest.raises(InputError, match="neither a method nor a reason fits"):
        compare(Context(), PAIR, [quick(name) for name in names])


def test_what_a_part_could_not_measure_has_the_reason_and_the_rest_is_kept():
    whole = Comparison(CASE, "total", "host", ("octopus", "baseline"), "s")

    def measure(context, part):
        yield CASE.row("boxes", "deterministic", "boxes", "count", 3)
        yield CASE.row("octopus", "host", "end_to_end", "ms", 1.0)
        raise Unavailable("no room")

    rows = measure_plan(Context(), [Part(measure, (PAIR, whole))])
    assert [row.quantity for row in rows[:2]] == ["boxes", "end_to_end"]
    reason = "unavailable: no room"
    gaps = {(row.quantity, row.method): row.answer for row in rows[2:]}
    assert gaps == dict.fromkeys([("end_to_end", "baseline"), ("total", "octopus"), ("total", "baseline")], reason)
    assert {row.unit for row in rows if row.quantity == "total"} == {"s"}


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


@pytest.mark.parametrize(("code", "limit", "said"), [
    ("raise SystemExit('no room')", 60, "process 1 ended with code 1: no room"),
    ("import time; time.sleep(60)", 1, "process 1 gave no answer for "),
    ("raise MemoryError('no room')", 60, "process 1: too little memory was free"),
])  # fmt: skip
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
