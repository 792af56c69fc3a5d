"""Shares of time of a trace, on traces whose answer is known."""

from __future__ import annotations

import pytest

from octopus_study.studies.concurrency.trace import KERNEL, UPLOAD, Work, runs_of, summary, works

PROCESSORS = 132


def kernel(stream, start, end, blocks=PROCESSORS):
    return Work(KERNEL, stream, start, end, blocks)


def test_kernels_and_uploads_are_read_from_a_trace():
    args = {"stream": 7}
    trace = {
        "traceEvents": [
            {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 2000.0, "dur": 500.0,
             "args": args | {"grid": [3, 5, 2]}},
            {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "ts": 1.0, "dur": 2.0,
             "args": {"stream": 9}},
            {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pinned)", "ts": 1.0, "dur": 2.0,
             "args": args},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1.0, "dur": 2.0, "args": {}},
            {"ph": "M", "name": "process_name"},
        ]
    }  # fmt: skip
    assert works(trace) == [kernel(7, 2.0, 2.5, 30), Work(UPLOAD, 9, 0.001, 0.003)]


def test_one_stream_has_no_overlap_and_gaps_are_not_busy():
    found = summary([kernel(7, 0, 1), kernel(7, 3, 4)], PROCESSORS)
    assert (found.kernel_busy, found.kernel_time) == (0.5, 2)
    assert found.kernel_overlap is None
    assert found.copies_hidden is None


def test_two_streams_overlap_where_both_work():
    found = summary([kernel(7, 0, 4), kernel(8, 3, 5), kernel(8, 6, 8)], PROCESSORS)
    assert found.kernel_busy == 7 / 8
    assert found.kernel_overlap == 1 / 4


def test_an_upload_is_hidden_while_a_kernel_runs():
    found = summary([kernel(7, 0, 2), Work(UPLOAD, 9, 1, 3), Work(UPLOAD, 9, 5, 7)], PROCESSORS)
    assert found.copies_hidden == 0.25


@pytest.mark.parametrize(
    ("blocks", "filled"), [((132, 132), 1.0), ((131, 132), 0.75), ((5, 5000), 0.75), ((1, 1), 0.0), ((0, 132), None)]
)
def test_a_kernel_fills_the_gpu_with_a_block_for_every_multiprocessor(blocks, filled):
    first, second = blocks
    assert summary([kernel(7, 0, 1, first), kernel(7, 1, 4, second)], PROCESSORS).kernel_filled == filled


def test_runs_are_cut_at_the_pauses_between_them():
    run = [Work(UPLOAD, 9, 0, 1), kernel(7, 2, 3), kernel(8, 2.5, 6), kernel(7, 9, 10)]
    runs = [[work._replace(start=work.start + at, end=work.end + at) for work in run] for at in (0, 60, 130)]
    assert runs_of([work for part in reversed(runs) for work in part], 3) == runs
    assert runs_of(run, 1) == [run]
