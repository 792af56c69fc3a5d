"""The ways to get VisDrone2019-DET val, or its stand-in, into the raw folder."""

import zipfile
from functools import partial
from pathlib import Path

from octopus_study.data.download import download, find_fault
from octopus_study.data.registry import Dataset
from octopus_study.data.source import Found, copy_files, new_path, require
from octopus_study.data.synthetic import write_drone_sample
from octopus_study.data.visdrone import SIZE_TABLE, content_digest
from octopus_study.errors import DataError, NotHeldError

LAYOUT = ("annotations/*.txt", "images/*.jpg", SIZE_TABLE)


class VisDroneSource:
    """See `octopus_study.data.source.Source`. Real data end up in ``<raw_dir>/<name>/{annotations,images}``."""

    synthetic_name = "synthetic-visdrone"

    def __init__(self, dataset: Dataset, raw_dir: Path, progress: bool) -> None:
        self.dataset = dataset
        self.raw_dir = raw_dir
        self.progress = progress
        self.target = raw_dir / dataset.name

    def present(self, trusted: frozenset[str]) -> Found:
        """The folder of an earlier fetch, if its content is that which is pinned, whatever is `trusted`."""
        require(self.target.is_dir(), f"no {self.target.name}/ there yet")
        digest = content_digest(self.target)
        require(digest == self.dataset.content_sha256, f"{self.target} has been changed since it was fetched")
        return Found(self.target, digest)

    def from_mirror(self, mirror: Path) -> Found:
        """From the archive under its own name, or from the unpacked folder."""
        archive, unpacked = mirror / self.dataset.filename, mirror / self.dataset.mirror
        if archive.is_file():
            fault = find_fault(archive, self.dataset.size, self.dataset.sha256)
            require(fault is None, f"{archive} is not the expected file: {fault}")
            return self._unpack(archive)
        if not unpacked.is_dir():
            raise NotHeldError(f"{mirror} has neither {archive.name} nor {unpacked.name}/")
        with new_path(self.target) as building:
            copy_files(unpacked, LAYOUT, building)
            digest = _digest(building, unpacked)
            require(
                digest == self.dataset.content_sha256,
                f"{unpacked} is not the expected data: its content digest is {digest} "
                f"instead of {self.dataset.content_sha256}",
            )
        return Found(self.target, digest)

    def from_network(self) -> Found:
        """Download the archive, check it and unpack it."""
        archive = self.raw_dir / self.dataset.filename
        size, check = self.dataset.size, partial(find_fault, size=self.dataset.size, sha256=self.dataset.sha256)
        # Images are as large unpacked as in the archive.
        options = {"size": size, "unpacked": size or 0, "progress": self.progress}
        return self._unpack(download(self.dataset.url, archive, check, **options))

    def generated(self) -> Found:
        """Generate the sample."""
        folder = self.raw_dir / self.synthetic_name
        with new_path(folder) as building:
            digest = _digest(write_drone_sample(building), folder)
        return Found(folder, digest)

    def _unpack(self, archive: Path) -> Found:
        # The archive's own SHA-256 has been checked, so its content and its names need no second proof.
        with new_path(self.target) as building, zipfile.ZipFile(archive) as source:
            source.extractall(building.with_name("unpacked"))
            (top,) = building.with_name("unpacked").iterdir()
            top.rename(building)
            digest = _digest(building, archive)
        return Found(self.target, digest)


def _digest(folder: Path, origin: Path) -> str:
    """Return the content digest; an error names a file of `origin`, since `folder` is gone when it is read."""
    try:
        return content_digest(folder)
    except DataError as error:
        raise DataError(str(error).replace(str(folder), str(origin))) from error
