"""Only rows that were measured are reported, and only a vetted run becomes a reference; what is refused is named."""

import inspect
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from committed_runs import BASIS, CPU, GPU, PUBLISHED, ROOT, edit_record, of_one_process, sign, write, write_run

from octopus_study.cli import add_gpu, report_commands
from octopus_study.config import Config
from octopus_study.errors import DataError, MeasureError
from octopus_study.measure import line, statistics
from octopus_study.measure.dependence import PROCESS_BLOCKS, by_process
from octopus_study.measure.machine import machine_id
from octopus_study.measure.rows import read_rows
from octopus_study.measure.statistics import Interval
from octopus_study.names import STUDIES
from octopus_study.report import samples
from octopus_study.report.add_reference import add_reference
from octopus_study.report.build import derive, derive_all, numbers_of
from octopus_study.report.compare import compare_runs
from octopus_study.report.frame import Frame
from octopus_study.report.machines import aliases, machine_facts
from octopus_study.report.quiet import beyond
from octopus_study.report.runs import Run, load_runs, read_run
from octopus_study.report.studies import drone, report_of, total_cost

SPOILT = "stage_timing"
# How many workloads show all that a large study derives; of the others all are taken.
WORKLOADS = {"arena": 2, "image_shape": 4, "mapping": 3, "total_cost": 3}
Edit = Callable[[list[str]], list[str]]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_run(tmp_path_factory.mktemp("measured"), "m", "cpu", only=BASIS)
    for table in folder.glob("*.csv"):
        rows = read_rows(table)
        write(table, of_one_process(rows))
    return folder


@pytest.fixture
def folder(measured: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(measured, tmp_path / "reference" / "m"))


def edit(folder: Path, change: Edit, signed: bool = False) -> None:
    path = folder / f"{SPOILT}.csv"
    path.write_text("".join(change(path.read_text().splitlines(keepends=True))))
    if signed:
        sign(path)


def times_ten(lines: list[str]) -> list[str]:
    place = next(place for place, line in enumerate(lines) if ",octopus,host," in line)
    cells = lines[place].split(",")
    cells[9] = str(10 * float(cells[9]))
    return [*lines[:place], ",".join(cells), *lines[place + 1 :]]


EDITS: dict[str, Edit] = {"a value": times_ten, "a row removed": lambda lines: lines[:-1], "no line": lambda lines: []}
SIGNED: dict[str, tuple[Edit, str]] = {
    "a row twice": (lambda lines: [*lines, lines[-1]], "several rows with the same key"),
    "header only": (lambda lines: lines[:1], "is less than the minimum of 1"),
    "another study": (
        lambda lines: [line.replace("stage_timing,", "arena,", 1) for line in lines],
        "of the studies arena, stage_timing",
    ),
    "no table": (lambda lines: ["hello\n", "world\n"], "is not a result file|has the columns"),
}


@pytest.mark.parametrize("change", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("role", ["here", "reference"])
def test_changed_rows_are_refused(role: str, change: Edit, folder: Path) -> None:
    edit(folder, change)
    where = (folder, None) if role == "here" else (None, folder.parent)
    said = f"1 of 2 results can't be reported. .*{SPOILT}.csv was changed after it was measured"
    with pytest.raises(MeasureError, match=said):
        load_runs(*where)


@pytest.mark.parametrize(("change", "reason"), SIGNED.values(), ids=SIGNED)
def test_rows_with_a_fitting_digest_are_refused(change: Edit, reason: str, folder: Path) -> None:
    edit(folder, change, signed=True)
    with pytest.raises(MeasureError, match=f"{SPOILT}.*({reason})"):
        load_runs(folder, None)


RECORDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "absent": (Path.unlink, "There is no provenance .*stage_timing.json"),
    "half": (lambda path: path.write_text(path.read_text()[:700]), "Can't read the provenance"),
    "no record": (lambda path: path.write_text("[]"), "breaks the provenance schema"),
    "not finite": (lambda path: edit_record(path, extra__load=float("nan")), "breaks the provenance schema"),
    "of no table": (lambda path: edit_record(path, results=None), "is no provenance of stage_timing.csv"),
    "of another study": (
        lambda path: shutil.copy(path.with_name("distribution.json"), path),
        "is no provenance of stage_timing.csv",
    ),
}


@pytest.mark.parametrize(("spoil", "reason"), RECORDS.values(), ids=RECORDS)
def test_bad_provenance_is_refused(spoil: Callable[[Path], object], reason: str, folder: Path) -> None:
    spoil(folder / f"{SPOILT}.json")
    with pytest.raises(MeasureError, match=f"1 of 2 results can't be reported. .*{reason}"):
        load_runs(folder, None)


def test_all_that_is_refused_is_named(folder: Path) -> None:
    for study in BASIS:
        (folder / f"{study}.json").unlink()
    with pytest.raises(MeasureError, match=r"2 of 2 results can't be reported. .*distribution.json.*stage_timing"):
        load_runs(None, folder.parent)


def test_committed_references_are_what_was_measured() -> None:
    assert {run.scope for run in load_runs(None, ROOT / "data" / "reference")} == {CPU, GPU}


def test_the_gpu_of_the_text_has_the_most_studies(tmp_path: Path) -> None:
    write_run(tmp_path, "a-gpu", "gpu", only=BASIS)
    for name in "bc":
        write_run(tmp_path, f"{name}-gpu", "gpu", only=("mapping",))
    runs = load_runs(None, tmp_path)
    assert [(one.id, one.text) for one in aliases(runs)] == [("alias.gpu", "b-gpu")]


def test_other_references_have_numbers_and_no_place_in_tables_and_figures(tmp_path: Path) -> None:
    names = [write_run(tmp_path, f"{name}-gpu", "gpu", only=BASIS).name for name in "ab"]
    frame = Frame(numbers_of(load_runs(None, tmp_path), PUBLISHED))
    assert frame.machines("stage_timing") == names
    assert frame.shown("stage_timing") == names[:1]
    assert {number.machine for number in frame if number.derived == "expected"} == set(names)
    assert "b-gpu" not in frame["shown.stage_timing"].file


def test_a_study_that_the_first_machine_lacks_is_shown_by_no_other(tmp_path: Path) -> None:
    write_run(tmp_path, "a-cpu", "cpu", only=(*BASIS, "mapping"))
    write_run(tmp_path, "b-cpu", "cpu", only=("pipelines",))
    runs = load_runs(None, tmp_path)
    assert {one.id: one.text for one in aliases(runs)} == {"alias.cpu": "a-cpu"}
    frame = Frame(derive_all(runs))
    assert frame.shown("pipelines") == [] and frame.shown("mapping") == ["a-cpu"]
    assert frame.resolve("cpu.pipelines.x") == "a-cpu.pipelines.x"


def test_what_runs_of_a_machine_found_apart_is_said_with_the_study(tmp_path: Path) -> None:
    write_run(tmp_path, "a-gpu", "gpu", only=(*BASIS, "mapping"))
    runs = load_runs(None, tmp_path)
    several = next(run for run in runs if run.study == "mapping")
    cores = several.provenance["machine"]["cpu"]["cores"]
    several.provenance["machine"]["cpu"]["cores"] = 2 * cores
    facts = {number.id: number.text for number in machine_facts(runs)}
    assert facts["a-gpu.machine.cores"] == str(cores)
    assert facts["a-gpu.mapping.unlike"] == f"cores {2 * cores}"
    assert [name for name in facts if name.endswith(".unlike")] == ["a-gpu.mapping.unlike"]


def test_cards_and_boots_that_runs_of_a_machine_saw_are_counted(tmp_path: Path) -> None:
    write_run(tmp_path, "a-gpu", "gpu", only=(*BASIS, "mapping"))
    first, *others, last = load_runs(None, tmp_path)
    for run in others:
        run.provenance["machine"]["identity"] = {"host": None, "boot": "1", "gpu": "a"}
    last.provenance["machine"]["identity"] = {"host": None, "boot": "2", "gpu": "a"}
    first.provenance["machine"].pop("identity", None)
    facts = {number.id: number.text for number in machine_facts([first, *others, last])}
    assert facts["a-gpu.machine.instances"] == "1 card, 2 boots, 1 study tells none"


TOTAL = "m.stage_timing.visdrone.n1000.octopus.end_to_end.host"


def split_into_processes(folder: Path, factors: tuple[float, ...]) -> None:
    """Let the blocks of every method on the host be those of several processes, Octopus slower by the given factors."""
    path = folder / f"{SPOILT}.csv"
    rows = read_rows(path)
    host = (rows["layer"] == "host") & (rows["unit"] == "ms") & rows["value"].notna()
    process = rows["block"] % len(factors)
    slower = host & rows["method"].str.startswith("octopus")
    rows.loc[slower, "value"] *= process[slower].map(dict(enumerate(factors)))
    rows.loc[host, "block"] += PROCESS_BLOCKS * process[host]
    write(path, rows)


def derived(folder: Path) -> Frame:
    return Frame(derive(read_run(folder / f"{SPOILT}.csv", "reference"), report_of(SPOILT)))


def test_intervals_are_over_processes_or_are_said_to_be_of_one(folder: Path) -> None:
    alone = derived(folder)
    split_into_processes(folder, (1.0, 1.2, 1.4))
    shared = derived(folder)
    for identifier in (TOTAL, f"{TOTAL}.speedup_over_published"):
        one, several = alone[identifier], shared[identifier]
        assert (several.high - several.low) / several.value > 0.3 > (one.high - one.low) / one.value
        assert several.processes == 3 and one.of_one_process and not several.of_one_process
    assert "processes" in shared[f"{TOTAL}.verdict_over_published"].note
    facts = Frame(numbers_of(load_runs(None, folder.parent), PUBLISHED))
    assert facts.text("m.stage_timing.processes") == "3" and facts.text("m.distribution.processes") == "1"


def run_of_one_process(runs: Path, study: str) -> Run:
    run = read_run(runs / "reference" / GPU / f"{study}.csv", "reference")
    return replace(run, rows=of_one_process(run.rows))


def of_three_processes(run: Run) -> Run:
    """Deal the blocks of every method among three processes, each a tenth slower than the one before."""
    report, by = report_of(run.study), ["dataset", "workload", "n", "method", "quantity", "layer"]
    rows = run.rows[run.rows["workload"].isin(run.rows["workload"].unique()[: WORKLOADS.get(run.study)])]
    counts = rows.dropna(subset="value").groupby(by)["value"].transform("size").reindex(rows.index).fillna(0)
    repeated = (counts > 1) & ~rows["quantity"].isin(report.indexed) & ~rows["layer"].isin(report.indexed)
    process = rows["block"] % 3
    blocks = rows["block"] + PROCESS_BLOCKS * process
    values = rows["value"] * (1 + process / 10)
    dealt = rows.assign(block=blocks.where(repeated, rows["block"]), value=values.where(repeated, rows["value"]))
    return replace(run, rows=dealt)


@pytest.mark.parametrize("study", [study for study in STUDIES if study != "power"])
def test_every_interval_that_a_study_forms_is_told_of_the_processes(study, runs, monkeypatch):
    """Samples that lost the numbers of their blocks on the way, by `to_numpy` for one, pass for those of one process.
    (Power has windows, whose blocks are rounds.)"""
    lost, formed = set(), 0

    def watched(samples: np.ndarray, blocks: Sequence[int] | np.ndarray | None) -> list[np.ndarray]:
        nonlocal formed
        parts = by_process(samples, blocks)
        formed += 1
        if len(parts) < min(3, len(samples)):
            callers = (one for one in inspect.stack(0) if "/octopus_study/report/" in one.filename)
            lost.add(next(one.function for one in callers if one.function != "resampled"))
        return parts

    for module in (statistics, line, samples, drone, total_cost):
        monkeypatch.setattr(module, "by_process", watched)
    run = of_three_processes(run_of_one_process(runs, study))
    assert list(derive(run, report_of(study))) and formed
    assert not lost, f"{study}: intervals that know of no processes in {sorted(lost)}"


@pytest.mark.parametrize("study", ["drone", "stage_timing", "total_cost"])
def test_what_another_seed_would_move_says_that_it_is_resampled(study, runs, monkeypatch):
    """By that a verdict keeps its distance from the limit; other intervals need no seed."""
    seeded, run = np.random.default_rng, run_of_one_process(runs, study)
    ends = []
    for further in (0, 1):
        monkeypatch.setattr(np.random, "default_rng", lambda seed, further=further: seeded(seed + further))
        ends.append({one.id: (str((one.low, one.high)), one.resampled) for one in derive(run, report_of(study))})
    moved = {name: drawn for name, (found, drawn) in ends[0].items() if found != ends[1][name][0]}
    assert moved and all(moved.values())


def test_neighbouring_blocks_that_resemble_each_other_widen_an_interval(folder: Path) -> None:
    before = derived(folder)[f"{TOTAL}.speedup_over_published"]
    path = folder / f"{SPOILT}.csv"
    rows = read_rows(path)
    later = (rows["layer"] == "host") & (rows["method"] == "published") & (rows["block"] >= 10)
    rows.loc[later, "value"] *= 1.1
    write(path, rows)
    after = derived(folder)[f"{TOTAL}.speedup_over_published"]
    assert after.high - after.low > before.high - before.low


OTHER = "f" * 40  # a commit beside that of the committed runs
ANY: dict[str, dict[str, object]] = {}  # a standard that asks for no settings, as the runs are not the standard's


def load(path: Path, before: float | None, after: float | None) -> None:
    """Let a record say which loads were read; its machine has two cores."""
    edit_record(path, machine__state__cpu={"load_average_1min": before}, state_after__cpu={"load_average_1min": after})


def slow_again(path: Path, layer: str, factor: float) -> None:
    """Let every method that was entered twice be slower the second time."""
    rows = read_rows(path)
    chosen = rows["method"].str.endswith("-again") & (rows["layer"] == layer)
    assert chosen.any()
    write(path, rows.assign(value=rows["value"].mask(chosen, factor * rows["value"])))


@pytest.fixture
def real(tmp_path: Path) -> Path:
    return write_run(tmp_path / "results", "m", "cpu", only=BASIS, whole=True)


def test_a_clean_real_run_is_copied(tmp_path: Path, real: Path) -> None:
    target = add_reference(real, tmp_path / "reference", ANY)
    assert sorted(path.name for path in target.iterdir()) == sorted(path.name for path in real.iterdir())


def test_a_second_run_is_of_another_card_or_hour(tmp_path: Path, real: Path) -> None:
    again = write_run(tmp_path / "again", "m", "cpu", only=BASIS, whole=True)
    with pytest.raises(DataError, match="has no first run"):
        add_reference(again, tmp_path / "reference", ANY, second=True)
    target = add_reference(real, tmp_path / "reference", ANY)
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


FAILED = "process 1, visdrone, 28: no memory"
DOUBTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "dirty": (lambda m: edit_record(m / "stage_timing.json", git__dirty=True), "not committed"),
    "unknown": (lambda m: edit_record(m / "stage_timing.json", git__dirty=None, git__reason="no git"), "no git"),
    "several commits":
        (lambda m: edit_record(m / "distribution.json", git__commit=OTHER), r"2 commits: .*f{10} \(distribution\)"),
    "no provenance": (lambda m: (m / "distribution.json").unlink(), "provenance"),
    "no run": (lambda m: [path.unlink() for path in m.iterdir()], "No results to add"),
    "synthetic boxes": (lambda m: write_run(m.parent, "m", "cpu", True, BASIS, whole=True), "rests on synthetic data"),
    "a failed process":
        (lambda m: edit_record(m / "distribution.json", extra__processes={"measured": 3, "failed": [FAILED]}),
         r"some failed \(process 1, visdrone, 28: no memory\)"),
    "edited rows": (lambda m: (m / "distribution.csv").open("a").write("x\n"), "changed after it was measured"),
    "load before":
        (lambda m: load(m / "distribution.json", 3.69, 0.5),
         r"distribution\.csv: the machine was loaded: load averages of 3\.69 and 0\.50 .* 2\.2 are allowed on 2"),
    "load after": (lambda m: load(m / "stage_timing.json", None, 2.3), "load averages of 2.30"),
    "A/A on the host":
        (lambda m: slow_again(m / "stage_timing.csv", "host", 1.5),
         r"octopus at visdrone, n=\d+, .* 0\.6\d+ \[.*\] times itself, 20% are allowed"),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "reason"), DOUBTS.values(), ids=DOUBTS)
def test_a_doubtful_run_is_refused_whole(tmp_path, real, spoil, reason):
    spoil(real)
    with pytest.raises(DataError, match=reason):
        add_reference(real, tmp_path / "reference", ANY)
    assert not (tmp_path / "reference").exists()


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


def test_a_core_run_does_not_replace_a_whole_one(tmp_path: Path, real: Path) -> None:
    path = real / "stage_timing.json"
    edit_record(path, config__values={"measure": {}, "crop": {}, "stage_timing": {"counts": [9]}})
    standard = {"stage_timing": {"counts": [100, 1000]}}
    with pytest.raises(DataError, match=r"stage_timing\.counts is \[9\], not \[100, 1000\]"):
        add_reference(real, tmp_path / "reference", standard)
    add_reference(real, tmp_path / "reference", {"stage_timing": {"counts": [9]}})


def test_a_run_that_keeps_its_own_cores_busy_is_no_loaded_machine(tmp_path: Path, real: Path) -> None:
    load(real / "stage_timing.json", 1.9, 2.05)
    load(real / "distribution.json", 1.9, 7.05)
    edit_record(real / "distribution.json", machine__cpu__cores_installed=8)  # of which it was bound to two
    slow_again(real / "stage_timing.csv", "host", 1.1)  # within the limit of the host
    add_reference(real, tmp_path / "reference", ANY)


def test_by_events_a_method_must_be_nearer_to_itself(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "results", "m", "gpu", only=BASIS, whole=True)
    slow_again(folder / "stage_timing.csv", "device", 1.05)
    with pytest.raises(DataError, match=r"device: 0\.95.* 2% are allowed"):
        add_reference(folder, tmp_path / "reference", ANY)


def test_only_a_whole_interval_beyond_the_limit_is_more_than_chance() -> None:
    cases = {(1.22, 1.01, 1.48): False, (1.5, 1.21, 1.9): True, (0.6, 0.4, 0.83): True, (0.6, 0.4, 0.9): False}
    assert {case: beyond(Interval(*case, count=20), 0.2) for case in cases} == cases


def test_studies_that_stay_in_the_reference_count_as_its_commits(tmp_path: Path) -> None:
    old = write_run(tmp_path / "reference", "m", "cpu", only=BASIS, whole=True)
    edit_record(old / "distribution.json", git__commit=OTHER)
    folder = write_run(tmp_path / "results", "m", "cpu", only=("stage_timing",), whole=True)
    for path in folder.glob("distribution.*"):
        path.unlink()
    with pytest.raises(DataError, match=r"ffffffffff .*distribution"):
        add_reference(folder, tmp_path / "reference", ANY)


def test_a_run_compared_with_itself_has_ratio_one(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "reference", "m", "cpu")
    table = compare_runs(folder, tmp_path / "reference")
    assert len(table) > 100 and (table["ratio"] == 1).all()
    assert {"m"} == set(table["machine"])
