"""The figures, one file each; ``NAMES`` lists them and ``draw`` writes one as PDF and PNG.

A figure is a module with ``STUDY`` (whose runs it shows) and ``figure(numbers) -> Figure``. One whose study older
results lack says so in words: it has ``NO_RUN``, a sentence; or it has ``WITHOUT_RUN`` and draws published values
alone. With ``footer(numbers) -> str`` a figure says itself what it rests on, with ``synthetic(numbers) -> bool``
whether it is stamped, and with ``REAL_DATA`` what the generated data stand in for. To add one, write the module and add
its name here.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from octopus.errors import InputError

if TYPE_CHECKING:
    from octopus_study.report.numbers import Numbers

NAMES = (
    "stage_breakdown",
    "scaling",
    "size_distributions",
    "published_comparison",
    "launch_overhead",
    "temporal_jitter",
    "arena_device",
    "arena_end_to_end",
    "arena_memory",
    "arena_scaling",
    "arena_bound_share",
    "power_traces",
    "energy_per_frame",
    "power_pareto",
    "power_decomposition",
    "mapping_heatmap",
    "mapping_scaling",
    "mapping_memory",
    "total_cost_stack",
    "amortisation",
    "sequences",
    "satellite_tiles",
    "satellite_pipeline",
    "drone_frames",
    "detector_stages",
    "concurrency_makespan",
    "concurrency_latency",
    "image_shape_memory",
    "image_shape_throughput",
)


def draw(name: str, numbers: str | Path, out_stem: str | Path) -> tuple[Path, Path]:
    """Draw a figure and return the paths of its PDF and PNG.

    Parameters
    ----------
    name : str
        One of ``NAMES``.
    numbers : path
        ``numbers.csv``.
    out_stem : path
        Where to write, without suffix.

    Raises
    ------
    InputError
        There is no such figure, or no run of its study and nothing to say about it.
    """
    import matplotlib as mpl

    from octopus_study.report.captions import is_synthetic
    from octopus_study.report.figures import style
    from octopus_study.report.numbers import Numbers

    if name not in NAMES:
        raise InputError(f"There is no figure {name!r}; the figures are {', '.join(NAMES)}.")
    module = import_module(f"{__name__}.{name}")
    known = Numbers.read(numbers)
    shows = bool(known.scopes(module.STUDY)) or getattr(module, "WITHOUT_RUN", False)
    absent = "" if shows else getattr(module, "NO_RUN", "")
    if not absent and not shows:
        raise InputError(f"The figure {name} needs a run of the study {module.STUDY}; {numbers} has none.")
    with mpl.rc_context(style.RC):
        figure = style.words(style.new_figure(1.2)[0], absent) if absent else module.figure(known)
        footer = getattr(module, "footer", lambda numbers: _footer(numbers, module.STUDY))(known)
        synthetic = getattr(module, "synthetic", lambda numbers: is_synthetic(numbers, module.STUDY))(known)
        area = style.finish(figure, footer, synthetic, getattr(module, "REAL_DATA", "VisDrone"))
    return style.save(figure, Path(out_stem), area)


def _footer(numbers: Numbers, study: str) -> str:
    shown = numbers.text(f"shown.{study}")
    return f"Measured on: {shown}." if shown else "Nothing was measured."
