"""What the documents say exists, and tracked files hold nothing of one machine."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import yaml

from octopus import __version__
from octopus.cli import COMMANDS
from octopus_study.cli.commands import app

DOCUMENTS = ("README.md", "CONTRIBUTING.md")
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


def test_library_example_runs(root: Path) -> None:
    examples = [block for block in blocks(root, "README.md", "python") if "import torch" not in block]
    assert len(examples) == 10
    subprocess.run([sys.executable, "-c", "\n".join(examples)], cwd=root, check=True, timeout=120)


def test_readme_starts_with_the_two_commands(root: Path) -> None:
    assert blocks(root, "README.md", "sh")[0].split("\n") == ["make paper", "make test", ""]


def test_make_targets_of_the_documents_exist(root: Path) -> None:
    makefile = (root / "Makefile").read_text()
    targets = {words[1] for words in commands(root) if words[0] == "make"}
    assert targets >= {"paper", "test", "lint"}
    assert [
        target for target in sorted(targets) if not re.search(rf"^{target}:", makefile, re.MULTILINE)
    ] == []


def test_octopus_commands_of_the_documents_exist(root: Path) -> None:
    group = {**COMMANDS, **typer.main.get_command(app).commands}
    text = "".join((root / document).read_text() for document in DOCUMENTS)
    called = set(re.findall(r"octopus (doctor|tune|config|fetch|measure|validate|report) ?([a-z]*)", text))
    assert len(called) >= 3
    for name, sub in called:
        assert name in group
        assert name != "report" or sub in group["report"].commands


@pytest.mark.parametrize("document", [*DOCUMENTS, "figures/README.md"])
def test_links_to_files_lead_somewhere(root: Path, document: str) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", (root / document).read_text())
    assert [link for link in links if not (root / document).parent.joinpath(link).exists()] == []


def test_citation_has_the_version_of_the_package(root: Path) -> None:
    assert yaml.safe_load((root / "CITATION.cff").read_text())["version"] == __version__
    assert f"## [{__version__}]" in (root / "CHANGELOG.md").read_text()


def test_tracked_files_name_no_machine_and_no_index(root: Path) -> None:
    here = [f"{folder}/" for folder in (Path.home(), root) if len(folder.parts) > 1]
    found = []
    for path in tracked(root):
        text = path.read_text(encoding="utf-8", errors="ignore")
        if any(word in text for word in (*FORBIDDEN, *here)) or (
            path != Path(__file__) and re.search(SECRETS, text)
        ):
            found.append(path.relative_to(root).as_posix())
    assert found == []


def test_nothing_that_runs_write_is_tracked(root: Path) -> None:
    names = [path.relative_to(root).as_posix() for path in tracked(root)]
    written = ("data/raw/", "data/results/", "paper/build/", ".snakemake/", "logs/")
    assert [name for name in names if name.startswith(written)] == []
    assert [name for name in names if name.startswith("figures/")] == ["figures/README.md"]
