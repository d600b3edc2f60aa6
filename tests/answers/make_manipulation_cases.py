"""Writes numpy_manipulation.txt: what NumPy's routines that rearrange arrays answer."""
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from case_file import DTYPES, CaseFile, Values

file, values = CaseFile("manipulation"), Values(72)
SOME = ["bool", "int8", "int64", "float16", "float32", "complex128"]
SHAPES = [(), (3,), (0,), (2, 3), (1, 3, 1), (2, 0, 2)]


def axes():
    for shape in SHAPES + [(2, 3, 4)]:
        a = values("int16", shape)
        for name in ("atleast_1d", "atleast_2d", "atleast_3d", "ravel", "matrix_transpose", "squeeze",
                     "fliplr", "flipud", "flip", "rot90"):
            file.add(name, [a], getattr(np, name))
        for source, target in [(0, -1), (-1, 0), (1, 0), (0, 3), ((0, 1), (-1, 0)), ((0, 0), (0, 1)),
                               ((0, 1), (1,)), ((0, 2, 1), (2, 1, 0))]:
            file.add("moveaxis", [a], lambda a: np.moveaxis(a, source, target),
                     source=np.atleast_1d(source).tolist(), target=np.atleast_1d(target).tolist())
        for axis, start in [(0, 0), (2, 0), (-1, 1), (0, 3), (1, -1), (0, 4)]:
            file.add("rollaxis", [a], lambda a: np.rollaxis(a, axis, start), axis=axis, start=start)
            file.add("swapaxes", [a], lambda a: np.swapaxes(a, axis, start), axis=axis, start=start)
        for axis in [(0,), (1, 0), (-1, 0), (0, 0), (0, 2, 4), (9,)]:
            file.add("expand_dims", [a], lambda a: np.expand_dims(a, axis), axes=axis)
            file.add("squeeze_axes", [a], lambda a: np.squeeze(a, axis), axes=axis)
            file.add("flip_axes", [a], lambda a: np.flip(a, axis), axes=axis)
        for k in (-1, 0, 2, 3, 5):
            for pair in [(0, 1), (1, 0), (-1, 0), (1, 1), (0,)]:
                file.add("rot90_axes", [a], lambda a: np.rot90(a, k, pair), k=k, axes=pair)
    file.add("permute_dims", [values("int8", (2, 3, 4))], lambda a: np.permute_dims(a, (2, 0, 1)),
             axes=(2, 0, 1))
    file.add("permute_dims", [values("int8", (2, 3))], lambda a: np.permute_dims(a, (0, 0)),
             axes=(0, 0))
    for shapes in [[(3,), (2, 1)], [(), (2, 3)], [(2,), (3,)], [(0, 1), (4,), (1, 1, 1)]]:
        operands = [values("float32", s) for s in shapes]
        file.add("broadcast_arrays", operands, lambda *a: np.broadcast_arrays(*a))


def joining():
    for dtype in DTYPES:
        a, b, c = values(dtype, (2, 3)), values(dtype, (2, 3)), values("float32", (1, 3))
        file.add("concatenate", [a, b], lambda *x: np.concatenate(x, 0), axis=0)
        file.add("concatenate", [a, c, b], lambda *x: np.concatenate(x, 0), axis=0)
        file.add("concatenate", [c, a], lambda *x: np.concatenate(x, None), axis="none")
        file.add("stack", [a, b], lambda *x: np.stack(x, -1), axis=-1)
        for target in ("int8", "float32", "complex64", "bool"):
            for casting in ("no", "safe", "same_kind", "unsafe"):
                if dtype not in SOME or dtype == "complex128":
                    continue
                file.add("concatenate_as", [a[:, :1], b[:, :1]],
                         lambda *x: np.concatenate(x, 0, dtype=target, casting=casting), dtype=target,
                         casting=casting)
    lists = [[(2,), (2,)], [(), ()], [(2, 3), (2, 3), (2, 3)], [(0, 3), (2, 3)], [(2, 1, 2), (2, 1, 2)],
             [(2,), (3,)], [(2, 3), (3, 3)], [(2,), (2, 3)], [(3,)]]
    for shapes in lists:
        operands = [values("int16", s) for s in shapes]
        for axis in (0, 1, -1, 3):
            file.add("concatenate", operands, lambda *x: np.concatenate(x, axis), axis=axis)
            file.add("stack", operands, lambda *x: np.stack(x, axis), axis=axis)
        for name in ("vstack", "hstack", "dstack", "column_stack"):
            file.add(name, operands, lambda *x: getattr(np, name)(x))
        if len(operands) == 2:
            for axis in (None, 0, 1):
                file.add("append", operands, lambda a, b: np.append(a, b, axis),
                         axis="none" if axis is None else axis)


def splitting():
    for shape in [(6,), (5, 4), (2, 3, 4), (), (0, 2)]:
        a = values("int16", shape)
        for sections in (1, 2, 3, -1):
            for axis in (0, 1, -1):
                file.add("split", [a], lambda a: np.split(a, sections, axis), n=sections, axis=axis)
                file.add("array_split", [a], lambda a: np.array_split(a, sections, axis), n=sections,
                         axis=axis)
            for name in ("hsplit", "vsplit", "dsplit"):
                file.add(name, [a], lambda a: getattr(np, name)(a, sections), n=sections)
        for at in [[2], [1, 3], [3, 1], [-2, 9], []]:
            file.add("split_at", [a], lambda a: np.split(a, at), at=at)
            file.add("vsplit_at", [a], lambda a: np.vsplit(a, at), at=at)
        for axis in (0, 1, -1, 3):
            file.add("unstack", [a], lambda a: np.unstack(a, axis=axis), axis=axis)


def repeating():
    for dtype in DTYPES:
        a = values(dtype, (2, 3))
        file.add("tile", [a], lambda a: np.tile(a, (2, 2)), reps=(2, 2))
        file.add("repeat", [a], lambda a: np.repeat(a, 2, 1), n=2, axis=1)
        file.add("repeat_counts", [a], lambda a: np.repeat(a, [2, 0, 1], 1), counts=[2, 0, 1], axis=1)
        file.add("roll", [a], lambda a: np.roll(a, 4), shift=4)
        file.add("resize", [a], lambda a: np.resize(a, (3, 3)), shape=(3, 3))
    for shape in SHAPES:
        a = values("int16", shape)
        for reps in [(2,), (0,), (1, 2), (2, 1, 2), (), (3, 1, 1, 2), (-1,)]:
            if a.size or min(reps, default=0) >= 0:  # NumPy lets -1 times nothing pass
                file.add("tile", [a], lambda a: np.tile(a, reps), reps=reps)
        for n in (0, 1, 3, -1):
            for axis in (None, 0, 1, -1):
                named = {"axis": "none" if axis is None else axis}
                if a.size or n >= 0:
                    file.add("repeat", [a], lambda a: np.repeat(a, n, axis), n=n, **named)
                file.add("repeat_array", [a, np.full(a.shape[:1], 2) if axis == 0 else np.array([2])],
                         lambda a, c: np.repeat(a, c, axis), **named)
        for shift in (0, 1, -2, 17):
            file.add("roll", [a], lambda a: np.roll(a, shift), shift=shift)
            for axis in (0, -1, 2):
                file.add("roll_axis", [a], lambda a: np.roll(a, shift, axis), shift=shift, axis=axis)
            file.add("roll_axes", [a], lambda a: np.roll(a, (shift, 1), (0, 1)), shifts=(shift, 1),
                     axes=(0, 1))
            file.add("roll_axes", [a], lambda a: np.roll(a, (shift, 1), (-1, -1)), shifts=(shift, 1),
                     axes=(-1, -1))
        for new in [(2, 5), (), (0,), (7,), (1, 1)]:
            file.add("resize", [a], lambda a: np.resize(a, new), shape=new)
    file.add("tile", [values("int8", (2, 1, 2, 1, 2))], lambda a: np.tile(a, (2, 2, 2, 2, 2)),
             reps=(2, 2, 2, 2, 2))
    file.add("tile", [values("int8", (2,) * 8)], lambda a: np.tile(a, (2, 1) * 4), reps=(2, 1) * 4)
    file.add("repeat", [values("int8", (2,) * 8)], lambda a: np.repeat(a, 2, 3), n=2, axis=3)


def editing():
    for shape in [(5,), (3, 4), (2, 3, 2), (0, 3)]:
        for dtype in ("int8", "float16"):
            a = values(dtype, shape)
            for axis in (None, 0, 1, -1):
                named = {"axis": "none" if axis is None else axis}
                for at in (0, 2, -1, 9):
                    file.add("delete", [a], lambda a: np.delete(a, at, axis), at=at, **named)
                    if dtype == "int8":
                        file.add("insert", [a, np.array(7)], lambda a, v: np.insert(a, at, v, axis),
                                 at=at, **named)
                for slice_ in [(0, 2, 1), (3, 0, -2), (0, 9, 2), (2, 2, 1), (1, 5, 3), (2, 0, -1)]:
                    file.add("delete_slice", [a], lambda a: np.delete(a, slice(*slice_), axis),
                             slice=slice_, **named)
                for at in [[0, 1], [-1, 0, 0], [], [1, 9], [2]]:
                    file.add("delete_list", [a], lambda a: np.delete(a, at, axis), at=at, **named)
                    v = values("int64", (len(at),) if axis is None else ())
                    file.add("insert_list", [a, v], lambda a, v: np.insert(a, at, v, axis), at=at,
                             **named)
    a = values("float32", (3, 4))
    file.add("insert", [a, values("float32", (3,))], lambda a, v: np.insert(a, 1, v, 1), at=1, axis=1)
    file.add("insert", [a, values("float32", (4,))], lambda a, v: np.insert(a, 1, v, 0), at=1, axis=0)
    file.add("insert", [a, values("int8", (2, 4))], lambda a, v: np.insert(a, 2, v, 0), at=2, axis=0)
    file.add("insert", [a, values("int8", (2, 3))], lambda a, v: np.insert(a, 2, v, 0), at=2, axis=0)
    file.add("insert_list", [a, values("int8", (3, 1))], lambda a, v: np.insert(a, [1], v, 1), at=[1],
             axis=1)
    file.add("insert_list", [a, values("int8", (3, 2))], lambda a, v: np.insert(a, [1, 3], v, 1),
             at=[1, 3], axis=1)
    file.add("insert_list", [a, values("int8", (3, 2))], lambda a, v: np.insert(a, [4, 0], v, 1),
             at=[4, 0], axis=1)
    file.add("delete_array", [a, np.array([True, False, True])], lambda a, m: np.delete(a, m, 0), axis=0)
    file.add("delete_array", [a, np.array([2, 1])], lambda a, m: np.delete(a, m, 0), axis=0)
    file.add("delete_array", [a, np.array([True])], lambda a, m: np.delete(a, m, 0), axis=0)
    for numbers in [[0, 0, 1, 0, 2, 0], [0, 0], [], [1], [0, 3]]:
        for trim in ("f", "b", "fb", "FB", "x"):
            file.add("trim_zeros", [np.array(numbers, "float32")], lambda a: np.trim_zeros(a, trim),
                     trim=trim, axis="none")
    grid = np.zeros((4, 5), "int32")
    grid[1:3, 2] = 4
    for axis in (None, 0, 1):
        file.add("trim_zeros", [grid], lambda a: np.trim_zeros(a, "fb", axis), trim="fb",
                 axis="none" if axis is None else axis)


def padding():
    modes = ["constant", "edge", "linear_ramp", "maximum", "mean", "minimum", "reflect", "symmetric",
             "wrap", "no_such_mode"]
    for mode in modes:
        for dtype in SOME + ["uint8", "float64"]:
            a = values(dtype, (2, 3))
            if dtype == "complex128" and mode in ("maximum", "minimum"):
                continue
            if dtype == "bool" and mode in ("linear_ramp", "mean"):
                continue
            file.add("pad", [a], lambda a: np.pad(a, ((1, 2), (0, 3)), mode), width=(1, 2, 0, 3),
                     mode=mode)
        for shape in [(4,), (1,), (0,), (3, 0), (2, 3, 2), ()]:
            for width in [(1, 1), (0, 0), (0, 7), (9, 2), (-1, 0)]:
                if len(shape) == 3 and sum(width) > 2:
                    width = (0, 3)
                a = values("int8", shape, -9, 9)
                file.add("pad", [a], lambda a: np.pad(a, width, mode), width=width, mode=mode)
    a = values("float32", (3, 4))
    for mode in ("maximum", "mean", "minimum"):
        for length in [(1, 2), (3, 1, 2, 2), (9, 9), (0, 1), (2, 2)]:
            pairs = np.reshape(length, (-1, 2)).tolist()
            file.add("pad_statistic", [a], lambda a: np.pad(a, 2, mode, stat_length=pairs), mode=mode,
                     length=length)
            file.add("pad_statistic", [a.astype("int8")],
                     lambda a: np.pad(a, 2, mode, stat_length=pairs), mode=mode,
                     length=length) if length != (0, 1) else None
    for mode in ("reflect", "symmetric"):
        for width in (1, 2, 5, 11):
            for dtype in ("float32", "int8", "bool"):
                file.add("pad_odd", [values(dtype, (2, 3))],
                         lambda a: np.pad(a, width, mode, reflect_type="odd"), mode=mode, width=width)
    for ends in [(1, 2), (1, 2, -3, 4), (5, 5)]:
        pairs = np.reshape(ends, (-1, 2)).tolist()
        for dtype in ("float32", "int16", "float16"):
            a = values(dtype, (2, 3))
            file.add("pad_constants", [a], lambda a: np.pad(a, 2, constant_values=pairs), values=ends)
            file.add("pad_ends", [a], lambda a: np.pad(a, 3, "linear_ramp", end_values=pairs),
                     values=ends)


def copying():
    for dtype in ("bool", "int8", "int64", "uint8", "float16", "float64", "complex64"):
        for source in ("bool", "int16", "float32", "complex128"):
            for casting in ("no", "safe", "same_kind", "unsafe"):
                def copy(a, b, *mask):
                    c = a.copy()
                    np.copyto(c, b, casting, *mask)
                    return c
                operands = [values(dtype, (2, 2)), values(source, (2,), 0, 3)]
                file.add("copyto", operands, copy, casting=casting)
                file.add("copyto", operands + [values("bool", (2, 1))], copy, casting=casting)
    for shape, window, axes_ in [((5,), (2,), None), ((3, 4), (2, 3), None), ((3, 4), (2,), (1,)),
                                 ((3, 4), (2, 2), (1, 1)), ((3, 4), (5,), (1,)), ((3, 4), (1,), None)]:
        a = values("int16", shape)
        file.add("sliding_window_view", [a], lambda a: sliding_window_view(a, window, axes_),
                 window=window, **({} if axes_ is None else {"axes": axes_}))


axes()
joining()
splitting()
repeating()
editing()
padding()
copying()
file.write()
