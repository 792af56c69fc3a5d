"""One call into machine code that checks what differs between two calls alike, and launches.

In Python the same takes ten times as long: whether the result lies apart from what is read, whether the GPU is the one
that was prepared for, whether boxes from the host are good, the arguments, and the driver's `cuLaunchKernel`. All that
it writes lies in the words of this one call, so that neither threads nor calls within calls meet there.
"""

from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from octopus.kernels import launches as at
from octopus.kernels.cpu import address_of, compiled, pointer
from octopus.kernels.geometry import MAX_BOX_SIDE, MAX_COORDINATE

# Numbers of `crop.check.RULES`, and of the first `BOX_DTYPES` there
CLIP, ERROR = 0, 1
INT32, INT64, FLOAT64 = 0, 1, 3
WORD, LOW = 8, 0xFFFFFFFF
LEGACY = 1  # handle of the default stream, as 0 is; it is never captured


@intrinsic
def call(typing_context, function, arguments):
    """Call a C function at an address with 64-bit integers; one that takes narrower ones reads their lower half. That
    holds where the driver runs: on x86-64 and AArch64 each such argument has a register or eight bytes of stack."""

    def generate(context, builder, signature, given):
        long, values = ir.IntType(64), cgutils.unpack_tuple(builder, given[1])
        kind = ir.FunctionType(ir.IntType(32), [long] * len(values)).as_pointer()
        return builder.call(builder.inttoptr(given[0], kind), values)

    return types.int32(types.int64, arguments), generate


@compiled
def _number(address, dtype):
    if dtype == INT32:
        return np.float32(pointer(address, np.int32)[0])
    if dtype == INT64:
        return np.float32(pointer(address, np.int64)[0])
    if dtype == FLOAT64:
        return np.float32(pointer(address, np.float64)[0])
    return pointer(address, np.float32)[0]


@compiled
def _good_boxes(start, step, along, dtype, count, width, height, rule, address):
    """How many boxes are good by the rule of `crop.check`; all are copied to an address as float32."""
    width, height, result = np.float32(width), np.float32(height), pointer(address, np.float32)
    zero, good = np.float32(0.0), np.int64(0)
    for i in range(count):
        place = start + i * step
        x1, y1 = _number(place, dtype), _number(place + along, dtype)
        x2, y2 = _number(place + 2 * along, dtype), _number(place + 3 * along, dtype)
        result[4 * i], result[4 * i + 1], result[4 * i + 2], result[4 * i + 3] = x1, y1, x2, y2
        # What is not a number fails every comparison.
        fits = x1 < x2 and y1 < y2 and min(x1, y1) > -np.inf and max(x2, y2) < np.inf
        if rule == CLIP:
            fits = fits and x1 < width and y1 < height and x2 > zero and y2 > zero
        elif rule == ERROR:
            fits = fits and x1 >= zero and y1 >= zero and x2 <= width and y2 <= height
        else:
            fits = fits and min(x1, y1) >= -np.float32(MAX_COORDINATE) and max(x2, y2) <= np.float32(MAX_COORDINATE)
        if rule == CLIP:
            x1, y1, x2, y2 = max(x1, zero), max(y1, zero), min(x2, width), min(y2, height)
        good += fits and max(x2 - x1, y2 - y1) <= np.float32(MAX_BOX_SIDE)
    return good


# A function of Python: of the address of a launch's words, and of the stream and the addresses that go into a copy of
# them on the stack, or of the words alone, which it then works in. Through ctypes that takes half a microsecond more.
ENTRY = f"""
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define ptr @{{entry}}(ptr %self, ptr %arguments, i64 %count) {{{{
entry:
  %object = load ptr, ptr %arguments
  %address = call i64 @PyLong_AsLongLong(ptr %object)
  %prepared = inttoptr i64 %address to ptr
  %in_place = icmp eq i64 %count, 1
  br i1 %in_place, label %run, label %copy
copy:
  %place = getelementptr i64, ptr %prepared, i64 {at.LENGTH}
  %length = load i64, ptr %place
  %bytes = shl i64 %length, 3
  %words = alloca i64, i64 %length, align 16
  call void @llvm.memcpy.p0.p0.i64(ptr %words, ptr %prepared, i64 %bytes, i1 false)
  %before = getelementptr i64, ptr %words, i64 {at.STREAM - 1}
  br label %next
next:
  %number = phi i64 [ 1, %copy ], [ %following, %next ]
  %source = getelementptr ptr, ptr %arguments, i64 %number
  %given = load ptr, ptr %source
  %value = call i64 @PyLong_AsLongLong(ptr %given)
  %target = getelementptr i64, ptr %before, i64 %number
  store i64 %value, ptr %target
  %following = add i64 %number, 1
  %more = icmp slt i64 %following, %count
  br i1 %more, label %next, label %run
run:
  %own = phi ptr [ %prepared, %entry ], [ %words, %next ]
  %state = call ptr @PyEval_SaveThread()
  call void @{{kernel}}(ptr %own)
  call void @PyEval_RestoreThread(ptr %state)
  %result = load i64, ptr %own
  %made = call ptr @PyLong_FromLongLong(i64 %result)
  ret ptr %made
}}}}
"""


def build() -> Callable[..., None]:
    """The kernel of one argument, the words of a prepared launch; for the CPU it launches nothing."""

    def launch(words):
        base, first, on_gpu = address_of(words), words[at.FIRST], words[at.LAUNCH] != 0
        scratch = base + WORD * at.SCRATCH
        if on_gpu:
            status = call(words[at.DEVICE], (scratch,))
            if status != 0 or words[at.SCRATCH] & LOW != words[at.ORDINAL]:
                words[at.RESULT] = at.OTHER_GPU
                return
        begin, end = np.int64(0), np.int64(0)  # of the result, which is the first array
        for i in range(words[at.ARRAYS]):
            record = at.HEAD + words[at.ARRAYS] + at.RECORD * i
            address = words[at.HEAD + i]
            low, high = address + words[record + at.BELOW], address + words[record + at.ABOVE]
            if begin < end and low < end and begin < high:
                words[at.RESULT] = at.OVERLAP
                return
            if i == 0:
                begin, end = low, high
            if words[record + at.ARGUMENT] >= 0:
                words[first + words[record + at.ARGUMENT]] = address
        room = words[at.ROOM]
        if room == 0:
            room = base + WORD * words[at.TAIL]
        from_host = words[at.BOXES] >= 0 or words[at.THERE] != 0
        if on_gpu and from_host and words[at.STREAM] > LEGACY:
            words[at.SCRATCH] = 0
            status = call(words[at.CAPTURING], (words[at.STREAM], scratch))
            if status == 0 and words[at.SCRATCH] & LOW != 0:
                words[at.RESULT] = at.CAPTURED
                return
        if words[at.BOXES] >= 0:
            good = _good_boxes(
                words[at.HEAD + words[at.BOXES]], words[at.STEP], words[at.ALONG], words[at.DTYPE],
                words[at.NUMBER], words[at.WIDTH], words[at.HEIGHT], words[at.RULE], room,
            )  # fmt: skip
            if good < words[at.NUMBER]:
                words[at.RESULT] = at.WRONG_BOXES
                return
        if words[at.THERE] != 0:
            status = call(words[at.UPLOAD], (words[at.THERE], room, words[at.SIZE], words[at.STREAM]))
            if status != 0:
                words[at.RESULT] = at.DRIVER + status
                return
            room = words[at.THERE]
        if words[at.ROOM_TO] >= 0:
            words[first + words[at.ROOM_TO]] = room
        words[at.SCRATCH] = 0
        if not on_gpu:
            words[first] = scratch  # the counter of blocks
            if words[at.KERNEL] != 0:
                call(words[at.KERNEL], (base + WORD * first,))
                if words[first + 1] < 0:
                    words[at.RESULT] = at.NO_MEMORY
            return
        count = words[at.COUNT]
        table = first + count
        for i in range(count):
            words[table + i] = base + WORD * (first + i)
        if words[at.TAIL] != 0:
            words[table + count] = base + WORD * words[at.TAIL]
        status = call(
            words[at.LAUNCH],
            (
                words[at.FUNCTION], words[at.GRID_X], words[at.GRID_Y], words[at.GRID_Z], words[at.BLOCK_X],
                words[at.BLOCK_Y], words[at.BLOCK_Z], words[at.SHARED], words[at.STREAM], base + WORD * table,
                np.int64(0),
            ),
        )  # fmt: skip
        if status != 0:
            words[at.RESULT] = at.DRIVER + status

    return launch
