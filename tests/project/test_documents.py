"""What the documents say exists, runs and is true, and tracked files hold nothing of one machine."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

import octopus_study
from octopus import __version__
from octopus_study import timings
from octopus_study.report.frame import Frame
from octopus_study.site.block import MARKS, block, inputs_block, times
from octopus_study.site.pictures import draw_pictures

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("docs", "docs/integrations")
PAGES = tuple(f"{folder}/{path.name}" for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.md")))
DOCUMENTS = ("README.md", "CONTRIBUTING.md", *PAGES)
# Pages with examples, which follow each other on a page; those with torch run in tests/library/test_docs.py.
EXAMPLES = ("README.md", "docs/running.md", "docs/tutorial.md", "docs/crops.md", "docs/images.md")
# Where documents name code; elsewhere they also name what a run writes.
CODE = ("config/", "docs/", "notebooks/", "octopus/", "profiles/", "tests/", "workflow/")
# Written in two parts, so that this file doesn't hold them.
FORBIDDEN = ["/wor" + "k/", "/ro" + "ot/", "/opt/" + "pypi", "/opt/" + "wheels", "/Use" + "rs/"]
SECRETS = r"(?i)index-url\s*=|find-links|[a-z]+://[^/\s]+:[^/\s]+@"


def blocks(root: Path, document: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (root / document).read_text(), flags=re.DOTALL)


def commands(root: Path) -> list[list[str]]:
    text = "".join(block for document in DOCUMENTS for block in blocks(root, document, "sh"))
    lines = [part for line in text.splitlines() for part in line.split("&&")]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def tracked(root: Path) -> list[Path]:
    names = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True)
    return [root / name for name in names.stdout.splitlines() if (root / name).is_file()]


@pytest.fixture(scope="module")
def references(reference_numbers: Path) -> Frame:
    """The numbers of the committed references."""
    return Frame.read(reference_numbers / "numbers.csv")


@pytest.mark.parametrize("document", EXAMPLES)
def test_examples_run(root: Path, document: str) -> None:
    examples = [block for block in blocks(root, document, "python") if "import torch" not in block]
    assert examples
    subprocess.run([sys.executable, "-c", "\n".join(examples)], cwd=root, check=True, timeout=300)


def test_the_readme_is_short_and_begins_with_how_to_install_and_to_reproduce(root: Path) -> None:
    install, reproduce, *_ = blocks(root, "README.md", "sh")
    assert install.startswith("git clone ") and "pip install -e . " in install
    assert reproduce.split("\n") == ["make paper", "make test", ""]
    assert len((root / "README.md").read_text().splitlines()) <= 150


def test_the_numbers_of_the_readme_are_those_of_the_references(root: Path, references: Frame) -> None:
    for page, name, text in (
        ("README.md", "numbers", block(references)),
        ("README.md", "timings", times(timings.read(root / timings.TIMINGS))),
        ("docs/integrations/transformers.md", "inputs", inputs_block(references)),
    ):
        begin, end = (mark.format(name) for mark in MARKS)
        assert (root / page).read_text().partition(begin)[2].partition(end)[0] == text, "run `octopus report readme`"


def test_what_is_said_of_pixels_that_a_gpu_decodes_was_measured(root: Path, references: Frame) -> None:
    most, mean = (
        max(number.value for number in references if number.quantity == quantity)
        for quantity in ("decoded_most_off", "decoded_mean_off")
    )
    for page in ("docs/integrations/loaders.md", "octopus/integrations/loader.py"):
        text = " ".join((root / page).read_text().split())
        assert f"by up to {most:.0f} of 255 levels" in text and f"by {mean:.1f} " in text


def test_the_pictures_are_those_that_the_command_draws(root: Path, tmp_path: Path, references: Frame) -> None:
    named = set(re.findall(r"!\[[^]]+\]\(docs/pictures/([^)]+)\)", (root / "README.md").read_text()))
    drawn = draw_pictures(references, tmp_path)
    assert {path.name for path in drawn} == named and len(named) == 3
    for path in drawn:
        new, old = (Image.open(one).convert("RGB") for one in (path, root / "docs/pictures" / path.name))
        assert new.size == old.size, f"{path.name}: run `octopus report readme`"
        assert np.abs(np.asarray(new, float) - np.asarray(old, float)).mean() < 2, path.name
        assert (root / "docs/pictures" / path.name).stat().st_size < 300_000


def test_make_targets_of_the_documents_exist(root: Path) -> None:
    makefile = (root / "Makefile").read_text()
    targets = {words[1] for words in commands(root) if words[0] == "make"}
    assert targets >= {"paper", "test", "lint"}
    assert [target for target in sorted(targets) if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []


@pytest.mark.parametrize("document", [*DOCUMENTS, "figures/README.md"])
def test_links_to_files_lead_somewhere(root: Path, document: str) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", (root / document).read_text())
    assert [link for link in links if not (root / document).parent.joinpath(link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_paths_in_backticks_exist(root: Path, document: str) -> None:
    text = re.sub(r"```.*?```", "", (root / document).read_text(), flags=re.DOTALL)
    words = [word for span in re.findall(r"`+([^`]+)`+", text) for word in span.split()]
    paths = [word for word in words if word.startswith(CODE)]
    assert [path for path in paths if not any(root.glob(re.sub(r"<\w+>", "*", path)))] == []


def test_everything_that_names_a_version_names_the_same(root: Path) -> None:
    zenodo = json.loads((root / ".zenodo.json").read_text())
    citation = yaml.safe_load((root / "CITATION.cff").read_text())
    assert {octopus_study.__version__, citation["version"], zenodo["version"]} == {__version__}
    assert (citation["title"], citation["license"]) == (zenodo["title"], zenodo["license"])
    assert f"## [{__version__}] - {citation['date-released']}" in (root / "CHANGELOG.md").read_text()


def test_tracked_files_name_no_machine_and_no_index(root: Path) -> None:
    here = [f"{folder}/" for folder in (Path.home(), root) if len(folder.parts) > 1]
    found = []
    for path in tracked(root):
        text = path.read_text(encoding="utf-8", errors="ignore")
        likely = path != Path(__file__) and any(word in text.lower() for word in ("index-url", "find-links", "://"))
        if any(word in text for word in (*FORBIDDEN, *here)) or (likely and re.search(SECRETS, text)):
            found.append(path.relative_to(root).as_posix())
    assert found == []
