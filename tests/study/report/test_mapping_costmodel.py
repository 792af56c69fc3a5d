"""The cost model: traffic or searches, one fitted step, and nothing fitted where nothing can be."""

from __future__ import annotations

import math

import pytest

from octopus.errors import InputError
from octopus_study.report.studies.mapping_costmodel import (
    HARDWARE,
    OFFSET_BYTES,
    STRATEGIES,
    Load,
    Machine,
    error_of,
    fit_step,
    hardware_of,
    kernel_ms,
    ratio,
    search_steps,
    steps,
    traffic_ms,
)

GPU = Machine(bandwidth=100.0, cache=4e6, threads=10_000, step_ns=100.0, launch_ms=0.003)
LOADS = [Load(items * 500.0, items) for items in (1000, 10_000, 100_000, 500_000)]
SEARCH = "thread-search-scalar"


def test_a_kernel_takes_the_longer_of_traffic_and_searches() -> None:
    load = LOADS[2]
    search = search_steps(SEARCH, GPU, load) * GPU.step_ns / 1e6
    traffic = traffic_ms(SEARCH, GPU, load)
    assert search > traffic
    assert kernel_ms(SEARCH, GPU, load) == pytest.approx(GPU.launch_ms + search)
    quick = GPU._replace(step_ns=1e-3)
    assert kernel_ms(SEARCH, quick, load) == pytest.approx(GPU.launch_ms + traffic)


def test_traffic_in_numbers() -> None:
    """A million elements of 8 bytes, and 4 more for the table, at 100 GB/s."""
    load = Load(1e6, 1.0)
    assert traffic_ms("lookup", GPU, load) == pytest.approx(12e6 / 100e6, rel=1e-3)
    assert traffic_ms("octopus", GPU, load) == pytest.approx(8e6 / 100e6, rel=1e-3)


def test_a_table_is_traffic_alone_and_needs_no_step() -> None:
    unfitted = GPU._replace(step_ns=math.nan)
    assert search_steps("lookup", unfitted, LOADS[0]) == 0
    assert math.isfinite(kernel_ms("lookup", unfitted, LOADS[0]))


def test_steps_grow_by_one_with_twice_the_items_and_faster_beyond_the_cache() -> None:
    assert steps(GPU, 2047) == 11 and steps(GPU, 4095) == 12
    beyond = 4 * GPU.cache / 2 / OFFSET_BYTES
    assert steps(GPU, beyond) == math.ceil(math.log2(beyond + 1)) + 2
    assert steps(GPU._replace(cache=math.inf), beyond) == math.ceil(math.log2(beyond + 1))


def test_ratios_are_those_of_times() -> None:
    load = LOADS[1]
    times = {name: kernel_ms(name, GPU, load) for name in STRATEGIES}
    assert ratio("block-metadata", SEARCH, GPU, load) == times[SEARCH] / times["block-metadata"] > 1
    assert times["thread-search"] < times[SEARCH]


def test_more_threads_or_less_bandwidth_hide_the_search() -> None:
    load = LOADS[2]
    ratios = [ratio("block-metadata", SEARCH, GPU._replace(threads=count), load) for count in (5e3, 1e4, 1e6)]
    assert ratios == sorted(ratios, reverse=True) and ratios[-1] == pytest.approx(1, abs=0.02)


def test_the_fit_finds_the_step() -> None:
    times = [kernel_ms(SEARCH, GPU, load) for load in LOADS]
    fit = fit_step(GPU._replace(step_ns=math.nan), LOADS, times, SEARCH)
    assert fit.identified and fit.step_ns == pytest.approx(100, rel=0.01) and fit.error < 0.01
    assert error_of(GPU._replace(step_ns=200.0), LOADS, times, SEARCH) == pytest.approx(1, rel=0.1)


def test_hidden_searches_give_an_upper_end() -> None:
    quick = GPU._replace(step_ns=1e-3)
    times = [kernel_ms(SEARCH, quick, load) for load in LOADS]
    fit = fit_step(quick, LOADS, times, SEARCH)
    assert not fit.identified
    most = quick._replace(step_ns=fit.step_ns)
    assert [kernel_ms(SEARCH, most, load) for load in LOADS] == pytest.approx(times)
    assert fit.step_ns > quick.step_ns


def test_what_cannot_be_fitted_or_predicted_is_refused() -> None:
    with pytest.raises(InputError, match="positive times"):
        fit_step(GPU, [], [], SEARCH)
    with pytest.raises(InputError, match="no strategy 'guess'"):
        kernel_ms("guess", GPU, LOADS[0])


def test_hardware_is_found_by_the_devices_name() -> None:
    assert hardware_of("NVIDIA H200") == HARDWARE["h200"]
    assert hardware_of("Tesla T4") == HARDWARE["t4"]
    assert hardware_of("Jetson Orin Nano") == HARDWARE["jetson-orin-nano"]
    assert hardware_of("Pretended GPU") is None
