"""The commands of `octopus report`: numbers, tables, figures, claims and the paper."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from octopus_study.cli.options import Claims, ClaimsFile, Figures, Numbers, Out, OutDir, Paper, Published, Reference

report = typer.Typer(no_args_is_help=True, help="Numbers, tables, figures, claims and the paper from result rows.")


@report.command()
def numbers(
    results: Annotated[Path, typer.Option(help="This machine's run, data/results/<machine>; may be absent.")],
    reference: Reference,
    published: Published,
    out: Out,
) -> None:
    """Derive every number that a figure, a table or the paper shows."""
    from octopus_study.report.build import build_numbers

    build_numbers(results, reference, published, out)


@report.command()
def claims(numbers: Numbers, claims: ClaimsFile, out: Out) -> None:
    """Decide each claim: reproduced, not reproduced, ambiguous, or not measurable here."""
    from octopus_study.report.claims import build_claims

    build_claims(numbers, claims, out)


@report.command()
def tables(numbers: Numbers, claims: Claims, out_dir: OutDir) -> None:
    """Write every table as .typ and .md."""
    from octopus_study.report.outputs import build_tables

    build_tables(numbers, claims, out_dir)


@report.command()
def figure(
    name: Annotated[str, typer.Argument(help="A name of octopus_study.report.outputs.figures().")],
    numbers: Numbers,
    out: Annotated[Path, typer.Option(help="PDF to write; the PNG goes beside it.")],
) -> None:
    """Draw one figure as PDF and PNG."""
    from octopus_study.report.outputs import draw

    draw(name, numbers, out.with_suffix(""))


@report.command()
def figures(
    numbers: Numbers,
    out_dir: OutDir,
    processes: Annotated[int, typer.Option(min=1, help="How many draw side by side.")] = 1,
) -> None:
    """Draw all figures as PDF and PNG."""
    from octopus_study.report.outputs import draw_all

    draw_all(numbers, out_dir, processes)


@report.command()
def paper(
    source: Paper,
    build: Annotated[Path, typer.Option(help="Folder with numbers.json and tables/.")],
    figures: Figures,
    out: Out,
    document: Annotated[str, typer.Option(help="octopus (the paper) or supplement.")] = "octopus",
) -> None:
    """Set the paper, or its supplement, as PDF."""
    from octopus_study.report.paper import build_paper

    build_paper(source, build, figures, out, document)


@report.command()
def page(numbers: Numbers, claims: Claims, rules: ClaimsFile, source: Paper, figures: Figures, out: Out) -> None:
    """Write the results page: one HTML file that needs no network."""
    from octopus_study.report.page import build_page

    build_page(numbers, claims, rules, source, figures, out)


@report.command()
def summary(
    build: Annotated[Path, typer.Option(help="Folder with numbers.csv and claims.csv.")] = Path("paper/build"),
    figures: Figures = Path("figures"),
) -> None:
    """Print how the claims came out, and where paper, page and numbers are."""
    from octopus_study.cli.ending import run_ended

    typer.echo("\n".join(run_ended(build, figures)))


@report.command()
def committed() -> None:
    """Renew what is committed from the references alone: figures/reference, paper/octopus.pdf, what notebooks show."""
    from octopus_study.report.committed import stored
    from octopus_study.verify.scene import Paths, Scene

    paths = Paths(build=Path("none"))
    with Scene(paths) as scene:
        places = stored(paths.figures, paths.paper, paths.notebooks)
        for path in scene.committed.iterdir():
            places[path.name].parent.mkdir(exist_ok=True)
            shutil.copyfile(path, places[path.name])


@report.command()
def readme(
    document: Annotated[Path, typer.Option(help="Page whose blocks are renewed.")] = Path("README.md"),
    inputs: Annotated[Path, typer.Option(help="Page whose table of inputs is renewed.")] = Path(
        "docs/integrations/transformers.md"
    ),
    pictures: Annotated[Path, typer.Option(help="Folder of the pictures.")] = Path("docs/pictures"),
    studies: Annotated[Path, typer.Option(help="Page whose map of the sources is renewed.")] = Path("docs/studies.md"),
    reference: Reference = Path("data/reference"),
    published: Published = Path("data/published"),
    claims: ClaimsFile = Path("config/claims.yaml"),
) -> None:
    """Renew the README's numbers, times and pictures, the table of inputs and the map of the sources, from what is
    committed."""
    from octopus_study import timings
    from octopus_study.report.build import numbers_of, vetted
    from octopus_study.report.claims import judge_all
    from octopus_study.report.frame import Frame
    from octopus_study.report.runs import load_runs
    from octopus_study.site.block import block, inputs_block, sources_block, times, write_block
    from octopus_study.site.pictures import draw_pictures

    frame = Frame(numbers_of(vetted(load_runs(None, reference)), published))
    write_block("numbers", block(frame), document)
    write_block("timings", times(timings.read()), document)
    write_block("inputs", inputs_block(frame), inputs)
    write_block("sources", sources_block(frame, judge_all(frame, claims)), studies)
    draw_pictures(frame, pictures)


@report.command()
def add_reference(
    results: Annotated[Path, typer.Argument(help="A vetted run, data/results/<machine>.")],
    reference: Reference = Path("data/reference"),
    second: Annotated[bool, typer.Option(help="These are second runs, on another card or an hour apart.")] = False,
) -> None:
    """Copy a run to the committed reference; refuses synthetic, invalid or uncommitted work, other settings, a
    loaded machine, and several commits."""
    from octopus_study.config import Config
    from octopus_study.report.add_reference import add_reference

    standard = Config().model_dump(mode="json")
    typer.echo(f"added to {add_reference(results, reference, standard, second)}")


@report.command()
def compare(
    results: Annotated[Path, typer.Argument(help="A run, data/results/<machine>.")],
    reference: Reference = Path("data/reference"),
) -> None:
    """Print this run beside the reference."""
    from octopus_study.report.compare import compare_runs

    typer.echo(compare_runs(results, reference).to_string(index=False))
