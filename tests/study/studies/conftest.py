"""What the tests of the studies share: the embedded samples, and quick runs on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from octopus_study.config import load_config
from octopus_study.data.fetch import fetch
from octopus_study.measure import read_rows, validate_rows
from octopus_study.studies import run_study
from octopus_study.studies.context import make_context

QUICK = Path(__file__).parents[3] / "config" / "quick.yaml"
RAGGED = ("mapping", "total_cost", "sequences")


def quick_config(settings):
    return load_config(QUICK, {"device": "cpu", **settings})


@pytest.fixture(scope="package")
def receipt(tmp_path_factory):
    raw = tmp_path_factory.mktemp("raw")
    fetch("visdrone-val", raw_dir=raw, mode="sample", progress=False)
    return raw / "visdrone-val.json"


@pytest.fixture(scope="package")
def scene_receipt(tmp_path_factory):
    """Of the generated band, for the study of satellite tiles."""
    raw = tmp_path_factory.mktemp("scene")
    fetch("sentinel2-b04", raw_dir=raw, mode="sample", progress=False)
    return raw / "sentinel2-b04.json"


@pytest.fixture(scope="package")
def quick_rows(receipt, tmp_path_factory):
    """Run a study with settings beside those of `quick.yaml`, and read its valid rows."""

    def run(study, receipt=receipt, **settings):
        out = tmp_path_factory.mktemp(study) / f"{study}.csv"
        run_study(study, config=quick_config(settings), receipt=receipt, out=out)
        validate_rows(out)
        return read_rows(out)

    return run


@pytest.fixture(scope="package")
def ragged_runs(receipt, once):
    """The files of quick runs of the studies of ragged batches, which take long: made once for all processes."""

    def fill(folder):
        config = quick_config({"total_cost.ladder": True})
        for study in RAGGED:
            run_study(study, config=config, receipt=receipt, out=folder / f"{study}.csv")

    folder = once("ragged-runs", fill)
    return {study: folder / f"{study}.csv" for study in RAGGED}


@pytest.fixture(scope="package")
def quick_context(receipt):
    """The context of such a run."""

    def make(study, receipt=receipt, **settings):
        return make_context(study, quick_config(settings), receipt)

    return make
