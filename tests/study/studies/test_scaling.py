"""The study of several GPUs: shares of work, the common begin, workers that fail, and GPUs that there aren't."""

from __future__ import annotations

import threading
import time
from functools import partial
from multiprocessing import Pipe

import numpy as np
import pandas as pd
import pytest
from pretended_gpus import STATUS, Failing, Lossy, Mortal, Pretended, Slow

from octopus_study.peers.availability import Unavailable
from octopus_study.studies.scaling import study
from octopus_study.studies.scaling.gpu import VISIBLE, only
from octopus_study.studies.scaling.team import LEAD_NS, PROCESSES, THREADS, Team, serve
from octopus_study.studies.scaling.work import Copies, Job, checked, sampled

COPIES = Copies(count=4, held=2, shape=(8, 16))


@pytest.fixture
def measured(quick_context):
    """Rows of a work of the study on pretended devices."""

    def run(work, visible, make=Pretended, **settings):
        context = quick_context("scaling", **settings)
        part = next(part for part in study.plan(context) if part.case.workload == work)
        made = next(of(context) for of in study.WORKS if of(context).name == work)
        measure = partial(study.rows_of, work=made, visible=visible, make=make)
        rows = list(measure(context, part))
        return pd.DataFrame(rows, columns=rows[0]._fields)

    return run


def answers(rows, quantity):
    chosen = rows[(rows["quantity"] == quantity)]
    return chosen.groupby("method", sort=False)["answer"].first().to_dict()


@pytest.mark.parametrize("work", ["crops", "images", "copies"])
def test_all_gpus_give_the_right_answers(measured, work):
    settings = {"scaling.images": 2, "scaling.boxes": 5, "scaling.held_mib": 8}
    rows = measured(work, 2, **settings)
    quantities = study.QUANTITIES if work != "copies" else (study.UPLOADED,)
    assert set(rows["quantity"]) == {*quantities, study.ALONE, "discarded_blocks"}
    for quantity in quantities:
        said = answers(rows, quantity)
        assert {name for name, answer in said.items() if answer == "same"} == {
            "processes-1", "processes-2", "threads-1", "threads-2", "processes-1-again",
        }  # fmt: skip
        for way in study.WAYS:
            for count in (4, 8):
                assert said[f"{way}-{count}"] == "unavailable: 2 GPUs are visible"
    assert answers(rows, study.ALONE) == dict.fromkeys(("gpu-0", "gpu-1", "gpu-0-again"), "same")
    blocks = rows[rows["value"].notna() & (rows["unit"] == "ms")].groupby(["quantity", "method"])["block"]
    assert len(set(blocks.apply(tuple)[study.UPLOADED])) == 1  # paired


def test_a_lost_upload_is_seen_where_it_was_lost(measured):
    rows = measured("copies", 2, Lossy)
    said = answers(rows, study.UPLOADED)
    for way in study.WAYS:
        assert said[f"{way}-1"] == "same"
        assert said[f"{way}-2"].startswith("different: largest error")
    alone = answers(rows, study.ALONE)
    assert alone["gpu-0"] == "same" and alone["gpu-1"].startswith("different: ")


def test_a_worker_that_dies_costs_its_own_rows_alone(measured):
    rows = measured("copies", 2, Mortal)
    said = answers(rows, study.UPLOADED)
    assert said["processes-2"] == f"unavailable: the worker of GPU 1 ended with status {STATUS}"
    assert said["processes-1"] == said["threads-1"] == said["threads-2"] == "same"
    timed = rows[rows["value"].notna() & (rows["unit"] == "ms")]
    assert {"processes-1", "threads-2"} <= set(timed["method"]) and "processes-2" not in set(timed["method"])
    alone = answers(rows, study.ALONE)
    assert alone["gpu-0"] == "same" and alone["gpu-1"] == said["processes-2"]


def test_one_gpu_has_its_rows_and_a_reason_for_each_that_lacks(measured):
    rows = measured("copies", 1)
    said = answers(rows, study.UPLOADED)
    lacking = {f"{way}-{count}" for way in study.WAYS for count in (2, 4, 8)}
    assert {name for name, answer in said.items() if answer == "unavailable: one GPU is visible"} == lacking
    assert {name for name, answer in said.items() if answer == "same"} == {
        "processes-1", "threads-1", "processes-1-again",
    }  # fmt: skip
    assert answers(rows, study.ALONE)["gpu-1"] == "unavailable: one GPU is visible"


def test_fewer_batches_than_gpus_are_not_shared(measured):
    rows = measured("images", 2, **{"scaling.batches": 1, "scaling.images": 1})
    strong = answers(rows, "strong_resident")
    assert strong["threads-2"] == strong["processes-2"] == "unavailable: 1 batches are too few for all GPUs"
    assert answers(rows, "weak_resident")["threads-2"] == strong["threads-1"] == "same"


def test_without_a_gpu_every_row_says_that_it_needs_one(quick_rows, quick_context):
    rows = quick_rows("scaling")
    planned = [
        (part.case.workload, comparison.quantity, method)
        for part in study.plan(quick_context("scaling"))
        for comparison in part.comparisons
        for method in comparison.methods
    ]
    found = [tuple(row) for row in rows[["workload", "quantity", "method"]].itertuples(index=False)]
    assert sorted(found) == sorted(planned)
    assert set(rows["answer"]) == {f"unavailable: {study.NEEDS}"}


@pytest.mark.parametrize("gpus", [1, 2, 3, 8])
def test_strong_work_is_shared_and_weak_work_is_everyones(gpus):
    strong = study.members(f"threads-{gpus}", "strong_resident", 24)
    assert strong.way == THREADS and sorted(strong.shares) == list(range(gpus))
    assert sorted(batch for share in strong.shares.values() for batch in share) == list(range(24))
    weak = study.members(f"processes-{gpus}", "weak_uploaded", 24)
    assert weak.way == PROCESSES and weak.shares == dict.fromkeys(range(gpus), range(24))
    assert study.members(f"gpu-{gpus}", study.ALONE, 24) == (PROCESSES, {gpus: range(24)})


@pytest.mark.parametrize("way", study.WAYS)
def test_a_block_lasts_as_long_as_its_slowest_worker(way):
    with Team(way, 3, COPIES, Slow) as team:
        for ranks, seconds in (((0,), 0.01), ((0, 2), 0.03), ((1,), 0.02), ((0, 1, 2), 0.03)):
            shares = dict.fromkeys(ranks, range(2))
            quickest = min(team.block(shares, upload=True) for _ in range(3))
            assert 1000 * seconds <= quickest
            if len(ranks) == 3:
                assert quickest < 1000 * (0.01 + 0.02 + 0.03)  # side by side, not one after the other
        assert team.throttled() == "GPU 2: thermal limit"


def test_workers_wait_for_the_common_moment():
    near, far = Pipe()
    runs = []

    class Noting:
        def run(self, batches, upload):
            runs.append((time.perf_counter_ns(), tuple(batches), upload))

    worker = threading.Thread(target=serve, args=(far, Noting))
    worker.start()
    assert near.recv() == (True, None)
    near.send(("block", range(9), True))
    assert near.recv() == (True, None)  # warm
    time.sleep(0.05)
    assert [run[1:] for run in runs] == [((0, 1, 2, 3), True)]
    start = time.perf_counter_ns() + 10 * LEAD_NS
    near.send(("start", start))
    well, (began, ended) = near.recv()
    assert well and start <= began <= runs[1][0] <= ended and runs[1][1] == tuple(range(9))
    near.send(("block", range(9), False))
    assert near.recv() == (True, None)
    near.send(("start", None))  # another one failed
    assert near.recv() == (True, None) and len(runs) == 3
    near.close()
    worker.join(10)
    assert not worker.is_alive()


@pytest.mark.parametrize("way", study.WAYS)
def test_a_gpu_that_cannot_be_had_leaves_the_others(way):
    with Team(way, 2, COPIES, Failing) as team:
        for _ in range(2):
            with pytest.raises(Unavailable, match=r"^GPU 1: RuntimeError: no memory is left$"):
                team.block({0: range(2), 1: range(2)}, upload=True)
            assert team.block({0: range(2)}, upload=True) > 0


def test_an_answer_is_of_the_first_and_the_last_batch_in_clean_memory():
    job = Job(COPIES, Pretended(0, False))
    found = job.answer(range(1, 4), upload=True)
    assert checked(range(1, 4), 2) == [1] and checked(range(4), 2) == [0, 1]
    assert np.array_equal(found, COPIES.right(1))
    assert len(sampled(np.arange(100))) == 4 and len(sampled(np.arange(3))) == 3


@pytest.mark.parametrize(
    ("shown", "expected"), [(None, "2"), ("", "2"), ("5, 7,6", "6"), ("GPU-a,GPU-b,GPU-c", "GPU-c")]
)
def test_a_process_sees_one_of_the_gpus_that_are_visible(monkeypatch, shown, expected):
    monkeypatch.delenv(VISIBLE, raising=False)
    if shown is not None:
        monkeypatch.setenv(VISIBLE, shown)
    assert only(2) == expected
