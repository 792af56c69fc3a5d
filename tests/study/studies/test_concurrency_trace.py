"""Shares of time of a trace, on traces whose answer is known."""

from __future__ import annotations

import pytest

from octopus_study.studies.concurrency.trace import KERNEL, UPLOAD, Work, summary, works


def kernel(stream, start, end):
    return Work(KERNEL, stream, start, end)


def test_kernels_and_uploads_are_read_from_a_trace():
    args = {"stream": 7}
    trace = {
        "traceEvents": [
            {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 2000.0, "dur": 500.0, "args": args},
            {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "ts": 1.0, "dur": 2.0,
             "args": {"stream": 9}},
            {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pinned)", "ts": 1.0, "dur": 2.0,
             "args": args},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1.0, "dur": 2.0, "args": {}},
            {"ph": "M", "name": "process_name"},
        ]
    }  # fmt: skip
    assert works(trace) == [kernel(7, 2.0, 2.5), Work(UPLOAD, 9, 0.001, 0.003)]


def test_one_stream_has_no_overlap_and_gaps_are_not_busy():
    found = summary([kernel(7, 0, 1), kernel(7, 3, 4)], 1)
    assert found.kernels == 2
    assert found.busy == 0.5
    assert found.overlap is None
    assert found.hidden is None


def test_two_streams_overlap_where_both_work():
    found = summary([kernel(7, 0, 4), kernel(8, 3, 5), kernel(8, 6, 8)], 2)
    assert found.kernels == 2
    assert found.busy == 7 / 8
    assert found.overlap == 1 / 4


def test_streams_that_take_turns_do_not_overlap():
    assert summary([kernel(7, 0, 1), kernel(8, 1, 2), kernel(7, 2, 3)], 1).overlap == 0


def test_an_upload_is_hidden_while_a_kernel_runs():
    found = summary([kernel(7, 0, 2), Work(UPLOAD, 9, 1, 3), Work(UPLOAD, 9, 5, 7)], 1)
    assert found.hidden == 0.25


def test_a_trace_without_kernels_is_an_error():
    with pytest.raises(RuntimeError, match="no kernel"):
        summary([Work(UPLOAD, 9, 1, 3)], 1)
