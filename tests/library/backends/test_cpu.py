"""The CPU backend: kernels that are compiled once, threads that share their blocks, and processes that fork."""

import hashlib
import logging
import multiprocessing
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import octopus
from octopus import InputError
from octopus.arrays import checks
from octopus.backends import cache, cpu
from octopus.backends.cpu import compile, threads

FRAME = np.random.default_rng(0).integers(0, 256, (90, 120, 3), np.uint8)
BOXES = np.array([[x, y, x + 30, y + 20] for x in range(0, 90, 10) for y in range(0, 70, 10)], np.float32)


def crops(number=None, size=(64, 64)):
    return octopus.crop_resize(FRAME, BOXES[:number], size, device="cpu")


def tile_means():  # by the kernel that takes least time to compile
    return octopus.tile_means(np.full((9, 9), 51, np.uint8), [[0, 0, 5, 5]], device="cpu")


def run_python(code, **environment):
    """What a new process prints, and what it says besides."""
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, timeout=240
    )
    assert not done.returncode, done.stderr
    return done.stdout.strip(), done.stderr


FIRST_CROP = """
import time
started = time.perf_counter()
import numpy as np, octopus, sys
octopus.crop_resize(np.zeros((1080, 1920, 3), np.uint8), [[10, 10, 60, 90]], mean=127.5, std=127.5, device="cpu")
print(time.perf_counter() - started, "numba" in sys.modules)
"""
FIRST_MEAN = """
import numpy as np, octopus, sys
octopus.tile_means(np.zeros((9, 9), np.uint8), [[0, 0, 5, 5]], device="cpu")
print("numba" in sys.modules)
"""


def test_the_second_process_never_imports_a_compiler_and_is_ready_at_once(tmp_path):
    """What the first one compiles, with a setting under which Numba compiles nothing."""
    shown, said = run_python(FIRST_CROP, OCTOPUS_CACHE_DIR=str(tmp_path), NUMBA_DISABLE_JIT="1")
    assert shown.endswith(" True") and not said
    # 2.5 s and 0.15 s on a quiet machine; the bounds leave room for one that is busy with other tests.
    bound, runs = min(1.0, float(shown.split()[0]) / 2), []
    while len(runs) < 6 and (not runs or runs[-1] >= bound):
        seconds, compiler = run_python(FIRST_CROP, OCTOPUS_CACHE_DIR=str(tmp_path))[0].split()
        assert compiler == "False"
        runs.append(float(seconds))
    assert runs[-1] < bound


def test_a_damaged_file_is_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setenv("OCTOPUS_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compile, "_kernels", {})
    assert tile_means() == [0.2]
    (file,) = tmp_path.rglob("tiles-*.o")
    whole = file.read_bytes()
    for damaged in (whole[:-100], b"", b"x" * 4000):
        file.write_bytes(damaged)
        compile._kernels.clear()
        assert tile_means() == [0.2]
        assert file.read_bytes() != damaged and compile._checked(file.read_bytes())


def test_a_kernel_that_calls_what_this_process_does_not_have_is_compiled_again(tmp_path, monkeypatch):
    from llvmlite import binding

    monkeypatch.setenv("OCTOPUS_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compile, "_kernels", {})
    text = f"""
        declare i32 @function_of_no_library(i8*)
        define void @{compile.SYMBOL}(i8* %arguments) {{
            %r = call i32 @function_of_no_library(i8* %arguments)
            ret void
        }}"""
    compile._host()
    target = binding.Target.from_default_triple().create_target_machine(reloc="pic", jit=True)
    code = target.emit_object(binding.parse_assembly(text))
    name = f"cpu-{cache.kernel_digest('cpu')}/tiles-uint8-{compile._machine()}.o"
    cache.store(name, hashlib.sha256(code).digest() + code)
    assert tile_means() == [0.2]
    assert cache.load_bytes(name)[compile.DIGEST_BYTES :] != code


@pytest.mark.parametrize("form", ["crop", "antialias"])
def test_what_kernels_of_crops_say_is_code_for_other_processors(form):
    """Nothing of theirs is one processor's alone: a Jetson's compiler takes it, though it isn't run here."""
    from llvmlite import binding

    from octopus.kernels.cpu import antialias, crop

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    build = antialias.build("uint8", "uint8") if form == "antialias" else crop.build("uint8", "uint8", False)
    text = re.sub(r"^target .*\n", "", compile.to_text(build), flags=re.MULTILINE)
    machine = binding.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine(opt=3)
    assembly = machine.emit_assembly(binding.parse_assembly(text))
    assert "llvm.x86" not in text
    assert assembly.count("fmla") > 10, "sums by vectors"


def test_where_the_cache_cannot_be_written_another_folder_serves_and_a_warning_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "tmp").mkdir()
    places = {"OCTOPUS_CACHE_DIR": str(tmp_path / "file"), "TMPDIR": str(tmp_path / "tmp")}
    shown, said = run_python(FIRST_MEAN, **places)
    assert shown == "True" and said.count("not writable") == 1 and "OCTOPUS_CACHE_DIR" in said
    (own,) = (tmp_path / "tmp").iterdir()
    assert own.stat().st_mode & 0o077 == 0
    assert run_python(FIRST_MEAN, **places) == ("False", "")


def test_a_kernel_from_the_spare_folder_is_kept_where_it_belongs_once_that_can_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr(cache.tempfile, "gettempdir", lambda: str(tmp_path))
    (cache.spare_dir() / "kernel").write_bytes(b"code")
    monkeypatch.setenv("OCTOPUS_CACHE_DIR", str(tmp_path / "own"))
    assert cache.load_bytes("kernel") == b"code"
    assert (tmp_path / "own" / "kernel").read_bytes() == b"code"


def test_kernels_are_compiled_whatever_numba_does_for_debugging(tmp_path):  # as are those of the second process
    assert run_python(FIRST_MEAN, OCTOPUS_CACHE_DIR=str(tmp_path), NUMBA_DEBUGINFO="1") == ("True", "")


def test_of_processes_that_start_together_one_compiles(tmp_path):
    with ThreadPoolExecutor(3) as pool:
        started = [pool.submit(run_python, FIRST_MEAN, OCTOPUS_CACHE_DIR=str(tmp_path)) for _ in range(3)]
    assert sorted(process.result()[0] for process in started) == ["False", "False", "True"]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no owner here")
def test_a_spare_folder_that_others_may_write_to_is_not_used(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(cache.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = cache.spare_dir()
    folder.chmod(0o777)
    assert cache.spare_dir() is None
    monkeypatch.setenv("OCTOPUS_CACHE_DIR", str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    cache._warn.cache_clear()
    with caplog.at_level(logging.WARNING):
        cache.store("kernel", b"code")
        cache.store("another", b"code")
    assert caplog.text.count("are not kept") == 1 and not list(folder.iterdir())


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no owner here")
def test_code_is_neither_taken_from_nor_kept_in_a_cache_that_others_may_write_to(tmp_path, monkeypatch, caplog):
    shared, aside = tmp_path / "shared", tmp_path / "aside"
    for folder in (shared, aside):
        folder.mkdir()
    (shared / "kernel").write_bytes(b"planted")
    monkeypatch.setenv("OCTOPUS_CACHE_DIR", str(shared))
    monkeypatch.setattr(cache.tempfile, "gettempdir", lambda: str(aside))
    assert cache.load_bytes("kernel") == b"planted"
    shared.chmod(0o777)
    cache._warn.cache_clear()
    assert cache.load_bytes("kernel") is None
    with caplog.at_level(logging.WARNING), cache.alone("kernel"):
        cache.store("kernel", b"code")
    assert caplog.text.count("others may write to it") == 1 and "are kept in" in caplog.text
    assert cache.load_bytes("kernel") == b"code" and cache.own_dir() == cache.spare_dir()
    assert [path.name for path in shared.iterdir()] == ["kernel"]
    assert (shared / "kernel").read_bytes() == b"planted"


def test_folders_of_kernels_are_this_users_own_whatever_the_umask(tmp_path, monkeypatch):
    monkeypatch.setenv("OCTOPUS_CACHE_DIR", str(tmp_path / "cache"))
    before = os.umask(0o002)
    try:
        cache.store("cpu/kernel", b"code")
    finally:
        os.umask(before)
    assert not cache.refusal(tmp_path / "cache")
    assert (tmp_path / "cache" / "cpu").stat().st_mode & 0o022 == 0


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools_of_processes_work_after_a_call_in_the_parent(method, set_threads):
    set_threads(3)
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system can't {method}")
    expected = crops()
    with multiprocessing.get_context(method).Pool(2) as pool:
        answers = pool.map_async(crops, [10, 20, len(BOXES)]).get(120)
        assert pool.apply_async(octopus.get_num_threads).get(120) == 1  # a worker has one, whatever its parent has
    for answer in answers:
        assert np.array_equal(answer, expected[: len(answer)])


def test_a_fork_while_other_threads_are_at_work_is_safe():
    expected, stop = crops(), threading.Event()

    def work():
        while not stop.is_set():
            crops()

    with ThreadPoolExecutor(3) as pool:
        busy = [pool.submit(work) for _ in range(3)]
        try:
            for _ in range(5):
                child = os.fork()
                if not child:  # must end without pytest's own end
                    os._exit(0 if np.array_equal(crops(), expected) else 1)
                assert wait_for(child) == 0
        finally:
            stop.set()
    assert all(task.result() is None for task in busy)


def test_a_fork_waits_for_a_thread_that_compiles(monkeypatch):
    """The child would wait for that thread, which it doesn't have."""
    compiling, expected = threading.Event(), crops()

    def build():
        compiling.set()
        time.sleep(1)
        return lambda arguments: None

    monkeypatch.setattr(compile, "_load", lambda name, build, entry: build())
    monkeypatch.setattr(compile, "_kernels", {})
    thread = threading.Thread(target=compile.load, args=("another", build))
    thread.start()
    assert compiling.wait(30)
    child = os.fork()
    if not child:
        compile.load("mine", lambda: lambda arguments: None)
        os._exit(0 if np.array_equal(crops(), expected) else 1)
    assert wait_for(child, 10) == 0
    thread.join()


def test_a_forked_process_keeps_the_number_of_threads(set_threads):
    set_threads(3)
    child = os.fork()
    if not child:
        os._exit(octopus.get_num_threads())
    assert wait_for(child) == 3


def wait_for(child, seconds=60):
    """Exit code of a child process; one that hangs is ended."""
    for _ in range(seconds * 50):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return "it hangs"


def test_many_threads_get_the_same_bits():
    expected = crops()
    with ThreadPoolExecutor(8) as pool:
        for answer in pool.map(lambda _: crops(), range(64)):
            assert np.array_equal(answer, expected)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_any_number_of_threads_gives_the_same_bits(set_threads, count):
    many, large = crops(), crops(1, (300, 300))
    set_threads(count)
    assert octopus.get_num_threads() == count
    assert np.array_equal(crops(), many) and np.array_equal(crops(1, (300, 300)), large)


@pytest.mark.parametrize("most", [1, 3])
def test_pieces_of_work_are_shared_and_each_is_done_once(set_threads, most):
    set_threads(3)
    done, seen = [], set()

    def piece(number):
        time.sleep(0.002)
        seen.add(threading.get_ident())
        done.append(number)

    threads.share([partial(piece, number) for number in range(30)], most)
    assert sorted(done) == list(range(30)) and len(seen) <= most and (len(seen) > 1) == (most > 1)
    threads.share([], most)


def test_an_error_of_shared_work_comes_to_the_caller_and_helpers_go_on(set_threads):
    set_threads(3)
    done = []

    def fail():
        raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        threads.share([fail, *[partial(done.append, 1)] * 1000], 3)
    assert len(done) < 1000
    threads.share([partial(done.append, 2)] * 100, 3)
    assert done.count(2) == 100


@pytest.mark.parametrize(("own", "of_openmp", "count"), [
    ("3", "5", 3), ("", "5", 5), ("", "x", cpu.cores()), ("many", "2", 2),
])  # fmt: skip
def test_the_environment_says_how_many_threads_work(monkeypatch, caplog, own, of_openmp, count):
    for name in threads._SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OCTOPUS_NUM_THREADS", own)
    monkeypatch.setenv("OMP_NUM_THREADS", of_openmp)
    assert threads.default_threads() == count
    assert ("OCTOPUS_NUM_THREADS='many' is not a number" in caplog.text) == (own == "many")


class InterruptedOnce:
    """A lock whose first use ends with Ctrl-C."""

    def __init__(self, lock):
        self.lock, self.hit = lock, False

    def __enter__(self):
        if not self.hit and threading.current_thread() is threading.main_thread():
            self.hit = True
            raise KeyboardInterrupt
        return self.lock.__enter__()

    def __exit__(self, *error):
        return self.lock.__exit__(*error)


@pytest.mark.parametrize("where", ["jobs are handed out", "the job is closed"])
def test_ctrl_c_leaves_no_helper_in_memory_that_is_given_back(monkeypatch, where):
    jobs, pool = [], threads._Pool()

    class Job(threads._Job):
        __slots__ = ()

        def __init__(self, *arguments):
            super().__init__(*arguments)
            jobs.append(self)
            if where == "the job is closed":
                self._lock = InterruptedOnce(self._lock)

    class Queue:
        def put(self, job):
            if where == "jobs are handed out":
                raise KeyboardInterrupt

    monkeypatch.setattr(threads, "_Job", Job)
    pool._jobs, pool._helpers, calls = Queue(), 1, []
    with pytest.raises(KeyboardInterrupt):
        pool.run(calls.append, 0, 2)
    before = list(calls)
    jobs[0].join()  # a helper that wakes up now
    assert calls == before


def test_a_container_has_the_cores_of_its_quota(monkeypatch, tmp_path):
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda process: range(64), raising=False)
    monkeypatch.setattr(threads, "QUOTA", tmp_path / "cpu.max")
    found = []
    for text in ("250000 100000\n", "50000 100000\n", "max 100000\n"):
        threads.QUOTA.write_text(text)
        found.append(cpu.cores())
    threads.QUOTA.unlink()
    assert [*found, cpu.cores()] == [2, 1, 64, 64]


def test_a_container_has_the_memory_of_its_group(monkeypatch, tmp_path):
    group = tmp_path / "docker" / "me"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("1000000\n")
    (group / "memory.current").write_text("700000\n")
    (group / "memory.stat").write_text("anon 5\ninactive_file 100000\n")
    (group.parent / "memory.max").write_text("max\n")
    monkeypatch.setattr(cpu, "_group_folders", lambda: [group, group.parent, tmp_path])
    assert cpu.free_bytes() == 400_000
    (group / "memory.current").write_text("1200000\n")
    assert cpu.free_bytes() == 0


@pytest.mark.parametrize("options", [{}, {"edge": "image"}, {"antialias": True}], ids=["plain", "image", "filter"])
@pytest.mark.parametrize("threads", [2, 1])
def test_a_kernel_that_is_refused_memory_raises(options, threads):
    code = f"""
import resource, numpy as np, octopus
octopus.set_num_threads({threads})
options = dict(device="cpu", **{options})
frame, columns = np.zeros((9, 9, 1), np.uint8), 1 << 22
octopus.crop_resize(frame, [[0, 0, 9, 9]], 8, **options)  # there is memory for its kernel
out = np.zeros((1, 1, 1, columns), np.float32)
with open("/proc/self/statm") as used:
    limit = int(used.read().split()[0]) * resource.getpagesize() + (8 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    octopus.crop_resize(frame, [[0, 0, 9, 9]], (1, columns), out=out, **options)
except octopus.OutOfMemoryError as error:
    print(error)
"""
    assert "was refused memory" in run_python(code)[0]


def test_warming_up_loads_what_first_calls_need():
    assert octopus.warm_up("cpu") < 120
    forms = ("crop", "options", "antialias", "varied-options", "varied-quads-bilinear")
    assert {f"{form}-uint8-float32" for form in forms} <= set(compile._kernels)
    with pytest.raises(InputError, match="unknown"):
        octopus.warm_up("tpu")


@pytest.mark.filterwarnings("error")
def test_warming_up_everything_uses_up_no_hint(monkeypatch):
    monkeypatch.setattr(checks, "_hinted", set())
    octopus.warm_up("cpu", everything=True)
    assert not checks._hinted


# Leaves free memory in holes of one page to 64 pages alone, 3 GiB apart, as a process of much memory may have it.
HOLES = """
import ctypes
import numpy as np
import octopus
from octopus.backends.cpu import compile

PAGE, APART, NOBODY = 4096, 3 << 30, 0x4022  # private, anonymous, not reserved
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
compile._linker()
low = libc.mmap(None, 66 * APART, 0, NOBODY, -1, 0)
high = low + 66 * APART
for pages in range(1, 65):
    libc.munmap(high - pages * APART, pages * PAGE)
while (page := libc.mmap(None, PAGE, 0, NOBODY, -1, 0)) >= high:
    pass  # what is free above is taken first
libc.munmap(page, PAGE)
frame = np.full((64, 64, 3), 7, np.uint8)
print(*(octopus.crop_resize(frame, [[1, 2, 60, 50]], 8, antialias=wide, device="cpu").mean() for wide in (False, True)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the holes are those of Linux")
def test_parts_of_a_kernel_that_find_no_room_side_by_side_are_linked():
    for wide in (False, True):  # both kernels are on disk then
        octopus.crop_resize(FRAME, BOXES[:1], 8, antialias=wide, device="cpu")
    assert run_python(HOLES)[0].split() == ["7.0", "7.0"]
