"""Writes what NumPy answers to products, einsum and numpy.linalg (numpy_linalg.txt). What is unique
only up to signs or phases (Q, singular vectors, eigenvectors) stands as what it has to multiply to."""
import numpy as np

from case_file import BOOL, COMPLEX, DTYPES, CaseFile, Values

la = np.linalg
WIDE = ["int8", "int64", "uint8", "float32", "float64", "complex64", "complex128"]
MAIN = ["float32", "complex128"]  # what all shapes are tried with
FLOATS = ["float32", "float64", "complex64", "complex128"]


def products(file, v):
    for d in DTYPES:
        file.add("vdot", [v(d, (2, 3)), v(d, (6,))], np.vdot)
        file.add("inner", [v(d, (2, 3)), v(d, (4, 3))], np.inner)
        file.add("outer", [v(d, (2, 2)), v(d, (3,))], np.outer)
        file.add("kron", [v(d, (2, 2)), v(d, (1, 3))], np.kron)
        file.add("vecdot", [v(d, (2, 3)), v(d, (2, 3))], np.vecdot, axis=-1)
        file.add("tensordot", [v(d, (2, 3, 2)), v(d, (3, 2, 2))],
                 lambda a, b: np.tensordot(a, b, 2), axes=2)
    for a, b in [((), (3,)), ((3,), ()), ((0,), (0,)), ((3,), (2, 4, 3)), ((2, 3), (3,)), ((2, 3), (4,))]:
        x, y = v("float64", a), v("int64", b)
        file.add("inner", [x, y], np.inner)
        file.add("outer", [x, y], np.outer)
        file.add("kron", [x, y], np.kron)
        file.add("vdot", [x, y], np.vdot)
    for a, b in [((2, 3), (2, 1, 2)), ((2, 1, 2), (3, 2)), ((2, 2, 2, 1, 2), (2, 1, 3, 1, 1)), ((2, 0), (2, 2))]:
        file.add("kron", [v("float32", a), v("float32", b)], np.kron)
    for axes in (0, 1, 2, 3):
        file.add("tensordot", [v("float64", (3, 2, 4)), v("float64", (2, 4, 2))],
                 lambda a, b: np.tensordot(a, b, axes), axes=axes)
    for p, q, x, y in [((1,), (0,), (2, 3), (3, 2)), ((0, 2), (1, 0), (2, 3, 4), (4, 2, 2)),
                       ((-1, 0), (0, -1), (2, 3, 4), (4, 2)), ((0, 0), (0, 1), (2, 2), (2, 2)),
                       ((0,), (0, 1), (2, 2), (2, 2)), ((1,), (1,), (2, 3), (2, 2)), ((5,), (0,), (2, 3), (2, 2)),
                       ((0,), (0,), (0, 3), (0, 2))]:
        file.add("tensordot", [v("complex64", x), v("float64", y)],
                 lambda a, b: np.tensordot(a, b, (p, q)), a_axes=p, b_axes=q)
    for x, y, axis in [((2, 3), (3,), -1), ((3, 2), (3, 1), 0), ((2, 1, 3), (4, 3), -1), ((2,), (3,), -1), ((2, 0), (2, 0), 1)]:
        file.add("vecdot", [v("complex128", x), v("complex64", y)], lambda a, b: np.vecdot(a, b, axis=axis), axis=axis)
    for x, y in [((2, 3), (3,)), ((4, 2, 3), (2, 1, 3)), ((1, 2, 3), (4, 3)), ((2, 3), (2,)), ((3,), (3,))]:
        file.add("matvec", [v("float64", x), v("complex64", y)], np.matvec)
        file.add("vecmat", [v("complex64", y), v("float64", x)], np.vecmat)
        file.add("vecmat", [v("complex64", y), v("float64", x[:-2] + x[:-3:-1])], np.vecmat)
    for shapes in ([(3, 2), (2, 5)], [(3, 2), (2, 5), (5, 1)], [(4,), (4, 2), (2, 6), (6, 3)], [(2, 3), (3, 4), (4,)],
                   [(3,), (3, 2), (2,)], [(3, 2), (3, 2)], [(3, 2)]):
        file.add("multi_dot", [v("float64", s) for s in shapes], lambda *a: la.multi_dot(a))
    for d in WIDE:
        for n in (0, 2, 5):
            file.add("matrix_power", [v(d, (3, 3), -2, 2)], lambda a: la.matrix_power(a, n), n=n)
    well = v("float64", (2, 3, 3)) + 4 * np.eye(3)
    for n in (-1, -2):
        file.add("matrix_power", [well], lambda a: la.matrix_power(a, n), n=n)
    file.add("matrix_power", [v("float64", (2, 3))], lambda a: la.matrix_power(a, 2), n=2)
    for shape in [(2, 3), (2, 3, 2), (0, 2)]:
        for offset in (-3, -1, 0, 1, 2, 5):
            file.add("diagonal", [v("float32", shape)], lambda a: la.diagonal(a, offset=offset), offset=offset)
    for d in DTYPES:
        file.add("trace", [v(d, (2, 3, 3))], lambda a: la.trace(a, offset=1), offset=1)
    file.add("matrix_transpose", [v("int16", (2, 3, 1))], la.matrix_transpose)
    file.add("matrix_transpose", [v("int16", (2,))], la.matrix_transpose)


def einsums(file, v):
    cases = [
        ("i->", [(3,)]), ("ij->", [(2, 3)]), ("ij->ji", [(2, 3)]), ("ij->j", [(2, 3)]), ("ii", [(3, 3)]),
        ("ii->i", [(3, 3)]), ("iij->ij", [(2, 2, 3)]), ("iji->j", [(2, 3, 2)]), ("ba", [(2, 3)]), ("ijk", [(2, 1, 3)]),
        ("i,i", [(3,), (3,)]), ("i,j", [(3,), (2,)]), ("i,i->i", [(3,), (3,)]), ("ij,jk", [(2, 3), (3, 4)]),
        ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk->ki", [(2, 3), (3, 4)]), ("ij,ij->i", [(2, 3), (2, 3)]),
        ("bij,bjk->bik", [(2, 2, 3), (2, 3, 2)]), ("bij,bkj->ikb", [(2, 2, 3), (2, 4, 3)]), ("ij,j", [(2, 3), (3,)]),
        ("ijk,jil->kl", [(2, 3, 2), (3, 2, 2)]), ("...ij,...jk->...ik", [(2, 2, 3), (3, 2)]),
        ("...ij,...jk", [(2, 1, 2, 3), (3, 3, 2)]), ("i...->...", [(2, 3, 2)]), ("...i->i...", [(2, 3, 2)]),
        ("i...,i...->...", [(2, 3), (2, 3)]), ("...,...", [(2, 3), (3,)]), ("...,i->...i", [(2,), (3,)]), (",", [(), ()]),
        (",i->i", [(), (3,)]), ("...", [()]), ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]), ("i,i,i->", [(3,), (3,), (3,)]),
        ("ij,kj,k->ik", [(2, 3), (4, 3), (4,)]), ("ijk,ilm,njm,nlk,abc->", [(2, 2, 2)] * 5),
        ("ea,fb,abcd,gc,hd->efgh", [(2, 2), (2, 2), (2, 2, 2, 2), (2, 2), (2, 2)]), ("ij,ji", [(3, 3), (3, 3)]),
        ("ii,ij->j", [(3, 3), (3, 2)]), ("aab,bcc->ac", [(2, 2, 3), (3, 2, 2)]), ("i,i", [(1,), (3,)]),
        ("ij,jk->ik", [(2, 1), (3, 4)]), ("ij,ij->ij", [(1, 3), (2, 1)]), ("ij,jk->ik", [(2, 0), (0, 3)]),
        ("ij,j->i", [(0, 3), (3,)]), ("i->i", [(0,)]), ("AbC,bC->A", [(2, 3, 2), (3, 2)]), ("aB,Bc", [(2, 3), (3, 2)]),
        ("ij,k->j", [(2, 3), (4,)]), ("abc,cd->dab", [(2, 3, 2), (2, 3)]), ("i,ij,ij,j->", [(2,), (2, 3), (2, 3), (3,)]),
        ("ij->k", [(2, 3)]), ("ij->ii", [(2, 3)]), ("ij", [(3,)]), ("i", [(2, 3)]), ("ii", [(2, 3)]), ("i,i", [(2,), (3,)]),
        ("ij,jk", [(2, 3), (2, 3)]), ("i", [(2,), (2,)]), ("i,j", [(2,)]), ("i.->i", [(2, 2)]), ("...i->i", [(2, 2)]),
        ("1->", [(2,)]), ("...i...", [(2, 2)]), ("...ij->...ji", [(3,)]), ("ii", [(1, 3)]), ("...,...->...", [(2,), (3,)]),
    ]
    for i, (subscripts, shapes) in enumerate(cases):
        for d in ("float32", ["int32", "float64", "complex64", "bool", "int8", "complex128", "uint16"][i % 7]):
            file.add("einsum", [v(d, s) for s in shapes], lambda *a: np.einsum(subscripts, *a), subscripts=subscripts)
    for d in DTYPES:
        file.add("einsum", [v(d, (2, 3)), v(d, (3, 2))], lambda *a: np.einsum("ij,jk", *a), subscripts="ij,jk")
        file.add("einsum", [v(d, (2, 3))], lambda a: np.einsum("ij->i", a), subscripts="ij->i")
        file.add("einsum", [v(d, (2, 3)), v("float32", (3,))], lambda *a: np.einsum("ij,j->ij", *a), subscripts="ij,j->ij")


def hermitian(a):
    return a + np.conj(np.swapaxes(a, -1, -2))


def positive(a):
    a = np.asarray(a)
    n = a.shape[-1]
    return (a @ np.conj(np.swapaxes(a, -1, -2)) + n * np.eye(n)).astype(a.dtype)


def identity_like(a, n):
    return np.broadcast_to(np.eye(n), a.shape[:-2] + (n, n)).astype(real_of(result_dtype(a)))


def result_dtype(a):
    return a.dtype if a.dtype.kind in "fc" else np.dtype("float64")


def real_of(dtype):
    return np.zeros(0, dtype).real.dtype


def as_result(a):
    return a.astype(result_dtype(a))


def qr_answer(a, mode):
    la.qr(a, mode=mode)  # may raise
    q, r = la.qr(a, mode=mode) if mode != "r" else (None, la.qr(a, mode=mode))
    if mode == "r":
        return [(np.conj(np.swapaxes(r, -1, -2)) @ r).astype(result_dtype(a))]
    return [as_result(a), identity_like(a, q.shape[-1]), np.zeros(r.shape, bool)]


def svd_answer(a, full):
    u, s, vh = la.svd(a, full_matrices=full)
    return [s, as_result(a), identity_like(a, u.shape[-1]), identity_like(a, vh.shape[-2])]


def eigh_answer(a, uplo):
    w, v = la.eigh(a, uplo)
    return [w, identity_like(a, a.shape[-1]), (v * w[..., None, :]) @ np.conj(np.swapaxes(v, -1, -2))]


def factorizations(file, v):
    for d in WIDE + BOOL + ["float16"]:
        for shape in [(3, 3), (1, 1), (2, 4, 4), (2, 1, 3, 3), (0, 0), (0, 3, 3)]:
            if d not in MAIN and shape not in [(3, 3), (0, 0)]:
                continue
            file.add("cholesky", [positive(v(d, shape, -2, 2))], la.cholesky)
            a = hermitian(v(d, shape))
            for uplo in "LU" if len(shape) < 3 else "L":
                file.add("eigh", [v(d, shape)], lambda x: eigh_answer(x, uplo), uplo=uplo)
                file.add("eigvalsh", [a], lambda x: la.eigvalsh(x, uplo), uplo=uplo)
        for shape in [(3, 3), (4, 2), (2, 4), (2, 3, 2), (3, 1), (2, 0), (0, 2), (0, 3, 2)]:
            if d not in MAIN and shape not in [(4, 2), (2, 4)]:
                continue
            a = v(d, shape)
            for mode in ("reduced", "complete", "r"):
                file.add("qr", [a], lambda x: qr_answer(x, mode), mode=mode)
            for full in (False, True):
                file.add("svd", [a], lambda x: svd_answer(x, full), full=full)
            file.add("svdvals", [a], la.svdvals)
        for shape in [(3, 3), (1, 1), (2, 2, 2), (0, 0)]:
            file.add("eig", [v(d, shape)],
                     lambda x: [np.zeros(x.shape, bool), np.sum(la.eigvals(x), -1).astype(np.result_type(result_dtype(x), "complex64"))])
    file.add("cholesky", [positive(v("complex128", (3, 3)))], lambda a: la.cholesky(a, upper=True), upper=True)
    for bad in (v("float64", (2, 3)), v("float64", (3,)), -np.eye(2)):
        file.add("cholesky", [bad], la.cholesky)
    for bad in (v("float64", (2, 3)), v("float64", (3,))):
        file.add("eigvalsh", [bad], la.eigvalsh, uplo="L")
        file.add("inv", [bad], la.inv)
        file.add("det", [bad], la.det)
        file.add("slogdet", [bad], la.slogdet)
        file.add("eig", [bad], la.eigvals)
    file.add("svdvals", [v("float64", (3,))], la.svdvals)
    file.add("eigvalsh", [np.eye(2)], lambda a: la.eigvalsh(a, "X"), uplo="X")


def lstsq(a, b):
    x, residuals, rank, s = la.lstsq(a, b)
    return [x, residuals, np.int64(rank), s]


def equations(file, v):
    for d in WIDE + BOOL + ["float16"]:
        for shape in [(3, 3), (1, 1), (2, 3, 3), (2, 1, 2, 2), (0, 0), (0, 2, 2)]:
            if d not in MAIN and shape not in [(3, 3), (2, 1, 2, 2)]:
                continue
            a = v(d, shape)
            if shape[-1] and d not in ("int8", "bool"):
                a = (a + 5 * np.eye(shape[-1])).astype(d)
            else:
                a = (v(d, shape) + np.eye(shape[-1]).astype(d) * (1 if d == "bool" else 9)).astype(d)
            file.add("det", [a], la.det)
            file.add("slogdet", [a], la.slogdet)
            if d != "bool":
                file.add("inv", [a], la.inv)
                file.add("solve", [a, v(d, (shape[-1],))], la.solve)
                file.add("solve", [a, v(d, shape[:-1] + (2,))], la.solve)
    well = v("float64", (2, 3, 3)) + 5 * np.eye(3)
    for a, b in [(well, v("float32", (3, 2))), (well[0], v("complex64", (4, 3, 1))), (well, v("int8", (3,))),
                 (well, v("float64", (2, 2, 1))), (well[0], v("float64", (2,))), (well, v("float64", (3, 0))),
                 (np.ones((2, 2)), np.ones(2)), (well, v("float64", ()))]:
        file.add("solve", [a, b], la.solve)
    singular = np.array([[1.0, 2], [2, 4]])
    file.add("inv", [singular], la.inv)
    for a in (singular, np.zeros((2, 2)), np.zeros((2, 2), "complex64")):
        file.add("det", [a], la.det)
        file.add("slogdet", [a], la.slogdet)
    for d in FLOATS + ["int64"]:
        for shape in [(4, 2), (2, 4), (3, 3), (5, 1)]:
            for k in ((), (2,)):
                a, b = v(d, shape), v(d, shape[:1] + k)
                file.add("lstsq", [a, b], lstsq)
            file.add("pinv", [a], la.pinv)
            file.add("matrix_rank", [a], la.matrix_rank)
    low = np.outer(v("float64", 4), v("float64", 3))
    file.add("lstsq", [low, v("float64", (4,))], lstsq)
    file.add("lstsq", [v("float64", (2, 3)), v("float64", (3,))], lstsq)
    for a in (low, np.stack([low, low + 1]), np.zeros((2, 3)), np.zeros((0, 3)), np.zeros((2, 0, 3)), np.zeros(3), np.ones(3), np.array(2.0)):
        if a.ndim > 1:
            file.add("pinv", [a], la.pinv, rcond=1e-10)
        file.add("matrix_rank", [a], la.matrix_rank)
        file.add("matrix_rank", [a], lambda x: la.matrix_rank(x, tol=0.5), tol=0.5)
    h = hermitian(v("complex128", (2, 3, 3)))
    file.add("pinv", [h], lambda a: la.pinv(a, hermitian=True), hermitian=True)
    file.add("matrix_rank", [h], lambda a: la.matrix_rank(a, hermitian=True), hermitian=True)
    t = v("float64", (2, 3, 6)) + np.eye(6).reshape(2, 3, 6) * 4
    file.add("tensorsolve", [t, v("float64", (2, 3))], la.tensorsolve)
    file.add("tensorsolve", [t.transpose(2, 0, 1), v("float64", (2, 3))], lambda a, b: la.tensorsolve(a, b, axes=(0,)), axes=(0,))
    file.add("tensorsolve", [t, v("float64", (2,))], la.tensorsolve)
    file.add("tensorinv", [t], la.tensorinv, ind=2)
    file.add("tensorinv", [t.reshape(6, 2, 3)], lambda a: la.tensorinv(a, ind=1), ind=1)
    file.add("tensorinv", [t], lambda a: la.tensorinv(a, ind=0), ind=0)


ORDERS = ["none", "fro", "nuc", "inf", "-inf", "0", "1", "-1", "2", "-2", "3", "0.5"]


def order(text):
    return None if text == "none" else text if text in ("fro", "nuc") else float(text)


def norms(file, v):
    for d in ["float16", "float32", "float64", "complex64", "complex128", "int32", "bool", "uint8"]:
        for ord in ORDERS:
            o = order(ord)
            for shape in [(4,), (3, 2)]:
                file.add("norm", [v(d, shape)], lambda a: la.norm(a, o), ord=ord)
            if d not in ("float32", "complex64"):
                continue
            x = v(d, (2, 3, 2))
            for axis in [(-2,), (0, 1), (2, 1)]:
                for keepdims in (False, True):
                    file.add("norm", [x], lambda a: la.norm(a, o, axis=axis, keepdims=keepdims), ord=ord, axes=axis, keepdims=keepdims)
            if ord not in ("none", "fro", "nuc"):
                for axis in [None, (1,), (2, 0)]:
                    kwargs = {} if axis is None else {"axes": axis}
                    file.add("vector_norm", [x], lambda a: la.vector_norm(a, axis=axis, ord=o, keepdims=True), ord=ord, keepdims=True, **kwargs)
                    file.add("vector_norm", [x], lambda a: la.vector_norm(a, axis=axis, ord=o), ord=ord, **kwargs)
            if ord != "none":
                file.add("matrix_norm", [x], lambda a: la.matrix_norm(a, ord=o), ord=ord)
    for shape in [(), (0,), (2, 0), (0, 2), (2, 3, 2)]:
        for ord in ["none", "2", "inf", "1", "fro", "nuc", "-1", "0"]:
            o = order(ord)
            file.add("norm", [v("float64", shape)], lambda a: la.norm(a, o), ord=ord)
    for axis in [(0, 0), (3,), (0, 1, 2)]:
        file.add("norm", [v("float64", (2, 3, 2))], lambda a: la.norm(a, axis=axis), ord="none", axes=axis)
    for d in FLOATS + ["int64"]:
        for ord in ["none", "-2", "1", "-inf", "fro"]:
            o = order(ord)
            file.add("cond", [v(d, (2, 3, 3)) + (5 * np.eye(3)).astype(d)], lambda a: la.cond(a, o), ord=ord)
    file.add("cond", [v("float64", (2, 3))], la.cond, ord="none")
    file.add("cond", [v("float64", (0, 0))], la.cond, ord="none")
    file.add("cond", [v("float64", (2, 3))], lambda a: la.cond(a, 1), ord="1")
    file.add("cond", [np.zeros((2, 2))], lambda a: la.cond(a, 1), ord="1")
    file.add("cond", [np.array([[np.nan, 1], [1, 1]])], lambda a: la.cond(a, 1), ord="1")


def main():
    file, v = CaseFile("linalg"), Values(20261121)
    products(file, v)
    einsums(file, v)
    factorizations(file, v)
    equations(file, v)
    norms(file, v)
    file.write()


if __name__ == "__main__":
    main()
