"""The MPS daemon against a pretended control program: attached, not attached, failing, and silently without."""

import os
import signal
import time
from pathlib import Path

import pytest

from octopus_study.baselines.availability import Unavailable
from octopus_study.studies.concurrency import mps
from octopus_study.studies.concurrency.mps import CONTROL, Mps

# Clients are the lines of a file that the test writes; the daemon is a process that sleeps.
PROGRAM = """#!/bin/sh
state=$CUDA_MPS_PIPE_DIRECTORY
[ -n "$state" ] || exit 3
if [ "$1" = "-d" ]; then
    {start}
    sleep 60 < /dev/null > /dev/null 2>&1 &
    echo $! > "$state/nvidia-cuda-mps-control.pid"
    exit 0
fi
[ -d "$state" ] || exit 4
read -r command argument
echo "$command" >> "{log}"
case $command in
    get_server_list) [ -s "{clients}" ] && echo 4242; exit 0;;
    get_client_list) [ "$argument" = 4242 ] && cat "{clients}";;
    quit) {quit};;
    *) exit 5;;
esac
"""


@pytest.fixture
def pretended(tmp_path, monkeypatch):
    """Write the control program to the path, and return the file of its clients."""
    clients, log = tmp_path / "clients", tmp_path / "log"
    clients.touch()

    def write(start=":", end='kill $(cat "$state/nvidia-cuda-mps-control.pid")'):
        program = tmp_path / "bin" / CONTROL
        program.parent.mkdir(exist_ok=True)
        program.write_text(PROGRAM.format(start=start, quit=end, clients=clients, log=log))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
        return clients, log

    return write


def process_of(daemon):
    return int((Path(daemon.environment["CUDA_MPS_PIPE_DIRECTORY"]) / mps.PID_FILE).read_text())


def alive(process):
    """Whether a process runs; one that has ended and still waits for its exit status to be read does not."""
    try:
        return (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_without_the_control_program_there_is_no_mps(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="is not installed"), Mps():
        pass


def test_clients_that_are_attached_are_proved(pretended):
    clients, log = pretended()
    with Mps() as daemon:
        folder = Path(daemon.environment["CUDA_MPS_PIPE_DIRECTORY"])
        assert folder.is_dir() and daemon.clients() == set()
        clients.write_text("101\n102\n")
        assert daemon.wait_for([102, 101]) == ""
        process = process_of(daemon)
        assert alive(process)
    assert log.read_text().splitlines()[-1] == "quit"
    assert not folder.exists()
    until = time.monotonic() + 10
    while alive(process) and time.monotonic() < until:  # it was told to end, and ends when it comes to it
        time.sleep(0.01)
    assert not alive(process)
    assert not {name for name in os.environ if name.startswith("CUDA_MPS")}


@pytest.mark.parametrize(
    ("listed", "said"), [("", "clients are none"), ("101\n", "are 101,"), ("101\n102\n7\n", "are 7, 101, 102,")]
)
def test_others_or_fewer_clients_are_no_proof(pretended, listed, said):
    clients, _ = pretended()
    with Mps() as daemon:
        clients.write_text(listed)
        why = daemon.wait_for([101, 102], 0.0)
    assert said in why and "the processes of this arm 101, 102" in why


def test_a_daemon_that_fails_says_why(pretended):
    pretended(start='echo "an instance of this daemon is already running"; exit 1')
    with pytest.raises(Unavailable, match="exit status 1, an instance of this daemon is already running"), Mps():
        pass


def test_a_daemon_that_does_not_quit_is_ended(pretended, monkeypatch):
    pretended(end=":")
    monkeypatch.setattr(mps, "QUIT_SECONDS", 0.2)
    with Mps() as daemon:
        process = process_of(daemon)
    assert mps._gone(process, 5.0)


def test_a_study_that_is_terminated_leaves_no_daemon(pretended):
    pretended()
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit, match="143"), Mps() as daemon:
        process = process_of(daemon)
        signal.raise_signal(signal.SIGTERM)
    assert not alive(process)
    assert signal.getsignal(signal.SIGTERM) is before
