"""Random operations on ragged batches on the CPU, by every strategy."""

from itertools import product

import numpy as np
from cases.ragged import Operation

from octopus import RaggedBatch, RaggedPlan
from octopus.kernels.operations import OPERATIONS, PARAMETERS, POINTWISE, result_dtype
from octopus.ragged.blockmap import STRATEGIES


def warm_up(kind):
    for operation, dtype, strategy in product(OPERATIONS, ("float32", "uint8"), STRATEGIES):
        batch = RaggedBatch.from_list([np.ones((1, 1), dtype)])
        RaggedPlan(operation, batch, strategy=strategy, device="cpu").run(batch, *[1.0] * PARAMETERS[operation])


def draw(drawn, kind):
    operation, dtype = drawn.pick(*OPERATIONS), drawn.pick("float32", "uint8")
    shapes = shapes_of(drawn, 2 if operation not in POINTWISE else drawn.pick(1, 2, 3))
    values = drawn.array("values", (int(shapes.prod(axis=1).sum()),), dtype)
    random = drawn.random
    values[:] = random.random(values.size) if dtype == "float32" else random.integers(0, 256, values.size)
    stored = result_dtype(operation, values.dtype)
    into = drawn.pick("new", "given", *["in place"] * (operation in POINTWISE and dtype == stored))
    if into != "in place":
        drawn.frozen(values)
    out = {"new": None, "in place": values}.get(into) if into != "given" else drawn.array("out", values.shape, stored)
    options = {"strategy": drawn.pick("auto", *STRATEGIES)}
    if options["strategy"] == "block_metadata" and drawn.few(0.7):
        limit = drawn.upto(drawn.pick(3, 40, 2000, 100_000))
        options["threshold"] = drawn.pick(int, np.int32, np.int64)(limit) if drawn.few(0.95) else 2**31 - 1
    parameters = [parameter_of(drawn, len(shapes)) for _ in range(PARAMETERS[operation])]
    call, planned = Operation(operation, values, shapes, parameters, options), drawn.pick(False, False, True)

    def make():
        right = call.right()
        found = call.call(call.batch, planned, out=out, device="cpu")
        assert out is None or found is out
        return call.check(found, right)

    return (f"{operation} of {dtype}, planned {planned}, {options}, {into}\n{shapes.tolist()}\n{parameters}", make)


def shapes_of(drawn, dimensions):
    """Sides of items, of which many are empty, long or thin, and a few larger than a part of the work."""
    count, most = drawn.pick(0, 1, 2, 5, 12, 40), drawn.pick(2, 6, 13, 30)
    shapes = drawn.random.integers(0 if drawn.few(0.5) else 1, most + 1, (count, dimensions))
    if count and drawn.few(0.2):
        shapes[drawn.upto(count - 1, 0)] = 1
        shapes[drawn.upto(count - 1, 0), drawn.upto(dimensions - 1, 0)] = drawn.upto(drawn.pick(5000, 40_000))
    if dimensions == 2 and count and drawn.few(0.05):
        shapes[drawn.upto(count - 1, 0)] = drawn.upto(200, 100), drawn.upto(200, 100)
    return shapes.astype(drawn.pick(np.int64, np.int32, np.uint16))


def parameter_of(drawn, count):
    """A number, or one per item, in any form that holds it exactly enough."""
    values, form = (drawn.random.random(count) + 0.3).astype(np.float32), drawn.pick("number", "list", "f4", "f8", "f2")
    if form == "number":
        return float(np.float32(drawn.random.random() + 0.3))
    return values.tolist() if form == "list" else values.astype(form)
