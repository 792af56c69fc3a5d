"""The CUDA kernels of images compile, take the images that they can do, and are launched with their arguments."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from images_case import plain

from octopus import InputError
from octopus.kernels.images import IMAGE

pytest.importorskip("numba_cuda")

from octopus.backends.cuda.compile import entry_name, to_ptx
from octopus.backends.cuda.language import cuda as cuda_language
from octopus.images import cuda
from octopus.images.spec import make_spec
from octopus.kernels import images
from octopus.kernels.arguments import Arguments
from octopus.kernels.cuda import image_rows, image_tiles, image_weights
from octopus.kernels.cuda import images as simple
from octopus.kernels.cuda.image_kind import DIGIT_BYTES, FUSED_ONE, TWO_DIGITS, shared_bytes
from octopus_study.kernels.cuda.image_owners import OWNERS, build_owned
from octopus_study.reference import images as reference

LIMIT, PROCESSORS = 227 << 10, 132
CALLS = {
    "batch": ("resize", {"size": (20, 70), "filter": "bicubic", "rounding": "pillow"}),
    "each": ("resize_each", {"layout": "NHWC", "filter": "lanczos", "dtype": "uint8"}),
    "rows": ("patch_rows", {"dtype": "bfloat16", "rounding": "uint8"}),
    "folded": ("patch_rows", {"rounding": "uint8", "temporal": 1, "row_multiple": 8, "dtype": "int8", "mean": None,
                              "std": None}),
    "siglip": ("patch_rows", {"order": "PPC", "patch": 16, "filter": "bilinear", "rounding": "pillow"}),
}  # fmt: skip
# What else the simple kernel is asked for.
SIMPLE = {
    "each": {"filter": "bicubic", "dtype": "float16", "rounding": "none", "antialias": False},
    "rows": {"filter": "bicubic", "patch": 2, "merge": 1}, "siglip": {"patch": 2, "filter": "lanczos", "max_rows": 7},
}  # fmt: skip


def spec_of(name, source="uint8", channels=3, **options):
    operation, own = CALLS[name]
    return make_spec(source, channels, operation, **{"mean": 3, "std": 2, **own, **options})


def table_of(*sides, rows=56, columns=84):
    """One image per pair of sides, (H, W, 3), C-contiguous."""
    table = np.zeros(len(sides), IMAGE)
    for record, (height, width) in zip(table, sides, strict=True):
        record["pointer"], record["plane_step"], record["pixel_step"] = 4096, 1, 3
        record["row_step"] = 3 * width
        record["height"], record["width"], record["rows"], record["columns"] = height, width, rows, columns
    return table


def cut_of(name, table, fused=False, **options):
    spec = spec_of(name, **options)
    return cuda.cut(cuda.kernel_of(spec)._replace(fused=fused), table, spec.item, LIMIT, PROCESSORS)


@pytest.mark.parametrize("name", SIMPLE)
def test_the_simple_kernel_compiles_for_every_gpu(capability_in_turn, name):
    spec = spec_of(name, **SIMPLE[name])
    _, _, *kind = cuda.SimpleKernel(spec).built
    ptx = to_ptx(simple.build(*kind), capability_in_turn)
    assert f".target sm_{capability_in_turn[0]}{capability_in_turn[1]}" in ptx
    assert "images_kernel" in entry_name(ptx)
    # Of Lanczos the sine has a table of its own for large numbers.
    assert ("local_depot" in ptx) == (spec.filter == "lanczos")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_kernel_of_padding_compiles_for_every_gpu(capability_in_turn, dtype):
    assert "padding_kernel" in entry_name(to_ptx(simple.build_padding(dtype), capability_in_turn))


@pytest.mark.parametrize("capability", [cuda.TENSOR_CAPABILITY], indirect=True)
@pytest.mark.parametrize(("name", "fused"), [*((name, False) for name in CALLS), ("rows", True)])
def test_the_kernel_compiles_without_local_memory(name, fused, capability):
    kind = cuda.kernel_of(spec_of(name))._replace(fused=fused)
    ptx = to_ptx(image_tiles.build(kind), capability)
    assert "image_kernel" in entry_name(ptx) and "local_depot" not in ptx
    assert ".maxntid 256, 1, 1\n.minnctapersm 2\n{" in ptx  # else a processor has registers for one block
    assert "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32" in ptx


@pytest.mark.parametrize("capability", [cuda.TENSOR_CAPABILITY], indirect=True)
@pytest.mark.parametrize("owner", ["block_search", "thread_search", "block_metadata", "lookup"])
def test_every_way_to_know_a_blocks_image_compiles(owner, capability):
    """In a kernel of its own: the whole one, which takes seconds to compile, calls all of them at the same place."""
    owner_of = OWNERS.get(owner, image_tiles.block_search)

    def which(table, count, out):
        out[0] = owner_of(table, count, np.int32(cuda_language.blockIdx.x))

    which.arguments = Arguments.table("*int64 table", "int32 count", "*int32 out")
    ptx = to_ptx(which, capability)
    assert "local_depot" not in ptx and ("vote.sync" in ptx) == (owner == "block_search")
    assert ("%ctaid.x" in ptx) and ("%tid.x" in ptx) == (owner in ("block_search", "lookup"))


@pytest.mark.parametrize("capability", [cuda.TENSOR_CAPABILITY], indirect=True)
def test_a_padded_grid_compiles(capability):
    """In the whole kernel, which leaves blocks beyond an image's end then."""
    ptx = to_ptx(build_owned(cuda.kernel_of(spec_of("batch")), "padded_grid"), capability)
    assert "local_depot" not in ptx and "vote.sync" not in ptx and "%ctaid.y" in ptx


# A call that the simple kernel alone can do, rows that are made channel by channel, and any by the capability of a GPU,
# which may have no tensor cores for bytes. Rows of 14 float32 have 56 bytes, no multiple of 16.
@pytest.mark.parametrize(("name", "options", "capability", "fused"), [
    *(("batch", {"source": source, "rounding": "none"}, (9, 0), []) for source in ("uint16", "float32")),
    *(("batch", options, (9, 0), []) for options in ({"filter": "nearest"}, {"antialias": False, "rounding": "none"})),
    *(("rows", {"patch": patch}, (9, 0), []) for patch in (8, 32)),
    *(("rows", options, (9, 0), [False]) for options in (
        {"dtype": "float32"}, {"rounding": "pillow12"}, {"rounding": "none"}, {"order": "PPC"}, {"channels": 4})),
    ("rows", {}, (7, 5), []), ("rows", {}, (8, 0), [True, False]), ("rows", {}, (12, 0), [True, False]),
])  # fmt: skip
def test_which_kernels_a_call_has(name, options, capability, fused, monkeypatch):
    monkeypatch.setattr(cuda, "compute_capability", lambda: capability)
    *tensor, simple_kernel = cuda.kernels_of(spec_of(name, **options))
    assert type(simple_kernel) is cuda.SimpleKernel and [kernel.kind.fused for kernel in tensor] == fused


@pytest.mark.parametrize("change", [
    {"top": -1}, {"left": -3}, {"top": 40}, {"left": 30},  # items that reach beyond their image
    {"row_step": -600}, {"pixel_step": 5}, {"pixel_step": -1},
    {"row_step": 1 << 26}, {"plane_step": 1 << 33},  # memory of more than 2 GiB
    {"row_step": 1 << 25},  # of 1.6 GiB, but groups of rows behind the last would begin beyond 2 GiB
    {"width": 40_000, "row_step": 120_000},  # 24,000 bytes of weights for each of 16 columns
])  # fmt: skip
def test_images_that_it_refuses(change):
    table = table_of((100, 200), (50, 60))
    assert cut_of("batch", table.copy()) is not None
    for name, value in change.items():
        table[name][1] = value
    assert cut_of("batch", table) is None


@pytest.mark.parametrize(("plane", "pixel", "known"), [
    (1, 3, True), (1, 4, True), (40_000, 1, True), (-40_000, 1, True), (-1, 3, False), (500, 3, False),
])  # fmt: skip
def test_pixels_whose_channels_are_made_at_once(plane, pixel, known):
    """Planes, and red, green and blue at the beginning of 3 or 4 bytes."""
    table = table_of((100, 200), (50, 60))
    table["plane_step"][1], table["pixel_step"][1] = plane, pixel
    found = cut_of("rows", table, fused=True)
    assert (found is not None) == known
    if known:
        assert found.shared == shared_bytes(cuda.kernel_of(spec_of("rows"))._replace(fused=True), *found[1:6])
        assert (found.steps, found.warps) == (2, 6)  # of 32 pixels: 13 * 200 / 84 and the filter's 10


@pytest.mark.parametrize(("count", "bands"), [(64, 8), (16, 4), (2, 2), (1, 1)])
def test_few_tiles_are_made_smaller(count, bands):
    table = table_of(*[(500, 500)] * count, rows=560, columns=560)
    assert cut_of("rows", table).bands == bands


def test_a_captured_launch_is_used_again_if_it_has_enough_of_all():
    spec, big = spec_of("rows"), table_of(*[(500, 500)] * 8)
    kind = cuda.kernel_of(spec)
    captured = cut_of("rows", big)
    small = table_of((100, 90), (30, 500))
    again = cuda.cut_like(kind, small, spec.item, captured)
    assert again[1:] == captured[1:] and again.blocks < captured.blocks
    assert small["first_tile"].tolist() == [0, again.blocks // 2]
    assert cuda.cut_like(kind, table_of(*[(500, 500)] * 9), spec.item, captured) is None  # blocks
    assert cuda.cut_like(kind, table_of((500, 3000)), spec.item, captured) is None  # weights of columns
    assert cuda.cut_like(kind, table_of((3000, 500)), spec.item, captured) is None  # rows


def sized(rows, columns, count=2):
    """Images that say what becomes of them and nothing else."""
    table = np.zeros(count, IMAGE)
    table["rows"], table["columns"] = rows, columns
    return table


def test_the_simple_kernels_launch_has_as_many_blocks_as_a_grid_and_the_captured_run(gpu):
    gpu.compute_capability = (7, 5)  # without tensor cores for bytes
    engine = cuda.CudaEngine(spec_of("each", **SIMPLE["each"]))
    with pytest.raises(InputError, match="more than one launch can have"):
        engine.prepare(sized(2**20, 2**20))
    captured = engine.prepare(sized(16, 64))
    assert engine.prepare(sized(16, 64, 1), captured).blocks == 4
    with pytest.raises(InputError, match="capture a run of the largest"):
        engine.prepare(sized(17, 64), captured)


def reach(size, count, lines, support):
    scale = size / count
    return min(math.ceil((min(count, lines) - 1) * scale + 2 * support * max(scale, 1.0)), size - 1)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("name", "support"), [("batch", 2), ("each", 3), ("rows", 2), ("siglip", 1)])
def test_a_cut_by_its_rule_in_pythons_numbers(name, support, seed):
    """With antialiasing, as all of these calls have it; images that read the most first, no images last."""
    generator, unit = np.random.default_rng(seed), {"rows": 28, "siglip": 16}.get(name, 30)
    count, most = int(generator.integers(1, 30)), int(generator.choice([40, 300]))
    table = table_of(*generator.integers(1, most, (count, 2)).tolist())
    table["rows"], table["columns"] = unit * generator.integers(1, 20, (2, count))
    table["out"] = range(count)
    if name == "batch":
        table["rows"], table["columns"] = spec_of(name).item
    table["pointer"][generator.random(count) < 0.2] = 0
    there, lines = [record.copy() for record in table if record["pointer"]], {"rows": 14}.get(name, 16)
    found = cut_of(name, table)
    assert (found is None) == (not there)
    if found is None:
        return
    reads = [
        math.prod(map(int, one[["height", "width"]])) / math.prod(map(int, one[["rows", "columns"]])) for one in there
    ]
    uneven = max(reads) >= cuda.UNEVEN * min(reads)
    order = sorted(range(len(there)), key=lambda number: -reads[number]) if uneven else range(len(there))
    placed = table[table["pointer"] != 0]
    assert placed["out"].tolist() == [int(there[number]["out"]) for number in order]
    assert not uneven or (table["pointer"][len(there) :] == 0).all()
    axes = [
        [reach(int(one[size]), int(one[made]), lines, support) for one in there]
        for size, made in (("width", "columns"), ("height", "rows"))
    ]
    assert found.steps == max(axes[0]) * 3 // 32 + 1
    groups = -(-max(axes[1]) // 16) + 1
    assert found.row_steps == (groups + 1) // 2 and groups <= found.slots < 2 * groups
    firsts, total = [], 0
    for one in placed:
        firsts.append(total)
        total += math.prod(
            -(-int(one[made]) // (lines * each)) for made, each in (("rows", found.bands), ("columns", found.warps))
        )
    assert placed["first_tile"].tolist() == firsts and found.blocks == total


def test_weights_of_two_digits(monkeypatch):
    """Each line's sum is 1, each is as near as rounding allows, and lies where the product's lanes read it."""
    band = np.zeros(2 * TWO_DIGITS, np.uint8)
    monkeypatch.setattr(image_weights, "ptx", SimpleNamespace(
        times=lambda a, b: a * b, add=lambda a, b: a + b, opaque=lambda value: value,
        store_byte=lambda at, values: band.__setitem__(int(at), np.uint8(int(values[0]) & 255)),
    ))  # fmt: skip
    plain(image_weights, monkeypatch)
    monkeypatch.setattr(image_weights, "device", lambda function: function)
    write = image_weights.line_writer(images.BICUBIC, False, fused=True)
    size, count = 90, 64
    right = reference.weights(size, count, "bicubic", True)
    scale = np.float64(size) / count
    begin = image_weights.window(np.int32(7), scale, 2 * scale, np.int32(size))[0]
    for row in range(16):
        start, stop, centre = image_weights.window(np.int32(7 + row), scale, 2 * scale, np.int32(size))
        numbers = map(np.int32, (row, start - begin, 1))
        assert write(np.uint32(0), *numbers, start, stop, centre, 1 / scale, False) == FUSED_ONE
    lines = np.zeros((16, 64))
    for product, digit, lane, word, byte in np.ndindex(2, 2, 32, 4, 4):
        value = np.int8(band[product * TWO_DIGITS + digit * DIGIT_BYTES + 16 * lane + 4 * word + byte])
        line, pixel = lane // 4 + 8 * (word % 2), 32 * product + 8 * (lane % 4) + 4 * (word // 2) + byte
        lines[line, pixel] += int(value) * (256 if digit == 0 else 1)
    wanted = np.zeros((16, 64))
    wanted[:, : size - begin] = right[7:23, begin : begin + 64]
    assert np.abs(lines - FUSED_ONE * wanted).max() <= 1.01


@pytest.mark.parametrize("filter", ["bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize(("height", "width", "rows", "columns"), [(200, 310, 150, 400), (420, 300, 110, 95)])
def test_levels_of_two_digit_weights_are_near_exact_ones(filter, height, width, rows, columns):
    """The arithmetic of `image_rows` in whole numbers, on noise, where errors are the largest."""
    image = np.random.default_rng(rows).integers(0, 256, (height, width))
    axes = [reference.weights(*sides, filter, True) for sides in ((height, rows), (width, columns))]
    down, across = (
        np.diff(np.rint(np.cumsum(FUSED_ONE * axis, axis=1)), axis=1, prepend=0).astype(int) for axis in axes
    )
    intermediate = (image @ across.T + image_rows.BEGIN) >> 8
    assert abs(intermediate).max() < 1 << 15  # two bytes, the higher one signed
    found = down @ intermediate / (FUSED_ONE * image_rows.STEPS)
    assert 0 < np.abs(found - axes[0] @ image @ axes[1].T).max() < 0.03


@pytest.mark.parametrize(("name", "fused"), [*((name, False) for name in CALLS), ("rows", True)])
def test_arguments_fit_the_kernel(gpu, name, fused):
    """With all blocks of the grid across, and with as many across and down as a measurement asks for."""
    spec = spec_of(name)
    kernel, table = cuda.TensorKernel(spec, fused=fused), table_of((70, 90), (200, 333))
    if spec.patch == 16:
        table["rows"], table["columns"] = 64, 96
    launch = kernel.prepare(table)
    for grid in (None, (3, 2)):
        assert kernel.prepared(launch, 2, grid=grid)(7, (8192, 4096, 4096)) == 0
        made, found = gpu.launches.pop(), launch.cut
        assert made.grid == (*(grid or (found.blocks, 1)), 1) and made.block == (32 * found.warps, 1, 1)
        assert made.stream == 7 and made.shared == found.shared == shared_bytes(kernel.kind, *found[1:6])
        assert found.shared <= made.kernel.shared == LIMIT
        assert made.values[:9] == (4096, 2, 8192, *spec.item, *found[2:6])
        assert made.values[9:] == (*cuda.four(spec.gain), *cuda.four(spec.bias)) and made.values[9] in (0.5, 1)
