"""MkDocs' hook: adds the pages that follow from the code, so that none of them can be out of date."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from octopus.cli import COMMANDS
from octopus_study.site.pages import studies_page, verified_page

ROOT = Path(__file__).resolve().parents[2]
TYPER = (sys.executable, "-m", "typer", "octopus_study.cli.commands", "utils", "docs", "--name", "octopus")


def command_page(root: Path) -> str:
    """Return the library's commands, and those of the artifact with their options, as Typer describes them."""
    of_library = "".join(f"* `octopus {name}`: {command.help}\n" for name, command in COMMANDS.items())
    told = subprocess.run(TYPER, cwd=root, capture_output=True, text=True, check=True).stdout
    head = "# The command octopus\n\nFor users of the command line. The library brings two commands:"
    return f"{head}\n\n{of_library}\nThe artifact adds these.\n\n#{told}"


PAGES = {"studies.md": studies_page, "verified.md": verified_page, "command.md": command_page}


def on_files(files: Files, config: Any) -> Files:
    """Add the pages to those of `docs/`."""
    for name, page in PAGES.items():
        if placeholder := files.get_file_from_path(name):  # what a reader finds who has no site
            files.remove(placeholder)
        files.append(File.generated(config, name, content=page(ROOT)))
    return files
