"""The commands that ask where a number comes from, and whether everything follows from the stored rows."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from octopus_study.cli.options import ClaimsFile, Paper, Published, Reference, require_checkout

_SHOWN_FAULTS = 10


def trace(
    identifier: Annotated[
        str, typer.Argument(metavar="ID", help="A number of numbers.csv (gpu. and cpu. too), or a claim.")
    ],
    numbers: Annotated[Path, typer.Option(help="numbers.csv; made from the references where there is none.")] = Path(
        "paper/build/numbers.csv"
    ),
    reference: Reference = Path("data/reference"),
    published: Published = Path("data/published"),
    claims: ClaimsFile = Path("config/claims.yaml"),
    paper: Paper = Path("paper"),
) -> None:
    """Say where a number or a claim comes from, and where the paper uses it."""
    from octopus_study.report.claims import load_claims
    from octopus_study.report.frame import Frame
    from octopus_study.report.trace import trace as lines_of

    require_checkout(claims)
    with TemporaryDirectory() as folder:
        if not numbers.is_file():
            from octopus_study.report.build import build_numbers

            numbers = build_numbers(None, reference, published, Path(folder, "numbers.csv"))
        for line in lines_of(identifier, Frame.read(numbers), load_claims(claims), paper, claims):
            typer.echo(line)


def verify(
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="CHECK", help="Run this check alone; may be repeated.")
    ] = None,
    root: Annotated[Path, typer.Option(help="The checkout.")] = Path(),
) -> None:
    """Derive everything anew from the stored rows; exit with 1 if something differs."""
    from octopus_study.verify import checks
    from octopus_study.verify.scene import Paths, Scene

    paths = Paths().below(root)
    require_checkout(paths.claims)
    with Scene(paths) as scene:
        results = []
        for result in checks.run(scene, only or ()):
            results.append(result)
            typer.echo(result.line)
            for fault in result.outcome.faults[:_SHOWN_FAULTS]:
                typer.echo(f"    {fault}")
            if (more := len(result.outcome.faults) - _SHOWN_FAULTS) > 0:
                typer.echo(f"    … and {more} more")
        typer.echo(checks.summary(results, scene))
    raise typer.Exit(any(result.outcome.faults for result in results))
