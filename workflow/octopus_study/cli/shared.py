"""What all commands share: readable errors, and the options that several of them take."""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from octopus.errors import OctopusError

# A pipe has no width of its own; in a log 160 columns read better than rich's 80.
errors = Console(stderr=True, width=None if sys.stderr.isatty() else 160)

OutDir = Annotated[Path, typer.Option("--out-dir", help="Folder to write to.")]


@contextmanager
def readable_errors() -> Iterator[None]:
    """Turn an error that Octopus raises on purpose into one paragraph on stderr and exit code 1."""
    try:
        yield
    except OctopusError as error:
        errors.print("[bold red]error:[/]", end=" ")
        errors.print(str(error), markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(1) from error


def command(
    group: typer.Typer, name: str | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as a command whose errors are readable."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with readable_errors():
                return function(*args, **kwargs)

        group.command(name)(run)
        return run

    return register


def end_if_profiled() -> None:
    """End a process that has used PyTorch's profiler, once its results are written.

    With the profiler, CUDA graphs and `cuda.core` in one process, some library frees the same memory twice while the
    interpreter ends (seen on an H200 with PyTorch 2.11: the study's files were whole, the exit code said `aborted`).
    """
    trace = sys.modules.get("octopus_study.studies.concurrency.trace")
    if trace is not None and trace.profiled:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
