"""What follows from the published tables of the edge scenarios alone."""

from __future__ import annotations

from collections.abc import Iterator

from octopus_study.report.numbers import Number, make_number


def published_edge_numbers(frame) -> Iterator[Number]:
    """Yield ratios of the published clip times, the threshold as a share of full brightness, and what processing is of
    the time to the ground."""
    known = {number.id: number for number in frame}
    threshold = known.get("published.satellite.greenland.threshold")
    if threshold:
        yield _derived(threshold, "satellite.threshold", "fraction", threshold.value, "as printed")
    processing = known.get("published.satellite.greenland.processing")
    if processing:
        sent = 1000 * known["published.satellite.greenland.kept_downlink_time"].value
        share = processing.value / (processing.value + sent)
        note = "processing / (processing + downlink of the kept tiles)"
        yield _derived(processing, "satellite.processing_share", "fraction", share, note)


def _derived(source: Number, name: str, unit: str, value: float, note: str) -> Number:
    origin = ("published", "jetson-orin-nano", "", source.source)
    return make_number(f"published.derived.{name}", origin, source.selector, unit, value, note=note)
