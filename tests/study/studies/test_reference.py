"""The committed reference runs: whole, real and vetted. Nothing asks who is faster: a run that is worse may stand."""

import math
from pathlib import Path

import numpy as np
import pytest
from quick import values

from octopus_study.measure import read_rows, validate_provenance, validate_rows
from octopus_study.names import STUDIES

REFERENCE = Path(__file__).parents[3] / "data" / "reference"
MACHINES = sorted(path for path in REFERENCE.iterdir() if path.is_dir())
FILES = [path for machine in MACHINES for path in sorted(machine.glob("*.csv"))]
KINDS = {path: validate_provenance(path.with_suffix(".json"))["machine"]["device"] for path in FILES}
TIMED = [path for path in FILES if path.stem != "power"]
LEAST_BLOCKS = 20
# What a method's answer was checked for, where that is not the way from end to end; and what is no comparison.
CHECKED = {
    "mapping": "kernel", "total_cost": "total", "sequences": "total", "drone": "frame_time", "pipelines": "crops",
}  # fmt: skip
NO_OCTOPUS = ("concurrency", "image_shape")  # models alone: their answers stand in rows of their own
# A curve over widths takes few blocks at each, and a trace few runs.
NO_COMPARISON = ("tuner_probe", "forward", "kernel_time")


def ratio(rows, slow, quick, **where):
    """Median of the per-block ratio of two methods."""
    slow, quick = (values(rows, method=name, **where) for name in (slow, quick))
    paired = (slow / quick).dropna()
    assert len(paired) >= LEAST_BLOCKS
    return float(np.median(paired))


def read(kind, study):
    """Rows of the machine of that kind which has most studies, among those that have this one."""
    found = [path for path in FILES if path.stem == study and KINDS[path] == kind]
    return read_rows(max(found, key=lambda path: len(list(path.parent.glob("*.csv")))))


def test_a_gpu_and_a_cpu_have_all_studies():
    for kind in ("cuda", "cpu"):
        # `reading` took the place of a study, and waits for its first rows.
        assert {path.stem for path in FILES if KINDS[path] == kind} == {*STUDIES} - {"reading"}


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
    octopus = timed[timed.method.isin(("octopus", "octopus-again")) & checked]
    assert path.stem in NO_OCTOPUS or set(octopus.status) == {"same"}


# What the paper compares: study, kind of machine, methods, and where. All of a case were measured in the same blocks.
KERNEL = {"layer": "device", "quantity": "crop_resize_normalize"}
HOST = {"layer": "host", "quantity": "end_to_end"}
CASES = [
    ("stage_timing", "cuda", ("published", "octopus", "write-bound"), {"n": 1000, "workload": "visdrone"} | KERNEL),
    ("stage_timing", "cpu", ("opencv", "opencv-inplace", "octopus"),
     {"n": 1000, "workload": "visdrone-1thread"} | HOST),
    *(("arena", "cuda", ("cvcuda", "published", "roi-align", "octopus"), {"n": n, "workload": "visdrone"} | KERNEL)
      for n in (28, 100, 1000)),
    ("arena", "cuda", ("cvcuda", "n-launches", "octopus"), {"n": 1000, "workload": "visdrone"} | HOST),
    ("arena", "cuda", ("n-launches-fused", "octopus"), {"n": 28, "workload": "uniform"} | HOST),
    ("arena", "cuda", ("octopus", "octopus-fp16", "write-bound"), {"n": 1000, "workload": "visdrone"} | KERNEL),
    ("arena", "cuda", ("octopus", "write-bound"), {"n": 1000, "workload": "ladder-large"} | KERNEL),
    ("arena", "cuda", ("two-passes", "one-pass", "streamed", "prefetched"), {"n": 1000, "workload": "ladder"} | KERNEL),
    ("arena", "cpu", ("opencv", "opencv-inplace", "octopus"), {"n": 1000, "workload": "visdrone-1thread"} | HOST),
    ("total_cost", "cuda", ("lookup-vectorised", "lookup-device", "octopus"),
     {"workload": "photos-500-light", "layer": "host", "quantity": "total"}),
    ("satellite", "cuda", ("read-bound", "padded", "n-launches", "octopus"),
     {"workload": "scale-rgb8", "layer": "device", "quantity": "keep_tiles"}),
]  # fmt: skip


@pytest.mark.parametrize(("study", "kind", "methods", "where"), CASES)
def test_what_the_paper_compares_was_measured_in_the_same_blocks(study, kind, methods, where):
    rows = read(kind, study)
    for other in methods[1:]:
        assert math.isfinite(ratio(rows, methods[0], other, **where))
