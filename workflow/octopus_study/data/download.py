"""Downloads one file: says what that needs, resumes a broken transfer, and checks the file before it gets its name.

The transfer goes to ``<name>.part``; only a whole and right file is renamed to ``<name>``. An interrupted download
leaves its part, and the next one continues it with an HTTP range request (the reason for not using pooch, which starts
again from zero).
"""

import hashlib
import logging
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import requests
from tqdm import tqdm
from urllib3.exceptions import MaxRetryError

from octopus.backends import cpu
from octopus_study.errors import DataError

logger = logging.getLogger(__name__)

TIMEOUTS = (5.0, 30.0)  # seconds to connect, soon given up where there is no network, and to read
ATTEMPTS = 5
BACKOFF = 1.0  # seconds before the second attempt; doubled before each further one
# Object stores answer 404 now and then for objects that exist.
RETRY_STATUS = frozenset({404, 408, 429, 500, 502, 503, 504})
LARGEST = 4 << 30  # bytes of a file whose server doesn't say its size
LONGEST = 2 * 3600.0  # seconds that one command waits for a file; the next one goes on with the part
CHUNK = 1 << 16  # bytes per write; what a broken connection had sent of an unfinished chunk is lost
LITTLE = 16 << 20  # bytes of memory for a file that isn't read whole
RESUME = "run the same command to resume"
PARTIAL, BEYOND = requests.codes.partial_content, requests.codes.requested_range_not_satisfiable
Check = Callable[[Path], "str | None"]  # says what is wrong with a file


class _BrokenTransferError(Exception):
    """The transfer broke in a way that another attempt may mend."""


def download(
    url: str,
    path: str | Path,
    check: Check,
    *,
    size: int | None = None,
    unpacked: int = 0,
    memory: int = LITTLE,
    progress: bool = True,
) -> Path:
    """Fetch `url` into `path`, unless a file that passes the check is there already; return `path`.

    `check` says what is wrong with a whole file, or None; `size` is the expected bytes, by default what the server
    says; `unpacked` and `memory` are the bytes of disk beside the file, and of memory, that checking and unpacking
    take. `DataError`: no connection (at once, no retries), too little disk or memory (before anything is loaded),
    attempts or time used up, or the content is not what was expected.
    """
    path = Path(path)
    if path.is_file() and check(path) is None:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    transfer = _Transfer(url, path.with_name(f"{path.name}.part"), size, unpacked, memory, progress)
    try:
        transfer.complete(check)
        os.replace(transfer.part, path)
    except requests.RequestException as error:
        raise DataError(f"can't reach {url}: {_root_cause(error)}") from error
    except OSError as error:
        raise DataError(f"can't write {transfer.part}: {error}; make room for it and {RESUME}") from error
    return path


def check_reachable(url: str) -> None:
    """Raise `DataError` at once when nothing answers at `url`; for readers with long retries of their own."""
    try:
        requests.head(url, timeout=TIMEOUTS, allow_redirects=True).close()
    except requests.RequestException as error:
        raise DataError(f"can't reach {url}: {_root_cause(error)}") from error


def find_fault(path: Path, size: int | None, sha256: str | None) -> str | None:
    """Say what is wrong with a file's size or SHA-256, or None when both are as expected."""
    found = path.stat().st_size
    if size is not None and found != size:
        return f"it has {found:,} bytes instead of {size:,}"
    if sha256 is not None:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != sha256:
            return f"its SHA-256 is {digest} instead of {sha256}"
    return None


def require_room(what: str, folder: Path, load: int, disk: int, memory: int) -> None:
    """Say in one line what a download needs; raise `DataError` where disk or memory is too small for it."""
    free_disk, free_memory = shutil.disk_usage(folder).free, cpu.free_bytes()
    needs = f"{what}: {load:,} bytes to load, {disk:,} bytes of disk in {folder} ({free_disk:,} are free), "
    needs += f"{memory:,} bytes of memory ({free_memory:,} are free)"
    logger.info("%s", needs)
    short = [name for name, lacks in (("disk", disk > free_disk), ("memory", memory > free_memory)) if lacks]
    if short:
        raise DataError(f"too little {' and '.join(short)} for {needs}; free some and {RESUME}")


@dataclass
class _Transfer:
    """One file on its way."""

    url: str
    part: Path
    size: int | None  # bytes of the whole file: what is expected or, from the first answer on, what the server says
    unpacked: int
    memory: int
    progress: bool
    end: float = field(default_factory=lambda: time.monotonic() + LONGEST)
    told: bool = False  # what it needs

    @property
    def have(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def complete(self, check: Check) -> None:
        """Transfer until `part` is whole and right, resuming after each interruption."""
        if self.size is not None and self.have > self.size:
            self.part.unlink()
        for attempt in range(ATTEMPTS):
            resumed = self.part.exists()
            try:
                if not resumed or self.have != self.size:
                    self._request()
                fault = check(self.part)
                if fault is None:
                    return
                self.part.unlink()
                if not resumed:
                    raise self._refused(f"gave another file than expected: {fault}")
                reason = f"the resumed file is damaged ({fault})"
            except _BrokenTransferError as error:
                reason = str(error)
            except (requests.ConnectionError, requests.Timeout) as error:
                # No connection was made at all: no network, no such host, no answer.
                if attempt == 0 and error.args and isinstance(error.args[0], MaxRetryError):
                    raise
                reason = f"the connection broke: {_root_cause(error)}"
            if attempt + 1 < ATTEMPTS:
                logger.warning("%s: %s; attempt %d of %d follows", self.url, reason, attempt + 2, ATTEMPTS)
                time.sleep(BACKOFF * 2**attempt)
        raise DataError(f"gave up on {self.url} after {ATTEMPTS} attempts: {reason}; {RESUME}")

    def _request(self) -> None:
        """Append the rest of the file to `part`, or start anew where the server can't resume."""
        have = self.have
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        with requests.get(self.url, headers=headers, stream=True, timeout=TIMEOUTS) as answer:
            have = have if answer.status_code in (PARTIAL, BEYOND) else 0
            self._learn_size(answer, have)
            if answer.status_code == BEYOND:
                if have == self.size:
                    return  # all of it had been loaded
                self.part.unlink()
                raise _BrokenTransferError(f"the partial file of {have:,} bytes can't be resumed")
            if not self.told:
                load = (self.size or 0) - have
                require_room(self.part.stem, self.part.parent, load, load + self.unpacked, self.memory)
                self.told = True
            self._save(answer, have)
        if self.size is not None and self.have < self.size:
            raise _BrokenTransferError(f"the connection closed after {self.have:,} of {self.size:,} bytes")

    def _learn_size(self, answer: requests.Response, have: int) -> None:
        """Refuse an answer that can't be the file before anything is written; keep the size that it states."""
        status, said = answer.status_code, answer.headers
        if status in RETRY_STATUS:
            raise _BrokenTransferError(f"the server answered {status} {answer.reason}")
        if not answer.ok and status != BEYOND:
            raise self._refused(f"answered {status} {answer.reason}")
        if answer.ok and said.get("Content-Type", "").startswith("text/html"):
            raise self._refused("answered with a web page (a login, quota or proxy notice?), not with the file")
        length, span = said.get("Content-Length"), said.get("Content-Range", "")
        if length is not None and not (length.isascii() and length.isdigit()):
            raise self._refused(f"says that it sends {length!r} bytes")
        place = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(\d+)", span)
        if status == PARTIAL and not (place and place[1] == str(have)):
            raise self._refused(f"was asked for the bytes from {have:,} on, and answered with {span!r}")
        stated = int(place[2]) if place else int(length) if length and status != BEYOND else None
        if None not in (stated, self.size) and stated != self.size:
            raise self._refused(
                f"offers {stated:,} bytes instead of {self.size:,}: it has changed, or the server is wrong"
            )
        self.size = self.size or stated

    def _refused(self, why: str) -> DataError:
        return DataError(
            f"{self.url} {why}. Try again later, or put the file into a folder and name that with --mirror"
        )

    def _save(self, answer: requests.Response, have: int) -> None:
        limit = self.size or LARGEST
        bar = tqdm(
            desc=self.part.stem, total=self.size, initial=have, unit="B", unit_scale=True, unit_divisor=1024,
            mininterval=0.2 if sys.stderr.isatty() else 5.0, disable=not self.progress,
        )  # fmt: skip
        with bar, self.part.open("ab" if have else "wb") as file:
            try:
                for chunk in answer.iter_content(CHUNK):
                    file.write(chunk)
                    bar.update(len(chunk))
                    have += len(chunk)
                    if have > limit:
                        self.part.unlink()
                        raise self._refused(f"sends more than {limit:,} bytes")
                    if time.monotonic() > self.end:
                        raise DataError(f"{self.url} takes longer than {LONGEST:.0f} s; {RESUME}")
            except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError, requests.Timeout) as error:
                raise _BrokenTransferError(f"the connection broke: {_root_cause(error)}") from error


def _root_cause(error: BaseException) -> str:
    """The innermost reason of a requests error, in words: its own text is a nest of reprs."""
    while error.args and isinstance(error.args[0], BaseException):
        error = error.args[0]
    if isinstance(error, MaxRetryError) and error.reason is not None:
        return str(error.reason).partition(": ")[2] or type(error.reason).__name__
    return str(error.args[0]) if error.args else type(error).__name__
