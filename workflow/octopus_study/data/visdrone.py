"""VisDrone2019-DET val: annotations, image sizes, the pool of boxes and the canonical frame.

A data root has ``annotations/<stem>.txt`` and ``images/<stem>.jpg``; where not every image is at hand
(a mirror), ``image_sizes.csv`` (stem,width,height) gives the sizes of the others. Annotation rows are
``left,top,width,height,score,category,truncation,occlusion``.

Zhu et al., "Detection and Tracking Meet Drones Challenge", IEEE TPAMI.
"""

import csv
import hashlib
import warnings
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from octopus_study.errors import DataError

CANONICAL_FRAME = (1920, 1080)
"""Width and height, in pixels, of the frame that all boxes are scaled to."""
POOL_FILES = 50
SMALLEST, LARGEST = 16, 320
"""The pool keeps boxes whose sides, in pixels of the canonical frame, lie in this closed range."""
COLUMNS = 8
SIZE_TABLE, SIZE_HEADER = "image_sizes.csv", "stem,width,height"


def read_annotations(path: str | Path) -> NDArray[np.int64]:
    """Read one annotation file as (rows, 8) int64: left, top, width, height in pixels; score, category, truncation,
    occlusion. A trailing comma, as in some VisDrone releases, is accepted; an empty file has 0 rows."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*input contained no data", category=UserWarning)
            rows = np.loadtxt(path, delimiter=",", dtype=np.int64, ndmin=2, usecols=range(COLUMNS))
    except FileNotFoundError as error:
        raise DataError(f"there is no annotation file {path}") from error
    except ValueError as error:
        raise DataError(f"{path}: expected rows of {COLUMNS} whole numbers: {error}") from error
    return rows.reshape(-1, COLUMNS)


def annotation_files(root: str | Path) -> list[Path]:
    """The annotation files under `root` in sorted order; raises `DataError` when there are none."""
    files = sorted((Path(root) / "annotations").glob("*.txt"))
    if not files:
        raise DataError(f"{root} has no annotations/*.txt; fetch visdrone-val again")
    return files


def image_sizes(root: str | Path) -> dict[str, tuple[int, int]]:
    """Width and height in pixels per image stem, from the JPEG headers, else from ``image_sizes.csv``."""
    root = Path(root)
    table = root / SIZE_TABLE
    sizes = _read_sizes(table) if table.is_file() else {}
    sizes.update({image.stem: _header_size(image) for image in sorted((root / "images").glob("*.jpg"))})
    if not sizes:
        raise DataError(f"{root} has neither images/*.jpg nor {SIZE_TABLE}; fetch visdrone-val again")
    return sizes


def load_pool(root: str | Path, files: int = POOL_FILES, frame: tuple[int, int] = CANONICAL_FRAME) -> NDArray[np.int32]:
    """The published pool of boxes, (N, 4) int32 ``xyxy`` in pixels of `frame`; 2045 for the first 50 files of the val
    set.

    The boxes of the first `files` annotation files, in sorted order, are scaled to `frame` (width, height) with x, y,
    width and height truncated to whole pixels each; those with sides of 16..320 px that lie inside the frame and touch
    no edge are kept. Scores and categories play no part.
    """
    sizes = image_sizes(root)
    chosen = annotation_files(root)[:files]
    missing = [path.stem for path in chosen if path.stem not in sizes]
    if missing:
        raise DataError(f"the size of {len(missing)} images is unknown (first: {missing[0]}) in {root}")
    scaled = [_scale(read_annotations(path)[:, :4], sizes[path.stem], frame) for path in chosen]
    return in_pool(np.concatenate(scaled), frame)


def in_pool(xywh: NDArray[np.integer], frame: tuple[int, int] = CANONICAL_FRAME) -> NDArray[np.int32]:
    """Keep the (N, 4) ``xywh`` boxes that obey the pool's rule; returns them as int32 ``xyxy``."""
    x, y, w, h = xywh.T
    sides = (np.minimum(w, h) >= SMALLEST) & (np.maximum(w, h) <= LARGEST)
    inside = (x >= 1) & (y >= 1) & (x + w < frame[0]) & (y + h < frame[1])
    kept = xywh[sides & inside]
    return np.concatenate([kept[:, :2], kept[:, :2] + kept[:, 2:]], axis=1).astype(np.int32)


def frame_path(root: str | Path) -> Path:
    """The canonical frame's file: the image of the first annotation file in sorted order."""
    return Path(root) / "images" / f"{annotation_files(root)[0].stem}.jpg"


def load_frame(root: str | Path) -> NDArray[np.uint8]:
    """The canonical frame as C-contiguous (1080, 1920, 3) uint8, RGB."""
    path = frame_path(root)
    bgr = cv2.imread(str(path), cv2.IMREAD_COLOR) if path.is_file() else None
    if bgr is None:
        raise DataError(f"the canonical frame {path} is missing or no image; fetch visdrone-val again")
    width, height = CANONICAL_FRAME
    if bgr.shape != (height, width, 3):
        raise DataError(f"{path} is {bgr.shape[1]} x {bgr.shape[0]} px; expected {width} x {height} px")
    return cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)


def content_digest(root: str | Path) -> str:
    """SHA-256 over what the loaders read: all annotations, every image's size, the canonical frame's file.

    It is the same for an archive and for a mirror with a table of sizes: the digest of the list that
    ``LC_ALL=C sha256sum annotations/*.txt image_sizes.csv images/<first stem>.jpg`` prints when the table of
    sizes is sorted and has Unix line ends.
    """
    root = Path(root)
    contents = {f"annotations/{path.name}": path.read_bytes() for path in annotation_files(root)}
    sizes = sorted(image_sizes(root).items())
    rows = [SIZE_HEADER, *(f"{stem},{width},{height}" for stem, (width, height) in sizes)]
    contents[SIZE_TABLE] = "".join(f"{row}\n" for row in rows).encode()
    frame = frame_path(root)
    contents[f"images/{frame.name}"] = frame.read_bytes() if frame.is_file() else b""
    listing = (f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in contents.items())
    return hashlib.sha256("".join(listing).encode()).hexdigest()


def _read_sizes(table: Path) -> dict[str, tuple[int, int]]:
    try:
        with table.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            if ",".join(rows.fieldnames or ()) != SIZE_HEADER:
                raise ValueError(f"the header {rows.fieldnames}")
            return {row["stem"]: (int(row["width"]), int(row["height"])) for row in rows}
    except (TypeError, ValueError) as error:
        raise DataError(f"{table}: expected rows of {SIZE_HEADER}, found {error}") from error


def _header_size(path: Path) -> tuple[int, int]:
    try:
        with Image.open(path) as image:
            return image.size
    except (UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise DataError(f"{path} is not an image; fetch visdrone-val again") from error


def _scale(xywh: NDArray[np.int64], size: tuple[int, int], frame: tuple[int, int]) -> NDArray[np.int64]:
    scale = np.array([frame[0] / size[0], frame[1] / size[1]] * 2)
    return (xywh * scale).astype(np.int64)
