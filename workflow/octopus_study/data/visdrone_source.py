"""The ways to get VisDrone2019-DET val, or its stand-in, into the raw folder."""

from __future__ import annotations

from pathlib import Path

from octopus_study.data.archive import unpack_zip
from octopus_study.data.download import download, find_fault
from octopus_study.data.registry import Dataset
from octopus_study.data.source import Found, copy_files, new_path, require
from octopus_study.data.synthetic import write_drone_sample
from octopus_study.data.visdrone import SIZE_TABLE, content_digest

LAYOUT = ("annotations/*.txt", "images/*.jpg", SIZE_TABLE)


class VisDroneSource:
    """See `octopus_study.data.source.Source`. Real data end up in ``<raw_dir>/<name>/{annotations,images}``."""

    synthetic_name = "synthetic-visdrone"

    def __init__(self, dataset: Dataset, raw_dir: Path, progress: bool) -> None:
        self.dataset = dataset
        self.raw_dir = raw_dir
        self.progress = progress
        self.folder = raw_dir / dataset.name

    def present(self, trusted: frozenset[str]) -> Found:
        """The folder of an earlier fetch, if its content is still what it was."""
        require(self.folder.is_dir(), f"no {self.folder.name}/ there yet")
        digest = content_digest(self.folder)
        known = trusted | {self.dataset.content_sha256}
        require(digest in known, f"{self.folder} has been changed since it was fetched")
        return Found(self.folder, digest)

    def from_mirror(self, mirror: Path) -> Found:
        """From the archive under its own name, or from the unpacked folder."""
        archive, unpacked = mirror / self.dataset.filename, mirror / self.dataset.mirror
        if archive.is_file():
            fault = find_fault(archive, self.dataset.size, self.dataset.sha256)
            require(fault is None, f"{archive} is not the expected file: {fault}")
            return self._unpack(archive)
        require(unpacked.is_dir(), f"{mirror} has neither {archive.name} nor {unpacked.name}/")
        with new_path(self.folder) as building:
            copy_files(unpacked, LAYOUT, building)
            digest = content_digest(building)
            require(
                digest == self.dataset.content_sha256,
                f"{unpacked} is not the expected data: its content digest is {digest} "
                f"instead of {self.dataset.content_sha256}",
            )
        return Found(self.folder, digest)

    def from_network(self) -> Found:
        """Download the archive, check it and unpack it."""
        archive = self.raw_dir / self.dataset.filename
        expected = {"size": self.dataset.size, "sha256": self.dataset.sha256}
        return self._unpack(download(self.dataset.url, archive, progress=self.progress, **expected))

    def generated(self) -> Found:
        """Generate the sample."""
        folder = self.raw_dir / self.synthetic_name
        with new_path(folder) as building:
            write_drone_sample(building)
        return Found(folder, content_digest(folder))

    def _unpack(self, archive: Path) -> Found:
        # The archive's own SHA-256 has been checked, so the content needs no second proof.
        with new_path(self.folder) as building:
            unpack_zip(archive, building)
            digest = content_digest(building)
        return Found(self.folder, digest)
