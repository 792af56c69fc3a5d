"""Human names for the identifiers that rows carry: the one place that figures and tables take them from."""

from __future__ import annotations

METHODS = {
    "octopus": "Octopus",
    "octopus-again": "Octopus, entered twice",
    "published": "Published kernels, one launch",
    "n-launches": "Published kernels, N launches",
    "n-launches-fused": "Fused kernel, N launches",
    "opencv": "OpenCV and NumPy",
    "opencv-inplace": "OpenCV, in place",
    "write-bound": "Write bound",
    "cuda-core-launch": "cuda.core launch",
    "numba-dispatch": "Numba dispatch",
    "kernel-call": "Compiled kernel call",
    "padding": "Padding to the largest",
}
SHORT_METHODS = METHODS | {
    "opencv": "OpenCV + NumPy",
    "published": "Published",
    "n-launches": "N launches",
    "n-launches-fused": "N launches, fused",
}
SAVING_STEPS = {
    "launches": "N launches to one, published kernels",
    "launches-fused": "N launches to one, fused kernel",
    "fusion": "Published kernels to the fused one",
    "total": "N launches to Octopus",
}
WORKLOADS = {
    "uniform": "Uniform",
    "long-tail": "Long tail",
    "bimodal": "Bimodal",
    "temporal": "Temporal",
    "visdrone": "VisDrone",
    "visdrone-1thread": "VisDrone, one thread",
}
DATASETS = {
    "visdrone-val": "VisDrone val",
    "synthetic-visdrone": "synthetic VisDrone sample",
    "synthetic": "synthetic boxes",
}
QUANTITIES = {
    "build_metadata": "Build metadata",
    "upload_metadata": "Upload metadata",
    "crop_resize": "Crop and resize",
    "normalize": "Normalise",
    "crop_resize_normalize": "Crop, resize, normalise",
    "end_to_end": "End to end",
    "memory_payload": "Payload",
    "memory_allocator_peak": "Allocator peak",
    "memory_device_delta": "Device delta",
    "memory_fixed": "Fixed",
}
PUBLISHED_MACHINES = {
    "jetson-orin-nano": "Jetson Orin Nano",
    "t4": "T4",
    "rtx-4090": "RTX 4090",
    "rtx-2060": "RTX 2060",
}


def human(names: dict[str, str], identifier: str) -> str:
    """Return the human name of an identifier; one that nobody has named yet reads as words."""
    return names.get(identifier) or identifier.replace("_", " ").replace("-", " ").capitalize()


def machine_name(device: str) -> str:
    """Shorten a vendor's device name to what a legend can hold: no trademark signs, no clock speed."""
    name = device.replace("(R)", "").replace("(TM)", "").replace(" CPU", "").replace(" Processor", "")
    return " ".join(name.split("@")[0].split())
