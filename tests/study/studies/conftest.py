"""What the tests of the studies share: the embedded samples."""

from __future__ import annotations

import pytest
from octopus_study.data.fetch import fetch


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
