"""Human names of the edge scenarios: rules and ways to judge a scene's tiles, to crop a video's frames, and to feed a
detector."""

from __future__ import annotations

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
