"""The commands that ask where a number comes from, and whether everything follows from the stored rows."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

Reference = Annotated[Path, typer.Option(help="Folder with one folder per reference machine.")]
Published = Annotated[Path, typer.Option(help="Folder of the published tables.")]
ClaimsFile = Annotated[Path, typer.Option(help="The claims and the rules that decide them.")]
Paper = Annotated[Path, typer.Option(help="Folder of the paper's sources.")]


def trace(
    identifier: Annotated[
        str, typer.Argument(metavar="ID", help="A number of numbers.csv (gpu. and cpu. too), or a claim.")
    ],
    numbers: Annotated[
        Path, typer.Option(help="numbers.csv; made from the references where there is none.")
    ] = Path("paper/build/numbers.csv"),
    reference: Reference = Path("data/reference"),
    published: Published = Path("data/published"),
    claims: ClaimsFile = Path("config/claims.yaml"),
    paper: Paper = Path("paper"),
) -> None:
    """Say where a number or a claim comes from, and where the paper uses it."""
    from octopus_study.report.build import build_numbers
    from octopus_study.report.claims import load_claims
    from octopus_study.report.frame import Frame
    from octopus_study.report.trace import trace as lines_of

    with TemporaryDirectory() as folder:
        if not numbers.is_file():
            numbers = build_numbers(None, reference, published, Path(folder, "numbers.csv"))
        for line in lines_of(identifier, Frame.read(numbers), load_claims(claims), paper, claims):
            typer.echo(line)
