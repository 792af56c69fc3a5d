"""Total cost of one batch, end to end: times of every method, gains over each lookup table, reuse, and the unfair
baselines."""

from __future__ import annotations

import math
from collections.abc import Iterator

from octopus_study.names import IMAGE_KERNELS, IMAGE_MIXES, STRATEGIES, SUBJECT
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import Frame, Key, published
from octopus_study.report.missing import no_run
from octopus_study.report.samples import Group
from octopus_study.report.studies import total_cost_figures, total_cost_numbers, total_cost_reuse
from octopus_study.report.studies.total_cost_numbers import GAINS, WORKLOADS, cases, measured
from octopus_study.report.studies.total_cost_reuse import (
    NEVER,
    OWNER,
    OWNERS,
    PUBLISHED_OWNER,
    PUBLISHED_TABLE,
    STUDY,
    TABLES,
    UNDECIDED,
)
from octopus_study.report.study import StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.cells import Cell
from octopus_study.report.tables.spec import Row, Spec, beside
from octopus_study.report.tables.writers import MISSING, Table
from octopus_study.report.view import View

_FORMS = dict(zip(TABLES, ("as published", "one call", "on the device"), strict=True))
_HEADS = {
    "setup": "Setup",
    "upload": "Upload",
    "memory": "Memory",
    "kernel": "Kernel",
    "total": "Total",
    "without_download": "Total without download",
}
# A gain -> the published one of a mix.
_PUBLISHED = {
    "setup": "setup_gain",
    "memory": "memory_gain",
    "kernel": "kernel_gain",
    "without_download": "total_gain",
}
# Who builds block metadata -> a heading, and the gains that depend on it.
_BUILT = {
    PUBLISHED_OWNER: ("Block metadata built by a loop over the images, as published", tuple(GAINS)),
    OWNER: ("Block metadata built by compiled code", ("setup", "memory", "total", "without_download")),
}
# Gains over one table alone, however it is filled.
_SHARED = ("memory", "kernel")
# Beyond, a number of uses is too far off for its interval to matter.
_MOST_EXACT = 1000


def compares(group: Group, other: str) -> bool:
    """Octopus is compared with the kernel of the published table and the way back of its result."""
    return other == PUBLISHED_TABLE and group.quantity in ("kernel", "download")


TIMES = Spec(
    study=STUDY,
    first="Images, kernel",
    label=lambda view, key: WORKLOADS[key.workload],
    cases=cases,
    columns={STRATEGIES[name]: cells.time(method=name) for name in total_cost_figures.METHODS},
    caption="Total cost of one batch of uint8 images, timed end to end: setup, upload, kernel and download of the "
    "result (on a CPU setup and kernel). Light: blur 3\u00d73; heavy: blur 5\u00d75 and Sobel. Medians, "
    f"{cells.WIDE_NOTE}. A dash: not measured in these rows.",
    absent=f"Total cost. {no_run(STUDY)}",
    widths=("1.7fr", *("1.1fr" for _ in total_cost_figures.METHODS)),
)


def _gains(view: View) -> Iterator[Key | str]:
    """Yield the gains over each table that some workload has, below who built the block metadata."""
    for owner in OWNERS:
        heading, names = _BUILT[owner]
        keys = [
            cells.at(view, view.key(method=owner, other=table), GAINS[name])
            for name in names
            for table in TABLES
        ]
        found = [key for key in keys if any(_of_mix(mix)(view, key) != MISSING for mix in IMAGE_MIXES)]
        yield from [heading, *found] if found else []


def _of_mix(mix: str) -> Cell:
    """Say a gain with the light and the heavy kernel, once where they are the same."""

    def cell(view: View, key: Key) -> str:
        counts = {case.workload: case.n for case in cases(view)}
        names = [f"{mix}-{kernel}" for kernel in IMAGE_KERNELS]
        keys = [key.but(workload=name, n=counts.get(name)) for name in names]
        return " / ".join(dict.fromkeys(cells.number_text(view.frame, one) for one in keys))

    return cell


def _gain_name(view: View, key: Key) -> str:
    name = next(name for name, columns in GAINS.items() if columns["quantity"] == key.quantity)
    return _HEADS[name] if name in _SHARED else f"{_HEADS[name]}, {_FORMS[key.other]}"


def _published_gains(frame: Frame) -> Iterator[Row]:
    yield "RTX 4090, as published: table over block metadata"
    for name, quantity in _PUBLISHED.items():
        keys = [published("pipeline_images", mix, quantity) for mix in IMAGE_MIXES]
        yield [_HEADS[name], *(frame.text(key, MISSING) for key in keys)]


def _gains_caption(frame: Frame) -> str:
    """Return the caption: gains of block metadata over the lookup table, however either is built."""
    return (
        "Gains of block metadata over the lookup table: time or bytes with the table / with block metadata; bytes "
        "beside the offsets that every batch has. The table is filled image by image (as published), by one call, or "
        "by a kernel on the device; block metadata are built by a loop over the images (as published) or by compiled "
        "code. Below 1\u00d7, the table is the better one. The published total per mix leaves out the download; "
        f"with it the published total is {frame.text(published('pipeline_gain', 'total', 'gain'))}."
    )


GAINED = Spec(
    study=STUDY,
    first="Gain",
    label=_gain_name,
    cases=_gains,
    columns={name: _of_mix(mix) for mix, name in IMAGE_MIXES.items()},
    title=lambda view: f"{view.title}: light / heavy kernel",
    before=_published_gains,
    caption=_gains_caption,
    absent=no_run(STUDY),
)


def _uses(table: str, method: str) -> Cell:
    """Say from how many uses on a table is cheaper, with the interval where it matters."""

    def cell(view: View, key: Key) -> str:
        key = key.but(method=table, quantity="", layer="", derived="crossover", other=method)
        number = view.get(key)
        if number is None:
            return view.text(key, MISSING)
        exact = math.isfinite(number.low) and number.low != number.high and number.value < _MOST_EXACT
        last = f"{number.high:.0f}" if math.isfinite(number.high) else NEVER
        return f"{number.text} [{number.low:.0f}\u2013{last}]" if exact else number.text

    return cell


_LETTERS = {PUBLISHED_OWNER: "C as published", OWNER: "C", SUBJECT: "D"}
_USES = {
    f"{name}: table {form}": _uses(table, method)
    for method, name in _LETTERS.items()
    for table, form in _FORMS.items()
    if method != SUBJECT or table != PUBLISHED_TABLE
}


def _published_uses(frame: Frame) -> Iterator[Row]:
    yield "RTX 4090, as published"
    for kernel, name in IMAGE_KERNELS.items():
        text = frame.text(published("amortisation", kernel, "break_even"))
        yield [name.capitalize(), text, *[MISSING] * (len(_USES) - 1)]


USES = Spec(
    study=STUDY,
    first="Images, kernel",
    label=lambda view, key: WORKLOADS[key.workload],
    cases=cases,
    columns=_USES,
    before=_published_uses,
    caption="Uses of one batch from which on a lookup table is the cheaper way: setup + upload + uses \u00d7 kernel, "
    "with the interval of resampled blocks. C as published: block metadata built by a loop over the images, as in the "
    f"published comparison; C: by compiled code. {NEVER.capitalize()}: its kernel is no faster. "
    f"{UNDECIDED.capitalize()}: in some resamples it is, in some it isn't. A dash: not measured in these rows.",
    absent=no_run(STUDY),
    widths=("1.6fr", *("1fr" for _ in _USES)),
)
_SMALLEST = "flickr-500-light"
# A rung -> its name, and the columns of its number; without a method, one of the workload of the ladder.
_RUNGS = {
    "one-thread-per-image": ("One thread per image", "ladder", {"method": "one-thread-per-image"}),
    "grid-stride-linear-search": ("Linear search by every thread", "ladder", {"method": "linear-search"}),
    "grid-stride-lookup-kernel-only": ("Lookup table, kernel alone", "", GAINS["kernel"]),
    "grid-stride-lookup-with-setup": ("Lookup table with its setup", "", GAINS["without_download"]),
}


def ladder(frame: Frame) -> Table:
    """The ladder of baselines: how much of a gain is the baseline's weakness."""

    def rung(workload: str, columns: dict[str, str]):
        def cell(view: View) -> str:
            keys = [key.but(other=PUBLISHED_TABLE) for key in cases(view) if key.workload == _SMALLEST]
            keys = [view.key(workload)] if workload else keys
            return cells.number_text(view.frame, cells.at(view, keys[0], columns)) if keys else MISSING

        return cell

    lines = [
        ([name, frame.text(published("baseline_ladder", key, "gain"))], rung(workload, columns))
        for key, (name, workload, columns) in _RUNGS.items()
    ]
    caption = (
        "Baselines from unfair to fair, 500 images, light kernel: time of the baseline / time of Octopus; as "
        "published, of block metadata. What a method gains depends on what it is compared with. Lookup table: as "
        "published; with its setup: no download."
    )
    return beside(measured(frame), ["Baseline", "RTX 4090, published"], lines, caption, no_run(STUDY))


REPORT = StudyReport(
    numbers=(
        total_cost_numbers.gains,
        total_cost_numbers.without_download,
        total_cost_numbers.averages,
        total_cost_numbers.download,
        total_cost_reuse.crossovers,
        total_cost_numbers.ladder,
    ),
    of_all=(total_cost_numbers.survives,),
    of_published=(total_cost_numbers.published_entry,),
    beside_all=(total_cost_reuse.reuse,),
    compares=compares,
    tables={"total_cost": TIMES, "total_gains": GAINED, "amortisation": USES, "ladder": ladder},
    figures={
        "total_cost_stack": Chart(
            total_cost_figures.stack,
            caption="Where the time of one batch goes, method by method: setup, upload, kernel and download, "
            "one after the other.",
        ),
        "amortisation": Chart(
            total_cost_figures.amortisation,
            caption="When a lookup table pays: time of many uses of one batch, as a multiple of that of Octopus.",
        ),
    },
    claims="claims_mapping",
)
