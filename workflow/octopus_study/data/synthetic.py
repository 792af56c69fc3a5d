"""The embedded sample: generated stand-ins for the real data sets, small, fast and always the same.

The VisDrone stand-in is written in VisDrone's own format, so that the same loader reads both. Its boxes
follow the size statistics of the real pool (`octopus_study.data.size_table`); what the frame shows is drawn by
`octopus_study.data.drone_scene`. Whatever is measured on the sample says ``synthetic``.
"""

from pathlib import Path

import cv2
import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from octopus_study.data.drone_scene import fractal_noise, paint_scene
from octopus_study.data.size_table import draw_sizes, read_size_table
from octopus_study.data.visdrone import CANONICAL_FRAME, POOL_FILES, SIZE_HEADER, SIZE_TABLE
from octopus_study.errors import DataError

POOL_SIZE = 2045  # boxes in the generated pool, as many as in the real one
PEDESTRIAN, CAR = 1, 4  # VisDrone's category numbers
JPEG_QUALITY = 95


def drone_pool(n: int = POOL_SIZE, seed: int = 42) -> NDArray[np.int32]:
    """(n, 4) int32 ``xyxy`` with the sizes of the VisDrone pool, inside the canonical frame and touching no edge.
    Positions are uniform, with larger boxes lower in the frame, as a tilted camera sees them."""
    random = RandomState(seed)
    sizes = draw_sizes(read_size_table(), n, random)
    room = np.array(CANONICAL_FRAME) - sizes - 2
    place = random.random_sample((n, 2))
    nearness = (sizes[:, 1] / sizes[:, 1].max(initial=1)) ** 0.5
    place[:, 1] = 0.5 * (place[:, 1] + nearness)
    corner = 1 + (place * room).astype(np.int64)
    return np.concatenate([corner, corner + sizes], axis=1).astype(np.int32)


def drone_frame(objects: NDArray[np.int32], seed: int = 42) -> NDArray[np.uint8]:
    """(1080, 1920, 3) uint8, RGB: a street seen from a drone, with a vehicle in each box, ``xyxy``."""
    return paint_scene(objects, CANONICAL_FRAME, RandomState(seed))


def write_drone_sample(root: str | Path, seed: int = 42) -> Path:
    """Write the drone sample into the new folder `root`, in the layout of VisDrone; returns `root`. 50 annotation
    files, the frame as the image of the first, and the sizes of all 50 'images'."""
    root = Path(root)
    for folder in ("annotations", "images"):
        (root / folder).mkdir(parents=True)
    parts = np.array_split(drone_pool(seed=seed), POOL_FILES)
    stems = [f"synthetic_{index:04d}" for index in range(POOL_FILES)]
    for stem, boxes in zip(stems, parts, strict=True):
        (root / "annotations" / f"{stem}.txt").write_text(_annotation_text(boxes), encoding="ascii")
    width, height = CANONICAL_FRAME
    table = [SIZE_HEADER, *(f"{stem},{width},{height}" for stem in stems)]
    (root / SIZE_TABLE).write_text("\n".join(table) + "\n", encoding="ascii")
    _write_jpeg(root / "images" / f"{stems[0]}.jpg", drone_frame(parts[0], seed))
    return root


def greenland_band(height: int = 1000, width: int = 1000, seed: int = 42) -> NDArray[np.uint16]:
    """A red band like the Greenland ice sheet in summer, uint16 digital numbers: ice, snow patches, dark melt lakes.
    Brightness follows the real window: mean about 4760, about 1 % dark water and 1 % bright snow, and no 0, which would
    mean 'no data'."""
    random = RandomState(seed)
    ice = 4700 + 800 * fractal_noise(height, width, random, octaves=7, roughness=0.7)
    relief = fractal_noise(height, width, random, octaves=6, cells=6)
    ice += 2400 * _rise(relief, 2.0)
    ice *= 1 - 0.95 * _rise(-relief, 2.1)
    return np.clip(ice, 1, 10_000).astype(np.uint16)


def _rise(values: NDArray[np.float32], start: float) -> NDArray[np.float32]:
    return np.clip((values - start) / 0.15, 0, 1)


def _annotation_text(boxes: NDArray[np.int32]) -> str:
    lines = []
    for left, top, right, bottom in boxes.tolist():
        category = CAR if right - left >= bottom - top else PEDESTRIAN
        lines.append(f"{left},{top},{right - left},{bottom - top},1,{category},0,0\n")
    return "".join(lines)


def _write_jpeg(path: Path, rgb: NDArray[np.uint8]) -> None:
    bgr = cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR)
    if not cv2.imwrite(str(path), bgr, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY]):
        raise DataError(f"can't write the sample's frame to {path}; is the disk full?")
