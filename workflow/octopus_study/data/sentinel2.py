"""Sentinel-2 L2A, one band: reading it whole or by window, from a file or over HTTP; digest.

The pinned scene is ``S2A_22WEV_20190723_0_L2A`` (Greenland, 2.6 % cloud). A window is given in columns and
rows of the *scene*; a file that holds only part of the scene is located in it by its georeference, so the
same window means the same ground in a mirror's clip and in the full band.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus_study.errors import DataError, NotHeldError

if TYPE_CHECKING:  # GDAL is loaded by what reads a scene alone
    from rasterio import Affine
    from rasterio.io import DatasetReader
    from rasterio.windows import Window as RasterWindow

SCENE = "S2A_22WEV_20190723_0_L2A"
SCENE_SIZE = 10980
SCENE_LEFT, SCENE_TOP, PIXEL = 499_980.0, 7_500_000.0, 10.0  # upper left corner and side of a pixel, in metres
SCENE_CRS = "EPSG:32622"
ATTRIBUTION = "Contains modified Copernicus Sentinel data 2019, processed by ESA"
NODATA = 0
CACHE = 64  # MiB of blocks that GDAL keeps; by itself it took 250 MB for the whole scene, none of which is read twice
OPTIONS = {
    "GDAL_CACHEMAX": CACHE,
    "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",  # else GDAL lists the bucket before the first read
    "GDAL_HTTP_CONNECTTIMEOUT": 5,
    "GDAL_HTTP_TIMEOUT": 60,
    "GDAL_HTTP_MAX_RETRY": 3,
    "GDAL_HTTP_RETRY_DELAY": 1,
    "GDAL_HTTP_RETRY_CODES": "404,429,500,502,503,504",  # the bucket answers 404 now and then
}


class Window(NamedTuple):
    """A window in the scene's grid, in pixels: first column, first row, width, height."""

    col: int
    row: int
    width: int
    height: int


PINNED_WINDOW = Window(9760, 6930, 1000, 1000)  # the one whose pixel digest ``config/datasets.tsv`` holds
FULL_SCENE = Window(0, 0, SCENE_SIZE, SCENE_SIZE)


@dataclass(frozen=True)
class Band:
    """One band."""

    pixels: NDArray[np.uint16]  # (H, W) uint16 digital numbers
    nodata: int  # the number that means 'no data'
    transform: Affine  # affine map from (column, row) of `pixels` to metres in `crs`
    crs: str  # coordinate reference system, such as ``EPSG:32622``
    attribution: str  # the line that must accompany the data


def read_band(path_or_url: str | Path, window: Window | None = None) -> Band:
    """Read what a GeoTIFF holds, or a window of the scene; over HTTP only the blocks that the window touches. Raises
    `DataError` where the file can't be read, is not one band of uint16, or does not hold the window."""
    import rasterio
    from rasterio.errors import RasterioError

    name = str(path_or_url)
    name = f"/vsicurl/{name}" if name.startswith(("http://", "https://")) else name
    try:
        # Other drivers take names and files that lead elsewhere, such as a VRT under the name of a TIFF.
        with rasterio.Env(**OPTIONS), rasterio.open(name, driver="GTiff") as source:
            _check_band(source, path_or_url)
            inside = None if window is None else locate(window, source, path_or_url)
            pixels = source.read(1, window=inside)
            transform = source.transform if window is None else window_transform(window)
            nodata = NODATA if source.nodata is None else int(source.nodata)
            attribution = source.tags().get("TIFFTAG_COPYRIGHT", ATTRIBUTION)
            return Band(pixels, nodata, transform, str(source.crs), attribution)
    except RasterioError as error:
        raise DataError(f"can't read a band from {path_or_url}: {error}") from error


def write_band(path: str | Path, band: Band) -> Path:
    """Write `band` as a tiled, deflated GeoTIFF with its attribution as the copyright tag."""
    import rasterio

    path = Path(path)
    height, width = band.pixels.shape
    with rasterio.open(
        path, "w", driver="GTiff", width=width, height=height, count=1, dtype="uint16", nodata=band.nodata,
        transform=band.transform, crs=band.crs, tiled=True, blockxsize=512, blockysize=512,
        compress="deflate", predictor=2,
    ) as target:  # fmt: skip
        target.write(band.pixels, 1)
        target.update_tags(TIFFTAG_COPYRIGHT=band.attribution)
    return path


def locate(window: Window, source: DatasetReader, name: str | Path) -> RasterWindow:
    """The scene window as a window of `source`; raises `NotHeldError` when the file does not hold all of it."""
    from rasterio.windows import Window as RasterWindow

    left = round((source.transform.c - SCENE_LEFT) / PIXEL)
    top = round((SCENE_TOP - source.transform.f) / PIXEL)
    col, row = window.col - left, window.row - top
    if min(col, row) < 0 or col + window.width > source.width or row + window.height > source.height:
        raise NotHeldError(
            f"asked for columns {window.col}..{window.col + window.width} and rows "
            f"{window.row}..{window.row + window.height} of the scene, but {name} holds columns "
            f"{left}..{left + source.width} and rows {top}..{top + source.height}"
        )
    return RasterWindow(col, row, window.width, window.height)


def window_transform(window: Window) -> Affine:
    """Affine map from a scene window's (column, row) to metres in the scene's reference system."""
    from rasterio import Affine

    return Affine(PIXEL, 0.0, SCENE_LEFT + PIXEL * window.col, 0.0, -PIXEL, SCENE_TOP - PIXEL * window.row)


def pixel_digest(pixels: NDArray[np.uint16]) -> str:
    """SHA-256 of the pixels as C-order little-endian uint16."""
    return hashlib.sha256(np.ascontiguousarray(pixels, dtype="<u2")).hexdigest()


def _check_band(source: DatasetReader, name: str | Path) -> None:
    if source.count != 1 or source.dtypes[0] != "uint16":
        raise DataError(f"{name} has {source.count} bands of {source.dtypes[0]}; expected one of uint16")
    if (source.transform.a, source.transform.e) != (PIXEL, -PIXEL):
        found = f"{source.transform.a:g} x {-source.transform.e:g} m"
        raise DataError(f"{name} has pixels of {found}; expected {PIXEL:g} x {PIXEL:g} m")
