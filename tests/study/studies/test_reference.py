"""The committed reference runs: whole, real and vetted. Nothing asks who is faster: a run that is worse may stand."""

from pathlib import Path

import pytest

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
