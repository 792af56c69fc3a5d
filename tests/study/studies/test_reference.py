"""The committed reference runs: whole, real, vetted, and as good as the project says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from selecting import values

from octopus_study.measure import read_rows, validate_provenance, validate_rows
from octopus_study.studies import STUDIES

REFERENCE = Path(__file__).parents[3] / "data" / "reference"
MACHINES = sorted(path for path in REFERENCE.iterdir() if path.is_dir())
FILES = [machine / f"{study}.csv" for machine in MACHINES for study in STUDIES]
TIMED = [path for path in FILES if path.stem not in ("parity", "power")]
LEAST_BLOCKS = 20
# What a method's answer was checked for, where that is not the way from end to end; and what is no comparison.
CHECKED = {"mapping": "kernel", "total_cost": "total", "sequences": "total", "drone": "frame_time"}
NO_OCTOPUS = ("concurrency", "image_shape")  # models alone: their answers stand in rows of their own
NO_COMPARISON = ("tuner_probe", "forward")  # a curve over widths takes few blocks at each
ARENA = {
    "octopus", "octopus-fp16", "octopus-again", "published", "n-launches", "opencv", "roi-align", "grid-sample",
    "padded-torch", "padded-onnxruntime", "cvcuda", "dali", "tensorrt-padded", "tensorrt-gridsample",
}  # fmt: skip


def ratio(rows, slow, quick, **where):
    """Median of the per-block ratio of two methods."""
    slow, quick = (values(rows, method=name, **where) for name in (slow, quick))
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


@pytest.mark.parametrize("path", TIMED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_timed_method_has_enough_blocks_or_says_why_not(path):
    rows = read_rows(path)
    timed = rows[(rows.unit == "ms") & rows.value.notna() & ~rows.layer.isin(["cold_start", "deterministic"])]
    timed = timed[~timed.quantity.isin(NO_COMPARISON)]
    if timed.empty:
        assert rows.answer.str.startswith("unavailable: ").any()
        return
    blocks = timed.groupby(["dataset", "workload", "n", "layer", "quantity", "method"]).size()
    assert blocks.min() >= LEAST_BLOCKS
    checked = timed.quantity == CHECKED.get(path.stem, "end_to_end")
    octopus = timed[timed.method.isin(["octopus", "octopus-again"]) & checked]
    assert path.stem in NO_OCTOPUS or set(octopus.answer) == {"same"}


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
    assert values(rows, quantity="first_crop", method="octopus").max() < 2000


@pytest.mark.parametrize(
    ("rival", "n", "layer", "least"),
    [
        ("cvcuda", 1000, "device", 2),
        ("cvcuda", 1000, "host", 50),
        ("cvcuda", 28, "device", 1.2),
        ("published", 28, "device", 10),
        ("published", 100, "device", 10),
        ("published", 1000, "device", 9),  # writing the output alone takes a tenth of the published time
        ("n-launches", 1000, "host", 100),
        ("roi-align", 1000, "device", 10),
    ],
)
def test_the_arena_on_the_h200_is_won_by(rival, n, layer, least):
    rows = read("cuda", "arena")
    case = {"n": n, "workload": "visdrone", "layer": layer}
    quantity = "crop_resize_normalize" if layer == "device" else "end_to_end"
    assert ratio(rows, rival, "octopus", quantity=quantity, **case) >= least


def test_one_launch_on_the_h200_is_near_the_write_bound_and_half_precision_gains():
    rows = read("cuda", "arena")
    case = {"workload": "visdrone", "layer": "device", "quantity": "crop_resize_normalize"}
    assert ratio(rows, "write-bound", "octopus", n=1000, **case) >= 0.85
    assert ratio(rows, "write-bound", "octopus", n=100, **case) >= 0.75
    assert ratio(rows, "octopus", "octopus-fp16", n=1000, **case) >= 1.5


def test_every_kind_of_result_keeps_its_promise_on_the_h200():
    rows = read("cuda", "arena")
    case = {"n": 1000, "layer": "device", "quantity": "crop_resize_normalize"}
    assert ratio(rows, "write-bound", "octopus", workload="ladder-large", **case) >= 0.70
    whole = ratio(rows, "write-bound", "octopus", workload="kinds", **case)
    assert ratio(rows, "write-bound", "octopus-nhwc", workload="kinds", **case) >= 0.85 * whole
    for step, next_step in (("two-passes", "one-pass"), ("one-pass", "streamed"), ("streamed", "prefetched")):
        assert ratio(rows, step, next_step, workload="ladder", **case) > 1


def launch_ms():
    """What one more launch costs the reference GPU's host, which is as fast as its neighbours let it be."""
    rows = read("cuda", "stage_timing")
    series = rows[(rows.quantity == "launch_series") & (rows.method == "cuda-core-launch")]
    took = series.groupby("n").value.median()
    return float((took[256] - took[1]) / 255)


def test_a_call_with_boxes_on_the_gpu_costs_the_host_little_more_than_two_launches():
    rows = read("cuda", "arena")
    for n in (28, 100, 1000):
        case = {"n": n, "workload": "visdrone", "layer": "host", "quantity": "submit"}
        assert values(rows, method="octopus", **case).median() <= 2.6 * launch_ms()


def test_memory_is_frame_output_and_64_kib_on_the_h200():
    rows = read("cuda", "arena")
    found = rows[(rows.layer == "memory") & (rows.method == "octopus")].set_index("quantity").value
    assert found["memory_device_delta"] - found["memory_payload"] <= 64 << 10


@pytest.mark.parametrize(("method", "launches"), [("octopus", 12), ("octopus-one-call", 17)])
def test_the_batch_of_a_detector_alone_is_ready_in_the_time_of_some_launches(method, launches):
    rows = read("cuda", "arena")
    case = {"n": 28, "workload": "visdrone", "layer": "host", "quantity": "end_to_end_alone"}
    assert values(rows, method=method, **case).median() <= launches * launch_ms()


@pytest.mark.parametrize("workload", ["uniform", "visdrone"])
def test_the_batch_of_a_detector_is_ready_thrice_as_soon_as_by_a_launch_per_box(workload):
    case = {"n": 28, "workload": workload, "layer": "host", "quantity": "end_to_end"}
    assert ratio(read("cuda", "arena"), "n-launches-fused", "octopus", **case) >= 3


@pytest.mark.parametrize("workload", ["visdrone-1thread", "visdrone-2threads"])
def test_the_cpu_beats_opencv_threefold_with_as_many_threads(workload):
    rows = read("cpu", "arena")
    case = {"n": 1000, "workload": workload, "quantity": "end_to_end"}
    assert ratio(rows, "opencv", "octopus", **case) >= 3
    assert ratio(rows, "opencv-inplace", "octopus", **case) > 1


@pytest.mark.parametrize(("kind", "layers"), [("cuda", {"device", "host", "pipeline"}), ("cpu", {"host"})])
def test_nobody_is_missing_in_the_arena(kind, layers):
    rows = read(kind, "arena")
    timed = rows[rows.workload.isin(["uniform", "visdrone"]) & (rows.unit == "ms")]
    assert set(timed.layer) == layers
    for (_, _, layer), group in timed.groupby(["workload", "n", "layer"]):
        bounds = {"write-bound", "write-bound-fp16"} if layer == "device" else set()
        gone = (ARENA | bounds) - set(group.method)
        assert not gone or (layer, gone) == ("pipeline", {"octopus-again"})
    assert {28, 100, 1000} <= set(timed.n)


def test_a_padded_batch_is_another_answer():
    rows = read("cuda", "arena")
    padded = rows[rows.method.isin(["padded-torch", "padded-onnxruntime"]) & rows.value.notna()]
    timed = padded[(padded.layer != "memory") & (padded.workload == "visdrone")]
    assert len(timed) and timed.answer.str.startswith("different: ").all()


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
def test_parity_is_within_a_level_of_everyone(kind):
    rows = read(kind, "parity")
    largest = rows[(rows.quantity == "max_abs_difference") & rows.value.notna()]
    exact = largest[~largest.workload.str.contains("uint8")]
    # PyTorch is no part of the installation; the reference of the GPU machine has it.
    assert {"opencv", "pil", *(["torch", "torchvision"] if kind == "cuda" else [])} <= set(largest.method)
    assert exact.value.max() <= 0.05
    assert largest.value.max() <= 2


def test_a_search_by_every_thread_is_never_faster_on_the_h200():
    rows = read("cuda", "mapping")
    kernels = rows[(rows.quantity == "kernel") & (rows.unit == "ms") & rows.value.notna()]
    cases = kernels[kernels.method == "octopus"][["workload", "n"]].drop_duplicates()
    assert len(cases) > 60
    for workload, n in cases.itertuples(index=False):
        case = {"workload": workload, "n": n, "layer": "device", "quantity": "kernel"}
        assert ratio(rows, "thread-search", "octopus", **case) >= 0.98
        if n >= 10_000 and workload.startswith("large-") and (kernels.method == "copy-bound").any():
            bound = kernels[
                (kernels.workload == workload) & (kernels.n == n) & (kernels.method == "copy-bound")
            ]
            if len(bound) and "gamma" not in workload:  # a power is bound by its arithmetic
                assert ratio(rows, "copy-bound", "octopus", **case) >= 0.85


def test_a_table_made_on_the_device_takes_the_gain_away_and_one_from_the_host_does_not():
    rows = read("cuda", "total_cost")
    for workload in ("flickr-500-light", "flickr-1000-8k-heavy"):
        case = {"workload": workload, "layer": "host", "quantity": "total"}
        assert ratio(rows, "lookup-vectorised", "octopus", **case) > 12
        assert ratio(rows, "lookup-device", "octopus", **case) < 1.2
