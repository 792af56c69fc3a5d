"""The documentation builds offline; a link, an anchor or a snippet that leads nowhere is an error."""

import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from octopus_study.site.pages import studies_page

BROKEN = """
[page](nowhere.md) [anchor](faq.md#nowhere)
"""
WARNINGS = {
    "a link 'nowhere.md', but the target is not found among documentation files.",
    "a link 'faq.md#nowhere', but the doc 'faq.md' does not contain an anchor '#nowhere'.",
}


class Site:
    def __init__(self, root: Path, folder: Path) -> None:
        shutil.copytree(root / "docs", folder / "docs")
        (folder / "docs/broken.md").write_text(BROKEN)
        config = yaml.safe_load((root / "mkdocs.yml").read_text())
        config["hooks"] = [str(root / name) for name in config["hooks"]]
        config |= {"docs_dir": str(folder / "docs"), "site_dir": str(folder / "site")}
        config["nav"].append({"Broken": "broken.md"})
        (folder / "mkdocs.yml").write_text(yaml.safe_dump(config))
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(folder / "mkdocs.yml")]
        self.done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300, check=False)
        self.warnings = set(re.findall(r"WARNING +-  (?:Doc file 'broken.md' contains )?(.+)", self.done.stderr))
        self.folder = folder / "site"


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The documentation with one page that has broken links."""
    pytest.importorskip("mkdocstrings")
    return Site(root, tmp_path_factory.mktemp("site"))


def test_broken_links_stop_the_build_and_nothing_else_would(site: Site) -> None:
    assert site.done.returncode == 1
    assert site.warnings == WARNINGS, site.done.stderr


def test_its_pages_take_nothing_from_a_network(site: Site) -> None:
    loaded = r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"?(?:https?:)?//[^>]+>"
    pages = list(site.folder.rglob("*.html"))
    assert len(pages) > 20
    assert {page.name: found for page in pages if (found := re.findall(loaded, page.read_text()))} == {}


@pytest.mark.parametrize(("page", "texts"), [
    ("studies.html", ("stage_timing", "arena_bound_share", "Claims that it decides")),
    ("verified.html", ("The last reference was measured on", "numba")),
    ("command.html", ("octopus doctor", "octopus measure", "octopus report add-reference")),
    ("api/octopus.html", ("octopus.crop_resize", "Parameters", "letterbox")),
    ("api/images.html", ("octopus.images.patch_rows", "Returns")),
    ("changelog.html", ("Keep a Changelog",)), ("index.html", ("NVIDIA", "95 % intervals")),
])  # fmt: skip
def test_generated_pages_say_what_the_code_knows(site: Site, page: str, texts: tuple[str, ...]) -> None:
    shown = (site.folder / page).read_text()
    assert [text for text in texts if text not in shown] == []


@pytest.mark.parametrize("module", ["octopus", "octopus.images", "octopus.ops"])
def test_the_reference_has_every_public_name(site: Site, module: str) -> None:
    shown = (site.folder / f"api/{module.rpartition('.')[2]}.html").read_text()
    names = [name for name in import_module(module).__all__ if callable(getattr(import_module(module), name))]
    assert [name for name in names if f'id="{module}.{name}"' not in shown] == []


def test_every_figure_and_table_of_a_study_says_what_it_shows(root: Path) -> None:
    rows = re.findall(r"^\| (?:figure|table) \| `(\w+)` \|(.*)\|$", studies_page(root), flags=re.MULTILINE)
    assert len(rows) > 40
    assert [name for name, text in rows if not text.strip()] == []
