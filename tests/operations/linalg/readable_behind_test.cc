// What LAPACK reads behind the matrices that the CPU backend gives it.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <list>

#include "rensa/array.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/linalg/linalg.h"
#include "tests/guarded_memory.h"
#include "tests/optional_parts.h"

namespace rensa::operations {
namespace {

// Arrays of complex128 that have readable_behind() elements behind them, and then no memory.
class Guarded {
 public:
  Array matrices(std::int64_t batch, std::int64_t columns, std::int64_t rows) {
    std::int64_t elements = batch * columns * rows;
    Array array = place({batch, columns, rows}, elements + readable_behind(rows), complex128);
    auto* values = static_cast<std::complex<double>*>(array.data());
    for (std::int64_t i = 0; i < elements; ++i) {
      values[i] = {std::sin(1.0 + static_cast<double>(i)), i % (rows + 1) == 0 ? 0.0 : 0.25};
    }
    return array;
  }
  Array vectors(std::int64_t batch, std::int64_t length, Dtype dtype) {
    return place({batch, length}, batch * length, dtype);
  }

 private:
  Array place(const Shape& shape, std::int64_t elements, Dtype dtype) {
    testing::GuardedMemory& memory =
        memory_.emplace_back(static_cast<std::size_t>(elements * itemsize(dtype)));
    return xp::wrap(memory.data(), shape, dtype, cpu());
  }
  std::list<testing::GuardedMemory> memory_;
};

// A page that may not be read ends the process, so that to return is what is tested.
class ReadableBehind : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    if (!testing::has_lapack()) GTEST_SKIP() << "no LAPACK";
  }
  Guarded guarded_;
  std::int64_t n_ = GetParam();
};

TEST_P(ReadableBehind, SingularValues) {
  for (std::int64_t rows : {n_, n_ + 5, 2 * n_}) {
    for (bool vectors : {false, true}) {
      Array a = guarded_.matrices(2, n_, rows), s = guarded_.vectors(2, n_, float64), u, vt;
      Svd op("svd");
      op.a = a.operand();
      op.s = s.operand();
      if (vectors) {
        u = guarded_.matrices(2, n_, rows), vt = guarded_.matrices(2, n_, n_);
        op.u = u.operand();
        op.vt = vt.operand();
      }
      launch(op);
      EXPECT_GT(xp::min(s).item<double>(), 0);
    }
  }
}

TEST_P(ReadableBehind, Eigenvalues) {
  for (bool vectors : {false, true}) {
    Array a = guarded_.matrices(2, n_, n_), w = guarded_.vectors(2, n_, complex128), v;
    Eig op("eig");
    op.a = a.operand();
    op.w = w.operand();
    if (vectors) {
      v = guarded_.matrices(2, n_, n_);
      op.v = v.operand();
    }
    launch(op);
    EXPECT_TRUE(xp::all(xp::isfinite(w)).item<bool>());
    for (bool upper : {false, true}) {
      Array b = guarded_.matrices(2, n_, n_), values = guarded_.vectors(2, n_, float64);
      Eigh hermitian("eigh");
      hermitian.upper = upper;
      hermitian.vectors = vectors;
      hermitian.a = b.operand();
      hermitian.w = values.operand();
      launch(hermitian);
      EXPECT_TRUE(xp::all(xp::isfinite(values)).item<bool>());
    }
  }
}

TEST_P(ReadableBehind, Factors) {
  for (std::int64_t rows : {n_, n_ + 5, 2 * n_}) {
    Array a = guarded_.matrices(2, n_, rows), tau = guarded_.vectors(2, n_, complex128);
    QrFactor factor("qr");
    factor.a = a.operand();
    factor.tau = tau.operand();
    launch(factor);
    QrForm form("qr");
    form.q = a.operand();
    form.tau = tau.operand();
    launch(form);
    EXPECT_NEAR(xp::linalg::norm(a[0][0]).item<double>(), 1, 1e-9);
  }
  for (std::int64_t columns : {std::int64_t{1}, n_}) {
    Array a = guarded_.matrices(2, n_, n_), b = guarded_.matrices(2, columns, n_);
    Array pivots = guarded_.vectors(2, n_, int32);
    LuSolve op("solve");
    op.singular_is_error = false;
    op.a = a.operand();
    op.b = b.operand();
    op.pivots = pivots.operand();
    launch(op);
  }
  for (bool upper : {false, true}) {
    Array a = guarded_.matrices(1, n_, n_);
    xp::copyto(a, xp::eye(n_, complex128));
    CholeskyFactor op("cholesky");
    op.upper = upper;
    op.a = a.operand();
    launch(op);
    EXPECT_EQ(a[0][0][0].item<std::complex<double>>(), 1.0);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ReadableBehind,
                         ::testing::Values(1, 2, 3, 4, 5, 7, 16, 17, 31, 40, 63, 67, 131));

}  // namespace
}  // namespace rensa::operations
