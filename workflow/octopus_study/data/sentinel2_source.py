"""The ways to get the Sentinel-2 band, a window of it, or its stand-in, into the raw folder."""

import os
import shutil
from pathlib import Path

from octopus_study.data.download import check_reachable, download, require_room
from octopus_study.data.registry import Dataset
from octopus_study.data.sentinel2 import (
    CACHE,
    FULL_SCENE,
    NODATA,
    PINNED_WINDOW,
    SCENE,
    SCENE_CRS,
    Band,
    Window,
    pixel_digest,
    read_band,
    window_transform,
    write_band,
)
from octopus_study.data.source import Found, new_path, require
from octopus_study.data.synthetic import greenland_band
from octopus_study.errors import DataError, NotHeldError


class Sentinel2Source:
    """See `octopus_study.data.source.Source`. Ends up as one GeoTIFF with the wanted window. A file checksum can't
    verify a window, so every origin (mirror, address, downloaded file) is proven by the pixels of the pinned window in
    it before any other window is taken from it."""

    synthetic_name = "synthetic-sentinel2"

    def __init__(self, dataset: Dataset, raw_dir: Path, progress: bool, window: Window) -> None:
        self.dataset = dataset
        self.raw_dir = raw_dir
        self.progress = progress
        self.window = window
        self.target = raw_dir / dataset.name / self._file_name(SCENE)

    def present(self, trusted: frozenset[str]) -> Found:
        """The GeoTIFF of an earlier fetch of the same window."""
        require(self.target.is_file(), f"no {self.target.name} there yet")
        digest = pixel_digest(read_band(self.target, self.window).pixels)
        known = {self.dataset.content_sha256} if self.window == PINNED_WINDOW else trusted
        require(digest in known, f"{self.target} has been changed since it was fetched")
        return Found(self.target, digest)

    def from_mirror(self, mirror: Path) -> Found:
        """From the first GeoTIFF of the mirror that holds the window: the whole band or a clip of it."""
        candidates = [mirror / self.dataset.filename, *sorted(mirror.glob(self.dataset.mirror))]
        faults: list[DataError] = []
        for candidate in filter(Path.is_file, candidates):
            try:
                return self._clip(candidate)
            except DataError as error:
                faults.append(error)
        wrong = any(not isinstance(fault, NotHeldError) for fault in faults)
        expected = f"{mirror} has neither {self.dataset.filename} nor {self.dataset.mirror}"
        raise (DataError if wrong else NotHeldError)("; ".join(map(str, faults)) or expected)

    def from_network(self) -> Found:
        """The window by HTTP range requests; the whole band as a file, with resume."""
        url, pixels = self.dataset.url, 2 * self.window.width * self.window.height
        memory = pixels + (CACHE << 20)
        if self.window != FULL_SCENE:
            check_reachable(url)
            self.raw_dir.mkdir(parents=True, exist_ok=True)
            require_room(self.target.name, self.raw_dir, pixels, pixels, memory)
            return self._clip(url)
        options = {"size": self.dataset.size, "memory": memory, "progress": self.progress}
        whole = download(url, self.raw_dir / self.dataset.filename, self._fault, **options)
        self.target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(whole, self.target)
        return Found(self.target, pixel_digest(read_band(self.target).pixels))

    def generated(self) -> Found:
        """Generate a band with the window's size and georeference."""
        pixels = greenland_band(self.window.height, self.window.width)
        transform = window_transform(self.window)
        band = Band(pixels, NODATA, transform, SCENE_CRS, "Synthetic: generated, no satellite data")
        target = self.raw_dir / self.synthetic_name / self._file_name("synthetic")
        return self._write(target, band)

    def _clip(self, origin: str | Path) -> Found:
        self._prove(origin)
        band = read_band(origin, self.window)
        if self.window != FULL_SCENE:
            return self._write(self.target, band)
        with new_path(self.target) as building:
            shutil.copyfile(origin, building)
        return Found(self.target, pixel_digest(band.pixels))

    def _fault(self, whole: Path) -> str | None:
        """What is wrong with a file of the whole band; all of it is decoded, since no SHA-256 of it is published."""
        try:
            self._prove(whole)
            read_band(whole, FULL_SCENE)
        except DataError as error:
            return str(error)
        return None

    def _prove(self, origin: str | Path) -> None:
        digest = pixel_digest(read_band(origin, PINNED_WINDOW).pixels)
        require(
            digest == self.dataset.content_sha256,
            f"{origin} is not the expected scene: the pixels of its window {tuple(PINNED_WINDOW)} have the "
            f"SHA-256 {digest} instead of {self.dataset.content_sha256}",
        )

    def _write(self, target: Path, band: Band) -> Found:
        with new_path(target) as building:
            write_band(building, band)
        return Found(target, pixel_digest(band.pixels))

    def _file_name(self, prefix: str) -> str:
        col, row, width, height = self.window
        return f"{prefix}_B04_{col}_{row}_{width}x{height}.tif"
