"""How NumPy's results lie in memory, for tests/array/manipulation_order_test.cc: a line for each call, of its name, its
operands and the steps of the result's axes in elements. An operand is its extents, its axes from the slowest to the
fastest, and "s" where only every second element of the last of these is there."""
import itertools
import pathlib

import numpy as np

OUT = pathlib.Path(__file__).parent / "numpy_layouts.txt"


def operand(shape, order, sliced):
    stored = [shape[axis] for axis in order]
    a = np.zeros(stored[:-1] + [2 * stored[-1]])[..., ::2] if sliced else np.zeros(stored)
    return a.transpose(np.argsort(order))


def spec(shape, order, sliced):
    return f"{','.join(map(str, shape))}:{','.join(map(str, order))}{'s' if sliced else ''}"


CALLS = {
    "negative": np.negative,
    "add": np.add,
    "where": lambda c, x, y: np.where(c != 0, x, y),
    "concatenate": lambda *arrays: np.concatenate(arrays, axis=1),
}
lines = []


def call(name, *operands):
    result = CALLS[name](*(operand(*o) for o in operands))
    steps = ",".join(str(s // result.itemsize) for s in result.strides)
    lines.append(" ".join([name, *(spec(*o) for o in operands), steps]))


ORDERS = list(itertools.permutations(range(3)))
SHAPE = (2, 3, 4)
for order in ORDERS:
    for sliced in (False, True):
        call("negative", (SHAPE, order, sliced))
    for other in ORDERS:
        call("add", (SHAPE, order, False), (SHAPE, other, True))
        call("add", (SHAPE, order, False), ((3, 4), [k for k in other if k < 2], False))
        call("add", ((2, 1, 4), order, False), (SHAPE, other, False))
        call("add", ((2, 1, 4), order, False), ((1, 3, 4), other, False))
        call("concatenate", (SHAPE, order, False), ((2, 5, 4), other, False))
    call("where", (SHAPE, order, False), (SHAPE, order, True), ((1, 3, 1), (0, 1, 2), False))
for order in itertools.permutations(range(4)):
    call("negative", ((2, 3, 4, 5), order, False))
    call("add", ((2, 3, 4, 5), order, True), ((1, 3, 1, 1), (0, 1, 2, 3), False))
OUT.write_text("\n".join(lines) + "\n")
print(len(lines), "calls")
