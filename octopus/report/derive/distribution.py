"""What only the distribution study knows: quantiles of the sizes, padded batches as float32, jitter over
frames."""

from __future__ import annotations

from collections.abc import Iterator

from octopus.measure.statistics import median_interval
from octopus.report.derive.samples import blocks, groups, origin
from octopus.report.numbers import Number, make_number
from octopus.report.runs import Run

# Padding is stored for uint8; the source documents also state the batch as float32.
_FLOAT32_BYTES = 4


def distribution_numbers(run: Run) -> Iterator[Number]:
    """Yield the study's derived numbers."""
    yield from _quantiles(run)
    yield from _padded_float32(run)
    yield from _jitter(run)


def _quantiles(run: Run) -> Iterator[Number]:
    """Yield every percentile of width and height: ``<scope>.distribution.<workload>.boxes.width.p50``."""
    for quantity, side in (("width_quantile", "width"), ("height_quantile", "height")):
        for row in run.rows[run.rows["quantity"] == quantity].itertuples():
            identifier = f"{run.scope}.{run.study}.{row.workload}.boxes.{side}.p{row.block}"
            selector = f"workload={row.workload}, quantity={quantity}, block={row.block} (percentile)"
            yield make_number(identifier, origin(run, row.dataset), selector, "px", float(row.value))


def _padded_float32(run: Run) -> Iterator[Number]:
    for row in run.rows[run.rows["quantity"] == "padded_bytes"].itertuples():
        identifier = f"{run.scope}.{run.study}.{row.workload}.n{row.n}.padding.padded_float32_bytes"
        selector = f"workload={row.workload}, n={row.n}, method=padding, quantity=padded_bytes"
        value = _FLOAT32_BYTES * float(row.value)
        note = f"{_FLOAT32_BYTES} x the bytes as uint8"
        yield make_number(identifier, origin(run, row.dataset), selector, "bytes", value, note=note)


def _jitter(run: Run) -> Iterator[Number]:
    """Yield how far the frames of a sequence differ: standard deviation over frames / their mean, per
    block."""
    for group, rows in groups(run, quantity="frame_time", layer="host"):
        table = blocks(rows)
        frames = table[[name for name in table.columns if "/frame-" in name]]
        if frames.shape[1] < 2 or frames.empty:
            continue
        jitter = median_interval((frames.std(axis=1, ddof=1) / frames.mean(axis=1)).to_numpy())
        identifier = f"{group.prefix(run, 'octopus')}.jitter"
        note = "standard deviation over frames / mean, median over blocks"
        yield make_number(
            identifier, origin(run, group.dataset), group.selector(), "fraction", *jitter[:3], note=note
        )
        middle = frames.median()
        selector = group.selector()
        spread = float(middle.max() / middle.min()) - 1
        yield make_number(
            f"{group.prefix(run, 'octopus')}.spread",
            origin(run, group.dataset),
            selector,
            "fraction",
            spread,
            note="slowest / fastest frame - 1, of the frames' medians",
        )
