"""The workflow on a Slurm cluster: its nodes are daemons on this host, and what they measure is its CPU."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
import slurm_cluster
from copies import copied
from slurm_cluster import Cluster
from workflow_copy import COPIED, QUICK, Workflow

from octopus.backends import resolve
from octopus_study.report.paper import DOCUMENTS

PLUGIN = "snakemake_executor_plugin_slurm"
WHY = slurm_cluster.missing() or ("" if importlib.util.find_spec(PLUGIN) else f"no {PLUGIN}")
pytestmark = pytest.mark.skipif(bool(WHY), reason=f"not here: {WHY}")

GPU = f"gres:gpu:{slurm_cluster.MODEL}:1"
GPUS = ("gpu1", "gpu2")
SLURM = ("--workflow-profile", "profiles/slurm", "--slurm-init-seconds-before-status-checks", "2")
ON_GPUS = ("--set-resources", "study:slurm_partition=gpu", f"study:gpu_model={slurm_cluster.MODEL}")
# What is measured is the CPU, of a node whose GPU must be asked for by hand therefore.
HERE = (*SLURM, *ON_GPUS, "study:gpu=1", *QUICK)
FIRST = "studies=[drone,distribution]"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    partitions = {"gpu": dict.fromkeys(GPUS, 1), "cpu": {"cpu1": 0}}
    with Cluster(partitions) as cluster, pytest.MonkeyPatch.context() as patch:
        for name, value in cluster.environment.items():
            patch.setenv(name, value)
        yield cluster


@pytest.fixture(scope="module")
def workflow(root: Path, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Workflow:
    """A complete run over the cluster, of two studies."""
    workflow = Workflow(copied(root, tmp_path_factory.mktemp("clone"), COPIED))
    code, printed = submitted(workflow, *HERE, FIRST)
    assert code == 0, printed[-6000:]
    return workflow


def submitted(workflow: Workflow, *arguments: str) -> tuple[int, str]:
    """A run over the cluster: exit code and what it printed."""
    process = workflow.command(*arguments)
    printed = process.communicate(timeout=600)[0]
    return process.returncode, printed


def by_rule(cluster: Cluster) -> dict[str, dict[str, str]]:
    """The last job of each rule, and of each study."""
    jobs = [cluster.job(number) for number in sorted(cluster.jobs(), key=int)]
    return {job["Comment"].removeprefix("rule_"): job for job in jobs}


def test_a_whole_run_ends_with_the_paper(workflow: Workflow) -> None:
    for document in DOCUMENTS:
        assert (workflow.folder / f"paper/build/{document}.pdf").read_bytes().startswith(b"%PDF")
    assert len(list((workflow.folder / "data/results/here").iterdir())) == 4


def test_each_study_has_a_gpu_and_a_node_and_nothing_else_has(workflow: Workflow, cluster: Cluster) -> None:
    jobs = by_rule(cluster)
    studies = {rule: job for rule, job in jobs.items() if rule.startswith("study_")}
    assert len(studies) == 2 and {"fetch_visdrone", "numbers", "figures", "paper"} < set(jobs)
    for rule, job in jobs.items():
        measures = rule in studies
        assert (job.get("TresPerJob") == GPU) == measures, rule
        assert (job["OverSubscribe"] == "NO") == measures, rule  # nobody else's job comes to the node
        assert job["NodeList"] in (GPUS if measures else ("cpu1",)), rule
    assert {job["CPUs/Task"] for job in studies.values()} == {"16"}
    assert jobs["numbers"]["CPUs/Task"] == "1"


def test_what_measures_must_be_named(workflow: Workflow) -> None:
    code, printed = submitted(workflow, *SLURM, "--config", "data=sample", FIRST)
    assert code != 0 and "--config device=cuda machine=NAME" in printed, printed[-3000:]
    assert "has been submitted" not in printed


@pytest.mark.skipif(resolve("auto") == "cuda", reason="not here: a host without a GPU")
def test_a_node_without_its_gpu_is_an_error(workflow: Workflow, cluster: Cluster) -> None:
    """Not a CPU under a GPU's name. The node that submits has none either."""
    there = "data/results/there/drone.csv"
    named = ("device=cuda", "machine=there", FIRST)
    code, _ = submitted(workflow, *SLURM, *ON_GPUS, *QUICK, *named, "--", there)
    assert code != 0 and not (workflow.folder / there).exists()
    assert by_rule(cluster)["study_wildcards_drone"]["TresPerJob"] == GPU
    assert "no GPU is usable" in (workflow.folder / "logs/drone.log").read_text()
