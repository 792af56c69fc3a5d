"""What the page :mod:`octopus_study.report.many_doc` takes for granted: measured where rows have it, else assumed."""

from __future__ import annotations

from octopus_study.measure.statistics import Interval
from octopus_study.report.capacity import WHOLE, Fleet
from octopus_study.report.frame import Number
from octopus_study.report.studies import scaling
from octopus_study.report.studies.scaling_model import COPIES, RESIDENT, UPLOADED, WAY, interval_of
from octopus_study.report.tables.writers import Table
from octopus_study.report.text import bracketed
from octopus_study.report.view import View

NOT_YET = "not measured yet"


def linear(views: dict[str, View], work: str, quantity: str) -> Number | None:
    """Return the measured share of linear of the most GPUs; None where there is none."""
    found = views[scaling.STUDY].select(
        workload=work, quantity=quantity, method=WAY, derived="share", other=scaling.LINEAR
    )
    return next((number for number in found if number.known), None)


def bandwidths(views: dict[str, View]) -> list[Number]:
    """Return the rates of copies by the number of GPUs that copy at once, GB/s of all together."""
    found = views[scaling.STUDY].select(workload=COPIES, quantity=UPLOADED, derived="rate")
    known = [number for number in found if number.known and number.method.startswith(f"{WAY}-")]
    return sorted(known, key=lambda number: scaling.gpus_of(number.method))


def share_of(number: Number | None) -> Interval:
    """Return a share of linear, 1 where none was measured."""
    return interval_of(number) if number else WHOLE


def assumptions(views: dict[str, View], fleet: Fleet) -> Table:
    """Return the table of assumptions: value, where it is from, and what changes if it is wrong."""
    view, rates = views[scaling.STUDY], bandwidths(views)
    seen = view.frame.text(f"{view.machine}.machine.instances") or "cards that nobody counted"
    spread = next((n for n in view.select(derived="spread", workload="images") if n.known), None)
    rows = [
        ["GPUs of a node", str(fleet.gpus), "assumed", "Rates of nodes are proportional to it."],
        ["Nodes", str(fleet.nodes), "assumed", "The same."],
        ["What nodes say to each other", "nothing", "assumed: shards of images are independent",
         "A part of the time that goes to it takes the same part of all rates of many nodes."],
        ["Decoding, disks, network", "they keep pace", "assumed",
         "A node that is fed fewer GB/s than its column says serves fewer images, in proportion."],
        *(_linear_row(views, *row) for row in (
            ("images", RESIDENT, "The part of the time that is no upload follows it inversely."),
            ("images", UPLOADED, "Preprocessing's part of a model's step follows it inversely."),
            ("crops", RESIDENT, "Rates of nodes on crops are proportional to it."),
        )),
        *(_bandwidth_row(rate) for rate in dict.fromkeys([*rates[:1], *rates[-1:]])),
        *([] if rates else [["Upload, GB/s", NOT_YET, "study `scaling`", "Nothing uploaded is shown without it."]]),
        ["Upload, host and kernels", "in turn", "assumed: each batch is waited for",
         "The column overlapped is the other end. Where one batch is queued behind another, as in the study `scaling`, "
         "a part of the upload is hidden."],
        ["Host", "as fast, and as little shared", "assumed",
         "What of a time is neither kernel nor upload follows it; a GPU that waits for it draws power all the same."],
        ["Cards of one kind, and their hosts", "alike", f"assumed; the rows of this machine are of {seen}",
         "Rows of different studies are put together here as if one card had given them."],
        ["Slowest GPU / fastest", *((shown(interval_of(spread)), f"`{spread.id}`") if spread else
                                    ("1", f"assumed: {NOT_YET}")),
         "Equal shards wait for the slowest GPU; a queue of batches waits less."],
        ["Hours like these minutes", "yes", "assumed: intervals are of short runs",
         "Rates are proportional to what clocks lose in hours."],
        ["Price of a GPU hour", f"{fleet.price:g}", "assumed, any currency; node and idle time in it",
         "Cost is proportional to it."],
        ["Energy", "of GPU boards alone", "measured; hosts, network and cooling are left out",
         "What a site adds for each joule of a board multiplies it."],
    ]  # fmt: skip
    return Table("What the numbers above take for granted, and what they change with.",
                 ["What", "Value", "From", "If it is wrong"], rows, (0, 1, 2, 3))  # fmt: skip


def _linear_row(views: dict[str, View], work: str, quantity: str, wrong: str) -> list[str]:
    name = f"Share of linear, {scaling.SCALING_WORKS[work].lower()}, {scaling.SCALING[quantity]}"
    number = linear(views, work, quantity)
    if number is None:
        return [name, "1", f"assumed: {NOT_YET} (study `scaling`)", wrong]
    gpus = number.note.partition(" GPUs")[0].removeprefix("of ")
    return [
        name,
        shown(share_of(number)),
        f"`{number.id}`, of {gpus} GPUs; assumed to hold for all of a node",
        wrong,
    ]


def _bandwidth_row(rate: Number) -> list[str]:
    gpus = scaling.gpus_of(rate.method)
    name = f"Upload, GB/s, {gpus} {'GPU copies' if gpus == 1 else 'GPUs copy at once, all together'}"
    wrong = "Uploaded rates follow it by the part of the time that is upload."
    return [name, shown(interval_of(rate)), f"`{rate.id}`", wrong]


def shown(number: Interval, factor: float = 1, unit: str = "") -> str:
    """Return an interval with sensible digits; of large numbers four count, the rest are zeros."""
    value, low, high = (_of_four(factor * end) for end in number[:3])
    return bracketed(value, low, high, unit)


def _of_four(value: float) -> float:
    return float(f"{value:.4g}") if abs(value) >= 1e4 else value
