from __future__ import annotations

from dataclasses import replace

import pytest

from octopus_study.data.receipt import SAMPLE_WANTED, Receipt, now, read_receipt, why_stale, write_receipt
from octopus_study.errors import DataError

RECEIPT = Receipt("visdrone-val", False, "visdrone-val", "0" * 64, "mirror", "", now(), "terms", "Zhu et al.")


def test_round_trip_and_overwrite(tmp_path):
    path = tmp_path / "deep" / "r.json"
    for receipt in (RECEIPT, replace(RECEIPT, synthetic=True, reason="café")):
        assert read_receipt(write_receipt(receipt, path)) == receipt
    assert [file.name for file in path.parent.iterdir()] == ["r.json"]


def test_failed_write_leaves_the_old_receipt(tmp_path):
    path = write_receipt(RECEIPT, tmp_path / "r.json")
    with pytest.raises(TypeError):
        write_receipt(replace(RECEIPT, sha256=object()), path)
    assert read_receipt(path) == RECEIPT
    assert [file.name for file in tmp_path.iterdir()] == ["r.json"]


@pytest.mark.parametrize(
    ("text", "message"), [("{", "not JSON"), ("[]", "no receipt"), ('{"a": 1}', "no receipt")]
)
def test_damaged_receipt(tmp_path, text, message):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(DataError, match=message):
        read_receipt(tmp_path / "r.json")


REAL, SAMPLE = RECEIPT, replace(RECEIPT, synthetic=True, reason="no network")
WANTED = replace(SAMPLE, reason=SAMPLE_WANTED)


@pytest.mark.parametrize(
    ("receipt", "mode", "mirror", "stale"),
    [
        (REAL, "auto", None, None),
        (REAL, "auto", "/elsewhere", None),
        (REAL, "real", None, None),
        (REAL, "sample", None, None),
        (SAMPLE, "auto", None, None),
        (SAMPLE, "auto", "/mirror", "real data are asked for, and it is the sample's"),
        (SAMPLE, "real", None, "real data are asked for, and it is the sample's"),
        (SAMPLE, "sample", None, None),
        (SAMPLE, "sample", "/mirror", None),
        (WANTED, "auto", "/mirror", None),
    ],
)
def test_the_receipt_of_a_stand_in_is_stale_where_real_data_are_asked_for(
    tmp_path, receipt, mode, mirror, stale
):
    (tmp_path / receipt.path).mkdir()
    assert why_stale(write_receipt(receipt, tmp_path / "r.json"), mode, mirror) == stale


def test_a_receipt_is_stale_without_its_data(tmp_path):
    assert why_stale(tmp_path / "r.json", "auto", None) is None
    assert why_stale(write_receipt(REAL, tmp_path / "r.json"), "auto", None).startswith("its data are gone")
    (tmp_path / "r.json").write_text("{")
    assert "not JSON" in why_stale(tmp_path / "r.json", "auto", None)
