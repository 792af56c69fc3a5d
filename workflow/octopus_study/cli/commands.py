"""Each command reads its arguments, calls one function of the layers below, and reports.

Imports of those layers stand inside the commands, so that a missing extra only stops the command that needs it.
Errors that Octopus raises on purpose are left to `octopus.cli`, which makes a readable paragraph of them.
"""

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from octopus.errors import InputError
from octopus_study.cli.add_gpu import add_gpu
from octopus_study.cli.check_commands import trace, verify
from octopus_study.cli.options import OutDir
from octopus_study.cli.report_commands import report

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.add_typer(report, name="report")
app.command()(add_gpu)
app.command()(trace)
app.command()(verify)

ConfigFile = Annotated[Path, typer.Option("--config", help="Configuration file.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key; may be repeated.")
]
DEFAULT_CONFIG = Path("config/config.yaml")


class DataMode(StrEnum):
    """Which data `fetch` may give."""

    auto = "auto"
    real = "real"
    sample = "sample"


class Device(StrEnum):
    """Where the work is done."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


@app.command("config")
def show_config(
    config: ConfigFile = DEFAULT_CONFIG,
    settings: Settings = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema instead.")] = False,
) -> None:
    """Check a configuration and print it with every default filled in."""
    from octopus_study.config import config_schema, load_config, parse_overrides

    content = config_schema() if schema else None
    if content is None:
        content = load_config(config, parse_overrides(settings or [])).model_dump(mode="json")
    typer.echo(yaml.safe_dump(content, sort_keys=False, width=110), nl=False)


@app.command()
def fetch(
    dataset: Annotated[str, typer.Argument(help="A name in config/datasets.tsv, or all.")],
    mode: Annotated[
        DataMode, typer.Option(envvar="OCTOPUS_DATA", help="auto: real data where it can be had, else the sample.")
    ] = DataMode.auto,
    mirror: Annotated[Path | None, typer.Option(envvar="OCTOPUS_MIRROR", help="Folder with copies.")] = None,
    raw: Annotated[Path, typer.Option(help="Folder for the data.")] = Path("data/raw"),
    manifest: Annotated[Path | None, typer.Option(help="Manifest to write; by default RAW/DATASET.json.")] = None,
    window: Annotated[str, typer.Option(help="Sentinel-2: column,row,width,height in pixels, full, or auto.")] = "auto",
) -> None:
    """Get a data set, check it against its pinned digest, and write its manifest."""
    from octopus_study.data.fetch import fetch as fetch_dataset
    from octopus_study.data.registry import load_registry

    names = list(load_registry()) if dataset == "all" else [dataset]
    if manifest and len(names) > 1:
        raise InputError("--manifest names one file, but all data sets are fetched; leave it out")
    where = {"raw_dir": raw, "mode": mode.value, "mirror": mirror, "manifest": manifest}
    for name in names:
        part = {"window": _window(window)} if name.startswith("sentinel2") else {}
        found = fetch_dataset(name, **where, **part)
        typer.echo(f"{name}: {found.dataset} ({found.source})")


def _window(text: str) -> Any:
    """A word, or four numbers with or without brackets."""
    return yaml.safe_load(f"[{text}]" if text[:1].isdigit() else text)


@app.command()
def measure(
    study: Annotated[str, typer.Argument(help="A name in octopus_study.names.STUDIES.")],
    manifest: Annotated[Path, typer.Option(help="Manifest of the data set, as `octopus fetch` writes it.")],
    out: Annotated[Path, typer.Option(help="CSV to write; its provenance goes beside it as .json.")],
    config: ConfigFile = DEFAULT_CONFIG,
    settings: Settings = None,
) -> None:
    """Run one study and write its rows and their provenance."""
    from octopus_study.cli.alone import alone
    from octopus_study.cli.ending import study_ended
    from octopus_study.cli.watch import run_watched
    from octopus_study.config import load_config, parse_overrides

    loaded = load_config(config, parse_overrides(settings or []))
    begin = time.monotonic()
    with alone(loaded.device):
        run_watched(study, config=loaded, manifest=manifest, out=out)
    typer.echo(study_ended(study, out, time.monotonic() - begin))


@app.command("power-selftest")
def power_selftest(
    device: Annotated[Device, typer.Option(help="What shall work: its sensor is tested.")] = Device.auto,
    out_dir: OutDir = Path("data/results/power_selftest"),
) -> None:
    """Test whether a power sensor follows a known load; without one that does, say why and exit with 1."""
    from octopus_study.power.session import try_sensors
    from octopus_study.report.power_selftest import write_trial

    attempts, reason = try_sensors(device.value)
    for path in write_trial(attempts, reason, out_dir):
        typer.echo(f"wrote {path}")
    test = attempts[-1].selftest
    typer.echo(f"unavailable: {reason}" if reason else f"passed: {test.scope if test else ''}")
    raise typer.Exit(bool(reason))


@app.command("lint-results")
def lint_results(files: Annotated[list[Path], typer.Argument(help="Result rows or published tables (.csv).")]) -> None:
    """Check whether stored powers and energies can be what they say; exit with 1 if a table is refused."""
    from octopus_study.power.lint import lint_file

    refused = False
    for file in files:
        findings = lint_file(file)
        refused = refused or bool(findings)
        for finding in findings:
            typer.echo(f"{file}: {finding}")
        if not findings:
            typer.echo(f"{file}: accepted")
    if refused:
        raise typer.Exit(1)


@app.command()
def validate(files: Annotated[list[Path], typer.Argument(help="Rows (.csv) and provenance (.json).")]) -> None:
    """Check result files against their schemas."""
    from octopus_study.measure import validate_provenance, validate_rows

    checks = {".csv": validate_rows, ".json": validate_provenance}
    for file in files:
        if file.suffix not in checks:
            raise InputError(f"{file} is neither rows (.csv) nor provenance (.json)")
        checks[file.suffix](file)
        typer.echo(f"{file}: valid")
