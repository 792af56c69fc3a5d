"""`octopus.images` on a GPU: the answers of the CPU, streams, memory, graphs."""

from functools import partial

import numpy as np
import pytest
from gpu import host, overwrite_freed_memory, refuse_allocation, slow_stream, synchronize

from octopus import InputError, images
from octopus.arrays import staging
from octopus.backends.cuda import memory
from octopus.backends.cuda.device import current
from octopus.images import ImagePlan

pytestmark = pytest.mark.gpu

SIDES = [(97, 143), (300, 201), (56, 56), (33, 640), (1, 1), (30, 7), (5, 900)]
SIZES = [(56, 112), (140, 84), (28, 28), (28, 280), (56, 56), (84, 28), (28, 196)]
NORMAL = {"scale": 255, "mean": 0.5, "std": 0.25}


def pixels():
    generator = np.random.default_rng(6)
    return [generator.integers(0, 256, (*side, 3), np.uint8) for side in SIDES]


def uploaded(given):
    return [memory.upload(image) for image in given]


def assert_same(found, expected, atol):
    synchronize()
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other, atol)
        return
    found, expected = host(found), host(expected)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), atol=atol, rtol=1e-3)


def assert_rows(found, chosen=slice(None)):
    """That patch rows of some of the images are those of the CPU, of which a few are a level off."""
    given, sizes = pixels()[chosen], SIZES[chosen]
    assert_same(found, images.patch_rows(given, sizes, device="cpu", rounding="uint8", **NORMAL)[0], 1.01 / 255 / 0.25)


def test_images_on_the_host_are_staged_and_may_change_after_the_call():
    given = pixels()
    expected = images.resize(given, (31, 45), device="cpu", **NORMAL)
    warm = images.resize(given, (31, 45), device="cuda", **NORMAL)
    assert_same(warm, expected, 1e-3)
    stream, copies = slow_stream(), [image.copy() for image in given]
    found = images.resize(copies, (31, 45), device="cuda", stream=stream, **NORMAL)
    for image in copies:
        image[:] = 0
    assert_same(found, expected, 1e-3)


@pytest.mark.parametrize("planned", [False, True])
def test_tables_are_not_overwritten_before_they_are_copied(planned):
    """Page-locked ones of calls, and those of a plan's runs on two streams."""
    given = uploaded(pixels())
    outs = [memory.DeviceArray((1, 3, 24, 24), np.float32) for _ in range(12)]
    run, streams = partial(images.resize, size=24), [slow_stream(), current().create_stream()]
    if planned:
        run = ImagePlan("resize", given, 7, size=24, allocate=False).run
    else:
        run(given[:1], out=outs[0])
        synchronize()
        streams = [slow_stream()]
    for number, out in enumerate(outs):
        run([given[number % len(given)]], out=out, stream=streams[number % len(streams)])
    synchronize()
    for number, out in enumerate(outs):
        assert_same(out, images.resize([pixels()[number % len(given)]], 24, device="cpu"), 1e-3)


def test_images_that_are_dropped_live_until_they_are_read():
    given = pixels()
    expected = images.resize(given, 24, device="cpu")
    images.resize(uploaded(given), 24)
    synchronize()
    found = images.resize(uploaded(given), 24, stream=slow_stream())
    overwrite_freed_memory((300, 201, 3))
    assert_same(found, expected, 1e-3)


def test_a_plan_allocates_nothing(monkeypatch):
    given, plain = uploaded(pixels()), pixels()
    boxed = {"size": 24, "letterbox": True, "return_transform": True}
    plans = [
        (ImagePlan("patch_rows", given, 7, result_rows=500, **NORMAL), (given, SIZES)),
        (ImagePlan("resize", plain, 7, source_pixels=200_000, device="cuda", **boxed), (plain,)),
        (ImagePlan("patch_rows", given, 7, max_rows=70, **NORMAL), (given, SIZES)),
    ]
    for plan, arrays in plans:
        plan.run(*arrays)
    synchronize()
    for module in (memory, staging.memory):
        monkeypatch.setattr(module, "allocate", refuse_allocation)
        monkeypatch.setattr(module, "pinned", refuse_allocation)
    found = [plan.run(*arrays) for plan, arrays in plans]
    monkeypatch.undo()
    assert_rows(found[0][0])
    assert_same(found[1], images.resize(plain, device="cpu", **boxed), 1e-2)


def test_a_graph_reads_the_table_anew():
    torch = pytest.importorskip("torch")
    given = [torch.from_numpy(image).cuda() for image in pixels()]
    plan = ImagePlan("patch_rows", given, 7, result_rows=500, **NORMAL)
    plan.run(given, SIZES)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        rows, _ = plan.run(given, SIZES)
    rows.fill_(7)
    graph.replay()
    assert_rows(rows)
    fewer = slice(3, 0, -1)
    rows, grid = plan.update(given[fewer], SIZES[fewer])
    graph.replay()
    assert_rows(rows, fewer)
    assert grid.tolist() == [[1, height // 14, width // 14] for height, width in SIZES[fewer]]
    with pytest.raises(InputError, match="capture a run of the largest"):
        plan.update(given, [(140, 140)] * 4 + [(28, 28)] * 3)
    with pytest.raises(InputError, match="make another plan"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        plan.run(given, SIZES)
    graph.replay()
    assert_rows(rows, fewer)


def test_an_update_stays_in_the_out_of_the_captured_run():
    torch = pytest.importorskip("torch")
    given = [torch.from_numpy(image).cuda() for image in pixels()]
    plan = ImagePlan("patch_rows", given, 7, result_rows=500, allocate=False, **NORMAL)
    room = torch.full((500, 1176), 7.0, device="cuda")
    plan.run(given, SIZES, out=room[:192])
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plan.run(given, SIZES, out=room[:192])
    with pytest.raises(InputError, match="room for 192 rows, found 196"):
        plan.update(given, [*SIZES[:-1], (28, 224)])
    room.fill_(7)
    found, _ = plan.update(given[1:], SIZES[1:])
    graph.replay()
    assert_rows(found, slice(1, None))
    assert found.data_ptr() == room.data_ptr() and bool((room[192:] == 7).all())


def test_a_call_is_not_captured():
    torch = pytest.importorskip("torch")
    given = [torch.from_numpy(image).cuda() for image in pixels()]
    images.resize(given, 24)
    torch.cuda.synchronize()
    with pytest.raises(InputError, match="make an ImagePlan"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        images.resize(given, 24)


def test_tensors_give_tensors():
    torch = pytest.importorskip("torch")
    given = [torch.from_numpy(image).cuda().permute(2, 0, 1) for image in pixels()]
    plain, grid = images.patch_rows(given, SIZES, **NORMAL)
    narrow, _ = images.patch_rows(given, SIZES, dtype=torch.bfloat16, **NORMAL)
    assert plain.is_cuda and not grid.is_cuda and narrow.dtype == torch.bfloat16
    # Float32 rows of 14 pixels take a kernel of their own, which rounds a few values to the level beside.
    other = narrow != plain.to(torch.bfloat16)
    assert other.float().mean() < 0.01 and (narrow - plain).abs().max() < 1.01 / 255 / 0.25 + 2**-7
    exact = {**NORMAL, "rounding": "none"}
    single, half = (images.patch_rows(given, SIZES, dtype=t, **exact)[0] for t in ("float32", torch.bfloat16))
    assert torch.equal(single.to(torch.bfloat16), half)
    staged = images.resize([image.cpu() for image in given], 24, device="cuda")
    assert staged.is_cuda and torch.allclose(staged, images.resize(given, 24), atol=1e-3)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    torch.cuda._sleep(10_000_000)
    late = [image.clone() for image in given]
    found = images.resize(late, 24)
    assert torch.equal(found, images.resize(given, 24))


def test_memory_of_tensors_is_not_given_away_while_another_stream_reads_it():
    torch = pytest.importorskip("torch")
    given = [torch.from_numpy(image).cuda() for image in pixels()]
    expected = images.resize(given, 24).cpu()
    torch.cuda.synchronize()
    stream = slow_stream()  # torch asks it when the tensors are freed: it must live until then
    found = images.resize(given, 24, stream=stream)
    shapes = [image.shape for image in given]
    del given
    again = [torch.zeros(shape, dtype=torch.uint8, device="cuda") for shape in shapes]
    synchronize()
    assert again and torch.allclose(found.cpu(), expected)


def test_too_little_memory_is_told():
    given = uploaded(pixels())
    with pytest.raises(MemoryError, match="bytes are needed"):
        images.resize(given * 300, (20_000, 20_000))
