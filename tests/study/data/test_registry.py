import re

import pytest

from octopus_study.data.registry import DATASETS_TSV, load_registry
from octopus_study.errors import DataError


def test_committed_table_is_complete():
    registry = load_registry()
    assert set(registry) == {"visdrone-val", "sentinel2-b04"}
    for dataset in registry.values():
        assert dataset.url.startswith("https://") and dataset.licence and dataset.citation
        assert re.fullmatch("[0-9a-f]{64}", dataset.content_sha256)
    visdrone = registry["visdrone-val"]
    assert visdrone.size == 81_638_851
    assert visdrone.sha256 == "abeea063037e5d20398837deb11084e652402a34ddf4f207bdf541a6f2a35ef9"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text.replace("url", "address", 1), "has the columns"),
        (lambda text: text.replace("81638851", "78 MB"), "size is '78 MB'"),
        (lambda text: text + "name-only\n", "expected 10 tab-separated values"),
        (lambda text: text.rstrip("\n") + "\tone more\n", "expected 10 tab-separated values"),
    ],
)
def test_malformed_table_is_refused(tmp_path, spoil, message):
    table = tmp_path / "datasets.tsv"
    table.write_text(spoil(DATASETS_TSV.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        load_registry(table)
