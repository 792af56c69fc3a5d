"""The committed reference runs: whole, real, vetted, and as good as the project says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from octopus.measure import read_rows, validate_provenance, validate_rows
from octopus.studies import STUDIES

REFERENCE = Path(__file__).parents[2] / "data" / "reference"
MACHINES = sorted(path for path in REFERENCE.iterdir() if path.is_dir())
FILES = [machine / f"{study}.csv" for machine in MACHINES for study in STUDIES]
LEAST_BLOCKS = 20


def times(rows, **where):
    """Milliseconds of one method, indexed by block."""
    chosen = rows
    for column, value in where.items():
        chosen = chosen[chosen[column] == value]
    return chosen.set_index("block").value


def ratio(rows, slow, quick, **where):
    """Median of the per-block ratio of two methods."""
    slow, quick = (times(rows, method=name, **where) for name in (slow, quick))
    paired = (slow / quick).dropna()
    assert len(paired) >= LEAST_BLOCKS
    return float(np.median(paired))


def read(kind, study):
    """Rows of the first reference machine of that kind."""
    for machine in MACHINES:
        if validate_provenance(machine / f"{study}.json")["machine"]["device"] == kind:
            return read_rows(machine / f"{study}.csv")
    raise AssertionError(f"no reference of a {kind} machine")


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_run_is_valid_unchanged_real_and_of_a_commit(path):
    validate_rows(path)
    record = validate_provenance(path.with_suffix(".json"))
    assert record["git"]["dirty"] is False
    assert record["git"]["commit"]
    assert not any(data["synthetic"] for data in record["datasets"])
    assert record["config"]["values"]["measure"]["min_blocks"] >= LEAST_BLOCKS


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_timed_method_has_enough_blocks_or_says_why_not(path):
    rows = read_rows(path)
    timed = rows[(rows.unit == "ms") & rows.value.notna() & (rows.layer != "cold_start")]
    blocks = timed.groupby(["dataset", "workload", "n", "layer", "quantity", "method"]).size()
    assert blocks.min() >= LEAST_BLOCKS
    octopus = timed[timed.method.isin(["octopus", "octopus-again"]) & (timed.quantity == "end_to_end")]
    assert set(octopus.answer) == {"same"}


def test_one_launch_on_the_h200_beats_the_published_kernels_and_nears_the_write_bound():
    rows = read("cuda", "stage_timing")
    case = {"n": 1000, "workload": "visdrone", "layer": "device", "quantity": "crop_resize_normalize"}
    assert ratio(rows, "published", "octopus", **case) >= 5
    assert ratio(rows, "octopus", "write-bound", **case) <= 1.7


def test_one_cpu_thread_beats_opencv():
    rows = read("cpu", "stage_timing")
    case = {"n": 1000, "workload": "visdrone-1thread", "quantity": "end_to_end"}
    assert ratio(rows, "opencv", "octopus", **case) >= 2.5
    assert ratio(rows, "opencv-inplace", "octopus", **case) > 1


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
@pytest.mark.parametrize(
    ("workload", "actual", "padded", "waste"),
    [("uniform", 204, 750, 73), ("long-tail", 18, 457, 96), ("bimodal", 262, 750, 65)],
)
def test_the_published_waste_is_in_the_rows(kind, workload, actual, padded, waste):
    rows = read(kind, "distribution")
    found = rows[(rows.workload == workload) & (rows.method == "padding")].set_index("quantity").value
    assert round(found["actual_bytes"] / 2**20) == actual
    assert round(found["padded_bytes"] / 2**20) == padded
    assert round(100 * found["padding_waste"]) == waste


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
def test_a_second_process_makes_its_first_crop_within_two_seconds(kind):
    rows = read(kind, "stage_timing")
    assert times(rows, quantity="first_crop", method="octopus").max() < 2000
