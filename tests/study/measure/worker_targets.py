"""What a worker's process is told to call in tests."""

import os
import subprocess
import sys
import time

from octopus.errors import InputError


def echo(*arguments, **options):
    print("a library speaks on the standard output")
    return arguments, options


def wrong():
    raise InputError("so not")


def fails():
    return 1 / 0


def dies():
    sys.exit("CUDA error: out of memory")


def killed():
    os.kill(os.getpid(), 9)


def hangs():
    print("still loading", file=sys.stderr, flush=True)
    time.sleep(60)


def leaves_a_child():
    """End, while a process that has all pipes goes on."""
    if os.fork() == 0:
        time.sleep(20)
    os._exit(7)


def large(size):
    return bytes(size)


def process():
    return os.getpid()


def environment(name):
    return os.environ.get(name)


def read_input():
    return subprocess.run(["cat"], stdout=subprocess.PIPE, check=True).stdout


class Counter:
    """Counts how often it was read between requests."""

    def __init__(self, first):
        self.count = first

    def wait_s(self):
        return 0.01

    def read(self):
        self.count += 1

    def found(self):
        return self.count
