"""The table of data sets, and the manifests of those that were fetched."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from octopus_study.data.manifest import SAMPLE_WANTED, Manifest, now, read_manifest, why_stale, write_manifest
from octopus_study.data.registry import DATASETS_TSV, find_dataset, load_registry
from octopus_study.errors import DataError

MANIFEST = Manifest("visdrone-val", False, "visdrone-val", "0" * 64, "mirror", "", now(), "terms", "Zhu et al.")


def test_round_trip_and_overwrite(tmp_path):
    path = tmp_path / "deep" / "r.json"
    for manifest in (MANIFEST, replace(MANIFEST, synthetic=True, reason="café")):
        assert read_manifest(write_manifest(manifest, path)) == manifest
    assert [file.name for file in path.parent.iterdir()] == ["r.json"]


def test_failed_write_leaves_the_old_manifest(tmp_path):
    path = write_manifest(MANIFEST, tmp_path / "r.json")
    with pytest.raises(TypeError):
        write_manifest(replace(MANIFEST, sha256=object()), path)
    assert read_manifest(path) == MANIFEST
    assert [file.name for file in tmp_path.iterdir()] == ["r.json"]


@pytest.mark.parametrize(("text", "message"), [("{", "not JSON"), ("[]", "no manifest"), ('{"a": 1}', "no manifest")])
def test_damaged_manifest(tmp_path, text, message):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(DataError, match=message):
        read_manifest(tmp_path / "r.json")


REAL, SAMPLE = MANIFEST, replace(MANIFEST, synthetic=True, reason="no network")
WANTED = replace(SAMPLE, reason=SAMPLE_WANTED)
PART = replace(REAL, dataset="sentinel2-b04", reason="no network")  # a window of the scene


@pytest.mark.parametrize(("manifest", "mode", "mirror", "stale"), [
    (REAL, "auto", None, None), (REAL, "auto", "/elsewhere", None), (REAL, "real", None, None),
    (REAL, "sample", None, None), (SAMPLE, "auto", None, None),
    (SAMPLE, "auto", "/mirror", "real data are asked for, and it is the sample's"),
    (SAMPLE, "real", None, "real data are asked for, and it is the sample's"),
    (SAMPLE, "sample", None, None), (SAMPLE, "sample", "/mirror", None), (WANTED, "auto", "/mirror", None),
    (PART, "real", "/mirror", None), (PART, "sample", "mirror", None),
    (PART, "auto", "mirror", "the whole scene is in the mirror or on its way, and it is a window's"),
])  # fmt: skip
def test_the_manifest_of_a_stand_in_is_stale_where_real_data_are_asked_for(
    tmp_path, monkeypatch, manifest, mode, mirror, stale
):
    monkeypatch.chdir(tmp_path)
    for path in (Path(manifest.path), Path("mirror")):
        path.mkdir()
    Path("mirror", find_dataset("sentinel2-b04").filename).touch()
    assert why_stale(write_manifest(manifest, tmp_path / "r.json"), mode, mirror) == stale


def test_a_manifest_is_stale_without_its_data(tmp_path):
    assert why_stale(tmp_path / "r.json", "auto", None) is None
    assert why_stale(write_manifest(REAL, tmp_path / "r.json"), "auto", None).startswith("its data are gone")
    (tmp_path / "r.json").write_text("{")
    assert "not JSON" in why_stale(tmp_path / "r.json", "auto", None)


def test_committed_table_is_complete():
    registry = load_registry()
    assert set(registry) == {"visdrone-val", "sentinel2-b04"}
    for dataset in registry.values():
        assert dataset.url.startswith("https://") and dataset.licence and dataset.citation
        assert re.fullmatch("[0-9a-f]{64}", dataset.content_sha256)
    visdrone = registry["visdrone-val"]
    assert visdrone.size == 81_638_851
    assert visdrone.sha256 == "abeea063037e5d20398837deb11084e652402a34ddf4f207bdf541a6f2a35ef9"


@pytest.mark.parametrize(("spoil", "message"), [
    (lambda text: text.replace("url", "address", 1), "has the columns"),
    (lambda text: text.replace("81638851", "78 MB"), "size is '78 MB'"),
    (lambda text: text + "name-only\n", "expected 10 tab-separated values"),
    (lambda text: text.rstrip("\n") + "\tone more\n", "expected 10 tab-separated values"),
])  # fmt: skip
def test_malformed_table_is_refused(tmp_path, spoil, message):
    table = tmp_path / "datasets.tsv"
    table.write_text(spoil(DATASETS_TSV.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        load_registry(table)
