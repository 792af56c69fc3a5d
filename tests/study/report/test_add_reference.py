"""Only a vetted run becomes a reference; a refused one leaves nothing behind."""

from pathlib import Path

import pytest
from committed_runs import BASIS, ROOT, edit_record, write, write_run

from octopus_study.cli import add_gpu, report_commands
from octopus_study.config import Config
from octopus_study.errors import DataError, MeasureError
from octopus_study.measure.machine import machine_id
from octopus_study.measure.rows import read_rows
from octopus_study.report.add_reference import add_reference
from octopus_study.report.compare import compare_runs

OTHER = "f" * 40  # a commit beside that of the committed runs
ANY: dict[str, dict[str, object]] = {}  # a standard that asks for no settings, as the runs are not the standard's


def fail_a_process(path: Path) -> None:
    """Let a record say that one of its processes measured less than the others."""
    edit_record(path, extra__processes={"measured": 3, "failed": ["process 1, visdrone, 28: no memory"]})


def load(path: Path, before: float | None, after: float | None) -> None:
    """Let a record say which loads were read; its machine has two cores."""
    edit_record(path, machine__state__cpu={"load_average_1min": before}, state_after__cpu={"load_average_1min": after})


def slow_again(path: Path, layer: str, factor: float) -> None:
    """Let every method that was entered twice be slower the second time."""
    rows = read_rows(path)
    chosen = rows["method"].str.endswith("-again") & (rows["layer"] == layer)
    assert chosen.any()
    write(path, rows.assign(value=rows["value"].mask(chosen, factor * rows["value"])))


def test_a_clean_real_run_is_copied(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "results", "m", "cpu", only=BASIS, whole=True)
    target = add_reference(folder, tmp_path / "reference", ANY)
    assert sorted(path.name for path in target.iterdir()) == sorted(path.name for path in folder.iterdir())


def test_a_second_run_is_of_another_card_or_hour(tmp_path: Path) -> None:
    first = write_run(tmp_path / "results", "m", "cpu", only=BASIS, whole=True)
    again = write_run(tmp_path / "again", "m", "cpu", only=BASIS, whole=True)
    with pytest.raises(DataError, match="has no first run"):
        add_reference(again, tmp_path / "reference", ANY, second=True)
    target = add_reference(first, tmp_path / "reference", ANY)
    with pytest.raises(DataError, match="on the same card 0:00:00 before; a second run is at least 1:00:00 apart"):
        add_reference(again, tmp_path / "reference", ANY, second=True)
    for name in BASIS:
        edit_record(again / f"{name}.json", git__commit=OTHER, started="2030-01-01T00:00:00+00:00")
    with pytest.raises(DataError, match="2 commits"):
        add_reference(again, tmp_path / "reference", ANY, second=True)
    again = write_run(tmp_path / "other", "m", "cpu", only=BASIS, whole=True)
    for name in BASIS:
        edit_record(again / f"{name}.json", machine__identity__gpu="0123456789ab")
    assert add_reference(again, tmp_path / "reference", ANY, second=True) == target / "again"
    assert (target / "again" / f"{BASIS[0]}.csv").exists()


def test_add_gpu_measures_vets_adds_and_compares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the run itself in place of Snakemake's."""
    ends, started = [1, 0], []
    standard = Config().model_dump(mode="json")

    def measured(command: list[str]) -> int:
        folder = write_run(tmp_path / "data/results", machine_id("cpu"), "cpu", only=BASIS, whole=True)
        for name in BASIS:
            edit_record(folder / f"{name}.json", config__values=standard)
        started.append(command[1:])
        return ends.pop(0)

    monkeypatch.chdir(tmp_path)
    for path in ("config/config.yaml", "config/timings.tsv", "logs/.keep"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes((ROOT / path).read_bytes() if path.startswith("config") else b"")
    monkeypatch.setattr(add_gpu, "missing", lambda *_: [])
    monkeypatch.setattr(add_gpu.subprocess, "call", measured)
    monkeypatch.setattr(report_commands, "readme", lambda: started.append("readme"))
    with pytest.raises(MeasureError, match="no reference was added"):
        add_gpu.add_gpu("cpu")
    assert not Path("data/reference").exists()
    add_gpu.add_gpu("cpu")
    assert started == [["-m", "snakemake", "--cores", "all", "--config", "data=real", "device=cpu"]] * 2 + ["readme"]
    assert {path.stem for path in Path("data/reference", machine_id("cpu")).glob("*.csv")} == set(BASIS)
    assert Path("logs/compare.csv").read_text().startswith("number,machine")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda folder: edit_record(folder / "stage_timing.json", git__dirty=True), "not committed"),
        (lambda folder: edit_record(folder / "stage_timing.json", git__dirty=None, git__reason="no git"), "no git"),
        (lambda folder: (folder / "distribution.json").unlink(), "provenance"),
        (
            lambda folder: fail_a_process(folder / "distribution.json"),
            r"some failed \(process 1, visdrone, 28: no memory\)",
        ),
        (lambda folder: (folder / "distribution.csv").open("a").write("x\n"), "changed after it was measured"),
        (
            lambda folder: load(folder / "distribution.json", 3.69, 0.5),
            r"distribution\.csv: the machine was loaded: load averages of 3\.69 and 0\.50 .* 2\.2 are allowed on 2",
        ),
        (lambda folder: load(folder / "stage_timing.json", None, 2.3), "load averages of 2.30"),
        (
            lambda folder: slow_again(folder / "stage_timing.csv", "host", 1.5),
            r"octopus at visdrone, n=\d+, .* 0\.6\d+ \[.*\] times itself, 20% are allowed",
        ),
    ],
    ids=[
        "dirty",
        "unknown",
        "no provenance",
        "a failed process",
        "edited rows",
        "load before",
        "load after",
        "A/A on the host",
    ],
)
def test_a_doubtful_run_is_refused_whole(tmp_path: Path, spoil: object, reason: str) -> None:
    folder = write_run(tmp_path / "results", "m", "cpu", only=BASIS, whole=True)
    spoil(folder)
    with pytest.raises(DataError, match=reason):
        add_reference(folder, tmp_path / "reference", ANY)
    assert not (tmp_path / "reference").exists()


def test_a_core_run_does_not_replace_a_whole_one(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "results", "m", "cpu", only=BASIS, whole=True)
    path = folder / "stage_timing.json"
    edit_record(path, config__values={"measure": {}, "crop": {}, "stage_timing": {"counts": [9]}})
    standard = {"stage_timing": {"counts": [100, 1000]}}
    with pytest.raises(DataError, match=r"stage_timing\.counts is \[9\], not \[100, 1000\]"):
        add_reference(folder, tmp_path / "reference", standard)
    add_reference(folder, tmp_path / "reference", {"stage_timing": {"counts": [9]}})


def test_a_run_that_keeps_its_own_cores_busy_is_no_loaded_machine(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "results", "m", "cpu", only=BASIS, whole=True)
    load(folder / "stage_timing.json", 1.9, 2.05)
    load(folder / "distribution.json", 1.9, 7.05)
    edit_record(folder / "distribution.json", machine__cpu__cores_installed=8)  # of which it was bound to two
    slow_again(folder / "stage_timing.csv", "host", 1.1)  # within the limit of the host
    add_reference(folder, tmp_path / "reference", ANY)


def test_by_events_a_method_must_be_nearer_to_itself(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "results", "m", "gpu", only=BASIS, whole=True)
    slow_again(folder / "stage_timing.csv", "device", 1.05)
    with pytest.raises(DataError, match=r"device: 0\.95.* 2% are allowed"):
        add_reference(folder, tmp_path / "reference", ANY)


def test_several_commits_are_refused(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "results", "m", "cpu", only=BASIS, whole=True)
    edit_record(folder / "distribution.json", git__commit=OTHER)
    with pytest.raises(DataError, match=r"2 commits: .*ffffffffff \(distribution\)"):
        add_reference(folder, tmp_path / "reference", ANY)


def test_studies_that_stay_in_the_reference_count_as_its_commits(tmp_path: Path) -> None:
    old = write_run(tmp_path / "reference", "m", "cpu", only=BASIS, whole=True)
    edit_record(old / "distribution.json", git__commit=OTHER)
    folder = write_run(tmp_path / "results", "m", "cpu", only=("stage_timing",), whole=True)
    for path in folder.glob("distribution.*"):
        path.unlink()
    with pytest.raises(DataError, match=r"ffffffffff .*distribution"):
        add_reference(folder, tmp_path / "reference", ANY)


def test_synthetic_boxes_are_refused(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "results", "m", "cpu", synthetic=True, only=BASIS, whole=True)
    with pytest.raises(DataError, match="synthetic"):
        add_reference(folder, tmp_path / "reference", ANY)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No results to add"):
        add_reference(tmp_path, tmp_path / "reference", ANY)


def test_a_run_compared_with_itself_has_ratio_one(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "reference", "m", "cpu")
    table = compare_runs(folder, tmp_path / "reference")
    assert len(table) > 100 and (table["ratio"] == 1).all()
    assert {"m"} == set(table["machine"])
