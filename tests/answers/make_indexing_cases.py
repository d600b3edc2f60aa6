"""Writes numpy_indexing.txt: index expressions, read and written through, and the routines that
index, with NumPy's answers. An expression is text: entries between ";", i3 an integer, s1:5:-2 a
slice, e the ellipsis, n newaxis, a0 operand 0. The indexed array is int8, 0, 1, 2, ... below 127
and again, of the shape given, so that it need not be written down."""
import numpy as np

from case_file import BOOL, DTYPES, CaseFile, REAL, Values

rng = np.random.default_rng(11)
values = Values(12)
cases = CaseFile("indexing")
INDEX_DTYPES = ["int8", "int8", "int8", "uint8", "int16", "int32", "int64"]


def base_of(shape):
    return (np.arange(int(np.prod(shape))) % 127).astype("int8").reshape(shape)


def random_slice(n):
    pick = lambda: None if rng.random() < 0.4 else int(rng.integers(-n - 1, n + 2))
    start, stop, step = pick(), pick(), int(rng.choice([1, 1, 2, -1, -1, -2, 3]))
    text = lambda v: "" if v is None else str(v)
    return slice(start, stop, step), f"s{text(start)}:{text(stop)}:{step}"


def index_array(n, shape, wrong):
    dtype = rng.choice(INDEX_DTYPES)
    low = 0 if dtype == "uint8" or rng.random() < 0.5 else -n
    a = rng.integers(low, max(n, 1), shape).astype(dtype) if n > 0 else np.zeros(shape, dtype)
    if wrong and a.size:
        a.flat[rng.integers(a.size)] = n
    return a


def random_expression(shape):
    """An index for an array of `shape`, with at least one array in it: (index, text, operands)."""
    entries, texts, operands = [], [], []
    common = tuple(rng.integers(1, 4, rng.integers(1, 3)))
    wrong = rng.random() < 0.02
    axis, ndim, has_ellipsis = 0, len(shape), False

    def add(entry, text):
        entries.append(entry)
        texts.append(text)

    def add_array(a):
        operands.append(a)
        add(a, f"a{len(operands) - 1}")

    while axis < ndim or (rng.random() < 0.02 and len(entries) < 5):
        n, kind = (shape[axis] if axis < ndim else 3), rng.random()
        if kind < 0.08:
            add(None, "n")
            continue
        if kind < 0.16 and not has_ellipsis:
            has_ellipsis = True
            add(Ellipsis, "e")
            axis = int(rng.integers(axis, ndim + 1))
            continue
        if kind < 0.2 and entries and operands:
            break
        if kind < 0.55:
            shapes = [common, common, common[1:], (1,) * len(common), (1,) + common[1:], ()]
            add_array(index_array(n, shapes[rng.integers(len(shapes))], wrong))
            axis += 1
        elif kind < 0.66 and axis < ndim:
            k = int(rng.integers(1, ndim - axis + 1))
            mask_shape = list(shape[axis:axis + k])
            if rng.random() < 0.03:
                mask_shape[0] += 1
            mask = rng.random(mask_shape) < 0.5
            if operands and mask.size:  # so that it broadcasts with the others, mostly
                count = int(rng.choice([1, common[-1]]))
                mask[...] = False
                mask.flat[rng.permutation(mask.size)[:count]] = True
            add_array(mask)
            axis += k
        elif kind < 0.68:
            add_array(np.array(rng.random() < 0.7))
        elif kind < 0.82 and n > 0:
            i = int(rng.integers(-n, n)) if rng.random() > 0.02 else n
            add(i, f"i{i}")
            axis += 1
        else:
            add(*random_slice(n))
            axis += 1
    if not operands:
        return random_expression(shape)
    return tuple(entries), ";".join(texts), operands


def random_shape():
    shape = tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 5)))
    if rng.random() < 0.04:
        shape = shape[:-1] + (0,)
    return shape


def result_of(shape, index):
    try:
        return base_of(shape)[index]
    except IndexError:
        return None


def add_reads(count):
    done = raised = 0
    while done < count:
        shape = random_shape()
        index, text, operands = random_expression(shape)
        result = result_of(shape, index)
        if result is None:
            raised += 1
            if raised > count // 12:
                continue
        elif result.ndim > 8 or result.size > 40:
            continue
        cases.add("get", operands, lambda *_: base_of(shape)[index], shape=shape, index=text)
        done += 1


def value_for(shape):
    """Something that broadcasts to `shape`, most of the time."""
    kind = rng.random()
    if kind < 0.2:
        return np.int8(-7)
    shape = list(shape)
    for axis in range(len(shape)):
        if rng.random() < 0.15:
            shape[axis] = 1
    if kind < 0.4:
        shape = shape[int(rng.integers(len(shape) + 1)):]
    elif kind < 0.45:
        shape = [1] + shape
    elif kind < 0.48 and shape:
        shape[-1] += 1
    return -rng.integers(1, 100, shape).astype("int8")


def add_writes(count):
    done = raised = 0
    while done < count:
        shape = random_shape()
        index, text, operands = random_expression(shape)
        result = result_of(shape, index)
        if result is None or result.size > 48 or result.ndim > 7 or np.prod(shape) > 100:
            continue
        whole = len(index) == 1 and index[0] is not None and getattr(index[0], "dtype", 0) == bool
        value = value_for(result.shape)
        if whole and value.ndim > 1:  # NumPy turns down leading axes of extent 1 here alone
            continue
        if whole and result.size == 0 and value.size > 1:  # and looks no further where none is true
            continue
        routine = str(rng.choice(["set", "set", "iadd", "add_at", "max_at", "min_at"]))
        # Leading axes of extent 1 fall away here in every write, in NumPy not in all of them.
        if value.ndim > result.ndim and (routine.endswith("at") or result.ndim == 0):
            continue

        def call(*_):
            a = base_of(shape)
            if routine == "set":
                a[index] = value
            elif routine == "iadd":
                a[index] += value
            else:
                {"add_at": np.add, "max_at": np.maximum, "min_at": np.minimum}[routine].at(
                    a, index, value)
            return a

        try:
            call()
        except (ValueError, IndexError):
            raised += 1
            if raised > count // 15:
                continue
        cases.add(routine, [*operands, value], call, shape=shape, index=text)
        done += 1


def add_dtypes():
    for dtype in DTYPES:
        a = values(dtype, (3, 2, 4))
        rows, columns = np.array([[2, 0], [-1, 1]], "int8"), np.array([3, -2], "int16")
        cases.add("get_of", [a, rows, columns], lambda a, r, c: a[r, :, c], index="a1;s::;a2")
        v = values(dtype, (2, 2, 2))

        def put(a, r, c, v):
            a = a.copy()
            a[r, :, c] = v
            return a

        cases.add("set_of", [a, rows, columns, v], put, index="a1;s::;a2")
        i = np.array([1, 0, 1, 1, -2], "int8")
        v = values(dtype, (5, 2))
        for name, ufunc in [("add_at_of", np.add), ("max_at_of", np.maximum),
                            ("min_at_of", np.minimum)]:
            if name != "add_at_of" and np.dtype(dtype).kind == "c":
                continue

            def at(a, i, v):
                a = a.copy()
                ufunc.at(a, (Ellipsis, i, 0), np.broadcast_to(v.T[0], (3, 5)))
                ufunc.at(a, (i, slice(None), 2), v)
                return a

            cases.add(name, [a, i, v], at)


def add_nonzero():
    for dtype in DTYPES:
        for shape in [(), (7,), (2, 0, 3), (2, 3)]:
            a = values(dtype, shape)
            a = np.where(values("bool", shape), a, np.zeros((), dtype)).astype(dtype)
            if np.dtype(dtype).kind in "fc" and a.size:
                a.flat[0], a.flat[-1] = -0.0, np.nan
            if np.dtype(dtype).kind == "c" and a.size > 2:
                a.flat[1] = 0.25j
            cases.add("nonzero", [a], np.nonzero)
            cases.add("argwhere", [a], np.argwhere)
            cases.add("flatnonzero", [a], np.flatnonzero)


def written(function):
    def call(a, *rest):
        a = a.copy()
        function(a, *rest)
        return a
    return call


def add_takes():
    for dtype, shape in [("int8", (6,)), ("int8", (2, 3, 2)), ("float16", (3, 4)), ("bool", (3, 4))]:
        a = values(dtype, shape)
        for mode in ["raise", "wrap", "clip"]:
            wide = {"raise": 1, "wrap": 7, "clip": 4}[mode]
            for index_shape in [(), (3,), (2, 2), (0,)]:
                i = rng.integers(-wide * a.size, wide * a.size, index_shape).astype("int16")
                cases.add("take", [a, i], lambda a, i: np.take(a, i, mode=mode), mode=mode)
                for axis in range(-1, a.ndim):
                    n = a.shape[axis]
                    i = rng.integers(-wide * n, wide * n, index_shape).astype("int8")
                    cases.add("take", [a, i], lambda a, i: np.take(a, i, axis, mode=mode),
                              mode=mode, axis=axis)
            i = rng.integers(-wide * a.size, wide * a.size, 4).astype("int8")
            for v in [values(dtype, (4,)), values(dtype, (3,)), values(dtype, ()),
                      values(dtype, (2, 3)), values(dtype, (0,))]:
                cases.add("put", [a, i, v], written(lambda a, i, v: np.put(a, i, v, mode)),
                          mode=mode)
    cases.add("take", [np.zeros((0, 2), "int8"), np.array([0])], lambda a, i: np.take(a, i, 0),
              axis=0, mode="raise")
    cases.add("take", [np.zeros(3, "int8"), np.array([3])], np.take, mode="raise")
    cases.add("take", [np.zeros(3, "int8"), np.array([0.5])], np.take, mode="raise")


def add_along_axis():
    for shape, index_shape, axis in [((4,), (3,), 0), ((3, 4), (3, 2), 1), ((3, 4), (5, 4), 0),
                                     ((3, 4), (1, 2), -1), ((1, 4), (3, 2), 1),
                                     ((2, 3, 4), (2, 5, 4), 1), ((2, 3, 4), (1, 2, 4), -2),
                                     ((2, 3, 4), (2, 3, 0), 2), ((2, 3), (2,), 0)]:
        for dtype in ["int16", "bool"]:
            a, n = values(dtype, shape), shape[axis]
            i = rng.integers(-n, n, index_shape).astype("int8")
            cases.add("take_along_axis", [a, i], lambda a, i: np.take_along_axis(a, i, axis),
                      axis=axis)
            for v in [values(dtype, index_shape), values(dtype, ()),
                      values(dtype, index_shape[-1:])]:
                cases.add("put_along_axis", [a, i, v],
                          written(lambda a, i, v: np.put_along_axis(a, i, v, axis)), axis=axis)


def add_masked():
    for dtype in ["bool", "int8", "uint16", "float16", "float32"]:
        for shape in [(6,), (3, 4), (2, 0)]:
            a, mask = values(dtype, shape), values("bool", shape)
            cases.add("extract", [mask, a], np.extract)
            for v in [values(dtype, (3,)), values(dtype, ()), values(dtype, (15,)),
                      values(dtype, shape), values(dtype, (0,))]:
                cases.add("place", [a, mask, v],
                          written(lambda a, m, v: np.place(a, m, np.atleast_1d(v))))
                cases.add("putmask", [a, mask, v], written(np.putmask))
    a = values("int16", (3, 4))
    for condition in [[1, 0, 1], [0, 1], [0, 0, 0, 1], [], [1, 1, 1, 1, 0, 0]]:
        c = np.array(condition, bool)
        cases.add("compress", [c, a], np.compress)
        for axis in [0, 1, -1]:
            cases.add("compress", [c, a], lambda c, a: np.compress(c, a, axis), axis=axis)
    cases.add("compress", [np.ones((2, 2), bool), a], np.compress)
    cases.add("extract", [np.array([True] * 13), a], np.extract)
    cases.add("putmask", [a, np.ones(3, bool), a], written(np.putmask))
    cases.add("place", [a, np.ones(3, bool), a], written(np.place))


def add_choices():
    for dtypes in [["int8"] * 3, ["float32", "int8", "int16"], ["complex64", "bool"], BOOL]:
        n = len(dtypes)
        for shape, shapes in [((4,), [(4,)]), ((2, 3), [(3,), (2, 1), ()]), ((), [(3,)]),
                              ((3, 1), [(1, 2)])]:
            choices = [values(d, shapes[k % len(shapes)]) for k, d in enumerate(dtypes)]
            for mode, low, high in [("raise", 0, n), ("raise", -1, n), ("raise", 0, n + 1),
                                    ("wrap", -3 * n, 3 * n), ("clip", -3 * n, 3 * n)]:
                for dtype in ["int16", "int8"]:
                    i = rng.integers(low, high, shape).astype(dtype)
                    cases.add("choose", [i, *choices], lambda i, *c: np.choose(i, c, mode=mode),
                              mode=mode)
            conditions = [values("bool", shape) for _ in dtypes]
            cases.add("select", [*conditions, *choices],
                      lambda *c: np.select(c[:n], c[n:], 5 if dtypes != BOOL else False))
    cases.add("select", [np.ones(2, int), np.ones(2)], lambda c, a: np.select([c], [a]))


add_reads(1480)
add_writes(880)
add_dtypes()
add_nonzero()
add_takes()
add_along_axis()
add_masked()
add_choices()
cases.write()
