"""A Slurm cluster on this host, for a test: munge, a controller, and daemons that each stand for a node."""

from __future__ import annotations

import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil

MODEL = "model"  # of all GPUs
DAEMONS = ("munged", "slurmctld", "slurmd")
SBIN = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
# Nodes say that they have more CPUs than this host; no job is bound to any. No accounting, as on the smallest clusters.
SETTINGS = """
ClusterName=octopus
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
SlurmdParameters=config_overrides
SlurmdTimeout=10
KillWait=2
MinJobAge=300
ReturnToService=2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
GresTypes=gpu
"""


def missing() -> str:
    """Say which of Slurm's programs this host lacks; empty where it has all."""
    absent = [name for name in (*DAEMONS, "sbatch", "srun") if shutil.which(name, path=SBIN) is None]
    return f"no {', '.join(absent)}" if absent else ""


class Cluster:
    """Partitions of nodes with so many GPUs each, the last of them the default; a context, which ends what it began.

    A node's GPU is a file that is on every host, so that Slurm counts it and nothing can run on it.
    """

    def __init__(self, partitions: Mapping[str, Mapping[str, int]]) -> None:
        self.partitions = partitions
        self.nodes = {node: gpus for nodes in partitions.values() for node, gpus in nodes.items()}
        self.processes: dict[str, psutil.Process] = {}
        self.folder = Path(tempfile.mkdtemp(prefix="slurm"))  # a socket's path must be short
        path = os.pathsep.join([str(self.folder / "bin"), SBIN])
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": path}

    def __enter__(self) -> Cluster:
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(subprocess.SubprocessError):
            self.ask("scancel", "--user", getpass.getuser())
            until(lambda: not self.ask("squeue", "--noheader"), 20)
        for name in reversed(self.processes):
            end_all(self.processes[name])
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, *command: str) -> str:
        """Run one of Slurm's commands; what it printed."""
        environment = {**os.environ, **self.environment}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    def job(self, number: str) -> dict[str, str]:
        """What Slurm knows of a job; it forgets one five minutes after its end."""
        words = self.ask("scontrol", "show", "job", "--oneliner", number).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def jobs(self) -> list[str]:
        """Numbers of all jobs, those that ended included."""
        return self.ask("squeue", "--noheader", "--states=all", "--format=%i").split()

    def _begin(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        (self.folder / "state").mkdir()
        self._configure()
        files = {"socket": "munge.socket", "key-file": "munge.key", "seed-file": "munge.seed"}
        files |= {"pid-file": "munge.pid", "log-file": "munge.log"}
        options = [f"--{option}={self.folder / name}" for option, name in files.items()]
        self._start("munged", "--foreground", "--force", *options)
        until((self.folder / "munge.socket").exists, 10)
        self._start("slurmctld", "-D")
        for node in self.nodes:
            (self.folder / node).mkdir()
            self._start("slurmd", "-D", "-N", node, name=node)
        until(lambda: self._states() == {"idle"}, 60)

    def _configure(self) -> None:
        ports = free_ports(len(self.nodes) + 1)
        named = {"host": socket.gethostname(), "user": getpass.getuser(), "folder": self.folder}
        lines = [SETTINGS.format(controller=ports.pop(), **named)]
        gpus = []
        for node, count in self.nodes.items():
            line = f"NodeName={node} NodeHostname={named['host']} NodeAddr=127.0.0.1 Port={ports.pop()}"
            lines.append(f"{line} CPUs=16 RealMemory=64000" + (f" Gres=gpu:{MODEL}:{count}" if count else ""))
            gpus += [f"NodeName={node} Name=gpu Type={MODEL} File=/dev/null"] * count
        for name, nodes in self.partitions.items():
            lines.append(f"PartitionName={name} Nodes={','.join(nodes)} MaxTime=INFINITE State=UP")
        lines[-1] += " Default=YES\n"
        (self.folder / "slurm.conf").write_text("\n".join(lines))
        (self.folder / "gres.conf").write_text("\n".join([*gpus, ""]))
        # Snakemake's job step takes Slurm's variables away from `srun`, which then looks for the host's configuration.
        srun = self.folder / "bin/srun"
        srun.parent.mkdir()
        srun.write_text(
            f'#!/bin/sh\nSLURM_CONF={self.folder}/slurm.conf exec {shutil.which("srun", path=SBIN)} "$@"\n'
        )
        srun.chmod(0o755)

    def _start(self, program: str, *arguments: str, name: str = "") -> None:
        environment = {**os.environ, **self.environment}
        path = shutil.which(program, path=SBIN) or program
        with open(self.folder / f"{name or program}.out", "w") as out:
            process = psutil.Popen([path, *arguments], env=environment, stdout=out, stderr=out)
        self.processes[name or program] = process

    def _states(self) -> set[str]:
        with suppress(subprocess.CalledProcessError):  # the controller doesn't answer yet
            return set(self.ask("sinfo", "--noheader", "--Node", "--format=%T").split())
        return set()


def until(true: Callable[[], object], seconds: float) -> None:
    """Wait until something is true, for so many seconds at most."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(f"still not true after {seconds} s")
        time.sleep(0.2)


def end_all(process: psutil.Process) -> None:
    """Kill a process and all that descend from it."""
    with suppress(psutil.NoSuchProcess):
        for each in [process, *process.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                each.send_signal(signal.SIGKILL)
        process.wait(10)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
