"""Colours and markers of everything that figures tell apart."""

from octopus_study import names
from octopus_study.names import BLACK, BLUE, GREEN, GREY, LIGHT, ORANGE, PURPLE, SKY, VERMILION, YELLOW

_ALL = (*names.PREPARING_METHODS, *names.PROCESSOR_METHODS, *names.CROP_METHODS)
_ALL += names.ITEM_METHODS + names.EDGE_METHODS
METHOD_COLORS = {row.name: row.colour for row in _ALL if row.colour}
METHOD_MARKERS = {row.name: row.marker for row in _ALL if row.marker}
COST_COLORS = {"setup": PURPLE, "upload": YELLOW, "kernel": BLUE, "download": LIGHT}
CONCURRENCY_COLORS = {
    "visual-odometry-alone": LIGHT,
    "satellite-matching-alone": LIGHT,
    "sequential": GREY,
    "two-streams": ORANGE,
    "two-threads": "#B08968",
    "pipeline": GREEN,
    "no-prefetch": "#F4C95D",
    "prefetch": "#C9B458",
    "two-processes": PURPLE,
    "two-processes-mps": "#8C4B8C",
}
STAGE_COLORS = {
    "build_metadata": PURPLE,
    "upload_metadata": YELLOW,
    "crop_resize": ORANGE,
    "normalize": SKY,
    "crop_resize_normalize": BLUE,
    "rest": LIGHT,
}
SHAPE_COLORS = {"step64": ORANGE, "whole": VERMILION, "split": BLUE}
WORKLOAD_COLORS = {"uniform": ORANGE, "long-tail": SKY, "bimodal": GREEN, "temporal": BLACK, "visdrone": VERMILION}
# Machines are told apart by marker, filled when measured and hollow when published.
MACHINE_MARKERS = ("o", "s", "D", "^", "v")
MACHINE_COLORS = (BLUE, VERMILION, GREEN, PURPLE, BLACK)
