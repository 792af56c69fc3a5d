"""`octopus add-gpu`: from a clone to a reference. What a reference needs is looked at before anything is measured."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from octopus.errors import DeviceError, InputError
from octopus_study.cli.options import Reference, require_checkout

NEEDS = """\
A reference needs: an NVIDIA GPU (or --device cpu), committed code, the settings of config/config.yaml as they are, the
real data sets, a machine where nothing else runs, and 2 GB of disk. Each is looked at before anything is measured."""
CONFIG, RESULTS, COMPARED = Path("config/config.yaml"), Path("data/results"), Path("logs/compare.csv")
FREE_BYTES = 2 * 10**9


def add_gpu(
    device: Annotated[str, typer.Option(help="cuda, or cpu to add the CPU.")] = "cuda",
    mirror: Annotated[Path | None, typer.Option(envvar="OCTOPUS_MIRROR", help="Folder with the data sets.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Get the data, say what else is missing, and stop.")] = False,
    reference: Reference = Path("data/reference"),
) -> None:
    """Measure everything on this machine, vet it, and add it to the references; says first what is missing."""
    from octopus_study import timings
    from octopus_study.cli.report_commands import readme
    from octopus_study.config import Config
    from octopus_study.errors import MeasureError
    from octopus_study.measure.machine import machine_id, package_versions
    from octopus_study.names import LIBRARIES, STUDIES
    from octopus_study.report.add_reference import add_reference
    from octopus_study.report.compare import compare_runs

    require_checkout(CONFIG)
    typer.echo(NEEDS)
    if lacking := list(missing(device, mirror)):
        raise InputError(
            f"{len(lacking)} missing, and nothing was measured:\n" + "\n".join(f"- {why}" for why in lacking)
        )
    absent = [one.packages[0] for one in LIBRARIES if not any(package_versions(tuple(one.packages)).values())]
    typer.echo(f"Nothing is missing. Baselines without rows, since not installed: {', '.join(absent) or 'none'}.")
    if check:
        return
    known = timings.read()
    lasts = timings.remaining(timings.expected(study, device, "full", reference, known) for study in STUDIES)
    typer.echo(f"All {len(STUDIES)} studies are measured now{lasts and ', '}{lasts}.")
    settings = ["data=real", f"device={device}", *([f"mirror={mirror}"] if mirror else [])]
    if subprocess.call([sys.executable, "-m", "snakemake", "--cores", "all", "--config", *settings]):
        raise MeasureError("the run stopped, and no reference was added; mend that and repeat: finished studies stay")
    results = RESULTS / machine_id(device)
    added = add_reference(results, reference, Config().model_dump(mode="json"))
    compare_runs(results, reference).to_csv(COMPARED, index=False)
    readme()
    typer.echo(f"added {added}; beside the other references, number by number: {COMPARED}")
    typer.echo(f"Look at it, then: git add {added} && git commit; commit README, docs and figures after it.")


def missing(device: str, mirror: Path | None) -> Iterator[str]:
    """Yield what a reference from here would lack, each with what was found and what to do."""
    from octopus.backends import resolve
    from octopus_study.cli.alone import wait_until_idle
    from octopus_study.config import Config, load_config
    from octopus_study.data.fetch import fetch
    from octopus_study.data.registry import load_registry
    from octopus_study.errors import DataError
    from octopus_study.measure.machine import available_cores, machine_id
    from octopus_study.measure.provenance import git_state, validate_provenance
    from octopus_study.report.quiet import LOAD_PER_CORE

    state = git_state(Path.cwd())
    if state["dirty"] is not False:
        found = state["reason"] or "files differ from the commit"
        yield f"committed code: {found}; commit or stash what `git status` lists"
    standard, used = Config().model_dump(), load_config(CONFIG).model_dump()
    if changed := [key for key in standard if standard[key] != used[key] and key != "mirror"]:
        yield f"standard settings: {CONFIG} changes {', '.join(changed)}; give it back its defaults"
    try:
        if resolve(device) == "cuda":
            wait_until_idle()
        old = sorted((RESULTS / machine_id(device)).glob("*.json"))
        if others := [path.stem for path in old if validate_provenance(path)["git"]["commit"] != state["commit"]]:
            yield f"one commit: {old[0].parent} holds {', '.join(others)} of another commit; move that folder away"
    except DeviceError as error:
        yield f"a device: {error}; octopus add-gpu --device cpu adds the CPU instead"
    load, cores = os.getloadavg()[0], available_cores()
    if load > LOAD_PER_CORE * cores:
        yield f"a quiet machine: the load average is {load:.2f} on {cores} cores; end other work, wait a minute, repeat"
    if (free := shutil.disk_usage(".").free) < FREE_BYTES:
        yield f"disk: {free / 1e9:.1f} GB are free, {FREE_BYTES / 1e9:.0f} GB are needed"
    for name in load_registry():
        try:
            fetch(name, mode="real", mirror=mirror, raw_dir=Path("data/raw"), manifest=None)
        except DataError as error:
            yield f"data: {error}"
