"""``docs/many.md``: what a GPU, a node and many nodes serve, from the committed references and stated assumptions."""

from __future__ import annotations

from collections.abc import Iterator
from operator import truediv
from pathlib import Path

from octopus_study.measure.statistics import Interval
from octopus_study.names import IMAGE_BATCHES, PIPELINES, SUBJECT
from octopus_study.report.build import derive_all
from octopus_study.report.capacity import (
    FLEET,
    MILLION,
    Fleet,
    Stages,
    corners,
    gpu_hours,
    rate_of_gpus,
    saved,
)
from octopus_study.report.frame import Frame, Key, Number
from octopus_study.report.many_assumptions import NOT_YET, assumptions, bandwidths, linear, share_of, shown
from octopus_study.report.runs import load_runs
from octopus_study.report.studies import images, pipelines, power, scaling
from octopus_study.report.studies import stage_timing_numbers as stage_timing
from octopus_study.report.studies.scaling_model import (
    RESIDENT,
    TABLE,
    UPLOADED,
    interval_of,
    predictions,
)
from octopus_study.report.tables.spec import build
from octopus_study.report.tables.writers import MISSING, Table, markdown
from octopus_study.report.view import View

STUDIES = (images.STUDY, pipelines.STUDY, power.STUDY, stage_timing.STUDY, scaling.STUDY)
BOXES = (100, 1000)  # of a frame, whose energy is shown
OTHER = "transformers"
# Batches of images that are those of a model's.
SAME_IMAGES = {"model-one": "one", "model-ragged": "large", "model-small": "small"}
_HEAD = """\
# Toward many

<!-- Written by `octopus report many` from data/reference. Do not edit. -->

What one GPU, one node of {gpus} GPUs and {nodes} nodes serve: a small model, `octopus_study/report/capacity.py`, made
of measured times. No cluster was measured. What was measured has its 95 % interval; what follows from it reaches from
the least to the greatest value over all ends of these. What was assumed stands among the assumptions, and
`octopus report many --gpus {gpus} --nodes {nodes} --price {price:g}` writes this page for others.

On one GPU a batch takes the time of its upload, and then that from the call to the synchronised result, which is the
host's part and the kernels' in turn. **In turn** adds them, as on one stream that is waited for. **Overlapped** takes
the longest of kernels and upload alone: the most that these parts allow, for programs that prepare a batch while
another one computes.
"""
_NONE = "\nNo reference machine with a GPU has such rows yet.\n"


def many_doc(reference_dir: str | Path, fleet: Fleet = FLEET) -> str:
    """Return the page; what has no rows says that it was not measured yet.

    Parameters
    ----------
    reference_dir : path
        ``data/reference``.
    fleet : Fleet
        What a reader sets.
    """
    runs = [run for run in load_runs(None, reference_dir) if run.study in STUDIES]
    measured = Frame(derive_all(runs))
    frame = Frame([*measured, *predictions(measured)])
    machines = [machine for machine in frame.machines() if frame.is_gpu(machine)]
    pages = [text for machine in machines for text in _machine(frame, machine, fleet)]
    return "\n".join([_HEAD.format(**fleet._asdict()), *(pages or [_NONE])])


def _machine(frame: Frame, machine: str, fleet: Fleet) -> Iterator[str]:
    views = {study: View(frame, machine, study) for study in STUDIES}
    yield f"## {frame.machine_name(machine)}\n"
    rows = [
        f"`{study}` ({view.fact('dataset')}, {view.fact('measured_on')})"
        for study, view in views.items()
        if view.fact("measured_on")
    ]
    yield f"Rows: {'; '.join(rows)}.\n"
    # Without aliases, which choose the machines of the paper's text, tables show every machine.
    alone = Frame(number for number in frame if number.machine == machine)
    several = any(number.known for number in alone.select(machine, scaling.STUDY, derived="share"))
    shares = [("Several GPUs of one host", build(scaling.TABLE, alone))] if several else []
    for head, table in (
        ("Images in a batch", _serving(views, fleet)),
        ("Images into a model", _models(views, fleet)),
        ("Energy", _energy(views, fleet)),
        ("Assumptions", assumptions(views, fleet)),
        *shares,
        ("Held against several GPUs", build(TABLE, alone)),
    ):
        yield f"### {head}: {frame.machine_name(machine)}\n"
        yield markdown(table) if table.rows else f"{table.caption}\n"


def _exact(number: Number) -> Interval:
    return Interval(number.value, number.value, number.value, 1)


def _uploads(views: dict[str, View], nbytes: Interval) -> tuple[Interval, Interval] | None:
    """Return the ms of bytes to one GPU, while it copies alone and while all do; None where nothing copied."""
    rates = bandwidths(views)
    if not rates:
        return None
    each = [interval_of(rate).scaled(1 / scaling.gpus_of(rate.method)) for rate in (rates[0], rates[-1])]
    alone, at_once = (corners(lambda size, speed: size / speed / 1e6, nbytes, speed) for speed in each)
    return alone, at_once


def _serving(views: dict[str, View], fleet: Fleet) -> Table:
    rows = [row for key in images.cases(views[images.STUDY]) for row in _batch(views, fleet, key)]
    header = [
        "Images", "Data", "One GPU, images/s in turn", "overlapped", "of the time, upload",
        f"A node of {fleet.gpus}, images/s", "it is fed, GB/s", f"{fleet.nodes} nodes, million images/s",
        "GPU hours a million images", f"Cost at {fleet.price:g} an hour",
    ]  # fmt: skip
    caption = (
        "Ragged images to one batch for a model, by one plan and one launch. On the GPU: pixels are there already. "
        "Uploaded: from page-locked memory of the host. Nodes, hours and cost: in turn."
    )
    return Table(caption if rows else f"Batches of images: {NOT_YET}.", header, rows, (0, 1))


def _stages(views: dict[str, View], key: Key) -> tuple[Number, Stages, Stages | None] | None:
    """Return the bytes of a batch's images, and what it takes with them on the GPU, and uploaded, which is None where
    nothing copied."""
    view = views[images.STUDY]
    whole, kernel = view.get(key), view.get(key.but(quantity="kernel", layer="device"))
    nbytes = view.get(key.but(method="batch", quantity="read_bytes", layer="deterministic"))
    if key.n is None or whole is None or kernel is None or nbytes is None:
        return None
    stages, uploads = Stages(key.n, interval_of(whole), interval_of(kernel)), _uploads(views, _exact(nbytes))
    return nbytes, stages, uploads and stages._replace(upload=uploads[0], upload_of_all=uploads[1])


def _batch(views: dict[str, View], fleet: Fleet, key: Key) -> Iterator[list[str]]:
    found = _stages(views, key)
    if found is None or key.n is None:
        return
    nbytes, *stages = found
    name = f"{key.n} of {IMAGE_BATCHES[key.workload]}"
    for data, now in zip(("on the GPU", "uploaded"), stages, strict=True):
        if now is None:
            yield [name, data, NOT_YET, *[MISSING] * 7]
            continue
        node = now.of_gpus(fleet.gpus, share_of(linear(views, "images", RESIDENT)))
        part = shown(now.upload_share, 100, " %") if data == "uploaded" else MISSING
        fed = shown(node, nbytes.value / key.n / 1e9)
        yield [name, data, shown(now.rate), shown(now.overlapped), part, *_fleet(node, fleet, fed)]


def _fleet(node: Interval, fleet: Fleet, *behind: str) -> list[str]:
    """Return the cells of a node, of all nodes, of hours and cost, from a node's images a second."""
    hours = gpu_hours(node.scaled(1 / fleet.gpus))
    of_all = shown(node, fleet.nodes / MILLION)
    return [shown(node), *behind, of_all, shown(hours), shown(hours, fleet.price)]


def _models(views: dict[str, View], fleet: Fleet) -> Table:
    view = views[pipelines.STUDY]
    cases = [key.but(quantity=pipelines.STEP, input="pillow") for key in pipelines.batches(view)]
    rows = [_model(views, fleet, key, method) for key in cases for method in (SUBJECT, OTHER)]
    known = [row for row in rows if row]
    header = [
        "Images", "Import", "Preprocessing / batch in turn", "of the step", "One GPU, images/s",
        f"A node of {fleet.gpus}, images/s",
        f"{fleet.nodes} nodes, million images/s", "GPU hours a million images", f"Cost at {fleet.price:g} an hour",
        "GPUs of a thousand that the change frees",
    ]  # fmt: skip
    caption = (
        "Images of Pillow through the processor and the vision tower of Qwen2-VL, each step waited for, before "
        "and after one import is changed. Preprocessing / batch in turn: its time over that of the same images in the "
        "table above, uploaded, in turn; here they are Pillow's, and the processor's own Python is part of it. Freed "
        "GPUs follow from the two steps measured in pairs, so they may differ from what the two rates "
        "beside them say. Where preprocessing hides behind the tower of the batch before, the change frees none."
    )
    lacking = "Steps of a model with Octopus and with transformers: no run at hand has them."
    return Table(caption if known else lacking, header, known, (0, 1))


def _model(views: dict[str, View], fleet: Fleet, key: Key, method: str) -> list[str]:
    times = {name: model_times(views[pipelines.STUDY], key.but(method=name)) for name in (SUBJECT, OTHER)}
    speedup = views[pipelines.STUDY].get(key.speedup(OTHER))
    if not all(times.values()) or speedup is None or key.n is None:
        return []
    prepare, step, tower = times[method]
    ways = [share_of(linear(views, "images", quantity)) for quantity in (UPLOADED, RESIDENT)]
    node = rate_of_gpus(key.n, fleet.gpus, (prepare, ways[0]), (tower, ways[1]))
    return [
        f"{key.n}: {PIPELINES[key.workload]}",
        "Octopus" if method == SUBJECT else OTHER,
        _over_in_turn(views, key, prepare) if method == SUBJECT else MISSING,
        shown(corners(truediv, prepare, step), 100, " %"),
        shown(Stages(key.n, step, step).rate),
        *_fleet(node, fleet),
        shown(saved(interval_of(speedup), 1000)) if method == SUBJECT else MISSING,
    ]


def _over_in_turn(views: dict[str, View], key: Key, prepare: Interval) -> str:
    """Return how many times as long preprocessing takes as its images do uploaded, in turn."""
    batch = key.but(
        study=images.STUDY, workload=SAME_IMAGES.get(key.workload, ""), quantity="end_to_end", input=""
    )
    _, _, uploaded = _stages(views, batch) or (None, None, None)
    if uploaded is None:
        return MISSING
    return shown(corners(lambda *ms: ms[0] / sum(ms[1:]), prepare, uploaded.work, uploaded.upload))


def model_times(view: View, key: Key) -> tuple[Interval, ...]:
    """Return the ms of preprocessing, of the step, and of what the step is without it; nothing where one lacks."""
    prepare, step = view.get(key.but(quantity=pipelines.PREPARE)), view.get(key)
    if prepare is None or step is None:
        return ()
    both = interval_of(prepare), interval_of(step)
    return (*both, corners(lambda part, whole: max(whole - part, 0), *both))


def _energy(views: dict[str, View], fleet: Fleet) -> Table:
    rows = [row for boxes in BOXES if (row := _frames(views, fleet, boxes))]
    header = [
        "Boxes of a frame", "One GPU, frames/s", "of the time, kernel", f"A node of {fleet.gpus}, frames/s",
        "GPUs of a node, W", f"{fleet.nodes} nodes, million frames/s", "GPU hours a million frames",
        f"Cost at {fleet.price:g} an hour", "kJ a million frames",
    ]  # fmt: skip
    caption = (
        "Crops of frames on the GPU, launched back to back: time, power and energy of the same windows, by the sensor "
        "of the GPU's board. What of the time is not the kernel's is the host's, and the board waits: rate and energy "
        f"then rest on the host, too. Energy of ragged images and of a model's steps: {NOT_YET}, and "
        "not guessed from another work's."
    )
    return Table(caption if rows else f"Energy: {NOT_YET} by a sensor that passes its checks.", header, rows)


def _frames(views: dict[str, View], fleet: Fleet, boxes: int) -> list[str]:
    def measured(study: str, quantity: str, layer: str) -> Interval | None:
        found = views[study].select(
            quantity=quantity, n=boxes, method=SUBJECT, layer=layer, workload="visdrone"
        )
        return next((interval_of(number) for number in found if number.known and not number.derived), None)

    quantities = ("time_per_frame", "power_mean_gpu_board", "energy_per_frame_gpu_board")
    time, power_mean, energy = (measured(power.STUDY, name, "back_to_back") for name in quantities)
    if not (time and power_mean and energy):
        return []
    kernel = measured(stage_timing.STUDY, "crop_resize_normalize", "device")
    part = shown(corners(truediv, kernel, time), 100, " %") if kernel else NOT_YET
    stages = Stages(1, time, time)
    node = stages.of_gpus(fleet.gpus, share_of(linear(views, "crops", RESIDENT)))
    watts = power_mean.scaled(fleet.gpus)
    return [str(boxes), shown(stages.rate), part, *_fleet(node, fleet, shown(watts)), shown(energy)]
