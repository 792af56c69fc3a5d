"""A fresh Python that works for this one: it is asked within a time, heard to its last words, and ended.

Requests and answers are pickles behind their lengths, through the child's standard input and a copy of its standard
output; what libraries print goes to the standard error. The child imports next to nothing before its first request, so
that a reading of its memory there is one of Python alone.
"""

import ctypes
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import IO, Any, NamedTuple, NoReturn, Self

from octopus_study.errors import MeasureError, OctopusError, Unavailable

LOOK_SECONDS = 0.5  # between two looks at whether the process is still there
END_SECONDS = 10.0  # for a process that is told to end
_LENGTH_BYTES = 8
_PR_SET_PDEATHSIG = 1  # of prctl(2)


class WorkerError(MeasureError, Unavailable):
    """A process that ended, or gave no answer in time; `how` says which, but not beyond this process."""

    def __init__(self, message: str, how: str = "") -> None:
        super().__init__(message)
        self.how = how


class _Request(NamedTuple):
    target: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    kept: bool = False


class Worker:
    """A Python process that calls what it is told to; a context manager that ends it.

    What is called is named ``"module:name"``, or by a method's name of the object that `keep` has made there. A call
    that raises raises here: an error of ours as it is, any other as `Unavailable` with its description. An object with
    the methods `wait_s` and `read` is read whenever that many seconds have passed between requests. Its standard error
    is this process's where it `shows`, else kept for `words`.
    """

    def __init__(self, name: str, environment: Mapping[str, str] | None = None, shows: bool = False) -> None:
        self.name = name
        self._environment, self._shows = dict(environment or {}), shows
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(kill=kind is not None)

    @property
    def pid(self) -> int:
        """Its id; 0 where it isn't running."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Start it with this process's import path, once."""
        if self._process is not None:
            return
        path = os.pathsep.join(filter(None, sys.path))
        self._errors = None if self._shows else tempfile.TemporaryFile("a+b")  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", "octopus_study.measure.worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            env={**os.environ, "PYTHONPATH": path, **self._environment},
        )  # fmt: skip

    def keep(self, target: str, *arguments: Any, **options: Any) -> None:
        """Have it make an object for further requests; heard as the others."""
        self._send(_Request(target, arguments, options, kept=True))

    def tell(self, target: str, *arguments: Any, **options: Any) -> None:
        """Request a call; its answer must be heard before the next request."""
        self._send(_Request(target, arguments, options))

    def ask(
        self,
        target: str,
        *arguments: Any,
        seconds: float,
        meanwhile: Callable[[], object] | None = None,
        **options: Any,
    ) -> Any:
        """Request a call and hear its answer."""
        self.tell(target, *arguments, **options)
        return self.hear(seconds, meanwhile)

    def hear(self, seconds: float, meanwhile: Callable[[], object] | None = None) -> Any:
        """The next answer, or `WorkerError` where the process ended, or nothing came in time, after which it is killed;
        `meanwhile` is called now and then until it comes."""
        end = time.monotonic() + seconds
        length = int.from_bytes(self._read(_LENGTH_BYTES, end, seconds, meanwhile), "big")
        kind, value = pickle.loads(self._read(length, end, seconds, meanwhile))
        if kind == "error":
            raise value
        return value

    def words(self) -> list[str]:
        """The lines that it wrote to its standard error."""
        if self._errors is None:
            return []
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace").strip().splitlines()

    def close(self, kill: bool = False) -> None:
        """End it; one that doesn't end when told to is killed."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None and process.stdout is not None
            if kill:
                process.kill()
            with suppress(OSError):
                process.stdin.close()  # it ends when there is no request left
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise WorkerError(f"{self.name} is not running")
        return self._process

    def _send(self, request: _Request) -> None:
        try:
            _write(self._running().stdin, tuple(request))
        except BrokenPipeError:
            raise self._ended() from None

    def _read(self, count: int, end: float, seconds: float, meanwhile: Callable[[], object] | None) -> bytes:
        process = self._running()
        stream, content = process.stdout.fileno(), b""
        while len(content) < count:
            left = end - time.monotonic()
            # What it has forked may hold the pipe open behind its end.
            gone = process.poll() is not None
            if select.select([stream], [], [], 0 if gone else min(max(left, 0), LOOK_SECONDS))[0]:
                part = os.read(stream, count - len(content))
                if not part:
                    raise self._ended()
                content += part
            elif gone:
                raise self._ended()
            elif left <= 0:
                how = f"gave no answer for {seconds:.3g} s"
                error = WorkerError(f"{self.name} {how}{self._last_words()}", how)
                self.close(kill=True)
                raise error
            elif meanwhile is not None:
                meanwhile()
        return content

    def _ended(self) -> WorkerError:
        """Say that the process ended, and how, with the last line that it wrote."""
        how = _how(self._running().wait(END_SECONDS))
        error = WorkerError(f"{self.name} {how}{self._last_words()}", how)
        self.close()
        return error

    def _last_words(self) -> str:
        return f": {' '.join(words[-1].split())[:200]}" if (words := self.words()) else ""


def _how(code: int) -> str:
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def _write(stream: IO[bytes], message: object) -> None:
    content = pickle.dumps(message)
    stream.write(len(content).to_bytes(_LENGTH_BYTES, "big") + content)
    stream.flush()


# The child's side.


def end_with_parent() -> None:
    """Have Linux kill this process when its parent ends: no GPU is kept busy for a study that is over."""
    with suppress(OSError, AttributeError):  # elsewhere it goes on to its end
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def end_at_once() -> NoReturn:
    """End this process without what libraries do at an exit: some abort there, and complete answers would be lost."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)


def main() -> None:
    """Answer requests until they end."""
    end_with_parent()
    requests, answers = os.fdopen(os.dup(0), "rb", 0), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _serve(requests, answers)
    end_at_once()


def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    held: Any = None
    while True:
        while hasattr(held, "wait_s") and not select.select([requests], [], [], held.wait_s())[0]:
            held.read()
        try:
            length = int.from_bytes(_exactly(requests, _LENGTH_BYTES), "big")
            request = _Request(*pickle.loads(_exactly(requests, length)))
        except EOFError:
            return
        answer = _answer(request, held)
        if request.kept and answer[0] == "answer":
            held, answer = answer[1], ("answer", None)
        _write(answers, answer)


def _exactly(stream: IO[bytes], count: int) -> bytes:
    content = b""
    while len(content) < count:
        part = stream.read(count - len(content))
        if not part:
            raise EOFError
        content += part
    return content


def _answer(request: _Request, held: Any) -> tuple[str, Any]:
    try:
        module, colon, name = request.target.rpartition(":")
        call = getattr(import_module(module) if colon else held, name)
        return "answer", call(*request.arguments, **request.options)
    except OctopusError as error:
        return "error", error
    except Exception as error:  # the parent makes a row of it
        from traceback import print_exc

        from octopus_study.measure.rows import describe

        print_exc()
        return "error", Unavailable(describe(error))


if __name__ == "__main__":
    main()
