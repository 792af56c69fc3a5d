"""Human names for the identifiers that rows carry, which figures and tables take from here; those of the edge scenarios
are in ``labels_edge``."""

from __future__ import annotations

from collections.abc import Iterable

from octopus_study import methods

METHODS = {row.name: row.label for row in methods.METHODS}
SHORT_METHODS = {row.name: row.short or row.label for row in methods.METHODS}
# In the arena, names stand in lists, so they hold no comma; the order is that of its tables and figures.
ARENA_METHODS = {row.name: row.short or row.label for row in methods.METHODS if row.target or row.listed} | {
    "n-launches-fused": "N launches (fused)",
    **{
        row.name: (row.short or row.label).replace(",", "")
        for row in methods.METHODS
        if row.library == "OpenCV"
    },
}
# The kernel from plain to fast: each step keeps what the one before has, and adds one thing.
LADDER_STEPS = {
    "two-passes": "Two passes",
    "one-pass": "One pass",
    "streamed": "Streamed",
    "prefetched": "Prefetched",
    "paired": "Paired",
    "octopus": "Words (Octopus)",
}
LADDER_CHANGES = {
    "two-passes": "the published kernels: a uint8 crop between resizing and normalising",
    "one-pass": "one fused kernel, one column per thread",
    "streamed": "source rows stream through registers: the next is loaded while this one's results are stored",
    "prefetched": "the first blocks prefetch the frame into L2",
    "paired": "two columns per thread, one store of eight bytes",
    "octopus": "pixels are read as aligned words; the kernel in use",
}
LADDER_WORKLOADS = {"ladder": "VisDrone", "ladder-large": "320 \u00d7 320"}
# Kinds of results, and the bound of each type.
RESULT_KINDS = {
    "octopus": "float32, NCHW",
    "octopus-nhwc": "float32, NHWC",
    "octopus-letterbox": "float32, NCHW, letterbox",
    "octopus-image": "float32, NCHW, edge of the image",
    "octopus-fp16": "float16, NCHW",
    "octopus-fp16-nhwc": "float16, NHWC",
    "octopus-uint8": "uint8, NCHW",
    "octopus-uint8-nhwc": "uint8, NHWC",
    "write-bound": "Write bound, float32",
    "write-bound-fp16": "Write bound, float16",
    "write-bound-uint8": "Write bound, uint8",
}
# The kernel's roads, each beside its own roof.
ROADS = {
    "road-float32": "float32, NCHW, VisDrone",
    "road-float16": "float16, NCHW, VisDrone",
    "road-bfloat16": "bfloat16, NCHW, VisDrone",
    "road-uint8": "uint8, NCHW, VisDrone",
    "road-uint8-nhwc": "uint8, NHWC, VisDrone",
    "road-float32-320": "float32, 320 \u00d7 320",
    "road-float16-320": "float16, 320 \u00d7 320",
    "road-bfloat16-320": "bfloat16, 320 \u00d7 320",
    "road-float16-256": "float16, 256 \u00d7 256",
    "road-bfloat16-256": "bfloat16, 256 \u00d7 256",
    "road-antialias-320": "float32, antialiased, 320 \u00d7 320",
    "road-antialias-48": "float32, antialiased, 48 \u00d7 48",
    "road-to-32": "float32, 48 \u00d7 48 to 32 \u00d7 32",
    "road-to-64": "float32, 48 \u00d7 48 to 64 \u00d7 64",
    "road-to-96": "float32, 48 \u00d7 48 to 96 \u00d7 96",
    "road-frames": "float32, frames letterboxed to 640 \u00d7 640",
    "road-frames-antialias": "the same, antialiased",
}
INPUTS = {
    "nv12": "NV12 frame",
    "nv12-1thread": "NV12 frame, one thread",
    "warp": "Affine maps",
    "warp-1thread": "Affine maps, one thread",
}
SAVING_STEPS = {
    "launches": "N launches to one, published kernels",
    "launches-fused": "N launches to one, fused kernel",
}
WORKLOADS = {
    "uniform": "Uniform",
    "long-tail": "Long tail",
    "bimodal": "Bimodal",
    "temporal": "Temporal",
    "visdrone": "VisDrone",
    "visdrone-1thread": "VisDrone, one thread",
}
ARENA_WORKLOADS = WORKLOADS | {
    "uniform": "Uniform 256 \u00d7 256",
    "uniform-1thread": "Uniform 256 \u00d7 256, one thread",
    "large": "Large",
    "large-1thread": "Large, one thread",
}
# Libraries whose answers are compared with those of Octopus.
PARITY_PEERS = {
    "opencv": "OpenCV",
    "torch": "PyTorch",
    "torchvision": "torchvision",
    "pil": "PIL",
    "cvcuda": "CV-CUDA",
    "dali": "DALI",
    "ffmpeg": "FFmpeg",
    "float64": "Float64",
}
# Packages of the peers, by their names in the index; several names of one library stand for its builds.
PEER_PACKAGES = {
    package: library.name for library in methods.LIBRARIES if library.name for package in library.packages
}
# How a thread finds its item, in the order of the ladder; the forms of the lookup table are those of the total cost.
STRATEGIES = {row.name: row.label for row in methods.ITEM_METHODS}
DISTRIBUTIONS = {"tiny": "Tiny", "visdrone": "VisDrone", "large": "Large"}
OPERATIONS = {
    "multiply": "Multiply",
    "normalize": "Normalise",
    "threshold": "Threshold",
    "gamma": "Gamma",
    "blur3x3": "Blur 3\u00d73",
    "blur5x5-sobel": "Blur 5\u00d75 and Sobel",
}
# Mixes of images, each with a light and a heavy kernel.
IMAGE_MIXES = {
    "flickr-500": "500 images",
    "flickr-500-4k": "500 and a 4K image",
    "flickr-500-8k": "500 and an 8K image",
    "flickr-1000": "1000 images",
    "flickr-1000-8k": "1000 and an 8K image",
}
IMAGE_KERNELS = {"light": "light kernel", "heavy": "heavy kernel"}
COST_PARTS = {"setup": "Setup", "upload": "Upload", "kernel": "Kernel", "download": "Download"}
SEQUENCE_WORKLOADS = {
    "nlp-1k": "NLP, 1 K",
    "nlp-10k": "NLP, 10 K",
    "nlp-extreme-1k": "NLP, extreme, 1 K",
    "vision-patches-500": "Patches, 500",
    "vision-extreme-500": "Patches, extreme, 500",
}
# Two models on one GPU: ways to run both, in the order of tables and figures.
CONCURRENCY_MODELS = {"visual-odometry": "Visual odometry", "satellite-matching": "Satellite matching"}
CONCURRENCY_ARMS = {
    "visual-odometry-alone": "Visual odometry alone",
    "satellite-matching-alone": "Satellite matching alone",
    "sequential": "One after the other",
    "two-streams": "Two streams",
    "two-threads": "Two threads, two streams",
    "cuda-graphs": "CUDA graphs",
    "pipeline": "Asynchronous pipeline",
    "no-prefetch": "Pageable copies",
    "prefetch": "Page-locked, copied ahead",
    "two-processes": "Two processes",
    "two-processes-mps": "Two processes with MPS",
}
CROPS_BESIDE = {
    "model-alone": "Model alone",
    "crops-alone": "Crops alone",
    "crops-first": "Crops first, same stream",
    "crops-beside": "Crops beside, own stream",
}
# Counts that prove that a way was what its name says, singular and plural, and the models as stages.
CONCURRENCY_PROOFS = {
    "streams": ("stream", "streams"),
    "threads": ("thread", "threads"),
    "processes": ("process", "processes"),
    "mps_clients": ("MPS client", "MPS clients"),
    "graphs": ("graph", "graphs"),
}
CONCURRENCY_STAGES = {
    "superpoint": "SuperPoint",
    "lightglue": "LightGlue",
    "dinov2": "DINOv2",
    "efficientloftr": "EfficientLoFTR",
}
# Images of any size on their way into a model.
PROCESSORS = {row.name: row.label for row in methods.PROCESSOR_METHODS}
TILE_OWNERS = {row.name: row.label for row in methods.OWNER_METHODS}
IMAGE_BATCHES = {
    "large": "512 to 2048 px, rows",
    "small": "64 to 512 px, rows",
    "thumbnails": "256 to 1024 px to 224\u00b2",
    "equal": "1024 \u00d7 1024, rows",
    "one": "1920 \u00d7 1080, rows",
}
PIPELINE_METHODS = {row.name: row.label for row in methods.PIPELINE_METHODS}
PIPELINES = {
    "model-one": "1080p",
    "model-ragged": "512 to 2048 px",
    "model-small": "64 to 512 px",
    "model-documents": "pages, 1700 \u00d7 2200 px",
    "model-photos": "photographs, 4032 \u00d7 3024 px",
    "slices": "Slices of 4K",
}
# What is passed to a processor.
IMAGE_INPUTS = {
    "pillow": "Pillow",
    "numpy": "NumPy",
    "torch": "tensors",
    "torch-gpu": "tensors on the GPU",
    "jpeg": "JPEG files",
}
# Several GPUs: works, what is timed of them, and ways to have a worker for each.
SCALING_WORKS = {"crops": "Crops", "images": "Ragged images", "copies": "Copies alone"}
SCALING = {
    "weak_resident": "weak",
    "weak_uploaded": "weak, uploaded",
    "strong_resident": "strong",
    "strong_uploaded": "strong, uploaded",
}
WAYS = {"processes": "Processes", "threads": "Threads"}
# Shapes of images: denoisers, and ways to run one.
DENOISERS = {"drunet": "DRUNet", "unet": "UNet", "dncnn": "DnCNN"}
SHAPE_WAYS = {row.name: row.label for row in methods.IMAGE_METHODS}
PATCH_TEXT = "{batch} \u00d7 {side}\u00b2"
LAYERS = {"device": "Device", "host": "Host", "pipeline": "Pipeline"}
# Conventions under which answers are compared.
SETTINGS = {
    "float32-box": "float32, edge of the box",
    "float32-image": "float32, edge of the image",
    "uint8-box": "uint8, edge of the box",
    "antialias": "Antialiased",
    "antialias-uint8": "Antialiased, uint8",
    "letterbox": "Letterbox",
    "bfloat16": "bfloat16",
    "nearest": "Nearest pixel",
    "bicubic": "Bicubic",
    "affine": "Affine maps",
    "nv12": "Video, NV12",
    "p010": "Video, P010",
}
DATASETS = {
    "visdrone-val": "VisDrone val",
    "synthetic-visdrone": "synthetic VisDrone sample",
    "synthetic": "synthetic boxes",
    "sentinel2-b04": "Sentinel-2 B04",
    "synthetic-sentinel2": "synthetic Sentinel-2 sample",
}
# What is generated where a study has no real data.
GENERATED = {"total_cost": "synthetic images", "sequences": "synthetic sequences"}
# What a power is the power of: it is part of a column's name.
POWER_SCOPES = {
    "gpu_board": "GPU board",
    "module_vdd_in": "module, VDD_IN",
    "cpu_package": "CPU packages",
}
POWER_SENSORS = {"nvml": "NVML", "ina3221": "INA3221", "rapl": "RAPL"}
# When the checks between a sensor and an energy are made.
POWER_STAGES = {
    "parse": "When a file is parsed",
    "open": "When a source is opened",
    "power-on": "In the power-on test, before any energy",
    "window": "When a window is cut out of a trace",
    "table": "When a stored table is read again",
}
POWER_PHASES = {"idle": "Idle", "load": "Known load"}
# The published table's names of the two methods that this project measures too.
PUBLISHED_POWER = {"published": "one-launch", "n-launches": "n-launches"}
QUANTITIES = {
    "build_metadata": "Build metadata",
    "upload_metadata": "Upload metadata",
    "crop_resize": "Crop and resize",
    "normalize": "Normalise",
    "crop_resize_normalize": "Crop, resize, normalise",
    "end_to_end": "End to end",
    "end_to_end_alone": "End to end, alone",
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


# The source documents of the published claims, by the name that a claim's source begins with.
SOURCES = {
    "P1": "Block-level scheduling for batches of images of different size",
    "P2": "Hybrid block assignment for ragged image batches",
    "P3": "Two GPU models side by side",
    "P4": "GPU memory and the shape of a batch",
}


def stand_in(dataset: str) -> bool:
    """Say whether a data set was generated in place of a real one, and not by design as plain `synthetic` is."""
    return "synthetic-" in dataset


def human(names: dict[str, str], identifier: str) -> str:
    """Return the human name of an identifier; one that nobody has named yet reads as words."""
    return names.get(identifier) or identifier.replace("_", " ").replace("-", " ").capitalize()


def place(names: Iterable[str], identifier: str) -> tuple[int, str]:
    """Return what sorts identifiers in the order in which they are named; those that nobody has named yet come last."""
    order = list(names)
    return (order.index(identifier) if identifier in order else len(order), identifier)


def machine_name(device: str) -> str:
    """Shorten a vendor's device name to what a legend can hold: no trademark signs, no clock speed."""
    name = device.replace("(R)", "").replace("(TM)", "").replace(" CPU", "").replace(" Processor", "")
    return " ".join(name.split("@")[0].split())
