"""Each name once: methods and libraries, workloads, quantities and studies as readers see them.

Rows carry identifiers; tables, figures, claims and pages take their words from here. Nothing is imported here, so that
every layer can read it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from pkgutil import iter_modules
from typing import NamedTuple

# As in the paper; a study that isn't named comes last.
_ORDER = (
    "stage_timing",
    "distribution",
    "arena",
    "power",
    "mapping",
    "total_cost",
    "sequences",
    "images",
    "pipelines",
    "satellite",
    "drone",
    "detector",
    "concurrency",
    "image_shape",
)
# Octopus, the method that all are compared with, itself entered twice, and the bounds beside it.
SUBJECT, AGAIN = "octopus", "-again"
BOUND, ROOF = "write-bound", "roof"
# The source documents' own comparison: their one launch against their N launches.
PUBLISHED_PAIR = ("published", "n-launches")

# Okabe and Ito, "Color Universal Design" (2008): told apart with any colour vision.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY, LIGHT = "#6E6E6E", "#D9D9D9"


class Library(NamedTuple):
    """A library that Octopus is compared with, or that a study runs.

    Attributes
    ----------
    name : str
        What people call it; empty where no text names it.
    packages : tuple of str
        Names of its builds in the package index; their versions go into the provenance.
    extra : str
        Extra of the artifact that installs the first of them; empty for a dependency.
    install : str
        How to get it where no extra may bring it.
    """

    name: str
    packages: tuple[str, ...]
    extra: str = ""
    install: str = ""


class MethodRow(NamedTuple):
    """A method's row.

    Attributes
    ----------
    name : str
        In the rows of results.
    label : str
        Its human name.
    colour, marker : str
        In figures; empty for the default.
    short : str
        Its human name where a column is narrow; empty if `label` is short enough.
    library : str
        Of `LIBRARIES`; empty for Octopus' own and for NumPy.
    target : str
        ``module:class`` in `baselines` of what the arena runs; empty where a study makes the method itself.
    listed : bool
        Whether the arena's tables list it although it has no target.
    like : str
        Octopus' method with the same answer, with which it is compared.
    """

    name: str
    label: str
    colour: str = ""
    marker: str = ""
    short: str = ""
    library: str = ""
    target: str = ""
    listed: bool = False
    like: str = "octopus"


LIBRARIES = (
    Library("OpenCV", ("opencv-python-headless",)),
    Library("PyTorch", ("torch",), "baselines"),
    Library("torchvision", ("torchvision",), "baselines"),
    Library("PIL", ("pillow",)),
    Library(
        "Pillow-SIMD", ("pillow-simd",),
        install="pip install --target SITE-PACKAGES/pillow_simd pillow-simd, with CC='cc -mavx2'",
    ),
    Library("", ("onnx",), "baselines"),
    Library("ONNX Runtime", ("onnxruntime", "onnxruntime-gpu"), "baselines"),
    Library("CV-CUDA", ("cvcuda-cu13", "cvcuda-cu12"), "arena-cuda13"),
    Library("kornia-rs", ("kornia-rs",), "baselines"),
    Library("DALI", ("nvidia-dali-cuda130", "nvidia-dali-cuda120"), "arena-cuda13"),
    Library(
        "TensorRT", ("tensorrt",),
        install="pip install tensorrt (needs a GPU; its libraries come from NVIDIA's own index)",
    ),
    Library("TensorRT for RTX", ("onnxruntime-ep-nv-tensorrt-rtx-cu13",), "arena-cuda13"),
    Library("transformers", ("transformers",), "models"),
    Library("deepinv", ("deepinv",), "models"),
    Library("sahi", ("sahi",), install="pip install sahi"),
)  # fmt: skip
# On crops. The order is that of the arena's tables and figures.
CROP_METHODS = (
    MethodRow("octopus", "Octopus", BLUE, "o", target="fused:Octopus"),
    MethodRow("octopus-one-call", "Octopus (one call)", "#003F66", "p", target="fused:OneCall"),
    MethodRow("octopus-fp16", "Octopus (float16)", "#5AA3D8", ".", target="fused:HalfPrecision"),
    MethodRow("octopus-image", "Octopus (edge of the image)", "#003F66", "*", target="fused:ImageEdge"),
    MethodRow(
        "published", "Published kernels, one launch", ORANGE, "s", "Published",
        target="published:Published",
    ),
    MethodRow(
        "n-launches", "Published kernels, N launches", VERMILION, "^", "N launches",
        target="published:NLaunches",
    ),
    MethodRow(
        "n-launches-fused", "Fused kernel, N launches", PURPLE, "v", "N launches, fused",
        target="fused:NLaunchesFused",
    ),
    MethodRow(
        "opencv", "OpenCV and NumPy (1 thread)", GREEN, "D", "OpenCV + NumPy (1 thread)", "OpenCV", "opencv:OpenCv"
    ),
    MethodRow(
        "opencv-inplace", "OpenCV, in place (1 thread)", SKY, "P", library="OpenCV", target="opencv:OpenCvInPlace"
    ),
    MethodRow(
        "opencv-table", "OpenCV, by a table (1 thread)", "#2E8BC0", "X", library="OpenCV",
        target="opencv:OpenCvTable",
    ),
    MethodRow(
        "opencv-frame", "OpenCV, frame first (1 thread)", "#8FB8DE", "x", library="OpenCV",
        target="opencv:OpenCvFrame",
    ),
    MethodRow(
        "opencv-threads", "OpenCV and NumPy (all threads)", "#006B4F", "d", "OpenCV + NumPy (all threads)", "OpenCV",
        "opencv:OpenCvThreads",
    ),
    MethodRow(
        "opencv-inplace-threads", "OpenCV, in place (all threads)", "#1F6E9C", "p", library="OpenCV",
        target="opencv:OpenCvInPlaceThreads",
    ),
    MethodRow(
        "opencv-table-threads", "OpenCV, by a table (all threads)", "#0B486B", "h", library="OpenCV",
        target="opencv:OpenCvTableThreads",
    ),
    MethodRow(
        "opencv-frame-threads", "OpenCV, frame first (all threads)", "#5B84B1", "H", library="OpenCV",
        target="opencv:OpenCvFrameThreads",
    ),
    MethodRow(
        "opencv-direct", "OpenCV, straight into place (1 thread)", "#7FB8D6", "1", library="OpenCV", listed=True
    ),
    MethodRow("opencv-split", "OpenCV, resized and split (1 thread)", "#4A90B8", "2", library="OpenCV", listed=True),
    MethodRow(
        "opencv-direct-threads", "OpenCV, straight into place (all threads)", "#2F6C8F", "3", library="OpenCV",
        listed=True,
    ),
    MethodRow(
        "opencv-split-threads", "OpenCV, resized and split (all threads)", "#134B6B", "4", library="OpenCV",
        listed=True,
    ),
    MethodRow("pillow", "Pillow (1 thread)", ORANGE, "D", library="PIL", listed=True),
    MethodRow("pillow-threads", "Pillow (all threads)", "#B87A00", "d", library="PIL", listed=True),
    MethodRow("pillow-simd", "Pillow-SIMD (1 thread)", "#F4C95D", "8", library="Pillow-SIMD", listed=True),
    MethodRow("pillow-simd-threads", "Pillow-SIMD (all threads)", "#C9A227", "H", library="Pillow-SIMD", listed=True),
    MethodRow("kornia-rs", "kornia-rs", "#C2577A", "v", library="kornia-rs", target="kornia:Kornia"),
    MethodRow("kornia-rs-bytes", "kornia-rs (1 thread)", "#D98AA3", "^", library="kornia-rs", listed=True),
    MethodRow(
        "kornia-rs-bytes-threads", "kornia-rs (all threads)", "#8F3554", "<", library="kornia-rs", listed=True
    ),
    MethodRow("cvcuda", "CV-CUDA", GREEN, "X", library="CV-CUDA", target="cvcuda:CvCuda"),
    MethodRow(
        "cvcuda-views", "CV-CUDA (views by hand)", "#004D40", "P", library="CV-CUDA",
        target="cvcuda:CvCudaViews",
    ),
    MethodRow(
        "cvcuda-scalar", "CV-CUDA (one scale)", "#66C2A4", "x", library="CV-CUDA",
        target="cvcuda:CvCudaScalar",
    ),
    MethodRow(
        "cvcuda-rounded", "CV-CUDA (uint8 between)", "#9CCFB8", "1", library="CV-CUDA",
        target="cvcuda:CvCudaRounded",
    ),
    MethodRow("roiconvert", "roiconvert (C++)", "#B5651D", "D", target="native_methods:RoiConvert"),
    MethodRow(
        "cuframe", "cuframe (C++)", "#C9A66B", "<", target="native_methods:CuFrame", like="octopus-image"
    ),
    MethodRow("dali-slice", "DALI (slices)", "#7A5230", "h", library="DALI", target="dali:DaliSlice"),
    MethodRow(
        "dali", "DALI (regions)", "#B08968", "H", library="DALI", target="dali:Dali", like="octopus-image"
    ),
    MethodRow(
        "dali-pipeline", "DALI (pipeline)", "#D2B48C", "s", library="DALI",
        target="dali_pipeline:DaliPipeline", like="octopus-image",
    ),
    MethodRow(
        "roi-align", "torchvision (RoIAlign)", PURPLE, "<", library="torchvision",
        target="roi_align:RoiAlign", like="octopus-image",
    ),
    MethodRow(
        "grid-sample", "PyTorch (grid sample)", "#8C4B8C", ">", library="PyTorch",
        target="grid_sample:GridSample",
    ),
    MethodRow(
        "onnxruntime-gridsample", "ONNX Runtime (grid sample)", "#B38FD1", "d", library="ONNX Runtime",
        target="onnxruntime_graphs:OnnxRuntimeGridSample",
    ),
    MethodRow(
        "tensorrt-gridsample", "TensorRT (grid sample)", "#3B6E22", "8", library="TensorRT",
        target="tensorrt_graphs:TensorRtGridSample",
    ),
    MethodRow(
        "tensorrt-rtx-gridsample", "TensorRT for RTX (grid sample)", "#5E8C31", "4", library="TensorRT for RTX",
        target="tensorrt_rtx:TensorRtRtxGridSample",
    ),
    MethodRow(
        "tensorrt-gridsample-fp16", "TensorRT (grid sample, float16)", "#3B6E22", "8", library="TensorRT",
        listed=True,
    ),
    MethodRow(
        "padded-torch", "PyTorch (padded)", "#A08A00", "1", library="PyTorch",
        target="padded_torch:PaddedTorch",
    ),
    MethodRow(
        "padded-onnxruntime", "ONNX Runtime (padded)", "#C9B458", "2", library="ONNX Runtime",
        target="onnxruntime_graphs:PaddedOnnxRuntime",
    ),
    MethodRow(
        "tensorrt-padded", "TensorRT (padded)", "#7FA650", "3", library="TensorRT",
        target="tensorrt_graphs:TensorRtPadded",
    ),
    MethodRow(
        "tensorrt-padded-fp16", "TensorRT (padded, float16)", "#7FA650", "4", library="TensorRT",
        target="tensorrt_graphs:TensorRtPaddedHalf",
    ),
    MethodRow(
        "tensorrt-rtx-padded", "TensorRT for RTX (padded)", "#A7C957", "2", library="TensorRT for RTX",
        target="tensorrt_rtx:TensorRtRtxPadded",
    ),
    MethodRow("write-bound", "Write bound", GREY, listed=True),
    MethodRow("write-bound-fp16", "Write bound (float16)", "#A8A8A8", listed=True),
    MethodRow("octopus-again", "Octopus, entered twice"),
    MethodRow("octopus-rgb", "Octopus (RGB frame)"),
    MethodRow("octopus-converted", "Octopus (frame converted first)"),
    MethodRow("octopus-graph", "Octopus (CUDA graph)"),
    MethodRow("octopus-known", "Octopus (count known)"),
    MethodRow("octopus-read-back", "Octopus (count read back)"),
    MethodRow("affine-grid", "PyTorch (affine grid)", library="PyTorch"),
    MethodRow("octopus-torch", "Octopus (torch tensors)", library="PyTorch"),
    MethodRow("octopus-operator", "Octopus (operator of torch)", library="PyTorch"),
    MethodRow("octopus-cupy", "Octopus (CuPy arrays)"),
    MethodRow("octopus-interface", "Octopus (CUDA array interface)"),
    MethodRow("octopus-dlpack", "Octopus (DLPack)", library="PyTorch"),
    MethodRow("cuda-core-launch", "cuda.core launch", BLUE),
    MethodRow("numba-dispatch", "Numba dispatch", VERMILION),
    MethodRow("kernel-call", "Compiled kernel call", BLUE),
    MethodRow("padding", "Padding to the largest"),
)  # fmt: skip
# On items of a batch: how a thread finds its item, in the order of the ladder, and what others do instead.
ITEM_METHODS = (
    MethodRow("lookup-published", "A: table, as published", VERMILION, "^"),
    MethodRow("lookup-vectorised", "A: table, one call", ORANGE, "s"),
    MethodRow("lookup-scalar", "A: lookup table, one element", "#F4C95D"),
    MethodRow("lookup", "A: lookup table", ORANGE, "s"),
    MethodRow("lookup-device", "A: table, built on the device", "#B08968", "v"),
    MethodRow("thread-search-scalar", "B: thread search, one element", "#66C2A4", "d"),
    MethodRow("thread-search", "B: thread search", GREEN, "D"),
    MethodRow("block-metadata-published", "C: block metadata, as published", "#E7A9C9", "<"),
    MethodRow("block-metadata-scalar", "C: block metadata, one element", "#D6B0D6", "p"),
    MethodRow("block-metadata", "C: block metadata", PURPLE, "P"),
    MethodRow("block-metadata-tuned", "C: block metadata, tuned", "#8C4B8C", "X"),
    MethodRow("octopus", "D: block search (Octopus)", BLUE, "o"),
    MethodRow("copy-bound", "Copy bound"),
    MethodRow("one-thread-per-image", "One thread per image"),
    MethodRow("linear-search", "Linear search by every thread"),
    MethodRow("padded", "Padded to the longest", "#A08A00"),
    MethodRow("nested-jagged", "PyTorch (nested, jagged)", "#7FA650", library="PyTorch"),
)
# On tiles, frames of a video and a detector's input; their labels differ from study to study.
EDGE_METHODS = (
    MethodRow("octopus-graph", "", "#5AA3D8"),
    MethodRow("n-launches-published", "", "#B08968"),
    MethodRow("numpy", "", GREY),
    MethodRow("integral", "", SKY),
    MethodRow("opencv-uint8", "", "#66C2A4", library="OpenCV"),
)
# On images of any size on their way into a model, in the order of tables and figures.
PROCESSOR_METHODS = (
    MethodRow("octopus", "Octopus", BLUE, "o"),
    MethodRow("octopus-one-call", "Octopus (one call)", "#003F66", "p"),
    MethodRow("octopus-same-sizes", "Octopus (sizes as before)", "#1F6F9F", "P"),
    MethodRow("octopus-bf16", "Octopus (bfloat16)", "#5AA3D8", "."),
    MethodRow("octopus-pillow", "Octopus (as Pillow rounds)", "#2E8BC0", "*"),
    MethodRow("octopus-bilinear", "Octopus (bilinear)", "#8FB8DE", "x"),
    MethodRow("octopus-simple", "Octopus (simple kernel)", "#5B84B1", "h"),
    MethodRow("transformers", "transformers", VERMILION, "^", library="transformers"),
    MethodRow("transformers-cpu", "transformers (on the CPU)", "#E08A5B", "v", library="transformers"),
    MethodRow("torchvision-loop", "torchvision, image by image", PURPLE, "<", library="torchvision"),
    MethodRow("torchvision-grouped", "torchvision, grouped by shape", "#8C4B8C", ">", library="torchvision"),
    MethodRow("pillow", "Pillow (all threads)", ORANGE, "D", library="PIL", like="octopus-pillow"),
    MethodRow("pillow-simd", "Pillow-SIMD (all threads)", "#F4C95D", "d", library="Pillow-SIMD", like="octopus-pillow"),
    MethodRow("kornia-rs", "kornia-rs", "#C2577A", "v", library="kornia-rs", like="octopus-bilinear"),
    MethodRow("dali", "DALI", "#B08968", "H", library="DALI"),
    MethodRow("cvcuda", "CV-CUDA", GREEN, "X", library="CV-CUDA"),
    MethodRow("write-bound", "Write bound", GREY),
    MethodRow("copy-bound", "Copy bound"),
)
# How a block of Octopus' kernel knows its image, compared with how it does.
OWNER_METHODS = (
    MethodRow("lookup", "A: lookup", like="block-search"),
    MethodRow("thread-search", "B: thread search", like="block-search"),
    MethodRow("block-metadata", "C: block metadata", like="block-search"),
    MethodRow("block-search", "D: block search"),
    MethodRow("padded-grid", "Padded grid", like="block-search"),
    MethodRow("launch-per-image", "A launch per image", like="block-search"),
)

# In pipelines, in place of what they have.
PREPARING_METHODS = (
    MethodRow("octopus", "Octopus", BLUE, "o"),
    MethodRow("octopus-graph", "Octopus (CUDA graph)", "#003F66", "p"),
    MethodRow("octopus-cpu", "Octopus (on the CPU)", "#5AA3D8", "."),
    MethodRow("transformers", "transformers", VERMILION, "^", library="transformers"),
    MethodRow(
        "transformers-torchvision", "transformers (decoded by torchvision)", "#E08A5B", "v", library="transformers"
    ),
    MethodRow("octopus-host-decoded", "Octopus (decoded on the CPU)", "#1F6F9F", "P"),
    MethodRow("transformers-threads", "transformers (in threads)", "#B8860B", "<", library="transformers"),
    MethodRow("transformers-compiled", "transformers (torch.compile)", "#8C4B8C", ">", library="transformers"),
    MethodRow("hf-processors-rs", "hf-processors-rs", "#7FA650", "h", library="hf-processors-rs"),
    MethodRow("torch-loop", "PyTorch, box by box", PURPLE, "<", library="PyTorch"),
    MethodRow("opencv-loop", "OpenCV, box by box", ORANGE, "D", library="OpenCV"),
    MethodRow("sahi", "sahi", GREEN, "X", library="sahi"),
    MethodRow("numpy-slices", "NumPy, slice by slice", GREY, "s"),
)

# On images of different shape, by denoisers.
AS_PUBLISHED = "as-published"
IMAGE_METHODS = (
    MethodRow(AS_PUBLISHED, "Unchanged"),
    MethodRow("padded-whole", "Padded, run whole"),
    MethodRow("forced-split", "Split by force"),
    MethodRow("cudnn-benchmark", "cuDNN benchmark on"),
    MethodRow("cudnn-no-benchmark", "cuDNN benchmark off"),
    MethodRow("no-cudnn", "Without cuDNN"),
)
DRUNET_MULTIPLE = 8  # of which a side must be a multiple for DRUNet to run whole

METHODS = {row.name: row.label for row in CROP_METHODS}
SHORT_METHODS = {row.name: row.short or row.label for row in CROP_METHODS}
# In the arena, names stand in lists, so they hold no comma; the order is that of its tables and figures.
ARENA_METHODS = {row.name: row.short or row.label for row in CROP_METHODS if row.target or row.listed} | {
    "n-launches-fused": "N launches (fused)",
    **{row.name: (row.short or row.label).replace(",", "") for row in CROP_METHODS if row.library == "OpenCV"},
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
# The kernel's code paths, each beside its own roof (workloads are named road-* in the committed rows).
CODE_PATHS = {
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
SAVING_STEPS = {"launches": "N launches to one, published kernels", "launches-fused": "N launches to one, fused kernel"}
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
# Packages of the baselines, by their names in the index; several names of one library stand for its builds.
PEER_PACKAGES = {package: library.name for library in LIBRARIES if library.name for package in library.packages}
# How a thread finds its item, in the order of the ladder; the forms of the lookup table are those of the total cost.
STRATEGIES = {row.name: row.label for row in ITEM_METHODS}
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
# The models as stages.
CONCURRENCY_STAGES = {
    "superpoint": "SuperPoint",
    "lightglue": "LightGlue",
    "dinov2": "DINOv2",
    "efficientloftr": "EfficientLoFTR",
}
# Images of any size on their way into a model.
PROCESSORS = {row.name: row.label for row in PROCESSOR_METHODS}
TILE_OWNERS = {row.name: row.label for row in OWNER_METHODS}
IMAGE_BATCHES = {
    "large": "512 to 2048 px, rows",
    "small": "64 to 512 px, rows",
    "thumbnails": "256 to 1024 px to 224\u00b2",
    "equal": "1024 \u00d7 1024, rows",
    "one": "1920 \u00d7 1080, rows",
}
PIPELINE_METHODS = {row.name: row.label for row in PREPARING_METHODS}
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
# Shapes of images: denoisers, and ways to run one.
DENOISERS = {"drunet": "DRUNet", "unet": "UNet", "dncnn": "DnCNN"}
SHAPE_WAYS = {row.name: row.label for row in IMAGE_METHODS}
PATCH_TEXT = "{batch} \u00d7 {side}\u00b2"
LAYERS = {"device": "Device", "host": "Host", "pipeline": "Pipeline"}
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
POWER_SCOPES = {"gpu_board": "GPU board", "module_vdd_in": "module, VDD_IN"}
POWER_SENSORS = {"nvml": "NVML", "ina3221": "INA3221"}
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
SCENES = {"full": "Full scene", "window": "Window of the scene", "scale": "Generated scene (synthetic)"}
VARIANTS = {"uint16": "uint16", "rgb8": "3\u00a0\u00d7\u00a0uint8"}
TILE_RULES = {"fixed": "Fixed threshold", "otsu": "Otsu's threshold", "byte-budget": "Byte budget"}
TILE_METHODS = {
    "octopus": "Octopus",
    "n-launches": "One launch per tile",
    "padded": "Padded to the largest tile",
    "numpy": "NumPy, tile by tile (1 thread)",
    "opencv": "OpenCV, tile by tile (1 thread)",
    "opencv-threads": "OpenCV, tile by tile (all threads)",
    "integral": "OpenCV, integral image (1 thread)",
}
FRAME_METHODS = {
    "octopus": "Octopus",
    "octopus-graph": "Octopus, CUDA graph",
    "n-launches": "N launches, fused kernel",
    "n-launches-published": "N launches, published",
    "opencv": "OpenCV and NumPy (1 thread)",
    "opencv-table": "OpenCV, by a table (1 thread)",
    "opencv-table-threads": "OpenCV, by a table (all threads)",
}
DETECTOR_METHODS = {"octopus": "Octopus", "opencv": "OpenCV, float32", "opencv-uint8": "OpenCV, uint8"}
DETECTOR_MODELS = {"ssdlite320_mobilenet_v3_large": "SSDlite, MobileNetV3"}
DETECTOR_STAGES = {"preprocess": "Preparing", "inference": "Inference", "postprocess": "Selecting boxes"}
# What a study's own figures call a method, where that isn't what others call it.
METHODS_OF = {
    "arena": {name: f"Octopus ({kind})" if name.startswith("octopus") else kind for name, kind in RESULT_KINDS.items()}
    | METHODS
    | LADDER_STEPS
    | {"octopus": METHODS["octopus"]},
    "concurrency": CONCURRENCY_ARMS | CROPS_BESIDE | CONCURRENCY_STAGES,
    "detector": DETECTOR_METHODS,
    "drone": FRAME_METHODS,
    "image_shape": SHAPE_WAYS | DENOISERS,
    "images": PROCESSORS | TILE_OWNERS,
    "pipelines": PIPELINE_METHODS,
    "satellite": TILE_METHODS | TILE_RULES | {"octopus-cpu": PIPELINE_METHODS["octopus-cpu"]},
    **dict.fromkeys(("mapping", "sequences", "total_cost"), STRATEGIES),
}
# What workloads begin with, and what else stands in their names.
WORKLOADS_OF = {
    "arena": ARENA_WORKLOADS
    | {name: f"Ladder, {text}" for name, text in LADDER_WORKLOADS.items()}
    | CODE_PATHS
    | INPUTS,
    "detector": DETECTOR_MODELS,
    "drone": {"clip": "Clip"},
    "image_shape": DENOISERS,
    "images": IMAGE_BATCHES,
    "mapping": DISTRIBUTIONS | OPERATIONS,
    "pipelines": PIPELINES | {"crops": "Detections", "loader": "JPEG"},
    "satellite": SCENES | VARIANTS,
    "sequences": SEQUENCE_WORKLOADS,
    "total_cost": IMAGE_MIXES | IMAGE_KERNELS,
}
WORKLOAD_PARTS = {"1thread": "one thread", "antialias": "antialiased", "nhwc": "NHWC"}
QUANTITY_NAMES = QUANTITIES | DETECTOR_STAGES
QUANTITY_NAMES |= {
    "power_mean": "Mean power",
    "energy_per_frame": "Energy of a frame",
    "energy_per_frame_net": "Energy of a frame without that at idle",
    "energy_uncertainty": "Uncertainty of an energy",
    "window_energy_counter": "Energy of a window, by the counter",
    "window_energy_integral": "Energy of a window, power over time",
    "misses": "Late frames",
    "p50": "Median",
    "p95": "95th percentile",
    "p99": "99th percentile",
}
DERIVED_NAMES = {"speedup": "speed-up over", "share": "share of", "times": "multiple of", "over": "over"}


def in_order(studies: Iterable[str]) -> list[str]:
    """Sort names of studies as the paper goes."""
    return sorted(studies, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))


STUDIES = tuple(in_order(info.name for info in iter_modules([str(Path(__file__).with_name("studies"))]) if info.ispkg))


def arena_methods() -> dict[str, str]:
    """Names of all methods that the arena runs, and their targets, in the order of its tables."""
    return {row.name: row.target for row in CROP_METHODS if row.target}


def packages() -> tuple[str, ...]:
    """All builds of all libraries, for the provenance."""
    return tuple(package for library in LIBRARIES for package in library.packages)


class Facts(NamedTuple):
    """What the names of a row say, as columns; empty, and of threads 0, where they don't say it.

    Attributes
    ----------
    scope : str
        What a power or energy is that of, such as ``gpu_board``.
    threads : int
    dtype : str
    distribution : str
        Of sizes: ``large``, a mix of images, a scene.
    operation : str
        What is done with them: ``blur3x3``, ``light``, ``antialias``, ``step64``.
    model : str
    """

    scope: str = ""
    threads: int = 0
    dtype: str = ""
    distribution: str = ""
    operation: str = ""
    model: str = ""


_TYPES = {name: name for name in ("float32", "float16", "bfloat16", "uint8", "uint16", "rgb8")}
_TYPES |= {"fp16": "float16", "bf16": "bfloat16"}


@cache
def split_scope(quantity: str) -> tuple[str, str]:
    """Return a quantity and its scope as rows of schema 1 named them: ``power_mean_gpu_board``."""
    scope = next((scope for scope in POWER_SCOPES if quantity.endswith(f"_{scope}")), "")
    return quantity.removesuffix(f"_{scope}") if scope else quantity, scope


@cache
def facts(study: str, workload: str, method: str = "", quantity: str = "") -> Facts:
    """Return what the names of a row say; nothing else takes a name apart.

    Names stay what they are in rows and ids; studies of two parts join them with a dash (`distribution-operation`).
    """
    parts = workload.split("-")
    said = Facts(
        threads=1 if "1thread" in parts else 0,
        dtype=next((_TYPES[part] for part in (*parts, *method.split("-")) if part in _TYPES), ""),
    )
    if study in ("arena", "stage_timing"):
        return said._replace(distribution=parts[0], operation="antialias" if "antialias" in parts else "")
    if study == "mapping" and parts[0] in DISTRIBUTIONS:
        operation = "-".join(part for part in parts[1:] if part not in _TYPES)
        return said._replace(distribution=parts[0], operation=operation, dtype=said.dtype or "float32")
    if study == "total_cost":
        mix, _, kernel = workload.removesuffix("-ladder").rpartition("-")
        return said._replace(distribution=mix, operation=kernel)
    if study == "satellite":
        return said._replace(distribution=parts[0])
    if study == "image_shape":
        return said._replace(model=parts[0], operation="-".join(parts[1:]))
    if study == "concurrency":
        model = next((name for name in (*CONCURRENCY_STAGES, *CONCURRENCY_MODELS) if _ends_in(quantity, name)), "")
        return said._replace(model=model)
    return said._replace(distribution=workload)


def _ends_in(quantity: str, model: str) -> bool:
    return quantity.endswith("_" + model.replace("-", "_"))


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
