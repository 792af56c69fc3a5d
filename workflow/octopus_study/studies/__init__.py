"""The studies, a folder each: they say what they compare, build inputs and methods, and hand them to `measure`.

`run_study` is the only way in. A study is a package with its data set and settings, and a module `study` whose function
``plan(context)`` gives the parts of which `comparison` makes the rows.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from octopus.errors import InputError
from octopus_study.names import STUDIES

if TYPE_CHECKING:
    from octopus_study.config import Config


def run_study(study: str, *, config: Config, manifest: Path, out: Path, kept: Path | None = None) -> Path:
    """Run one study and write its rows as CSV at `out` and its provenance beside them as JSON. The manifest is what
    `octopus fetch` wrote: which data there are, and where. Complete parts go into the file `kept`, and those in it are
    not measured again."""
    from octopus_study.studies.comparison import measure_plan
    from octopus_study.studies.context import make_context, write_run
    from octopus_study.studies.processes import further_rows

    if study not in STUDIES:
        raise InputError(f"there is no study {study!r}; use one of {', '.join(STUDIES)}")
    context = make_context(study, config, Path(manifest))
    plan = import_module(f"octopus_study.studies.{study}.study").plan
    rows = measure_plan(context, plan(context), kept)
    return write_run(context, [*rows, *further_rows(context, Path(manifest), plan)], Path(out))
