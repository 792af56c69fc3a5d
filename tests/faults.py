"""``make faults``: what an audit did to the workflow, and for each the tests that show what comes of it, or a reason.

Edits, broken data and servers, hostile peers, full disks, killed runs; ``tests/faults.py NAME ...`` takes some rows.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOT_HERE = "not here: "  # a test that is skipped for that shows nothing, and is no failure
DATA, MEASURE, REPORT = "tests/study/data", "tests/study/measure", "tests/study/report"
ARCHIVE, DOWNLOAD, FETCH = (f"{DATA}/test_{name}.py" for name in ("archive", "download", "fetch"))
DRONE, SCENE = f"{FETCH}::TestVisDrone", f"{FETCH}::TestSentinel2"
WORKLOAD, BAND, RUNS = f"{DATA}/test_workload.py", f"{DATA}/test_sentinel2.py", f"{REPORT}/test_runs.py"
FILES, ROWS = f"{MEASURE}/test_files.py", f"{MEASURE}/test_rows.py"
MEMORY, PAIRED = f"{MEASURE}/test_memory_lines.py", f"{MEASURE}/test_paired_runner.py"
COMPARISON = "tests/study/studies/test_comparison.py"
FLOW, WORKFLOW, WATCH = (f"tests/project/test_{name}.py" for name in ("flow", "workflow", "watch"))
PYTHONS, SLURM = "tests/project/test_pythons.py", "tests/project/test_slurm.py"
CONFIG, CPU = "tests/project/test_config.py", "tests/library/backends/test_cpu.py"
CACHE = "tests/library/backends/test_backends.py"
FILE_OF_MIRROR = f"{DRONE}::test_a_wrong_file_of_a_mirror_is_refused"
BAND_OF_MIRROR = f"{SCENE}::test_a_wrong_band_of_a_mirror_is_refused"
ANSWER = f"{DOWNLOAD}::test_wrong_answer_is_refused_and_leaves_no_file"
CHANGED = f"{RUNS}::test_changed_rows_are_refused"
# So many methods, quantities, layers, workloads or counts are damaged of each study on both machines.
DAMAGES = "6"


class Fault(NamedTuple):
    """What should come of it, the tests that show that, and what a reader must know beside or instead of them."""

    should: str
    tests: tuple[str, ...] = ()
    reason: str = ""


FAULTS = {
    # data
    "annotation: letters, comma, negative, empty, a folder": Fault("is refused", (FILE_OF_MIRROR,)),
    "a file in place of the mirror's folder": Fault(
        "is refused", (f"{DRONE}::test_a_file_in_place_of_a_mirror_s_folder_is_refused",)
    ),
    "the frame's JPEG is cut": Fault("is refused", (FILE_OF_MIRROR,)),
    "another JPEG is cut": Fault(
        "is taken", reason="by design: of the others only width and height are read"
    ),
    "JPEG is a page or empty; sizes 0 or no UTF-8": Fault("is refused", (FILE_OF_MIRROR,)),
    "zip: cut, a page, other bytes": Fault(
        "is refused",
        (
            f"{ARCHIVE}::test_damaged_archive_is_an_error_of_ours",
            f"{DRONE}::test_damaged_mirror_is_refused_and_leaves_nothing",
        ),
    ),
    "TIFF: cut, a page, empty, nowhere, no data, float32, shifted": Fault("is refused", (BAND_OF_MIRROR,)),
    "TIFF: pixels of 20 m; a VRT of that name": Fault(
        "is refused",
        (
            f"{BAND}::test_pixels_of_another_size_are_refused",
            f"{BAND}::test_a_file_that_points_to_another_is_refused",
        ),
    ),
    "zip: slip, absolute, backslash, symbolic link": Fault(
        "is refused, nothing outside",
        (
            f"{ARCHIVE}::test_member_that_leaves_the_folder_is_refused_before_anything_is_written",
            f"{ARCHIVE}::test_symbolic_link_is_refused",
        ),
    ),
    "zip: FIFO, twice, file as folder": Fault(
        "is refused", (f"{ARCHIVE}::test_members_that_can_not_be_files_are_refused",)
    ),
    "zip: bomb, encrypted, unknown method": Fault(
        "is refused",
        (
            f"{ARCHIVE}::test_archive_that_unpacks_to_far_more_is_refused_before_anything_is_written",
            f"{ARCHIVE}::test_encrypted_member_is_an_error_of_ours",
            f"{ARCHIVE}::test_unknown_compression_is_an_error_of_ours",
        ),
    ),
    "a zip with a slip is fetched": Fault(
        "its digest is wrong first", (f"{DRONE}::test_damaged_mirror_is_refused_and_leaves_nothing",)
    ),
    "a mirror is named, but missing or wrong": Fault(
        "an error, no sample", (f"{DRONE}::test_a_mirror_that_is_named_is_no_reason_for_the_sample",)
    ),
    "an error names a path that is gone": Fault(
        "names the origin", (FILE_OF_MIRROR, f"{FETCH}::test_a_full_disk_is_one_error_and_leaves_nothing")
    ),
    # servers
    "HTTP: cut twice, or always": Fault(
        "goes on; else stops and keeps its part",
        (
            f"{DOWNLOAD}::test_broken_transfer_is_resumed_where_it_stopped",
            f"{DOWNLOAD}::test_endless_interruptions_keep_the_part_and_no_file",
        ),
    ),
    "HTTP: 5xx once, or always": Fault(
        "asks again; else stops", (f"{DOWNLOAD}::test_broken_transfer_is_resumed_where_it_stopped", ANSWER)
    ),
    "HTTP: shorter than said by the pin": Fault("is refused", (ANSWER,)),
    "HTTP: shorter, and no size is pinned": Fault(
        "is taken",
        reason="nothing could tell; the pixels of a band are checked, and every other file has a pin",
    ),
    "HTTP: no Range, wrong part": Fault(
        "begins anew",
        (
            f"{DOWNLOAD}::test_server_that_ignores_ranges_sends_all_again",
            f"{DOWNLOAD}::test_wrong_part_of_an_earlier_run_is_dropped",
        ),
    ),
    "HTTP: part longer than the file": Fault(
        "is dropped", (f"{DOWNLOAD}::test_part_that_is_too_long_is_dropped_whatever_the_server_says",)
    ),
    "HTTP: page, 403, redirects to itself or to a file": Fault("is refused", (ANSWER,)),
    "HTTP: bad Content-Length": Fault("is refused", (ANSWER,)),
    "HTTP: endless, or for ever": Fault(
        "has a limit",
        (
            ANSWER,
            f"{DOWNLOAD}::test_file_of_unknown_size_has_a_limit",
            f"{DOWNLOAD}::test_download_that_takes_too_long_keeps_its_part",
        ),
    ),
    "HTTP: the band's address answers with an error": Fault(
        "asks again; else stops",
        (
            f"{BAND}::test_object_store_that_answers_404_once_is_asked_again",
            f"{BAND}::test_what_is_no_band_is_refused",
        ),
    ),
    # disks
    "no room for data": Fault(
        "one error, nothing left", (f"{FETCH}::test_a_full_disk_is_one_error_and_leaves_nothing",)
    ),
    "the folder of data can't be written": Fault(
        "one error",
        (
            f"{DRONE}::test_raw_folder_that_can_not_be_made",
            f"{DOWNLOAD}::test_unwritable_place_is_an_error_of_ours",
        ),
    ),
    "no room for rows or provenance": Fault(
        "one error, the old stay", (f"{FILES}::test_a_full_disk_is_one_error_and_leaves_what_was_there",)
    ),
    "no room for a figure or the PDF": Fault(
        "one error, the old stay",
        (f"{FILES}::test_a_full_disk_is_one_error_and_leaves_what_was_there",),
        "the PDF takes its name by the same function",
    ),
    # killed and started twice
    "SIGKILL in a study": Fault(
        "the plain command works; the old stay",
        (
            f"{FLOW}::test_a_killed_run_needs_no_unlocking",
            f"{FLOW}::test_old_results_stay_until_the_new_ones_are_complete",
        ),
    ),
    "a study fails after an edit of its settings": Fault(
        "the plain command tries again; the old stay",
        (f"{FLOW}::test_old_results_stay_until_the_new_ones_are_complete",),
    ),
    "SIGKILL in the paper": Fault(
        "the plain command works; the old stays",
        (f"{FLOW}::test_a_killed_run_needs_no_unlocking", f"{FILES}::test_an_error_of_the_writer_is_its_own"),
        "the lock is that of any job",
    ),
    "two runs at once": Fault("the second is refused", (f"{FLOW}::test_a_killed_run_needs_no_unlocking",)),
    # rows and provenance
    "CSV: value x10, row removed, half, header only, other study": Fault("is refused by name", (CHANGED,)),
    "CSV: value emptied, row twice": Fault(
        "is refused by name", (CHANGED, f"{RUNS}::test_rows_with_a_fitting_digest_are_refused")
    ),
    "CSV: nan, inf, negative, letters, column missing, empty, foreign": Fault(
        "is refused by name",
        (
            f"{ROWS}::test_a_row_that_breaks_the_schema_is_not_written",
            f"{ROWS}::test_files_that_are_no_results_are_refused",
        ),
    ),
    "CSV: relabelled data set": Fault(
        "is refused", (CHANGED,), "as any edit: the digest of the file is checked"
    ),
    "provenance: absent, half, of another study": Fault(
        "is refused by name", (f"{RUNS}::test_bad_provenance_is_refused",)
    ),
    "references edited": Fault(
        "are refused by name", (CHANGED, f"{RUNS}::test_committed_references_are_what_was_measured")
    ),
    # configuration
    "configuration: key, type, range, choice, machine=../": Fault(
        "a line per key", (f"{CONFIG}::test_errors_say_where_what_and_what_is_allowed",)
    ),
    "configuration: results_dir=../../..": Fault(
        "is taken", reason="by design: whoever runs it says where results go"
    ),
    "configuration: words of the shell in a path": Fault(
        "stay one word",
        (
            f"{FLOW}::test_every_part_of_a_command_is_quoted",
            f"{FLOW}::test_every_field_of_a_command_is_quoted",
        ),
    ),
    "configuration: braces in a mirror's name": Fault(
        "are taken", (f"{FLOW}::test_a_mirror_s_name_is_no_pattern",)
    ),
    "configuration: braces in another folder's name": Fault(
        "are refused by name", (f"{CONFIG}::test_errors_say_where_what_and_what_is_allowed",)
    ),
    # stale, and not twice
    "provenance of a study deleted": Fault(
        "that study runs again", (f"{FLOW}::test_a_study_without_its_provenance_is_measured_again",)
    ),
    "figure, numbers or claims deleted": Fault(
        "are built again", (f"{FLOW}::test_what_was_deleted_is_built_again",)
    ),
    "data deleted, receipt kept": Fault(
        "are fetched again",
        (
            f"{FLOW}::test_a_deleted_folder_of_data_is_fetched_by_the_plain_command",
            f"{WORKLOAD}::test_data_that_are_gone_are_refused",
        ),
    ),
    "data edited, study forced": Fault(
        "is refused by name",
        (
            f"{WORKLOAD}::test_changed_data_are_refused_by_name",
            f"{WORKLOAD}::test_a_changed_scene_is_refused",
        ),
    ),
    "data and the receipt's digest edited alike": Fault(
        "is refused",
        (
            f"{DRONE}::test_a_receipt_is_no_proof_where_there_is_a_pin",
            f"{WORKLOAD}::test_a_receipt_that_calls_other_data_real_is_refused",
        ),
    ),
    "a fetch again without the mirror that gave the data": Fault(
        "stay real, with origin and time",
        (
            f"{SCENE}::test_other_window_outlives_its_receipt",
            f"{DRONE}::test_data_at_hand_are_not_fetched_again",
        ),
    ),
    "inputs, outputs and code touched": Fault(
        "nothing to do", (f"{WORKFLOW}::test_touching_every_file_reruns_nothing",)
    ),
    "git checkout to and fro": Fault(
        "nothing to do", (f"{WORKFLOW}::test_touching_every_file_reruns_nothing",), "it renews times alone"
    ),
    ".snakemake removed": Fault(
        "all but fetches runs again", reason="by design: Snakemake's record of what made each file lies there"
    ),
    "mirror unset, moved, with a slash; data=real": Fault(
        "nothing to do", (f"{FLOW}::test_real_data_are_not_fetched_again",)
    ),
    # places and users
    "the folder copied elsewhere; `Übung mit Leer's`, LC_ALL=C, TZ": Fault(
        "nothing to do; a study works", (f"{FLOW}::test_a_moved_folder_is_complete_and_works_anywhere",)
    ),
    "--cores 4": Fault("works", (f"{FLOW}::test_a_moved_folder_is_complete_and_works_anywhere",)),
    "HOME can't be written": Fault("make works", (f"{FLOW}::test_a_user_without_a_home_has_a_cache_folder",)),
    "HOME can't be written, the library alone": Fault(
        "warns and works",
        (
            f"{CACHE}::test_a_user_without_a_home_keeps_kernels_in_the_spare_folder_or_nowhere",
            f"{CPU}::test_where_the_cache_cannot_be_written_another_folder_serves_and_a_warning_says_so",
        ),
    ),
    "a cache that others may write to": Fault(
        "is not used; a warning",
        (
            f"{CPU}::test_code_is_neither_taken_from_nor_kept_in_a_cache_that_others_may_write_to",
            f"{CPU}::test_a_spare_folder_that_others_may_write_to_is_not_used",
        ),
    ),
    "a file in the cache is damaged": Fault(
        "is made again", (f"{CPU}::test_a_damaged_file_is_compiled_again",)
    ),
    "Python 3.12 and 3.13": Fault("work", (f"{PYTHONS}::test_what_the_lock_installs_works",)),
    "Python 3.10 and 3.14": Fault(
        "are refused", (f"{PYTHONS}::test_other_pythons_are_refused_before_anything_is_fetched",)
    ),
    # peers
    "peer raises in its constructor, at once or late": Fault(
        "a row each",
        (
            f"{PAIRED}::test_a_method_that_raises_gives_one_row_and_the_others_go_on",
            f"{PAIRED}::test_a_method_that_raises_at_once_never_enters_a_block",
            f"{COMPARISON}::test_a_missing_method_has_its_reason_and_reasons_of_others_do_not_matter",
        ),
    ),
    "peer is wrong, NaN, writes nothing, of another shape": Fault(
        "a row each",
        (
            f"{COMPARISON}::test_one_wrong_value_is_found_and_explained",
            f"{COMPARISON}::test_a_method_that_writes_nothing_does_not_pass_with_old_values",
            f"{MEASURE}/test_methods.py::test_a_value_that_is_no_number_never_passes",
            f"{MEASURE}/test_methods.py::test_shape_and_type_must_agree",
        ),
    ),
    "peer is slow": Fault(
        "a row", (f"{PAIRED}::test_a_comparison_is_given_up_before_the_least_number_of_blocks",)
    ),
    "peer exits, crashes, hangs, SystemExit": Fault(
        "a row each", (f"{WATCH}::test_methods_that_end_or_block_the_process_cost_a_row_each",)
    ),
    "peer writes into the inputs": Fault(
        "is named",
        (f"{COMPARISON}::test_who_writes_into_the_inputs_is_named_and_the_others_get_them_mended",),
    ),
    "memory: child killed, hangs, fails, says nothing": Fault(
        "a row each",
        (
            f"{MEMORY}::test_a_failing_process_says_why",
            f"{MEMORY}::test_a_stuck_process_is_ended",
            f"{MEMORY}::test_a_failing_method_gives_four_unavailable_rows",
        ),
    ),
    "memory refused by the system": Fault(
        "an error", (f"{CPU}::test_a_kernel_that_is_refused_memory_raises",)
    ),
    # the whole
    "rows of every study fuzzed": Fault(
        "the report is made",
        (f"{REPORT}/test_damaged_rows.py::test_the_report_is_made",),
        "a seeded choice; OCTOPUS_FUZZ_ROWS=all takes every method and quantity, for an hour",
    ),
    "one block of a comparison; a busy machine": Fault(
        "a run ends with a paper",
        (
            f"{WORKFLOW}::test_a_run_ends_with_the_paper_and_the_results_page",
            f"{REPORT}/test_damaged_rows.py::test_the_report_is_made",
        ),
    ),
    "--dag, --rulegraph, --until": Fault("work", (f"{FLOW}::test_snakemake_shows_the_flow",)),
    "--lint": Fault("works", reason="`make lint` runs it"),
    "--report": Fault("holds the results", (f"{WORKFLOW}::test_the_html_report_bundles_the_results",)),
    "--archive, --containerize": Fault(
        "work",
        reason=f"{NOT_HERE}both ask conda, which the package index doesn't have; `make wheelhouse` and `make release` "
        "keep packages and workflow without it",
    ),
    "Slurm: a study and its node": Fault(
        "one GPU and the node for a study, none for the rest",
        (
            f"{WORKFLOW}::test_no_rule_asks_a_cluster_for_more_cores_than_a_node_has",
            f"{SLURM}::test_each_study_has_a_gpu_and_a_node_and_nothing_else_has",
            f"{SLURM}::test_what_measures_must_be_named",
            f"{SLURM}::test_a_node_without_its_gpu_is_an_error",
        ),
    ),
    "Slurm: scancel, a node vanishes, the time is over": Fault(
        "the run ends; a rerun heals, the old stay",
        (f"{SLURM}::test_what_ends_a_job_ends_the_run_and_a_rerun_heals",),
    ),
    "Slurm: Snakemake is killed, its job goes on": Fault(
        "a second run is refused", (f"{SLURM}::test_a_run_whose_jobs_go_on_is_not_begun_again",)
    ),
    "other packages of the locked versions": Fault(
        "are refused",
        tuple(
            f"tests/project/test_lock.py::{name}"
            for name in (
                "test_every_package_has_hashes_and_somebody_who_needs_it",
                "test_pip_takes_a_file_by_its_hash_alone",
            )
        ),
    ),
}


class Outcomes:
    """A plugin of pytest: what became of each test, and which tests a process gets together."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}
        self.absent: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.rpartition("@")[0] or report.nodeid  # the group is added behind it
        why = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else ""
        if NOT_HERE in why:
            self.absent[name] = why.removeprefix("Skipped: ")
        elif report.outcome != "passed" or report.when == "call":
            self.of[name] = "failed" if "failed" in (report.outcome, self.of.get(name)) else report.outcome

    def said(self, fault: Fault) -> str:
        """Say ok, FAILED, or why there is no test."""
        found = [_of_test(test, self.of) for test in fault.tests]
        absent = [_of_test(test, self.absent) for test in fault.tests]
        reason = "; ".join(filter(None, (fault.reason, *set().union(*absent))))
        if all("passed" in one and "failed" not in one for one in found) and fault.tests:
            return f"ok ({reason})" if reason else "ok"
        untried = all(not one and why for one, why in zip(found, absent, strict=True))
        return reason if untried else "FAILED"


def _of_test(test: str, outcomes: dict[str, str]) -> set[str]:
    """What became of a test, with all its parameters."""
    return {outcome for name, outcome in outcomes.items() if name == test or name.startswith(f"{test}[")}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests of a file together, as they share fixtures; damages of rows and Pythons go where there is time."""
    for item in items:
        if item.path.name not in ("test_damaged_rows.py", "test_pythons.py"):
            item.add_marker(pytest.mark.xdist_group(item.path.name))


def tried(tests: Iterable[str]) -> Outcomes:
    """Run tests, those that take longest first."""
    outcomes = Outcomes()
    ordered = sorted(
        dict.fromkeys(tests), key=lambda test: (not test.startswith(WORKFLOW), not test.startswith(FLOW))
    )
    os.environ.update(OCTOPUS_FUZZ_ROWS=DAMAGES, OCTOPUS_FAULTS="1")
    options = [
        "-q",
        "-p",
        "faults",
        "-n",
        "auto",
        "--maxprocesses",
        "4",
        "--dist",
        "loadgroup",
        "--no-loadscope-reorder",
    ]
    pytest.main([f"--rootdir={ROOT}", *options, *(str(ROOT / test) for test in ordered)], plugins=[outcomes])
    return outcomes


def main(names: list[str]) -> int:
    """Try faults, all unless some are named, and print the table; return 1 where a test fails or didn't run."""
    chosen = {name: FAULTS[name] for name in names or FAULTS}
    outcomes = tried(test for fault in chosen.values() for test in fault.tests)
    counts: Counter[str] = Counter()
    for name, fault in chosen.items():
        said = outcomes.said(fault)
        counts[next((word for word in ("ok", "FAILED", "not here") if said.startswith(word)), "reason")] += 1
        print(f"{name:<66} | {fault.should:<38} | {said}")
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return bool(counts["FAILED"])


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    sys.exit(main(sys.argv[1:]))
