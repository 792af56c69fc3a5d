"""The parity table: settings that mean the same give nearly the same, and who is missing says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from octopus_study.config import load_config
from octopus_study.measure import read_rows, validate_rows
from octopus_study.names import arena_methods
from octopus_study.peers.availability import Unavailable
from octopus_study.peers.job import make_job
from octopus_study.studies import run_study
from octopus_study.studies.comparison import measure_plan
from octopus_study.studies.context import make_context
from octopus_study.studies.parity import opencv as parity_opencv
from octopus_study.studies.parity import study as parity
from octopus_study.studies.parity.peers import SETTINGS

QUICK = Path(__file__).parents[3] / "config" / "quick.yaml"
SETTINGS_OF_RUN = {"device": "cpu", "crop.size": [20, 24]}
# Largest difference in levels: float32 against float32 where both are exact, one level where one works in integers.
LIMITS = {
    ("float32-box", "opencv"): 0.01,
    ("float32-box", "torch"): 0.01,
    ("float32-box", "dali"): 0.01,
    ("float32-image", "torchvision"): 0.01,
    ("float32-image", "dali"): 0.05,
    ("uint8-box", "opencv"): 1,
    ("antialias", "pil"): 0.01,
    ("antialias", "torch"): 0.01,
    ("antialias", "torchvision"): 0.01,
    ("antialias-uint8", "pil"): 2,
    ("letterbox", "opencv"): 0.01,
    ("bfloat16", "torch"): 1,
    # Where a sample lies on the edge of two pixels, either is the nearest.
    ("nearest", "opencv"): 255,
    ("nearest", "torch"): 255,
    ("nearest", "pil"): 255,
    ("bicubic", "opencv"): 0.01,
    ("bicubic", "torch"): 0.01,
    ("affine", "opencv"): 0.05,
    ("affine", "float64"): 0.05,
    ("nv12", "opencv"): 0.7,  # it rounds, and its coefficients have three decimals
    ("nv12", "ffmpeg"): 0.7,  # it rounds
    ("nv12", "float64"): 0.01,
    ("p010", "float64"): 0.01,
}
MEANS = {"nearest": 0.5, "nv12": 0.3}
ALWAYS = {"opencv"}  # what the core of the package needs anyway


@pytest.fixture(scope="module")
def run(receipt, tmp_path_factory):
    out = tmp_path_factory.mktemp("parity") / "parity.csv"
    path = run_study("parity", config=load_config(QUICK, SETTINGS_OF_RUN), receipt=receipt, out=out)
    validate_rows(path)
    return read_rows(path)


@pytest.fixture(scope="module")
def context(receipt):
    return make_context("parity", load_config(QUICK, SETTINGS_OF_RUN), receipt)


@pytest.fixture
def job():
    frame = np.random.default_rng(3).integers(0, 256, (40, 50, 3), np.uint8)
    boxes = np.array([[0, 0, 50, 40], [3, 4, 9, 30], [10, 10, 11, 11]], np.int32)
    return make_job(frame, boxes, (16, 20), (0.0,) * 3, (1.0,) * 3, "cpu")


def test_every_setting_has_its_peers_and_both_quantities(run):
    for setting, (_, peers, _) in SETTINGS.items():
        rows = run[run.workload == setting]
        assert set(zip(rows.method, rows.quantity, strict=True)) == {
            (peer, quantity) for peer in peers for quantity in parity.QUANTITIES
        }
        assert set(rows.unit) == {"levels"} and set(rows.layer) == {"deterministic"}


def test_differences_are_small_where_a_peer_is_here(run):
    found = run[run.value.notna()]
    assert set(found.method) >= ALWAYS
    for (setting, peer), rows in found.groupby(["workload", "method"]):
        values = rows.set_index("quantity").value
        assert values["mean_abs_difference"] <= values["max_abs_difference"] <= LIMITS[setting, peer]
        assert values["mean_abs_difference"] <= MEANS.get(setting, 1)


def test_who_is_not_here_says_why(run):
    gaps = run[run.value.isna()]
    assert gaps.answer.str.contains("install|GPU").all()
    assert set(gaps.method).isdisjoint(ALWAYS)


@pytest.fixture
def opencv_rows(context, monkeypatch):
    """Rows of OpenCV under one setting, if its crops were what `change` makes of Octopus'."""

    def rows(change):
        setting = SETTINGS["float32-box"]
        crops = lambda peer, job: change(parity.octopus_crops(job, setting))  # noqa: E731
        monkeypatch.setattr(parity, "crops_of", crops)
        part = next(part for part in parity.plan(context) if part.case.workload == "float32-box")
        return [row for row in part.rows(context) if row.method == "opencv"]

    return rows


def test_a_difference_is_the_difference(opencv_rows):
    def change(own):
        other = own.copy()
        other[1, 2, 3, 0] += 6
        return other

    largest, mean = (row.value for row in opencv_rows(change))
    assert largest == pytest.approx(6.0, rel=1e-5)
    assert mean == pytest.approx(6.0 / (6 * 20 * 24 * 3), rel=1e-5)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (lambda own: own[:1], "has the shape"),
        (lambda own: own * np.nan, "holds NaN"),
        (Unavailable("it needs a GPU"), "unavailable: it needs a GPU"),
        (ModuleNotFoundError("no module", name="thing"), "thing is not installed"),
        (ValueError("bad"), "ValueError: bad"),
    ],
)
def test_a_peer_that_fails_is_two_rows(opencv_rows, other, why):
    def change(own):
        if isinstance(other, Exception):
            raise other
        return other(own)

    rows = opencv_rows(change)
    assert len(rows) == 2
    assert all(row.value is None and why in row.answer for row in rows)


def test_what_does_not_fit_has_a_row_per_peer(context, monkeypatch):
    monkeypatch.setattr("octopus_study.studies.context.cpu.free_bytes", lambda: 1000)
    rows = measure_plan(context, parity.plan(context))
    assert {(row.workload, row.method) for row in rows} == {
        (name, peer) for name, setting in SETTINGS.items() for peer in setting.peers
    }
    assert all("1,000 are free" in row.answer for row in rows)


def test_methods_of_the_arena_are_known_there():
    named = {
        peer.partition(":")[2]
        for setting in SETTINGS.values()
        for peer in setting.peers.values()
        if peer.startswith("arena:")
    }
    assert named <= set(arena_methods())


def test_letterbox_keeps_the_aspect_ratio_and_frames_with_grey(job):
    made = parity_opencv.letterbox(job)
    assert made.shape == (3, 16, 20, 3)
    wide = made[1]  # 6 x 26 pixels into 20 x 16: 4 columns of image, 8 of grey on either side
    assert (wide[:, :8] == 114).all() and (wide[:, 12:] == 114).all()
    assert not (wide[:, 8:12] == 114).all()
