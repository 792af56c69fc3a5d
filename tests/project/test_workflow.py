"""The workflow end to end on the embedded sample, in a copy of the repository; then what makes it run."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from copies import copied
from workflow_copy import COPIED, QUICK, Workflow

from octopus_study.names import STUDIES
from octopus_study.report import outputs
from octopus_study.report.frame import Frame
from octopus_study.report.paper import DOCUMENTS
from octopus_study.report.rows import rows_of
from octopus_study.report.selector import selects_rows

NUMBERS = "paper/build/numbers.csv"
RULE = re.compile(r"^rule (\w+):\n((?: {4}.*\n)+)", re.MULTILINE)


@pytest.fixture(scope="module")
def finished(root: Path, runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workflow]:
    folder = copied(root, tmp_path_factory.mktemp("it's (a) clone [x]"), set(COPIED) - {"data/reference"})
    shutil.copytree(runs / "reference", folder / "data/reference")
    workflow = Workflow(folder)
    workflow.measuring = Workflow(folder, fresh=True).complete(*QUICK)
    yield workflow
    workflow.end()


def test_each_study_announces_what_is_left_and_ends_with_results(finished: Workflow) -> None:
    begun = re.findall(r"Job \d+: (\w+): .* \((\d+) of (\d+) studies and the report left\)", finished.measuring)
    assert [int(left) for _, left, _ in begun] == list(range(len(STUDIES), 1, -1))
    ended = dict(re.findall(r"^(\w+): done in .*, synthetic data\. (.+)\.$", finished.measuring, re.MULTILINE))
    assert list(ended)[:-1] == [study for study, _, _ in begun] and set(ended) == set(STUDIES)
    need_a_gpu = {"power", "concurrency", "image_shape"}
    assert {study for study, result in ended.items() if result.startswith("Nothing was measured: ")} >= need_a_gpu


def test_a_run_ends_with_the_paper_and_the_results_page(finished: Workflow) -> None:
    for document in DOCUMENTS:
        assert (finished.folder / f"paper/build/{document}.pdf").read_bytes().startswith(b"%PDF")
    page = (finished.folder / "figures/report.html").read_bytes()
    assert len(page) <= 5_000_000
    assert all(f'id="figure-{name}"'.encode() in page for name in outputs.figures())
    assert b"(this machine)" in page


def test_every_number_that_rests_on_rows_takes_some(
    finished: Workflow, reference_numbers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of this run, of the committed references and of the published tables."""
    monkeypatch.chdir(finished.folder)
    wrong, machines = [], set()
    for number in (*Frame.read(NUMBERS), *Frame.read(reference_numbers / "numbers.csv")):
        if selects_rows(number.selector):
            machines.add(number.machine)
            count = sum(len(places) for _, places in rows_of(number))
            typed = number.role == "published" and number.study != "derived"
            if not count or (typed and count != 1):
                wrong.append(f"{number.id}: {number.selector} takes {count}")
    assert wrong == []
    assert {"here", "published", "nvidia-h200", "intel-xeon-2c"} <= machines


def test_the_terminal_has_no_line_per_comparison_and_ends_with_where_to_look(finished: Workflow) -> None:
    printed = finished.measuring.splitlines()
    assert not [line for line in printed if " INFO " in line or "Select jobs" in line]
    warnings = [line.partition("WARNING")[2] for line in printed if "WARNING" in line]
    assert len(warnings) == len(set(warnings))
    assert any("paper/build/octopus.pdf" in line for line in printed[-6:])
    assert any("figures/report.html" in line for line in printed[-6:])
    assert " INFO " in (finished.folder / "logs/arena.log").read_text()


@pytest.mark.parametrize("targets", [(), ("arena",), ("power", "drone")])
def test_nothing_is_to_be_done_afterwards(finished: Workflow, targets: tuple[str, ...]) -> None:
    assert finished.jobs(*targets, "-n", *QUICK) == set()


def test_a_study_is_a_target_by_its_name(finished: Workflow) -> None:
    """It measures that study alone, and renders what shows it."""
    with finished.appended("octopus/kernels/geometry.py", "\nCHANGED = True\n"):
        planned = finished.jobs("arena", "-n", "--printshellcmds", *QUICK)
    assert planned & set(STUDIES) == {"arena"}
    assert {"numbers", "figures", "tables", "paper", "page"} <= planned


def test_touching_every_file_reruns_nothing(finished: Workflow) -> None:
    for file in finished.folder.rglob("*"):
        if file.is_file() and ".snakemake" not in file.parts:
            file.touch()
    assert finished.planned() == set()


# A file, what is appended to it, the studies that run again, and whether the report is made anew; what else a change
# makes stale is in tests/study/measure/test_source_digest.py.
CHANGED = "\nCHANGED = True\n"
STUDY = "workflow/octopus_study"
RERUN = [
    ("octopus/kernels/geometry.py", "\n# a comment\n'''and a text'''\n", (), False),
    ("octopus/kernels/geometry.py", CHANGED, STUDIES, True),
    (f"{STUDY}/studies/arena/layers.py", CHANGED, ("arena",), True),
    (f"{STUDY}/names.toml", "\n# changed\n", (), True),
    ("data/published/README.md", "x", (), False),
    ("data/published/stage_timing.csv", "\n", (), True),
]


@pytest.mark.parametrize(("file", "text", "studies", "report"), RERUN)
def test_a_change_reruns_what_runs_it(finished: Workflow, file: str, text: str, studies: tuple, report: bool) -> None:
    with finished.appended(file, text):
        planned = finished.planned()
    assert planned & set(STUDIES) == set(studies)
    assert "fetch_visdrone" not in planned and (planned == set()) == (not report)
    assert not report or {"numbers", "figures", "paper"} <= planned


def test_a_setting_reruns_the_study_that_reads_it(finished: Workflow) -> None:
    planned = finished.planned("stage_timing={launches: [1, 2, 4]}")
    assert "stage_timing" in planned
    assert planned.isdisjoint({"distribution", "fetch_visdrone"})


def test_a_mirror_means_a_new_fetch_unless_the_sample_was_asked_for(finished: Workflow) -> None:
    assert finished.planned("mirror=elsewhere") == set()
    assert {"fetch_visdrone", *STUDIES} <= finished.planned("mirror=elsewhere", "data=auto")


@pytest.mark.parametrize(("setting", "message"), [
    ("device=gpu", "device: Input should be 'auto', 'cpu' or 'cuda', found 'gpu'"),
    ("devise=cpu", "devise: there is no such key; did you mean 'device'?"),
])  # fmt: skip
def test_a_wrong_setting_is_refused_readably(finished: Workflow, setting: str, message: str) -> None:
    done = finished.run("-n", "--config", setting)
    assert done.returncode != 0
    assert message in done.stdout


def test_the_html_report_bundles_the_results(finished: Workflow) -> None:
    done = finished.run("--report", "report.html", *QUICK)
    assert done.returncode == 0, done.stdout
    names = ("numbers.csv", "claims.csv", "octopus.pdf", "scaling.png", "report.html")
    assert all(name in done.stdout for name in names)
    written = (finished.folder / "report.html").read_text(encoding="utf-8")
    captions = sorted((finished.folder / "workflow/report").glob("*.rst"))
    assert len(captions) == 6
    for caption in (file.read_text(encoding="utf-8") for file in captions):
        words = re.findall(r"[A-Za-z ]{20,}", caption)[0].strip()
        assert words in written, words


def test_snakemake_takes_the_profile_by_itself(finished: Workflow) -> None:
    finished = Workflow(finished.folder, fresh=True)
    assert "profile profiles/default" in finished.run("-n", *QUICK).stdout


def test_no_rule_asks_a_cluster_for_more_cores_than_a_node_has(root: Path) -> None:
    profile = yaml.safe_load((root / "profiles/slurm/config.yaml").read_text())
    text = "".join(file.read_text() + "\n" for file in sorted((root / "workflow/rules").glob("*.smk")))
    takes_all = {rule for rule, body in RULE.findall(text) if "threads: ALL_CORES" in body}
    assert takes_all and takes_all == set(profile["set-threads"])
