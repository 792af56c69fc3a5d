# Takes away the lock that a killed run left; that of a run which is alive stays, and Snakemake refuses a second one.

import fcntl
from contextlib import suppress
from pathlib import Path


def say_alive(folder):
    """Hold `folder`/alive as long as this process lives; where nobody else does, no lock is of a run that is alive.

    The kernel lets go of it however the process ends.
    """
    folder.mkdir(exist_ok=True)
    alive = open(folder / "alive", "w")
    with suppress(OSError):  # another one holds it, or the file system knows no locks
        fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for lock in folder.glob("locks/*.lock"):
            lock.unlink()
    with suppress(OSError):
        fcntl.flock(alive, fcntl.LOCK_SH)
    return alive


ALIVE = say_alive(Path(".snakemake")) if workflow.is_main_process else None
