"""Reading a sensor all the time, in a process of its own, so that what is measured doesn't wait for the sensor.

A reading of NVML's energy counter takes milliseconds; in the process that launches the work it would be part of the
work. The sampler's process reads on a fixed beat, stamps each reading with the machine-wide monotonic clock, and hands
over what it has when it is asked. A reading that fails is kept as a failure, never as 0.
"""

from __future__ import annotations

import pickle
import select
import subprocess
import sys
import tempfile
from typing import IO, Any, Self

from octopus_study.power.choose import SourceSpec
from octopus_study.power.source import SensorError
from octopus_study.power.trace import Trace

COLLECT, PAUSE, RESUME = b"c", b"p", b"r"
READY, REFUSED, SAMPLES = "ready", "refused", "samples"
_LENGTH_BYTES = 8
_START_SECONDS = 60.0
_ANSWER_SECONDS = 20.0


class Sampler:
    """Samples a source in its own process while the context is open.

    Parameters
    ----------
    spec : SourceSpec
    interval_s : float, optional
        Seconds from one reading to the next; by default a fifth of the sensor's own period and three times as long as a
        reading takes, within 2 to 20 ms.
    """

    def __init__(self, spec: SourceSpec, interval_s: float | None = None) -> None:
        self.spec = spec
        self._interval_s = interval_s
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._facts: dict[str, Any] = {}
        self._samples = self._failures = 0

    def __enter__(self) -> Self:
        """Start the process and wait until it has opened the source.

        Raises
        ------
        SensorError
            The source can't be opened there, or the process doesn't answer.
        """
        self._log = tempfile.TemporaryFile()
        command = [sys.executable, "-m", "octopus_study.power.sampler_process"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log
        )
        try:
            self._send(pickle.dumps((self.spec, self._interval_s)))
            kind, content = self._receive(_START_SECONDS)
        except BaseException:
            self._stop()
            raise
        if kind == REFUSED:
            self._stop()
            raise content
        self._facts = content
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self._stop()

    @property
    def scope(self) -> str:
        """What the sampled power is the power of."""
        return str(self._facts["scope"])

    @property
    def period_s(self) -> float | None:
        """Seconds between two new values of the sensor, as seen at the start; None where it repeated one."""
        return self._facts["period_s"]

    def collect(self) -> Trace:
        """Return what was read since the last call.

        Raises
        ------
        SensorError
            The process died or doesn't answer: nothing is known of the time since the last call.
        """
        self._command(COLLECT)
        _, trace = self._receive(_ANSWER_SECONDS)
        self._samples += len(trace.samples)
        self._failures += len(trace.failures)
        return trace

    def pause(self) -> None:
        """Stop reading until `resume`; the process waits."""
        self._command(PAUSE)

    def resume(self) -> None:
        """Read again."""
        self._command(RESUME)

    def facts(self) -> dict[str, Any]:
        """Return how the source is sampled, and how many readings were collected until now, as plain JSON values."""
        return {**self._facts, "samples": self._samples, "failures": self._failures}

    def _command(self, command: bytes) -> None:
        process = self._running()
        try:
            process.stdin.write(command)
            process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise SensorError(self._obituary()) from None

    def _send(self, content: bytes) -> None:
        stream = self._running().stdin
        stream.write(len(content).to_bytes(_LENGTH_BYTES, "big") + content)
        stream.flush()

    def _receive(self, seconds: float) -> tuple[str, Any]:
        """Return the process's next message, of at most `seconds` to wait for each of its parts."""
        length = int.from_bytes(self._read(_LENGTH_BYTES, seconds), "big")
        return pickle.loads(self._read(length, seconds))

    def _read(self, count: int, seconds: float) -> bytes:
        stream, content = self._running().stdout, b""
        while len(content) < count:
            if not select.select([stream], [], [], seconds)[0]:
                raise SensorError(f"the sampler of {self.spec.title} gave no answer for {seconds:g} s")
            part = stream.read1(count - len(content))
            if not part:
                raise SensorError(self._obituary())
            content += part
        return content

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise SensorError(f"the sampler of {self.spec.title} is not running: open it with `with`")
        return self._process

    def _obituary(self) -> str:
        """Say that the process died, with the last line that it wrote."""
        code = self._process.wait(_ANSWER_SECONDS) if self._process else None
        lines: list[str] = []
        if self._log:
            self._log.seek(0)
            lines = self._log.read().decode(errors="replace").strip().splitlines()
        last = f": {lines[-1]}" if lines else ""
        return f"the sampler of {self.spec.title} ended with code {code}{last}"

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            for stream in (process.stdin, process.stdout):
                try:
                    stream.close()  # the process ends when nobody talks to it any more
                except BrokenPipeError:
                    continue
            try:
                process.wait(2)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._log is not None:
            self._log.close()
            self._log = None


def message(kind: str, content: Any) -> bytes:
    """Return a message of the sampler's process as it goes through the pipe."""
    body = pickle.dumps((kind, content))
    return len(body).to_bytes(_LENGTH_BYTES, "big") + body


def receive_order(stream: IO[bytes]) -> tuple[SourceSpec, float | None]:
    """Return what the sampler's process is told first: the source and the interval."""
    length = int.from_bytes(stream.read(_LENGTH_BYTES), "big")
    return pickle.loads(stream.read(length))
