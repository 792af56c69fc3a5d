"""Colours and markers of everything that figures tell apart."""

from __future__ import annotations

# Okabe and Ito, "Color Universal Design" (2008): told apart with any colour vision.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY, LIGHT = "#6E6E6E", "#D9D9D9"

METHOD_COLORS = {
    "octopus": BLUE,
    "published": ORANGE,
    "n-launches": VERMILION,
    "n-launches-fused": PURPLE,
    "opencv": GREEN,
    "opencv-inplace": SKY,
    "write-bound": GREY,
    "cuda-core-launch": BLUE,
    "numba-dispatch": VERMILION,
    "kernel-call": BLUE,
    "octopus-one-call": "#003F66",
    "octopus-fp16": "#5AA3D8",
    "cvcuda": GREEN,
    "cvcuda-views": "#004D40",
    "cvcuda-scalar": "#66C2A4",
    "dali": "#B08968",
    "dali-slice": "#7A5230",
    "roi-align": PURPLE,
    "grid-sample": "#8C4B8C",
    "onnxruntime-gridsample": "#B38FD1",
    "tensorrt-gridsample": "#3B6E22",
    "tensorrt-gridsample-fp16": "#3B6E22",
    "padded-torch": "#A08A00",
    "padded-onnxruntime": "#C9B458",
    "tensorrt-padded": "#7FA650",
    "tensorrt-padded-fp16": "#7FA650",
    "write-bound-fp16": "#A8A8A8",
    "lookup": ORANGE,
    "lookup-scalar": "#F4C95D",
    "lookup-published": VERMILION,
    "lookup-vectorised": ORANGE,
    "lookup-device": "#B08968",
    "thread-search": GREEN,
    "thread-search-scalar": "#66C2A4",
    "block-metadata": PURPLE,
    "block-metadata-tuned": "#8C4B8C",
    "padded": "#A08A00",
    "nested-jagged": "#7FA650",
    "octopus-graph": "#5AA3D8",
    "n-launches-published": "#B08968",
    "numpy": GREY,
    "integral": SKY,
    "opencv-uint8": "#66C2A4",
}
METHOD_MARKERS = {
    "octopus": "o",
    "published": "s",
    "n-launches": "^",
    "n-launches-fused": "v",
    "opencv": "D",
    "opencv-inplace": "P",
    "octopus-one-call": "p",
    "octopus-fp16": ".",
    "cvcuda": "X",
    "cvcuda-views": "P",
    "cvcuda-scalar": "x",
    "dali": "H",
    "dali-slice": "h",
    "roi-align": "<",
    "grid-sample": ">",
    "onnxruntime-gridsample": "d",
    "tensorrt-gridsample": "8",
    "tensorrt-gridsample-fp16": "8",
    "padded-torch": "1",
    "padded-onnxruntime": "2",
    "tensorrt-padded": "3",
    "tensorrt-padded-fp16": "4",
    "lookup": "s",
    "lookup-published": "^",
    "lookup-vectorised": "s",
    "lookup-device": "v",
    "thread-search": "D",
    "thread-search-scalar": "d",
    "block-metadata": "P",
    "block-metadata-tuned": "X",
}
MEMORY_COLORS = {
    "memory_payload": LIGHT,
    "memory_allocator_peak": SKY,
    "memory_device_delta": BLUE,
    "memory_fixed": ORANGE,
}
COST_COLORS = {"setup": PURPLE, "upload": YELLOW, "kernel": BLUE, "download": LIGHT}
RULE_COLORS = {"fixed": PURPLE, "otsu": BLUE, "byte-budget": GREEN}
DETECTOR_COLORS = {"preprocess": ORANGE, "inference": LIGHT, "postprocess": SKY}
CONCURRENCY_COLORS = {
    "visual-odometry-alone": LIGHT,
    "satellite-matching-alone": LIGHT,
    "sequential": GREY,
    "two-streams": ORANGE,
    "two-threads": "#B08968",
    "cuda-graphs": BLUE,
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
PATCH_COLORS = (VERMILION, BLUE, GREEN, PURPLE, BLACK)
WORKLOAD_COLORS = {
    "uniform": ORANGE,
    "long-tail": SKY,
    "bimodal": GREEN,
    "temporal": BLACK,
    "visdrone": VERMILION,
}
# Machines are told apart by marker, filled when measured and hollow when published.
MACHINE_MARKERS = ("o", "s", "D", "^", "v")
MACHINE_COLORS = (BLUE, VERMILION, GREEN, PURPLE, BLACK)
