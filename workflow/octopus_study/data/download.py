"""Downloads one file: progress, retries, resume of a broken transfer, and a check before it gets its name.

The transfer goes to ``<name>.part``; only a file of the right size and SHA-256 is renamed to ``<name>``. An
interrupted download leaves its part, and the next one continues it with an HTTP range request (the reason
for not using pooch, which starts again from zero).
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import requests
from tqdm import tqdm
from urllib3.exceptions import MaxRetryError

from octopus_study.errors import DataError

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT, READ_TIMEOUT = 5.0, 30.0
"""Seconds. The first is short so that a machine with no network learns it at once."""
ATTEMPTS = 5
BACKOFF = 1.0
"""Seconds before the second attempt; doubled before each further one."""
RETRY_STATUS = frozenset({404, 408, 429, 500, 502, 503, 504})
"""404 is among them because object stores answer it now and then for objects that exist."""
LARGEST = 4 << 30
"""Bytes of a file whose size is not known before."""
LONGEST = 2 * 3600.0
"""Seconds that one command waits for a file; the next one goes on with the part."""
CHUNK = 1 << 16
"""Bytes per write; what a broken connection had sent of an unfinished chunk is lost."""


class _BrokenTransferError(Exception):
    """The transfer broke in a way that another attempt may mend."""


class _TooLargeError(DataError):
    """A server sends more than the file can have."""


def download(
    url: str, path: str | Path, *, size: int | None = None, sha256: str | None = None, progress: bool = True
) -> Path:
    """Fetch `url` into `path`, unless a file that passes the check is there already.

    Parameters
    ----------
    size, sha256
        Expected bytes and SHA-256; None skips that check.

    Returns
    -------
    Path
        `path`, complete and checked.

    Raises
    ------
    DataError
        No connection (at once, no retries), attempts or time used up, or the content is not what was expected.
    """
    path = Path(path)
    if path.is_file() and find_fault(path, size, sha256) is None:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    try:
        _fill(url, part, size, sha256, progress)
        os.replace(part, path)
    except requests.RequestException as error:
        raise DataError(f"can't reach {url}: {_root_cause(error)}") from error
    except OSError as error:
        raise DataError(f"can't write {part}: {error}") from error
    return path


def check_reachable(url: str) -> None:
    """Raise `DataError` at once when nothing answers at `url`; for readers with long retries of their own."""
    try:
        requests.head(url, timeout=(CONNECT_TIMEOUT, READ_TIMEOUT), allow_redirects=True).close()
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


def _fill(url: str, part: Path, size: int | None, sha256: str | None, progress: bool) -> None:
    """Transfer until `part` is complete and right, resuming after each interruption."""
    end = time.monotonic() + LONGEST
    if size is not None and part.is_file() and part.stat().st_size > size:
        part.unlink()
    for attempt in range(ATTEMPTS):
        resumed = part.exists()
        try:
            if not _is_complete(part, size):
                _transfer(url, part, size, progress, end)
            fault = find_fault(part, size, sha256)
            if fault is None:
                return
            part.unlink()
            if not resumed:
                raise DataError(f"{url} gave another file than expected: {fault}")
            reason = f"the resumed file is damaged ({fault})"
        except _BrokenTransferError as error:
            reason = str(error)
        except (requests.ConnectionError, requests.Timeout) as error:
            if attempt == 0 and _is_unreachable(error):
                raise
            reason = f"the connection broke: {_root_cause(error)}"
        if attempt + 1 < ATTEMPTS:
            logger.warning("%s: %s; attempt %d of %d follows", url, reason, attempt + 2, ATTEMPTS)
            time.sleep(BACKOFF * 2**attempt)
    raise DataError(f"gave up on {url} after {ATTEMPTS} attempts: {reason}; run the same command to resume")


def _is_complete(part: Path, size: int | None) -> bool:
    return size is not None and part.exists() and part.stat().st_size == size


def _transfer(url: str, part: Path, size: int | None, progress: bool, end: float) -> None:
    """One request: append the rest of the file to `part`, or start anew when the server can't resume."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with requests.get(url, headers=headers, stream=True, timeout=(CONNECT_TIMEOUT, READ_TIMEOUT)) as response:
        if response.status_code == requests.codes.requested_range_not_satisfiable:
            part.unlink()
            raise _BrokenTransferError(f"the partial file of {have:,} bytes can't be resumed")
        have = have if response.status_code == requests.codes.partial_content else 0
        total = _check_answer(response, url, have, size)
        try:
            _save(_limited(response, url, have, total, end), part, have, total, progress)
        except _TooLargeError:
            part.unlink()
            raise
    if total is not None and part.stat().st_size < total:
        raise _BrokenTransferError(f"the connection closed after {part.stat().st_size:,} of {total:,} bytes")


def _check_answer(response: requests.Response, url: str, have: int, size: int | None) -> int | None:
    """Refuse an answer that can't be the file before anything is written; returns its total bytes."""
    if response.status_code in RETRY_STATUS:
        raise _BrokenTransferError(f"the server answered {response.status_code} {response.reason}")
    if not response.ok:
        raise DataError(f"{url} answered {response.status_code} {response.reason}")
    if response.headers.get("Content-Type", "").startswith("text/html"):
        raise DataError(f"{url} answered with a web page (a login, quota or proxy notice?), not with the file")
    length = response.headers.get("Content-Length")
    if length is not None and not (length.isascii() and length.isdigit()):
        raise DataError(f"{url} says that it sends {length!r} bytes")
    total = have + int(length) if length is not None else size
    if total is not None and size is None and total > LARGEST:
        raise DataError(f"{url} sends more than {LARGEST:,} bytes: {total:,}")
    if size is not None and total != size:
        raise DataError(f"{url} offers {total:,} bytes instead of {size:,}; the file has changed or moved")
    return total


def _limited(response: requests.Response, url: str, have: int, total: int | None, end: float) -> Iterator[bytes]:
    """The chunks of an answer, until they are more than was said or the time is over."""
    limit = LARGEST if total is None else total
    for chunk in response.iter_content(CHUNK):
        yield chunk
        have += len(chunk)
        if have > limit:
            raise _TooLargeError(f"{url} sends more than {limit:,} bytes")
        if time.monotonic() > end:
            raise DataError(f"{url} takes longer than {LONGEST:.0f} s; run the same command to resume")


def _save(chunks: Iterable[bytes], part: Path, have: int, total: int | None, progress: bool) -> None:
    bar = tqdm(
        desc=part.stem, total=total, initial=have, unit="B", unit_scale=True, unit_divisor=1024,
        mininterval=0.2 if sys.stderr.isatty() else 5.0, disable=not progress,
    )  # fmt: skip
    with bar, part.open("ab" if have else "wb") as file:
        try:
            for chunk in chunks:
                file.write(chunk)
                bar.update(len(chunk))
        except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError, requests.Timeout) as error:
            raise _BrokenTransferError(f"the connection broke: {_root_cause(error)}") from error


def _is_unreachable(error: requests.RequestException) -> bool:
    """No connection was made at all: no network, no such host, no answer."""
    return bool(error.args) and isinstance(error.args[0], MaxRetryError)


def _root_cause(error: BaseException) -> str:
    """The innermost reason of a requests error, in words: its own text is a nest of reprs."""
    while error.args and isinstance(error.args[0], BaseException):
        error = error.args[0]
    if isinstance(error, MaxRetryError) and error.reason is not None:
        return str(error.reason).partition(": ")[2] or type(error.reason).__name__
    return str(error.args[0]) if error.args else type(error).__name__
