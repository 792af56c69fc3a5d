"""The end of a process that has used PyTorch's profiler."""

from __future__ import annotations

import logging
import os
import sys


def end_if_profiled() -> None:
    """End a process that has used PyTorch's profiler, once its results are written.

    With the profiler, CUDA graphs and `cuda.core` in one process, some library frees the same memory twice while the
    interpreter ends (seen on an H200 with PyTorch 2.11: the study's files were whole, the exit code said `aborted`).
    """
    trace = sys.modules.get("octopus_study.studies.concurrency.trace")
    if trace is not None and trace.profiled:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
