"""Cases of rensa/functions/linalg_functions.h."""
import chainer
from make_function_cases import F, case, torch, uniform

chainer.config.type_check = False  # some take float32 alone, by the check

A = uniform(-1, 1, (3, 4))
case("matmul", F.matmul, A, uniform(-1, 1, (4, 5)), sizes=())
case("matmul transposed", lambda a, b: F.matmul(a, b, transa=True, transb=True), uniform(-1, 1, (4, 3)),
     uniform(-1, 1, (5, 4)))
case("batch_matmul", F.batch_matmul, uniform(-1, 1, (2, 3, 4)), uniform(-1, 1, (2, 4, 5)), sizes=(1,))
case("batch_matmul of rows", lambda a, b: F.batch_matmul(a, b, transa=True), A, A)
case("tensordot", F.tensordot, uniform(-1, 1, (2, 3, 4)), uniform(-1, 1, (3, 4, 5)), sizes=())
case("tensordot axes=1", lambda a, b: F.tensordot(a, b, axes=1), A, uniform(-1, 1, (4, 2)))
case("tensordot axes=([2, 0], [0, 1])", lambda a, b: F.tensordot(a, b, axes=([2, 0], [0, 1])),
     uniform(-1, 1, (2, 3, 4)), uniform(-1, 1, (4, 2, 5)))
for subscripts, *shapes in (
        ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ij->ji", (2, 3)), ("ij->", (2, 3)),
        ("ii->i", (3, 3)), ("ii", (3, 3)), ("iij->j", (2, 2, 3)), ("ij->j", (2, 3)), ("i,j->ij", (2,), (3,)),
        ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)), ("ij,jk,kl->il", (2, 3), (3, 2), (2, 4)),
        ("...i->...", (2, 3)), ("i,ij,jj->j", (2,), (2, 3), (3, 3))):
    case(f"einsum {subscripts}", lambda *xs, s=subscripts: F.einsum(s, *xs), *(uniform(-1, 1, s) for s in shapes))
# Chainer's gradients of what broadcasts have another shape than the inputs.
for subscripts, *shapes in (("...ij,...jk->...ik", (2, 2, 3), (3, 2)), ("i...,i...->...", (2, 3), (2, 1))):
    case(f"einsum {subscripts}", lambda *xs, s=subscripts: torch.einsum(s, *xs),
         *(uniform(-1, 1, s) for s in shapes), by=torch)
case("fft", lambda a, b: F.fft((a, b)), A, A, orders=1, sizes=(1,))
case("ifft", lambda a, b: F.ifft((a, b)), A, A, orders=1, sizes=(1,))
