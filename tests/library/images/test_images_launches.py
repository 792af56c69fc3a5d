"""What calls and plans of `octopus.images` copy and launch on a pretended GPU; values are those of `cases`."""

import fake_torch
import numpy as np
import pretended
import pytest
from images_case import pixels

from octopus import InputError, RaggedBatch, images
from octopus.backends.cuda import stream_of
from octopus.backends.cuda.memory import DeviceArray
from octopus.images import upload

torch = pytest.fixture(pretended.torch_installed)

SIZES = [(4, 8), (12, 4), (8, 8)]
WIDE, NARROW = [(2, 8)], [(2, 4)]
ROWS = {"patch": 2, "merge": 1, "temporal": 1, "order": "PPC"}
CALLS = {
    "resize": lambda given: images.resize(given, (5, 6), mean=100.0, std=50.0),
    "crop": lambda given: images.resize(given, 4, crop="center", channels="BGR"),
    "letterbox": lambda given: images.resize(given, 6, letterbox=True, return_transform=True, pad_value=9),
    "each": lambda given: images.resize_each(given, SIZES, layout="NHWC"),
    "rows": lambda given: images.patch_rows(given, SIZES, patch=2),
    "padded rows": lambda given: images.patch_rows(given, SIZES, patch=2, max_rows=17),
}


def tensors(arrays):
    return [fake_torch.Tensor(array, "cuda:0") for array in arrays]


def one(gpu, height=2, width=8):
    return [gpu.put(np.full((height, width, 3), 200, np.uint8))]


def counter(gpu):
    """Tells how often memory was reserved, copies by themselves and by launches, and launches, since it was made."""

    def now():
        return np.array([gpu.allocated, len(gpu.uploads), len(gpu.copies) - len(gpu.uploads), len(gpu.launches)])

    before = now()
    return lambda: (now() - before).tolist()


@pytest.mark.parametrize("name", CALLS)
def test_a_call_like_the_one_before_is_one_launch_that_copies_its_table(torch, name):
    """And reserves no memory but for its result; of padded rows another kernel fills the rest."""
    call = CALLS[name]
    call(tensors([one[::-1].copy() for one in pixels()]))
    counted = counter(torch)
    call(tensors(pixels()))
    long = {"letterbox": [2, 0, 1], "padded rows": [1, 0, 2]}
    assert counted()[1:] == long.get(name, [0, 1, 1])


def test_a_call_like_the_one_before_works_on_the_stream_that_is_current(torch):
    given, made = tensors(pixels()[:1]), []
    for torch.handle in (7, 9, 9, 7, 7):
        counted = counter(torch)
        images.resize(given, (5, 6))
        made.append(counted()[1:])
    assert [launch.stream for launch in torch.launches] == [7, 9, 9, 7, 7]
    assert made == [[1, 0, 1], [1, 0, 1], [0, 1, 1], [1, 0, 1], [0, 1, 1]]
    for torch.handle in range(10, 10 + upload.MOST_STREAMS):
        images.resize(given, (4, 4))
    torch.handle, counted = 7, counter(torch)
    images.resize(given, (5, 6))
    assert counted()[1:] == [0, 1, 1]


def test_a_call_is_refused_in_a_graph_on_another_gpu_and_by_the_driver(torch):
    given = tensors(pixels()[:1])
    for _ in range(2):
        images.resize(given, (5, 6))
    launches = len(torch.launches)
    torch.captured.add(7)
    with pytest.raises(InputError, match="can't be captured in a graph"):
        images.resize(given, (5, 6))
    torch.captured.clear()
    torch.device = 1
    with pytest.raises(InputError, match="GPU 1 is current"):
        images.resize(given, (5, 6))
    torch.device, torch.statuses = 0, {"launch": 700}
    with pytest.raises(RuntimeError, match=r"CUDA_ERROR_ILLEGAL_ADDRESS|error 700"):
        images.resize(given, (5, 6))
    torch.statuses = {}
    assert len(torch.launches) == launches
    images.resize(given, (5, 6))
    assert len(torch.launches) == launches + 1


def test_images_on_the_host_are_one_upload_and_those_on_the_gpu_are_read_in_place(gpu):
    given = pixels()
    for call in ([one[::-1] for one in given], RaggedBatch.from_list(given)):
        counted = counter(gpu)
        images.resize(call, (5, 6), device="cuda")
        assert counted()[1:] == [1, 0, 1]
    lying = list(map(gpu.put, given))
    plan = images.ImagePlan("patch_rows", lying, 4, result_rows=40, patch=2)
    counted = counter(gpu)
    plan.run(lying, SIZES)
    assert counted() == [0, 1, 0, 1] and gpu.uploads[-1] == 3 * 64  # a record of each image
    boxed = {"size": (5, 6), "letterbox": True, "return_transform": True}
    staged = images.ImagePlan("resize", given, 3, source_pixels=183, device="cuda", **boxed)
    counted = counter(gpu)
    staged.run(given)
    assert counted()[:2] == [0, 2]  # and the way back


def test_images_of_the_host_are_uploaded_while_others_are_packed(gpu, set_threads, monkeypatch):
    given, sent = pixels(), []
    set_threads(1)
    monkeypatch.setattr(upload, "PIECE_BYTES", 40)
    monkeypatch.setattr(upload, "THREAD_BYTES", 40)
    for least in (1 << 20, 1):
        monkeypatch.setattr(upload, "STRETCH_BYTES", least)
        del gpu.uploads[:]
        images.resize(given, 6, device="cuda")
        sent.append(list(gpu.uploads))
    assert len(sent[0]) == 1 < len(sent[1]) and sum(sent[0]) == sum(sent[1])


def test_no_graph_is_overrun_by_an_update_or_by_a_second_capture(gpu):
    given, room = one(gpu), DeviceArray((4, 12), np.float32)
    plan = images.ImagePlan("patch_rows", given, 4, result_rows=16, stream=stream_of(5), **ROWS)
    gpu.captured.add(5)
    plan.run(given, NARROW, out=room.head(2), stream=5)
    with pytest.raises(InputError, match="the captured run has room for 2 rows, found 4"):
        plan.update(given, WIDE)
    with pytest.raises(InputError, match="make another plan for another graph"):
        plan.run(one(gpu, 4), NARROW, stream=5)


@pytest.mark.parametrize("allocate", [False, True])
def test_an_update_returns_where_the_captured_run_writes(gpu, allocate):
    given, own = one(gpu), DeviceArray((4, 12), np.float32)
    plan = images.ImagePlan("patch_rows", given, 4, result_rows=16, allocate=allocate, stream=stream_of(5), **ROWS)
    gpu.captured.add(5)
    plan.run(given, WIDE, out=own, stream=5)
    for sizes, shape in ((NARROW, (2, 12)), (WIDE, (4, 12))):
        found, _ = plan.update(given, sizes)
        assert (found.pointer, found.shape) == (own.pointer, shape)


def test_a_plan_loads_before_a_graph_what_it_needs_there(gpu):
    given, loaded = one(gpu), []
    for room in ({"result_rows": 16}, {"max_rows": 8}):
        plan = images.ImagePlan("patch_rows", given, 4, stream=stream_of(5), **room, **ROWS)
        loaded.append(len(gpu.kernels))
    gpu.captured.add(5)
    plan.run(given, WIDE, stream=5)
    assert loaded[0] < loaded[1] == len(gpu.kernels)


def test_a_plan_takes_images_of_its_library_and_on_its_gpu(torch):
    given = one(torch)
    plan = images.ImagePlan("patch_rows", given, 4, result_rows=16, **ROWS)
    words = r"images of \(library, side, dtype, channels\) \('other', 'cuda', 'uint8', 3\).*found \('octopus',"
    with pytest.raises(InputError, match=words):
        plan.run([DeviceArray((2, 8, 3), np.uint8)], WIDE)
    plan.run(given, WIDE)
    there = [fake_torch.Tensor(np.zeros((2, 8, 3), np.uint8), f"cuda:{number}") for number in (0, 1)]
    plan = images.ImagePlan("patch_rows", there[:1], 4, result_rows=16, **ROWS)
    with pytest.raises(InputError, match="the plan is for images on GPU 0, found GPU 1"):
        plan.run(there[1:], WIDE)


def test_a_slot_whose_launch_fails_is_in_use_until_its_upload_is_done(gpu):
    given = one(gpu)
    plan = images.ImagePlan("patch_rows", given, 4, result_rows=16, **ROWS)
    for call in (lambda: images.patch_rows(given, WIDE, **ROWS), lambda: plan.run(given, WIDE)):
        gpu.statuses, before = {"launch": 700}, len(gpu.default_stream.recorded)
        with pytest.raises(RuntimeError, match=r"700|ILLEGAL"):
            call()
        gpu.statuses = {}
        assert len(gpu.default_stream.recorded) == before + 1


def test_images_from_the_host_are_worked_on_where_torch_will_use_the_result(torch):
    plain = [np.zeros((2, 8, 3), np.uint8)]
    options = {"size": 6, "letterbox": True, "return_transform": True, "device": "cuda"}
    plan = images.ImagePlan("resize", plain, 2, source_pixels=16, **options)
    out = fake_torch.Tensor(np.zeros((1, 3, 6, 6), np.float32), "cuda:0")
    for run in (lambda: images.resize(plain, out=out, **options), lambda: plan.run(plain, out=out)):
        run()
        assert torch.launches[-1].stream == torch.handle == 7
    run = images.ImagePlan("resize", one(torch), 2, **options).run
    for call in (run, lambda given, **more: images.resize(given, **more, **options)):
        call(one(torch), out=out, stream=9)
        assert torch.launches[-1].stream == 9 and torch.used and torch.used[-1] == 9


def test_a_call_waits_for_those_who_write_its_own_images(gpu):
    given = one(gpu)
    for handle in (11, 12):
        given[0].stream = handle
        gpu.waits.clear()
        images.resize(given, 6)
        assert {other for _, other in gpu.waits} == {handle}


def test_pillows_vertical_pass_is_a_launch_before_and_refused_in_a_graph(gpu):
    """Of images on the host it is done there."""
    given, calls = pixels(), {"rounding": "pillow", "dtype": "uint8", "source": "HWC"}
    for device, there, launches in (("cuda", given, 1), ("cuda", list(map(gpu.put, given)), 2), ("cpu", given, 0)):
        counted = counter(gpu)
        images.resize_each(there, SIZES, device=device, **calls)
        assert counted()[3] == launches
    plan = images.ImagePlan("resize_each", there := list(map(gpu.put, given)), 3, result_pixels=200, **calls)
    gpu.captured.add(5)
    with pytest.raises(InputError, match=r'image 0 loses so many rows .* ask for rounding="pillow12"'):
        plan.run(there, SIZES, stream=5)
