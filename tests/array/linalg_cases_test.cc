// Replays what NumPy answered to products, einsum and numpy.linalg (make_linalg_cases.py).
#include "rensa/array/linalg.h"

#include "tests/array/replay.h"

namespace rensa {
namespace {

namespace la = xp::linalg;
using testing::Call;
using testing::Closeness;
using testing::Routines;

la::Ord ord(const Call& c) {
  const std::string& text = c.text("ord");
  if (text == "none") return {};
  if (text == "fro" || text == "nuc") return text.c_str();
  return std::stod(text);
}

AxisList axes(const Call& c) { return c.has("axes") ? AxisList(c.shape("axes")) : AxisList(); }

Array hermitian_transpose(const Array& a) { return xp::conjugate(a).swapaxes(-1, -2); }

// q^H q, of which the test wants that it is the identity; real as the file has it.
Array gram(const Array& q) {
  Array product = xp::matmul(hermitian_transpose(q), q);
  if (dtype_kind(q.dtype()) != 'c') return product;
  Array size = xp::absolute(xp::subtract(product, xp::eye(q.shape(-1), q.dtype(), q.device())));
  return xp::add(size, xp::eye(q.shape(-1), size.dtype(), q.device()));
}

Array reconstructed(const la::SVDResult& parts) {
  std::int64_t k = parts.S.shape(-1);
  Array u = parts.U[{ellipsis, Slice(k)}], vh = parts.Vh[{ellipsis, Slice(k), Slice()}];
  return xp::matmul(xp::multiply(u, parts.S.expand_dims(-2)), vh);
}

// Whether anything stands below the diagonal: all false is wanted.
Array below_diagonal(const Array& r) {
  Array rows = xp::arange(r.shape(-2), r.device()).expand_dims(1);
  Array below = xp::greater(rows, xp::arange(r.shape(-1), r.device()));
  return xp::logical_and(xp::not_equal(r, 0), below);
}

std::vector<Array> qr(const Call& c) {
  la::QRResult parts = la::qr(c.in[0], c.text("mode"));
  if (!parts.Q.defined()) return {xp::matmul(hermitian_transpose(parts.R), parts.R)};
  return {xp::matmul(parts.Q, parts.R), gram(parts.Q), below_diagonal(parts.R)};
}

std::vector<Array> svd(const Call& c) {
  la::SVDResult parts = la::svd(c.in[0], c.flag("full"));
  return {parts.S, reconstructed(parts), gram(parts.U), gram(hermitian_transpose(parts.Vh))};
}

std::vector<Array> eigh(const Call& c) {
  la::EigResult parts = la::eigh(c.in[0], c.text("uplo")[0]);
  const Array& v = parts.eigenvectors;
  Array product =
      xp::matmul(xp::multiply(v, parts.eigenvalues.expand_dims(-2)), hermitian_transpose(v));
  return {parts.eigenvalues, gram(v), product};
}

// Whether a v differs from v w, and the sum of the eigenvalues, whose order is anybody's.
std::vector<Array> eig(const Call& c) {
  la::EigResult parts = la::eig(c.in[0]);
  const Array& v = parts.eigenvectors;
  Array miss = xp::absolute(
      xp::subtract(xp::matmul(c.in[0], v), xp::multiply(v, parts.eigenvalues.expand_dims(-2))));
  double limit = v.dtype() == complex64 ? 2e-5 : 1e-12;
  return {xp::greater(miss, limit), xp::sum(la::eigvals(c.in[0]), -1)};
}

std::vector<Array> lstsq(const Call& c) {
  la::LstsqResult result = la::lstsq(c.in[0], c.in[1]);
  return {result.x, result.residuals, xp::array(result.rank, c.device), result.s};
}

std::vector<Array> tensordot(const Call& c) {
  if (c.has("axes")) return {xp::tensordot(c.in[0], c.in[1], static_cast<int>(c.integer("axes")))};
  return {xp::tensordot(c.in[0], c.in[1], c.shape("a_axes"), c.shape("b_axes"))};
}

Routines calls() {
  return {
      {"vdot", [](const Call& c) { return std::vector{xp::vdot(c.in[0], c.in[1])}; }},
      {"inner", [](const Call& c) { return std::vector{xp::inner(c.in[0], c.in[1])}; }},
      {"outer", [](const Call& c) { return std::vector{xp::outer(c.in[0], c.in[1])}; }},
      {"kron", [](const Call& c) { return std::vector{xp::kron(c.in[0], c.in[1])}; }},
      {"vecdot", [](const Call& c) { return std::vector{xp::vecdot(c.in[0], c.in[1], c.axis())}; }},
      {"matvec", [](const Call& c) { return std::vector{xp::matvec(c.in[0], c.in[1])}; }},
      {"vecmat", [](const Call& c) { return std::vector{xp::vecmat(c.in[0], c.in[1])}; }},
      {"tensordot", tensordot},
      {"einsum", [](const Call& c) { return std::vector{xp::einsum(c.text("subscripts"), c.in)}; }},
      {"multi_dot", [](const Call& c) { return std::vector{la::multi_dot(c.in)}; }},
      {"matrix_power",
       [](const Call& c) { return std::vector{la::matrix_power(c.in[0], c.integer("n"))}; }},
      {"diagonal",
       [](const Call& c) { return std::vector{la::diagonal(c.in[0], c.integer("offset"))}; }},
      {"trace", [](const Call& c) { return std::vector{la::trace(c.in[0], c.integer("offset"))}; }},
      {"matrix_transpose",
       [](const Call& c) { return std::vector{la::matrix_transpose(c.in[0])}; }},
      {"cholesky",
       [](const Call& c) { return std::vector{la::cholesky(c.in[0], c.flag("upper"))}; }},
      {"qr", qr},
      {"svd", svd},
      {"svdvals", [](const Call& c) { return std::vector{la::svdvals(c.in[0])}; }},
      {"eigh", eigh},
      {"eigvalsh",
       [](const Call& c) { return std::vector{la::eigvalsh(c.in[0], c.text("uplo")[0])}; }},
      {"eig", eig},
      {"solve", [](const Call& c) { return std::vector{la::solve(c.in[0], c.in[1])}; }},
      {"inv", [](const Call& c) { return std::vector{la::inv(c.in[0])}; }},
      {"det", [](const Call& c) { return std::vector{la::det(c.in[0])}; }},
      {"slogdet",
       [](const Call& c) {
         la::SlogdetResult result = la::slogdet(c.in[0]);
         return std::vector{result.sign, result.logabsdet};
       }},
      {"lstsq", lstsq},
      {"pinv",
       [](const Call& c) {
         return std::vector{la::pinv(c.in[0], c.real("rcond", 1e-15), c.flag("hermitian"))};
       }},
      {"matrix_rank",
       [](const Call& c) {
         std::optional<double> tol;
         if (c.has("tol")) tol = c.real("tol");
         return std::vector{
             la::matrix_rank(c.in[0], {.tol = tol, .hermitian = c.flag("hermitian")})};
       }},
      {"tensorsolve",
       [](const Call& c) { return std::vector{la::tensorsolve(c.in[0], c.in[1], axes(c))}; }},
      {"tensorinv",
       [](const Call& c) {
         return std::vector{la::tensorinv(c.in[0], static_cast<int>(c.integer("ind")))};
       }},
      {"norm",
       [](const Call& c) {
         return std::vector{la::norm(c.in[0], ord(c), axes(c), c.flag("keepdims"))};
       }},
      {"vector_norm",
       [](const Call& c) {
         return std::vector{la::vector_norm(
             c.in[0], {.axis = axes(c), .keepdims = c.flag("keepdims"), .ord = ord(c)})};
       }},
      {"matrix_norm",
       [](const Call& c) { return std::vector{la::matrix_norm(c.in[0], {.ord = ord(c)})}; }},
      {"cond", [](const Call& c) { return std::vector{la::cond(c.in[0], ord(c))}; }},
  };
}

// NumPy computes float32 in double; what is ill-conditioned differs by more than a rounding.
Closeness closeness(const Call& call, Dtype dtype) {
  bool single = dtype == float32 || dtype == complex64;
  if (dtype == float16) return {4e-3, 4e-3, false};
  if (call.routine == "lstsq" || call.routine == "pinv" || call.routine == "cond") {
    return {single ? 1e-3 : 1e-11, single ? 1e-3 : 1e-11, false};
  }
  return {single ? 5e-5 : 1e-12, single ? 5e-5 : 1e-12, false};
}

TEST(LinalgCases, AgreeWithNumPy) { testing::replay("numpy_linalg.txt", calls(), 1400, closeness); }

}  // namespace
}  // namespace rensa
