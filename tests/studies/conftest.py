"""What the tests of the studies share: the embedded sample."""

from __future__ import annotations

import pytest

from octopus.data.fetch import fetch


@pytest.fixture(scope="package")
def receipt(tmp_path_factory):
    raw = tmp_path_factory.mktemp("raw")
    fetch("visdrone-val", raw_dir=raw, mode="sample", progress=False)
    return raw / "visdrone-val.json"
