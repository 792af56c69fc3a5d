"""Mapping strategies, who owns which element of a ragged batch: kernels, maps, the tuner, and the project's own
targets."""

from __future__ import annotations

from collections.abc import Callable

from octopus_study.names import DISTRIBUTIONS, STRATEGIES, SUBJECT, human
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import Frame, Key, published
from octopus_study.report.missing import no_run
from octopus_study.report.samples import Group
from octopus_study.report.studies import mapping_figures, mapping_model, mapping_numbers, mapping_widths
from octopus_study.report.studies.mapping_numbers import (
    BUILD_ITEMS,
    BUILD_MS,
    COPY,
    COPY_SHARE,
    REGRET,
    SLOWER_BY,
    pair_of,
)
from octopus_study.report.study import StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.cells import Cell
from octopus_study.report.tables.spec import Spec, beside
from octopus_study.report.tables.writers import MISSING, Table
from octopus_study.report.text import quantity_text, significant
from octopus_study.report.view import View, views

STUDY = "mapping"
OPERATION = "multiply"
# The distribution whose maps are shown: that of real data.
SHOWN = "visdrone"
MAPS = ("lookup", "lookup-device", "thread-search", "block-metadata", "block-metadata-tuned", SUBJECT)
_OVER = {
    "lookup": "over A",
    "thread-search": "over B",
    "block-metadata": "over C",
    "block-metadata-tuned": "over C, tuned",
}
_PROBE, _TUNED_GAIN = "probe_time", "speedup_over_thread_search"
_BUILT = {"Build": ("setup", "host"), "Upload": ("upload", "host")}
_COUNTED = {"Bytes": ("map_bytes", "deterministic"), "Blocks": ("blocks", "deterministic")}


def compares(group: Group, other: str) -> bool:
    """Octopus is compared by its kernels alone, and with what takes several elements per thread, as it does."""
    return group.quantity == "kernel" and not other.endswith("-scalar")


def batches(view: View) -> list[Key]:
    """Return the batches whose elements a machine counted, by distribution and number of items."""
    return view.cases("batch", "elements", ("deterministic",), order=list(DISTRIBUTIONS))


def kernels(view: View) -> list[Key]:
    """Return the kernel of Octopus on each batch."""
    layer = view.kernel_layer
    return [
        view.key(f"{key.workload}-{OPERATION}", key.n, SUBJECT, quantity="kernel", layer=layer)
        for key in batches(view)
    ]


def _elements(view: View, key: Key) -> str:
    """Say the elements of a kernel's batch in millions."""
    batch = key.workload.removesuffix(f"-{OPERATION}")
    number = view.get(view.key(batch, key.n, "batch", quantity="elements", layer="deterministic"))
    return f"{significant(number.value / 1e6)} M" if number else MISSING


def _batch(view: View, key: Key) -> str:
    distribution = key.workload.removesuffix(f"-{OPERATION}")
    return f"{human(DISTRIBUTIONS, distribution)}, {quantity_text(key.n, 'count')}"


def _c_over_b(width: str) -> Cell:
    """Say block metadata over a search by every thread, both of one width."""

    def cell(view: View, key: Key) -> str:
        method, other = pair_of(width, view.is_gpu)
        return cells.speedup_text(view.frame, key.but(method=method), other)

    return cell


KERNELS = Spec(
    study=STUDY,
    first="Items",
    label=_batch,
    cases=kernels,
    columns={
        "Elements": _elements,
        "Octopus": cells.time(),
        "Of copy": cells.text(derived="share", other=COPY),
        **{head: cells.speedup(other) for other, head in _OVER.items()},
        "C over B": _c_over_b("vector"),
        "C over B, one element": _c_over_b("scalar"),
        "Floor": cells.floor(),
    },
    caption="Who owns which element: kernels that multiply float32 elements by their item's gain. Time of Octopus "
    "(block search), its share of the copy bound, and its speed-ups over A (lookup table), B (search by every thread) "
    "and C (block metadata), all with several elements per thread, with the verdict where it isn't faster. C over B, "
    "like for like: several elements per thread in both, or one in both, as published. "
    f"Medians, {cells.WIDE_NOTE}; floor: difference of Octopus to itself. A dash: not measured in "
    "these rows.",
    absent=f"Mapping strategies. {no_run(STUDY)}",
    widths=("1.6fr", "1.1fr", "1.2fr", *("1fr",) * 8),
)


def _shown(view: View) -> Key | None:
    """Return the batch whose maps are shown: the most items of real data, else of the last distribution."""
    keys = batches(view)
    return next((key for key in reversed(keys) if key.workload == SHOWN), keys[-1] if keys else None)


def maps(view: View) -> list[Key]:
    """Return the maps of the batch that is shown, those of which something is known."""
    batch = _shown(view)
    keys = [batch.but(method=method) for method in MAPS] if batch else []
    facts = [*_BUILT.values(), *_COUNTED.values()]
    return [
        key for key in keys if any(key.but(quantity=name, layer=layer) in view.frame for name, layer in facts)
    ]


def _title(view: View) -> str:
    batch = _shown(view)
    items = f"{quantity_text(batch.n, 'count')} items"
    return f"{view.title}: {human(DISTRIBUTIONS, batch.workload)}, {items}"


BUILDING = Spec(
    study=STUDY,
    first="Strategy",
    label=lambda view, key: human(STRATEGIES, key.method),
    cases=maps,
    columns={
        **{head: cells.time(quantity=name, layer=layer) for head, (name, layer) in _BUILT.items()},
        **{head: cells.fact(quantity=name, layer=layer) for head, (name, layer) in _COUNTED.items()},
    },
    title=_title,
    caption="Maps of each strategy, at the most items: time to build on the host (of the table built "
    "on the device: that of its kernel), time to upload, bytes. A search by every thread and Octopus need the "
    "offsets alone, which a ragged batch has anyway.",
    absent=f"Maps. {no_run(STUDY)}",
)


def tuner(frame: Frame) -> Table:
    """What the tuner takes and what its choice costs, beside the published tuner."""

    def fact(name: str):
        return lambda view: view.text(view.key(method="tuner", quantity=name), MISSING)

    probe = frame.text(published("auto_tuner", "all", "tuner", _PROBE))
    lines = [
        (["Longest probe", probe], fact("probe")),
        (["Choice against the best, worst", MISSING], fact("regret")),
    ]
    for name, operation in (("multiply", "multiply"), ("blur", "blur3x3")):
        gain = frame.text(published("auto_tuner", name, "block-metadata", _TUNED_GAIN))
        for width, printed in (("scalar", gain), ("vector", MISSING)):
            label = f"C over B, {mapping_widths.EACH[width]}, {name}, VisDrone, most items"
            lines.append(([label, printed], _most_items(operation, width)))
    caption = (
        "The tuner: its longest probe, and time of its choice / least time - 1 over all comparisons of the same run, "
        "for a batch that is used once (kernel, and setup and upload of the map). "
        "C over B: block metadata over a search by every thread, both with one element per thread, as published, or "
        "both with several."
    )
    return beside(views(frame, STUDY), ["", "Jetson Orin Nano, published"], lines, caption, no_run(STUDY))


def _most_items(operation: str, width: str) -> Callable[[View], str]:
    def cell(view: View) -> str:
        keys = mapping_figures.timed(view, SHOWN, operation)
        return _c_over_b(width)(view, keys[-1]) if keys else MISSING

    return cell


_TARGETS = {
    "not_slower": (
        "Octopus against a search by every thread",
        f"time at most {1 + SLOWER_BY:g}\u00d7, beyond noise",
    ),
    "copy_share": (
        "Pointwise operations on large items",
        f"at least {100 * COPY_SHARE:g} % of the copy bound",
    ),
    "build": (
        f"Block metadata of {quantity_text(BUILD_ITEMS, 'count')} items",
        f"built within {BUILD_MS:g} ms",
    ),
    "regret": ("The tuner's choice", f"at most {100 * REGRET:g} % slower than the best"),
}


def targets(frame: Frame) -> Table:
    """The project's own targets, each with its outcome by rule."""
    lines = [
        (texts, lambda view, name=name: view.text(view.key("target", quantity=name), MISSING))
        for name, texts in _TARGETS.items()
    ]
    caption = (
        "This project's own targets for the mapping strategies, and what became of them. A limit "
        "counts as missed where the whole interval lies beyond it."
    )
    widths = (["1.2fr", "1.1fr"], "1.6fr")
    return beside(
        views(frame, STUDY), ["What", "Target"], lines, caption, no_run(STUDY), widths, text_columns=None
    )


REPORT = StudyReport(
    numbers=(*mapping_numbers.NUMBERS, mapping_model.model_numbers),
    of_all=(mapping_model.predictions,),
    compares=compares,
    tables={
        "mapping": KERNELS,
        "mapping_widths": mapping_widths.WIDTHS,
        "mapping_maps": BUILDING,
        "mapping_model": mapping_model.model,
        "mapping_targets": targets,
        "tuner": tuner,
    },
    figures={
        "mapping_heatmap": Chart(
            mapping_figures.heatmap,
            caption="How much slower than Octopus each strategy is: strategy by operation, a map per "
            "distribution and number of items.",
        ),
        "mapping_scaling": Chart(
            mapping_figures.scaling,
            caption="What a search by every thread and a lookup table cost against Octopus, over the number of items.",
        ),
        "mapping_memory": Chart(
            mapping_figures.memory,
            caption="Bytes that say who owns which element, strategy by strategy, over the number of elements.",
        ),
    },
    claims="claims_mapping",
)
