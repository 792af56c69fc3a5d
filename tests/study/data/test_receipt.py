from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from octopus_study.data.receipt import Receipt, now, read_receipt, write_receipt
from octopus_study.errors import DataError

RECEIPT = Receipt("visdrone-val", False, "visdrone-val", "0" * 64, "mirror", "", now(), "terms", "Zhu et al.")


def test_round_trip_and_overwrite(tmp_path):
    path = tmp_path / "deep" / "r.json"
    for receipt in (RECEIPT, replace(RECEIPT, synthetic=True, reason="café")):
        assert read_receipt(write_receipt(receipt, path)) == receipt
    assert [file.name for file in path.parent.iterdir()] == ["r.json"]


def test_time_is_utc():
    assert datetime.fromisoformat(now()).utcoffset().total_seconds() == 0


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


def test_missing_receipt_says_what_to_run(tmp_path):
    with pytest.raises(DataError, match="octopus fetch"):
        read_receipt(tmp_path / "r.json")
