"""What captured runs of plans write, and what plans refuse, without a GPU: see `simulate_images_plans`."""

from __future__ import annotations

SCRIPT = "simulate_images_plans.py"


def test_an_update_does_not_write_behind_the_captured_memory(answers):
    assert "the captured run has room for 2 rows, found 4" in answers["more-rows"]
    assert answers["rows-written"] == [True, True, False, False]


def test_a_second_capture_leaves_the_first_graph_as_it_is(answers):
    assert "make another plan for another graph" in answers["second-capture"]
    assert answers["first-graph"] == [True, True, False, False]


def test_an_update_returns_where_the_captured_run_writes(answers):
    for allocate in (False, True):
        assert answers[f"update-{allocate}"] == [[True, [2, 12]], [True, [4, 12]]]


def test_a_plan_that_pads_loads_the_kernel_for_that(answers):
    assert answers["loaded"] == [0, 1, 1]


def test_a_plan_takes_arrays_of_the_library_that_it_was_made_for(answers):
    words, none = answers["other-library"]
    assert "the plan is for images of (library, side, dtype, channels) ('other', 'cuda', 'uint8', 3)" in words
    assert "found ('octopus', 'cuda', 'uint8', 3)" in words and none == ""


def test_a_plan_takes_images_on_its_own_gpu(answers):
    assert "the plan is for images on GPU 0, found GPU 1" in answers["other-gpu"]


def test_a_slot_whose_launch_fails_is_in_use_until_its_upload_is_done(answers):
    assert answers["failed-launches"] == [1, 1]


def test_images_from_the_host_are_worked_on_where_torch_will_use_the_result(answers):
    for name in ("host-call", "host-plan"):
        assert set(answers[name]) == {"copy own", "release own"}


def test_torch_is_told_which_stream_uses_its_out(answers):
    for name in ("gpu-call", "gpu-plan"):
        assert {"copy side", "used side True"} <= set(answers[name])


def test_runs_that_are_alike_but_for_addresses(answers):
    assert answers["alike-host"] <= 1e-3 and answers["alike-gpu"] <= 1e-3
    *errors, copies = answers["alike-calls"]  # the second of which launches at once
    assert max(errors) <= 1e-3 and copies == 1
    assert answers["made-ready"] == 3  # once for each plan and all calls, not for each run


def test_a_call_waits_for_those_who_write_its_own_images(answers):
    assert answers["producers"] == [[11], [12]]


def test_images_of_the_host_are_uploaded_while_others_are_packed(answers):
    once, pieces = answers["stretches-1048576"], answers["stretches-1"]
    assert (
        once[0] == 1 and pieces[0] == 7 and once[1] == pieces[1]
    )  # all but the last piece as soon as it is there
    assert max(once[2], pieces[2], answers["planes-1048576"], answers["planes-1"]) <= 1e-3
    assert max(answers["pillow-1048576"], answers["pillow-1"]) <= 1e-3


def test_images_that_are_page_locked_go_as_they_lie(answers):
    """Behind the table, one copy each."""
    copies, error = answers["page-locked"]
    assert copies == [2 * 8 * 3, 9 * 4 * 3, 5 * 5 * 3] and error <= 1e-3
