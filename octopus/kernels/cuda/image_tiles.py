"""Images of any size in one launch, both passes of the filter as products on the tensor cores (sm_80 and later).

`docs/kernels.md` has its steps, measured.
"""

from collections.abc import Callable

import numpy as np

from octopus.backends.cuda.language import address, cuda, device, shared_address
from octopus.kernels import images
from octopus.kernels.arguments import IMAGE_TILES
from octopus.kernels.cuda import image_kind, ptx
from octopus.kernels.cuda.image_kind import (
    CHANNEL_RING,
    CHUNK,
    FUSED_PIECE,
    GROUP,
    INFO_BYTES,
    MOST_WARPS,
    START_BYTES,
    TWO_DIGITS,
    WEIGHT_BYTES,
    ImageKernel,
)  # fmt: skip
from octopus.kernels.cuda.image_passes import FRACTION, LOST, OFFSET, first_pass, second_pass
from octopus.kernels.cuda.image_queue import ask_first, strip_of
from octopus.kernels.cuda.image_rows import ask_first as ask_fused
from octopus.kernels.cuda.image_rows import column_place, fused
from octopus.kernels.cuda.image_stores import HALF, choose, rows_store, run_store, stager, zeros_store
from octopus.kernels.cuda.image_weights import line_writer, window
from octopus.kernels.cuda.ptx import quotient


@device
def block_search(table, count, block):
    """The image of a block: the 32 lanes of a warp search together among the first tiles, as in `ragged`."""
    lane = np.int32(cuda.threadIdx.x & 31)
    low, high = np.int32(0), count
    while np.int32(high - low) > 1:
        step = np.int32(np.int32(high - low + 31) >> 5)
        at = np.int32(low + lane * step)
        yes = False
        if at < high:
            yes = np.int32(table[8 * at + 7]) <= block
        found = np.int32(cuda.popc(cuda.ballot_sync(np.uint32(0xFFFFFFFF), yes)))
        low = np.int32(low + np.int32(found - 1) * step)
        high = min(np.int32(low + step), high)
    return low


@device
def halves(word):
    return np.int32(word), np.int32(word >> np.int64(32))


@device
def clear(address, size):
    """All threads of a block: zeros in shared memory; `size` is a multiple of 16."""
    at = np.int32(16 * np.int32(cuda.threadIdx.x))
    zero = np.uint32(0)
    while at < size:
        ptx.store4(np.uint32(address + np.uint32(at)), (zero, zero, zero, zero))
        at = np.int32(at + 16 * np.int32(cuda.blockDim.x))


def build(kernel: ImageKernel, owner: Callable = block_search, beyond: bool = False) -> Callable:
    """The kernel. With another `owner` than `block_search` there may be blocks `beyond` an image's end.

    `table` holds `count` records (`images.IMAGE`), the sides are those of a batch's items, a block makes `bands` bands
    of `kernel.side` rows, `steps` and `row_steps` are the products that the widest band of columns and of rows needs,
    and `slots` (a power of two) how many groups of source rows a band of rows reaches over, at most. ::

        blockIdx.x = first_tile of the image + tile      a warp makes `kernel.side` columns of the tile
    """
    channels, side, antialias = kernel.channels, kernel.side, kernel.antialias
    pillow, planar = kernel.rounding == "pillow", kernel.planar
    is_batch, is_rows = kernel.kind == "batch", kernel.kind == "rows"
    filter_support = float(images.filter_support(kernel.filter))
    all_at_once, product_bytes = kernel.fused, TWO_DIGITS if kernel.fused else WEIGHT_BYTES
    write, work = line_writer(kernel.filter, pillow, kernel.fused), fused(kernel) if kernel.fused else None
    advance, second = first_pass(pillow), second_pass(pillow)
    stage_places, fill = stager(kernel)
    put_run, put_rows = run_store(kernel), rows_store(kernel)
    offset = -((OFFSET << FRACTION) >> LOST)
    half = HALF if kernel.rounding == "uint8" else 0
    merge, temporal, patch_values = kernel.merge, kernel.temporal, kernel.patch * kernel.patch
    filled, row_values, zeros, put_zeros = kernel.filled, kernel.row_values, kernel.zeros, zeros_store(kernel)
    size_of = {"float32": 4, "float16": 2, "bfloat16": 2}.get(kernel.dtype, 1)
    slot, plane_slot, stage_bytes = kernel.ring_bytes, image_kind.slot_bytes(pillow), kernel.stage_bytes
    narrow, wide = ((image_kind.piece_bytes(steps), image_kind.places(steps)) for steps in (1, 2))

    @device
    def axis(size, count):
        """Scale, support and inverse spread of an axis: `images.axis_scale`."""
        scale = np.float64(size) / np.float64(count)
        spread = max(scale, 1.0) if antialias else 1.0
        return scale, filter_support * spread, 1.0 / spread

    def image_kernel(
        table, count, out, item_height, item_width, bands, steps, row_steps, slots,
        gain0, gain1, gain2, gain3, bias0, bias1, bias2, bias3,
    ):  # fmt: skip
        gains, biases = (gain0, gain1, gain2, gain3), (bias0, bias1, bias2, bias3)
        shared = shared_address(cuda.shared.array(0, np.uint32))
        thread = np.int32(cuda.threadIdx.x)
        lane, warp = np.int32(thread & 31), np.int32(thread >> 5)
        warps = np.int32(cuda.blockDim.x >> 5)
        item = owner(table, count, np.int32(cuda.blockIdx.x))
        pointer, base_out, plane_step = table[8 * item], table[8 * item + 1], table[8 * item + 2]
        if pointer == 0:
            return
        row_step, pixel_step = halves(table[8 * item + 3])
        height, width = halves(table[8 * item + 4])
        rows, columns = halves(table[8 * item + 5])
        top, left = halves(table[8 * item + 6])
        if not is_batch:
            item_height, item_width = rows, columns

        # The tile.
        tile = np.int32(np.int32(cuda.blockIdx.x) - np.int32(table[8 * item + 7]))
        tile_columns = np.int32(side * warps)
        across = quotient(np.int32(item_width + tile_columns - 1), tile_columns)
        tile_y = quotient(tile, across)
        x0 = np.int32(np.int32(tile - tile_y * across) * tile_columns)
        y0 = np.int32(tile_y * np.int32(side * bands))
        if beyond and y0 >= item_height:
            return
        y_left = min(np.int32(side * bands), np.int32(item_height - y0))
        x_left = min(tile_columns, np.int32(item_width - x0))
        scale_x, support_x, inverse_x = axis(width, columns)
        scale_y, support_y, inverse_y = axis(height, rows)
        first_row = window(np.int32(top + y0), scale_y, support_y, height)[0]
        last_row = window(np.int32(top + y0 + y_left - 1), scale_y, support_y, height)[1]

        # Shared memory: the bands of the columns, those of the rows, what is known of these, rings and stages.
        band_bytes = np.int32(steps * product_bytes)
        row_band_bytes = np.int32(row_steps * product_bytes)
        row_bands = np.uint32(shared + np.uint32(warps * band_bytes))
        infos = np.uint32(row_bands + np.uint32(bands * row_band_bytes))
        starts = np.uint32(infos + np.uint32(bands * INFO_BYTES))
        private = np.uint32(starts + np.uint32(bands * START_BYTES))
        clear(shared, np.int32(warps * band_bytes + bands * row_band_bytes))
        # The columns of a warp, and the memory that they are read from.
        x = np.int32(x0 + warp * side)
        x_end = min(np.int32(x + side), item_width)
        start = window(np.int32(left + x), scale_x, support_x, width)[0]
        stop = window(np.int32(left + x_end - 1), scale_x, support_x, width)[1]
        need = np.int32(np.int32(stop - start - 1) * pixel_step + 1)
        products_x = np.int32(np.int32((stop - start if all_at_once else need) + 31) >> 5)
        reach = np.int64(channels - 1) * plane_step
        low = pointer + min(reach, np.int64(0))
        high = pointer + max(reach, np.int64(0)) + np.int64(height - 1) * np.int64(row_step)
        high += np.int64(width - 1) * np.int64(pixel_step) + 1
        memory_base = np.int64(low & np.int64(-CHUNK))
        low_at, high_at = np.int32(low - memory_base), np.int32(high - memory_base)
        memory = (memory_base, low_at, high_at)
        corner = np.int32(np.int32(pointer - memory_base) + start * pixel_step + first_row * row_step)
        last_group = np.int32(np.int32(last_row - 1 - first_row) >> 4)
        band_count = quotient(np.int32(y_left + side - 1), np.int32(side))
        if all_at_once:
            queue = np.uint32(private + np.uint32(np.int32(warps * slots) * (3 * CHANNEL_RING)))
            queue = np.uint32(queue + np.uint32(warp * (2 * FUSED_PIECE) + CHUNK * lane))
            strip, state = ask_fused(
                lane, queue, memory, corner, row_step, np.int32(plane_step), pixel_step,
                np.int32(need + (0 if pixel_step == 1 else 2)), products_x,
                last_group if x < item_width else np.int32(-1),
            )  # fmt: skip
        cuda.syncthreads()

        # A thread's lines: first the columns, then the rows.
        i = np.int32(thread)
        while i < np.int32(tile_columns + np.int32(side * bands)):
            if i < tile_columns:
                if i < x_left:
                    number = np.int32(np.uint32(i) // np.uint32(side))
                    row = np.int32(i - number * side)
                    begin = window(np.int32(left + x0 + i - row), scale_x, support_x, width)[0]
                    start, stop, centre = window(np.int32(left + x0 + i), scale_x, support_x, width)
                    line = column_place(row) if all_at_once else row
                    step = np.int32(1) if all_at_once else pixel_step
                    write(
                        np.uint32(shared + np.uint32(number * band_bytes)), line,
                        np.int32(np.int32(start - begin) * step), step, start, stop, centre, inverse_x, False,
                    )  # fmt: skip
            else:
                k = np.int32(i - tile_columns)
                if k < y_left:
                    number = np.int32(np.uint32(k) // np.uint32(side))
                    row = np.int32(k - number * side)
                    begin = window(np.int32(top + y0 + k - row), scale_y, support_y, height)[0]
                    start, stop, centre = window(np.int32(top + y0 + k), scale_y, support_y, height)
                    group = np.int32(np.int32(begin - first_row) >> 4)
                    whole = write(
                        np.uint32(row_bands + np.uint32(number * row_band_bytes)), row,
                        np.int32(start - first_row - GROUP * group), np.int32(1), start, stop, centre, inverse_y,
                        True,
                    )  # fmt: skip
                    if not all_at_once:
                        at = np.uint32(starts + np.uint32(number * START_BYTES + 4 * row))
                        ptx.store1(at, (np.uint32(np.int32(whole * offset) + half),))
                    if row == 0:
                        last = np.int32(min(np.int32(k + side), y_left) - 1)
                        stop = window(np.int32(top + y0 + last), scale_y, support_y, height)[1]
                        behind = np.int32(np.int32(stop - 1 - first_row) >> 4)
                        products = np.int32(np.int32(np.int32(behind - group) >> 1) + 1)
                        at = np.uint32(infos + np.uint32(number * INFO_BYTES))
                        ptx.store4(at, (np.uint32(group), np.uint32(products), np.uint32(behind), np.uint32(0)))
            i = ptx.opaque(np.int32(i + np.int32(cuda.blockDim.x)))
        cuda.syncthreads()

        # From here on each warp is alone with its columns.
        if x >= item_width:
            return
        bands_x = np.uint32(shared + np.uint32(warp * band_bytes) + np.uint32(16 * lane))
        if all_at_once:
            ring = np.uint32(private + np.uint32(np.int32(warp * slots) * (3 * CHANNEL_RING)) + np.uint32(16 * lane))
            work(
                out, base_out, gains, biases, lane, ring, slots, bands_x, row_bands, row_band_bytes, infos,
                np.uint32(queue + queue + np.uint32(FUSED_PIECE)), strip, state, products_x, band_count, y0, x, columns,
            )  # fmt: skip
            return
        ring = np.uint32(private + np.uint32(np.int32(warp * slots) * slot))
        ring = np.uint32(ring + np.uint32(4 * lane))
        # In registers for all rows: with the loads of 8 bytes 11 % less time for images of 64 to 512.
        weights_x = ptx.load_weights(bands_x)
        # Where there is no second product, what lies behind the first one's weights, which nothing uses.
        weights_b = ptx.load_weights(np.uint32(bands_x + np.uint32(WEIGHT_BYTES)))
        stage = np.uint32(private + np.uint32(np.int32(warps * slots) * slot + warp * stage_bytes))
        stage_at = stage_places(stage, lane)
        queue = np.uint32(private + np.uint32(warps * np.int32(slots * slot + stage_bytes)))
        piece, held = (np.uint32(narrow[0] if steps == 1 else wide[0]), np.int32(narrow[1] if steps == 1 else wide[1]))
        queue = (np.uint32(queue + np.uint32(warp * held) * piece + np.uint32(CHUNK * lane)), piece, held)
        mask = np.int32(slots - 1)

        # Where the result lies.
        pitch = np.int32(item_width) if planar else np.int32(item_width * channels)
        plane = np.int64(item_height) * np.int64(item_width)
        if is_rows:
            grid_width = quotient(columns, np.int32(side * merge))
            px = quotient(x, np.int32(side))
            column_row = np.int32(np.uint32(px) // np.uint32(merge) * (merge * merge))
            column_row = np.int32(column_row + np.uint32(px) % np.uint32(merge))
            py0 = quotient(y0, np.int32(side))
            whole = row_values % 4 == 0
        else:
            column_row, grid_width, py0 = np.int32(0), np.int32(0), np.int32(0)
            whole = ((base_out | np.int64(item_width)) & 3) == 0
        whole = whole and (address(out) & (4 * size_of - 1)) == 0

        outer = np.int32(0)
        while outer < (channels if planar else 1):
            channel = outer
            base = np.int32(corner + np.int32(channel * np.int32(plane_step)))
            gain = (choose(gains, channel), gain1, gain2, gain3) if planar else gains
            bias = (choose(biases, channel), bias1, bias2, bias3) if planar else biases
            done = np.int32(0)
            item_at = base_out * np.int64(row_values) + np.int64(channel * (temporal * patch_values))
            if planar:
                strip = strip_of(lane, memory, base, row_step, need, products_x, last_group)
                state = ask_first(queue, strip, row_step, done)
            band = np.int32(0)
            while band < band_count:
                info = ptx.load4(np.uint32(infos + np.uint32(band * INFO_BYTES)))
                group, products, upto = np.int32(info[0]), np.int32(info[1]), np.int32(info[2])
                row_band = np.uint32(row_bands + np.uint32(band * row_band_bytes) + np.uint32(16 * lane))
                start_a = start_b = np.int32(images.FIXED_HALF)
                if not pillow:
                    at = np.uint32(starts + np.uint32(band * START_BYTES + 4 * (lane >> 2)))
                    start_a = np.int32(ptx.load1(at)[0])
                    start_b = np.int32(ptx.load1(np.uint32(at + np.uint32(32)))[0])
                cuda.syncwarp()  # the stage may be filled again
                if planar:
                    done, state = advance(
                        ring, mask, bands_x, weights_x, weights_b, done, upto, queue, strip, state, products_x
                    )
                    sums = second(ring, mask, row_band, group, products, start_a, start_b)
                    fill(stage_at, sums[0], sums[1], np.int32(0))
                else:
                    inner, before = np.int32(0), done
                    while inner < channels:
                        own = np.uint32(ring + np.uint32(np.int32(inner * slots) * plane_slot))
                        of_inner = np.int32(base + np.int32(inner * np.int32(plane_step)))
                        strip = strip_of(lane, memory, of_inner, row_step, need, products_x, upto)
                        state = ask_first(queue, strip, row_step, before)
                        done, state = advance(
                            own, mask, bands_x, weights_x, weights_b, before, upto, queue, strip, state, products_x
                        )
                        sums = second(own, mask, row_band, group, products, start_a, start_b)
                        fill(stage_at, sums[0], sums[1], inner)
                        inner = ptx.opaque(np.int32(inner + 1))
                cuda.syncwarp()  # the stage is full
                y = np.int32(y0 + band * side)
                if is_rows:
                    py = np.uint32(py0 + band)
                    number = np.int32(np.uint32(py // np.uint32(merge)) * np.uint32(grid_width * (merge * merge)))
                    number = np.int32(number + np.int32(py % np.uint32(merge)) * merge + column_row)
                    at = np.int64(number) * np.int64(row_values)
                    put_run(out, item_at + at, stage, lane, gain, bias, whole)
                    if zeros and (not planar or channel == channels - 1):
                        put_zeros(out, base_out * np.int64(row_values) + at + np.int64(filled), lane)
                else:
                    at = base_out + np.int64(y) * np.int64(pitch)
                    at += np.int64(x) * np.int64(1 if planar else channels) + np.int64(channel) * plane
                    values = np.int32(np.int32(x_end - x) * (1 if planar else channels))
                    put_rows(out, at, pitch, stage, lane, gain, bias, whole, np.int32(item_height - y), values)
                band = ptx.opaque(np.int32(band + 1))
            outer = ptx.opaque(np.int32(outer + 1))

    # More than 128 registers would leave a processor one block.
    image_kernel.launch_bounds = (32 * MOST_WARPS, 2)
    image_kernel.arguments = IMAGE_TILES.of(out=kernel.dtype)
    return image_kernel
