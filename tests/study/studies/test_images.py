"""The study of images of any size: its sizes and pixels by rule, its references, and the owners of tiles."""

from types import SimpleNamespace

import numpy as np
import PIL
import pytest

from octopus.images.cuda import Launch, kernel_of
from octopus.images.cuda import cut as cut_into_tiles
from octopus.kernels.images import IMAGE
from octopus_study.baselines.availability import Unavailable
from octopus_study.measure import Method
from octopus_study.studies.images import job as tasks
from octopus_study.studies.images import owners
from octopus_study.studies.images.job import BATCH, ONCE, ROWS, ImageJob
from octopus_study.studies.images.own import OneCall
from octopus_study.studies.images.study import kinds
from octopus_study.studies.pictures import cut, log_uniform

FRAME = np.random.default_rng(5).integers(0, 256, (90, 130, 3), np.uint8)
OWN = {"octopus", "octopus-pillow"}
KINDS = kinds("cpu") | {"octopus-one-call": OneCall}


def job(task=ROWS, sizes=((70, 60), (33, 140), (70, 60))):
    return ImageJob(cut(FRAME, np.array(sizes), 1), task, "cpu")


@pytest.mark.parametrize("workload", tasks.BATCHES)
def test_sides_lie_between_their_ends_and_spread_evenly_over_octaves(workload):
    batch = tasks.BATCHES[workload]

    def sides(count, seed):
        return log_uniform(batch.least, batch.largest, count, seed)

    drawn = sides(4000, 7)
    assert (drawn >= batch.least).all() and (drawn <= batch.largest).all()
    middle = np.sqrt(np.array(batch.least) * batch.largest)
    assert np.median(drawn, axis=0) == pytest.approx(middle, rel=0.05)
    assert np.array_equal(drawn[:5], sides(5, 7))
    if batch.least != batch.largest:
        assert not np.array_equal(drawn[:5], sides(5, 8))
        assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.1


def test_pixels_are_those_of_the_frame_and_mirrored_beyond_it():
    sizes, places = np.array([[20, 30], [400, 300]]), np.random.default_rng(3).random((2, 2))
    there_and_back = np.concatenate([FRAME, FRAME[::-1]])
    tiled = np.tile(np.concatenate([there_and_back, there_and_back[:, ::-1]], axis=1), (4, 3, 1))
    for image, (height, width), place in zip(cut(FRAME, sizes, 3), sizes, places, strict=True):
        assert image.shape == (height, width, 3) and image.flags.c_contiguous
        top, left = (place * FRAME.shape[:2]).astype(int)
        assert np.array_equal(image, tiled[top : top + height, left : left + width])


def test_rows_are_in_the_order_of_merged_blocks():
    levels = np.arange(56 * 84 * 3, dtype=np.float32).reshape(56, 84, 3)
    rows, number, block = tasks.arranged(levels, ROWS), 0, tasks.MERGE * tasks.PATCH
    assert rows.shape == (4 * 6, tasks.ROW)
    for top in range(0, 56, block):
        for left in range(0, 84, block):
            for y in range(top, top + block, tasks.PATCH):
                for x in range(left, left + block, tasks.PATCH):
                    patch = levels[y : y + tasks.PATCH, x : x + tasks.PATCH].transpose(2, 0, 1)
                    assert np.array_equal(rows[number], np.repeat(patch, tasks.TEMPORAL, axis=0).ravel()), number
                    number += 1


def test_the_references_are_near_each_other_and_not_the_same():
    made = job(BATCH, [(500, 700)])
    once, between, bilinear = (made.expected(name) for name in (ONCE, tasks.BETWEEN, tasks.BILINEAR))
    assert 0.5 < np.abs(once - between).max() < 2
    assert np.array_equal(between, np.rint(between)) and not np.array_equal(once, np.rint(once))
    assert np.abs(once - bilinear).max() > 20  # without antialiasing noise stays


def test_a_wrong_level_nothing_at_all_and_a_written_image_are_told():
    made = job()
    mean, std = (np.repeat(np.float32(values), tasks.ROW // 3) for values in made.normal)
    assert made.checked == [0, 1, 2]
    right = (np.rint(made.expected(ONCE)) - mean) / std

    def answer(run):
        made.out.fill(np.nan)
        return made.check(Method("it", run, lambda: made.picked(made.out), 0.505), ONCE)

    def off():
        made.out[:] = right
        made.out[-1, -1] += 2 / std[-1]

    def writes():
        made.out[:] = right
        made.images[1][3, 3] ^= 255

    before = made.images[1].copy()
    assert answer(lambda: np.copyto(made.out, right)) == "same"
    assert answer(off).startswith("different: by as much as 1")
    assert answer(lambda: None).startswith("different: ")
    assert answer(writes) == "different: it wrote into its images"
    assert np.array_equal(made.images[1], before)


class Held:
    def __init__(self, image):
        self.image = np.array(image)

    def copy_to_host(self):
        return self.image.copy()

    def copy_from_host(self, image):
        self.image[...] = image


@pytest.mark.parametrize("name", ["working", "interleaved"])
def test_an_image_that_is_written_on_the_device_is_told_and_mended(name):
    made = ImageJob(job().images, ROWS, "cuda")
    made.__dict__["working"] = [Held(image.transpose(2, 0, 1)) for image in made.images]
    made.__dict__["interleaved"] = [Held(image) for image in made.images]
    written = getattr(made, name)[1]
    before = written.copy_to_host()

    def writes():
        written.image[0, 3] ^= 255

    def check(run):
        return made.check(Method("it", run, lambda: made.expected(ONCE), 0.5), ONCE)

    assert check(writes) == "different: it wrote into its images"
    assert np.array_equal(written.image, before)
    assert check(lambda: None) == "same"


@pytest.mark.parametrize("task", [ROWS, BATCH])
@pytest.mark.parametrize("name", KINDS)
def test_every_method_gives_its_answer_or_says_what_is_missing(name, task):
    made = job(task)
    try:
        method = KINDS[name](made)
    except Unavailable as reason:
        assert name not in OWN
        assert any(word in str(reason) for word in ("is not installed", "patch rows", "can't be loaded", "version 5"))
        return
    for _ in range(2):  # Octopus gets the images in the other order every time, the first behind `poison` aside
        method.run()
    method.poison()
    answer = made.check(method.timed(), method.right)
    otherwise = {"dali", "pillow-simd"} | ({"pillow"} if int(PIL.__version__.split(".")[0]) >= 13 else set())
    assert answer == "same" or (name in otherwise and method.why_different in answer)


SIZES = [(700, 300), (64, 512), (256, 256), (1500, 90), (100, 100)]
RECORD = IMAGE.itemsize


class Kernel:
    """Cuts images into tiles as on an H200, and keeps what it is launched with."""

    def __init__(self, spec, owner):
        self.kind, self.item, self.owner, self.launches = kernel_of(spec), spec.item, owner, []

    def prepare(self, table):
        found = cut_into_tiles(self.kind, table, self.item, 227 << 10, 132)
        return Launch(self, found.blocks, found)

    def prepared(self, made, count, grid=None):
        threads = 32 * made.cut.warps

        def launch(stream, addresses):
            assert addresses[1] == addresses[2]
            self.launches.append((grid or (made.blocks, 1), addresses[1], count, threads))
            return 0

        return launch


class Uploaded:
    """A slot of page-locked memory, at address 0."""

    address = 0

    def __init__(self):
        self.array = np.zeros(1 << 20, np.uint8)

    def take(self, nbytes):
        return self

    def twin(self, queue):
        return 0

    def sent(self, queue):
        """Nothing is pending."""


@pytest.fixture
def made(monkeypatch):
    slot, copied = Uploaded(), []
    monkeypatch.setattr(owners, "require_gpu", lambda job, product: None)
    monkeypatch.setattr(owners, "compute_capability", lambda: (9, 0))
    monkeypatch.setattr(owners, "OwnedKernel", Kernel)
    monkeypatch.setattr(owners, "Staging", lambda slots: slot)
    monkeypatch.setattr(owners, "stream_of", lambda stream: None)
    monkeypatch.setattr(owners.memory, "copy", lambda to, source, nbytes, queue: copied.append(nbytes))

    def make(kind, task):
        job = ImageJob([np.zeros((*size, 3), np.uint8) for size in SIZES], task, "cpu")
        job.__dict__["out"] = SimpleNamespace(pointer=8)
        copied.clear()
        found = kind(job)
        assert copied == [found.table_bytes]
        return found, slot.array[: found.table_bytes]

    return make


def tiles_of(method, memory):
    """Place of the result and tile of every block that has one, by what the kernel of its owner would do."""
    found, numbers = set(), memory[len(SIZES) * RECORD :].view(np.int32)
    for (across, down), table, count, threads in method._kernel.launches:
        records = memory[table : table + count * RECORD].view(IMAGE)
        for block in range(across):
            for row in range(down):
                if method.owner == "padded_grid":
                    item = row
                elif method.owner == "block_metadata":
                    item = numbers[block]
                elif method.owner == "lookup":
                    (item,) = set(numbers[block * threads : (block + 1) * threads].tolist())
                else:
                    item = np.searchsorted(records["first_tile"], block, side="right") - 1
                tile = block - int(records["first_tile"][item])
                assert (int(records["out"][item]), tile) not in found
                found.add((int(records["out"][item]), tile))
    return found


@pytest.mark.parametrize("task", [ROWS, BATCH])
@pytest.mark.parametrize("kind", owners.OWNERS)
def test_every_way_makes_the_tiles_of_block_search(kind, task, made):
    expected = tiles_of(*made(owners.BlockSearch, task))
    found = tiles_of(*made(kind, task))
    assert len(expected) > len(SIZES) and (found >= expected if kind is owners.PaddedGrid else found == expected)


def test_what_a_launch_is_told(made):
    def told(kind):
        return made(kind, ROWS)[0].table_bytes - len(SIZES) * RECORD

    blocks = len(tiles_of(*made(owners.BlockSearch, ROWS)))
    threads = made(owners.BlockSearch, ROWS)[0]._kernel.launches[0][3]
    assert told(owners.BlockMetadata) == 4 * blocks and told(owners.Lookup) == 4 * blocks * threads
    assert all(told(kind) == 0 for kind in (owners.BlockSearch, owners.ThreadSearch, owners.PaddedGrid))
