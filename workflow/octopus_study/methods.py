"""Every method that is timed by name: what readers see of it, the library that it is, and where its code stands.

One row is all that the arena, the report, the provenance and the doctor need to know of a peer. Nothing is imported
here, so that the report can read it.
"""

from __future__ import annotations

from typing import NamedTuple

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
        ``module:class`` in `peers` of what the arena runs; empty where a study makes the method itself.
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
    Library("PyTorch", ("torch",), "peers"),
    Library("torchvision", ("torchvision",), "peers"),
    Library("PIL", ("pillow",)),
    Library(
        "Pillow-SIMD", ("pillow-simd",),
        install="pip install --target SITE-PACKAGES/pillow_simd pillow-simd, with CC='cc -mavx2'",
    ),
    Library("", ("onnx",), "peers"),
    Library("ONNX Runtime", ("onnxruntime", "onnxruntime-gpu"), "peers"),
    Library("CV-CUDA", ("cvcuda-cu13", "cvcuda-cu12"), "arena-cuda13"),
    Library("kornia-rs", ("kornia-rs",), "peers"),
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
METHODS = (
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
    MethodRow(
        "pillow-simd",
        "Pillow-SIMD (all threads)",
        "#F4C95D",
        "d",
        library="Pillow-SIMD",
        like="octopus-pillow",
    ),
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
PIPELINE_METHODS = (
    MethodRow("octopus", "Octopus", BLUE, "o"),
    MethodRow("octopus-graph", "Octopus (CUDA graph)", "#003F66", "p"),
    MethodRow("octopus-cpu", "Octopus (on the CPU)", "#5AA3D8", "."),
    MethodRow("transformers", "transformers", VERMILION, "^", library="transformers"),
    MethodRow(
        "transformers-torchvision",
        "transformers (decoded by torchvision)",
        "#E08A5B",
        "v",
        library="transformers",
    ),
    MethodRow("octopus-host-decoded", "Octopus (decoded on the CPU)", "#1F6F9F", "P"),
    MethodRow("transformers-threads", "transformers (in threads)", "#B8860B", "<", library="transformers"),
    MethodRow(
        "transformers-compiled", "transformers (torch.compile)", "#8C4B8C", ">", library="transformers"
    ),
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


def arena_methods() -> dict[str, str]:
    """Names of all methods that the arena runs, and their targets, in the order of its tables."""
    return {row.name: row.target for row in METHODS if row.target}


def packages() -> tuple[str, ...]:
    """All builds of all libraries, for the provenance."""
    return tuple(package for library in LIBRARIES for package in library.packages)
