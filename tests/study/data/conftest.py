"""Fixtures: a mirror with real data where there is one, small stand-ins, and an HTTP server with faults."""

import hashlib
import os
import threading
import zipfile
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from octopus_study.data import download, sentinel2
from octopus_study.data.registry import Dataset
from octopus_study.data.synthetic import write_drone_sample
from octopus_study.data.visdrone import content_digest

REPOSITORY = Path(__file__).resolve().parents[3]
MIRROR = Path(os.environ.get("OCTOPUS_MIRROR") or REPOSITORY.parent / "shared" / "data")

# Facts about the real data are checked where the data are; elsewhere there is nothing to collect.
collect_ignore = [] if (MIRROR / "visdrone_val").is_dir() else ["test_real_data.py"]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "BACKOFF", 0.0)


@pytest.fixture(scope="session")
def real_mirror() -> Path:
    return MIRROR


@pytest.fixture(scope="session")
def drone_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_drone_sample(tmp_path_factory.mktemp("drone") / "visdrone_val")


@pytest.fixture(scope="session")
def drone_archive(drone_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same data set as the archive that its publisher would offer."""
    archive = tmp_path_factory.mktemp("archive") / "drone.zip"
    with zipfile.ZipFile(archive, "w") as target:
        for file in sorted(drone_root.rglob("*.*")):
            target.write(file, Path("VisDrone-val") / file.relative_to(drone_root))
    return archive


@pytest.fixture
def drone_dataset(drone_root: Path, drone_archive: Path) -> Dataset:
    """Description of that archive, at an address that does not answer."""
    content = drone_archive.read_bytes()
    return Dataset(
        name="visdrone-val", kind="visdrone", url="http://127.0.0.1:9/drone.zip", filename="drone.zip",
        size=len(content), sha256=hashlib.sha256(content).hexdigest(), content_sha256=content_digest(drone_root),
        mirror="visdrone_val", licence="test", citation="test",
    )  # fmt: skip


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Dataset, NDArray[np.uint16]]:
    """A mirror with a clip of the scene, the pinned window and a rim around it; its description; its pixels."""
    pixels = np.random.RandomState(2).randint(1, 9000, (1050, 1100)).astype(np.uint16)
    transform = sentinel2.window_transform(sentinel2.Window(9700, 6900, 1100, 1050))
    band = sentinel2.Band(pixels, 0, transform, sentinel2.SCENE_CRS, sentinel2.ATTRIBUTION)
    mirror = tmp_path_factory.mktemp("mirror")
    (mirror / "sentinel2").mkdir()
    sentinel2.write_band(mirror / "sentinel2" / "clip.tif", band)
    dataset = Dataset(
        name="sentinel2-b04", kind="sentinel2", url="http://127.0.0.1:9/B04.tif", filename="whole.tif", size=None,
        sha256=None, content_sha256=sentinel2.pixel_digest(pixels[30:1030, 60:1060]), mirror="sentinel2/*.tif",
        licence="test", citation=sentinel2.ATTRIBUTION,
    )  # fmt: skip
    return mirror, dataset, pixels


@dataclass
class FileServer:
    """Serves `files` with range requests; each entry of `faults` spoils one GET, in turn."""

    address: str
    files: dict[str, bytes | memoryview] = field(default_factory=dict)
    faults: list[str | int] = field(default_factory=list)
    ranges: list[str | None] = field(default_factory=list)
    """The Range header of every GET."""
    sent: int = 0
    """Bytes of content sent."""

    def put(self, name: str, content: bytes | memoryview) -> str:
        self.files[f"/{name}"] = content
        return f"{self.address}/{name}"


TO = {"to itself": "/data.bin", "to a file": "file:///etc/hostname"}
"""Where answers redirect to."""


class _Handler(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, with_body: bool) -> None:
        state: FileServer = self.server.state
        wanted = self.headers.get("Range")
        fault = state.faults.pop(0) if with_body and state.faults else None
        if with_body:
            state.ranges.append(wanted)
        if isinstance(fault, int):
            self.send_error(fault)
            return
        if fault in TO:
            self.send_response(302)
            self.send_header("Location", TO[fault])
            self.end_headers()
            return
        content = b"<html>sign in</html>" if fault == "html" else state.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        part = self._send_head(content, None if fault == "no-range" else wanted, fault)
        if with_body:
            part = part[: len(part) // 2] if fault in ("cut", "lie") else part
            for _ in range(5 if fault == "endless" else 1):
                self.wfile.write(part)
            state.sent += len(part)

    def _send_head(self, content: bytes | memoryview, wanted: str | None, fault: str | None) -> bytes | memoryview:
        part, total = content, len(content)
        if wanted:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            start, end = int(first), min(int(last or total - 1), total - 1)
            part = content[start : end + 1]
            if start >= total:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{total}")
            else:
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{end}/{total}")
        else:
            self.send_response(200)
        self.send_header("Content-Type", "text/html" if fault == "html" else "application/octet-stream")
        if fault != "endless":
            length = len(part) + (1000 if fault == "lie" else 0)
            self.send_header("Content-Length", "abc" if fault == "bad-length" else str(length))
        self.send_header("Accept-Ranges", "bytes")
        self.end_headers()
        return part

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test log free of requests."""


@pytest.fixture
def server():
    http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    http.state = FileServer(f"http://127.0.0.1:{http.server_port}")
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield http.state
    http.shutdown()
    http.server_close()
