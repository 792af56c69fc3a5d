"""What makes the workflow run, in a copy in which only the data are fetched and all later files are empty."""

import csv
import os
import re
import shlex
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from copies import copied
from workflow_copy import COPIED, Workflow

from octopus_study.config import load_config
from octopus_study.data import sentinel2
from octopus_study.data.synthetic import greenland_band, write_drone_sample
from octopus_study.data.visdrone import content_digest
from octopus_study.names import STUDIES

HERE = ("--configfile", "config/quick.yaml", "--config", "device=cpu", "machine=here")
CORE = Path(__file__).parents[2] / "config/core.yaml"
DRY = ("-n", "--printshellcmds", *HERE)


def make_mirror(folder: Path) -> dict[str, str]:
    """Stand-ins for the real data sets; returns the digests of their contents."""
    drone = content_digest(write_drone_sample(folder / "visdrone_val"))
    window = sentinel2.PINNED_WINDOW
    pixels, place = greenland_band(window.height, window.width), sentinel2.window_transform(window)
    band = sentinel2.Band(pixels, sentinel2.NODATA, place, sentinel2.SCENE_CRS, sentinel2.ATTRIBUTION)
    (folder / "sentinel2").mkdir()
    sentinel2.write_band(folder / "sentinel2" / "clip.tif", band)
    return {"visdrone-val": drone, "sentinel2-b04": sentinel2.pixel_digest(pixels)}


def pin(table: Path, digests: dict[str, str]) -> None:
    """Make the table of data sets describe the stand-ins, at addresses where nobody answers."""
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter="\t", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(row | {"url": "http://127.0.0.1:9/x", "content_sha256": digests[row["name"]]})


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mirrors") / "mirror"


@pytest.fixture(scope="module")
def flow(root: Path, mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workflow]:
    folder = copied(root, tmp_path_factory.mktemp("clone"), COPIED)
    mirror.mkdir()
    pin(folder / "config/datasets.tsv", make_mirror(mirror))
    workflow = Workflow(folder)
    workflow.complete("data", *HERE, mirror=mirror)
    workflow.pretend(*HERE)
    yield workflow
    workflow.end()


@pytest.mark.parametrize(("named", "setting"), [("{mirror}/", "data=real"), ("/elsewhere", "data=auto")])
def test_real_data_are_not_fetched_again(flow: Workflow, mirror: Path, named: str, setting: str) -> None:
    """Wherever a mirror is said to be."""
    assert flow.jobs(*DRY, setting, mirror=named.format(mirror=mirror)) == set()


def test_the_sample_is_taken_on_request_and_left_for_real_data(flow: Workflow, mirror: Path) -> None:
    assert {"fetch_visdrone", "fetch_sentinel2", *STUDIES} <= flow.jobs(*DRY, "data=sample", mirror=mirror)


@pytest.mark.parametrize(("settings", "studies"), [
    (("--config", "studies=[]"), set()), (("--config", "effort=core"), set(load_config(CORE).studies)),
], ids=["verify", "core"])  # fmt: skip
def test_a_door_measures_what_it_says(flow: Workflow, settings: tuple[str, ...], studies: set[str]) -> None:
    """And nothing that a whole run measured is lost: a core run has a folder of its own."""
    done = flow.run("-n", "--printshellcmds", *settings)
    found = re.findall(r"octopus measure (\w+) .*--out (\S+)/[^/]+/\w+\.csv", done.stdout)
    assert {study for study, _ in found} == studies, done.stdout[-3000:]
    assert {folder for _, folder in found} <= {"data/results/core"}
    # Neither needs the satellite scene, which the flow's mirror has not: asking for it would end a run.
    assert "fetch_sentinel2" not in done.stdout


def test_a_study_without_its_provenance_is_measured_again(flow: Workflow) -> None:
    record = flow.folder / "data/results/here/arena.json"
    record.unlink()
    planned = flow.jobs(*DRY)
    record.touch()
    assert planned & set(STUDIES) == {"arena"}


def test_what_is_left_is_what_this_run_has_to_do(flow: Workflow) -> None:
    """A run that was cut off has some studies behind it."""
    records = [flow.folder / f"data/results/here/{study}.json" for study in ("drone", "arena")]
    for record in records:
        record.unlink()
    done = flow.run(*DRY)
    for record in records:
        record.touch()
    left = f"(2 of {len(STUDIES)} studies and the report left"  # then how long that takes, if that is known
    assert done.stdout.count(left) == 2, done.stdout[-3000:]


HOSTILE = "a b;$(touch pwned)"


def test_every_part_of_a_command_is_quoted(flow: Workflow) -> None:
    """Whatever the shell would read in a path stays within one word of the command."""
    places = [f"{key}=data/{HOSTILE}" for key in ("raw_dir", "results_dir", "reference_dir", "mirror")]
    printed = flow.run(*DRY, *places).stdout
    commands = [shlex.split(line) for line in printed.splitlines() if "octopus " in line and HOSTILE in line]
    assert {"fetch", "measure", "report"} <= {word for command in commands for word in command}
    for command in commands:
        assert not {"a", "b", "pwned", "$(touch"} & set(command), command
        assert all(word.count(HOSTILE) == word.count("touch") for word in command), command
    assert not (flow.folder / "pwned").exists()


def test_a_killed_run_needs_no_unlocking(flow: Workflow) -> None:
    """And what it fetched before keeps its manifest, which Snakemake deletes before the job that it was killed in."""
    locks, manifest = flow.folder / ".snakemake/locks", flow.folder / "data/raw/visdrone-val.json"
    before = manifest.read_text()
    first = flow.start("data", "-R", "fetch_visdrone", *HERE)
    while first.poll() is None and not any(one.stat().st_size for one in locks.glob("*.output.lock")):  # of two
        time.sleep(0.02)
    os.killpg(first.pid, signal.SIGSTOP)
    second = flow.run("data", "-R", "fetch_visdrone", *HERE)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    assert second.returncode != 0 and "LockException" in second.stdout
    assert any(locks.glob("*.lock"))
    flow.jobs("data", "-R", "fetch_visdrone", *HERE)
    assert manifest.read_text() == before


@pytest.mark.parametrize("ends", ["killed", "failed"])
def test_old_results_stay_until_the_new_ones_are_complete(flow: Workflow, ends: str) -> None:
    results, log = flow.folder / "data/results/here", flow.folder / "logs/distribution.log"
    kept = [results / f"distribution.{part}" for part in ("csv", "json")]
    before = [path.read_bytes() for path in kept]
    for path in kept:
        path.write_text("of an earlier run")
    wanted = [str(kept[0].relative_to(flow.folder)), "--forcerun", "study", *HERE]
    if ends == "failed":
        with flow.appended(str(next(flow.folder.glob("data/raw/visdrone-val/annotations/*.txt"))), "changed"):
            failed = flow.run(*wanted)
        assert failed.returncode != 0 and "octopus measure" in failed.stdout
    else:
        log.unlink(missing_ok=True)
        begun = flow.folder / ".snakemake/incomplete"  # Snakemake notes this after it has started a job
        stale = {*begun.iterdir()}
        run = flow.start(*wanted)
        while run.poll() is None and not (log.exists() and {*begun.iterdir()} - stale):
            time.sleep(0.02)
        assert run.poll() is None, run.communicate()[0]  # ended by itself: nothing was killed
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
    assert [path.read_text() for path in kept] == ["of an earlier run"] * 2
    assert flow.jobs(*DRY) & set(STUDIES) == {"distribution"}  # a plain command tries again
    for path, content in zip(kept, before, strict=True):
        path.write_bytes(content)
    flow.complete("--touch", *wanted)
    assert flow.jobs(*DRY) == set()


def test_a_deleted_folder_of_data_is_fetched_by_the_plain_command(flow: Workflow, mirror: Path) -> None:
    folder = flow.folder / "data/raw/visdrone-val"
    folder.rename(folder.with_name("away"))
    assert "fetch_visdrone" in flow.jobs(*DRY, mirror=mirror)
    folder.with_name("away").rename(folder)
    flow.jobs("data", *HERE)
    assert flow.jobs(*DRY) == set()
