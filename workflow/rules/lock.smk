# Takes away the lock that a killed run left; that of a run which is alive stays, and Snakemake refuses a second one.
# A job on a cluster's node goes on when the run that sent it was killed, so that the run is alive as long as one of its
# jobs works; of those that still wait in a queue nothing is known here.

import fcntl
from contextlib import suppress
from pathlib import Path


def say_alive(folder):
    """Hold `folder`/alive as long as this process lives; where nobody else does, no lock is of a run that is alive.

    The kernel lets go of it however the process ends.
    """
    folder.mkdir(exist_ok=True)
    alive = open(folder / "alive", "a+")
    if workflow.is_main_process:
        with suppress(OSError):  # another one holds it, or the file system knows no locks
            fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for lock in folder.glob("locks/*.lock"):
                lock.unlink()
    with suppress(OSError):
        fcntl.flock(alive, fcntl.LOCK_SH)
    return alive


ALIVE = say_alive(Path(".snakemake")) if workflow.is_main_process or workflow.remote_exec else None
