"""Options that several commands have, each with its help."""

from pathlib import Path
from typing import Annotated

import typer

from octopus.errors import InputError

OutDir = Annotated[Path, typer.Option("--out-dir", help="Folder to write to.")]
Out = Annotated[Path, typer.Option(help="File to write.")]
Numbers = Annotated[Path, typer.Option(help="numbers.csv, as `octopus report numbers` writes it.")]
Claims = Annotated[Path, typer.Option(help="claims.csv, as `octopus report claims` writes it.")]
ClaimsFile = Annotated[Path, typer.Option(help="The claims and the rules that decide them.")]
Reference = Annotated[Path, typer.Option(help="Folder with one folder per reference machine.")]
Published = Annotated[Path, typer.Option(help="Folder of the published tables.")]
Paper = Annotated[Path, typer.Option(help="Folder of the paper's sources.")]
Figures = Annotated[Path, typer.Option(help="Folder of the figures.")]


def require_checkout(file: Path) -> None:
    """Raise `InputError` unless a file of the repository is there: most commands work on a checkout."""
    if not file.exists():
        raise InputError(f"There is no {file} in {Path.cwd()}: run this in a checkout of the repository.")
