// Factorizations beyond NumPy's small cases: large matrices, large batches, errors; einsum's views
// and order.
#include <thread>

#include "rensa/array/linalg.h"
#include "rensa/array/random_basics.h"
#include "tests/array/arrays.h"
#include "tests/optional_parts.h"

namespace rensa {
namespace {

namespace la = xp::linalg;
using testing::thrown;

class Decompositions : public ::testing::TestWithParam<Device> {
 protected:
  DeviceScope scope_{GetParam()};
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Decompositions);
INSTANTIATE_TEST_SUITE_P(Devices, Decompositions, ::testing::ValuesIn(testing::linalg_devices()),
                         [](const auto& info) { return info.param.is_cpu() ? "cpu" : "cuda"; });

const Dtype kDtypes[] = {float32, float64, complex64, complex128};

Array noise(const Shape& shape, Dtype dtype, unsigned seed) {
  xp::random::seed(seed);
  Array real = xp::random::uniform(-1, 1, shape, float64);
  if (dtype_kind(dtype) != 'c') return real.astype(dtype);
  Array imaginary = xp::random::uniform(-1, 1, shape, float64);
  return xp::add(real, xp::multiply(imaginary, std::complex<double>(0, 1))).astype(dtype);
}

Array adjoint(const Array& a) { return xp::conjugate(a).swapaxes(-1, -2); }

double limit(Dtype dtype) { return dtype == float32 || dtype == complex64 ? 3e-4 : 3e-12; }

// The greatest distance of two arrays of one shape.
double distance(const Array& a, const Array& b) {
  EXPECT_EQ(a.shape(), b.shape());
  return xp::max(xp::absolute(xp::subtract(a, b))).item<double>();
}

double from_identity(const Array& q) {
  Array gram = xp::matmul(adjoint(q), q);
  Array one = xp::eye(q.shape(-1), q.dtype(), q.device()).broadcast_to(gram.shape());
  return distance(gram, one);
}

// Every factorization of (..., n, n) `a` has to multiply to what was factored.
void check_all(const Array& a) {
  double near = limit(a.dtype());
  std::int64_t n = a.shape(-1);
  la::QRResult qr = la::qr(a);
  EXPECT_LT(distance(xp::matmul(qr.Q, qr.R), a), near);
  EXPECT_LT(from_identity(qr.Q), near);
  la::SVDResult svd = la::svd(a);
  EXPECT_LT(distance(xp::matmul(xp::multiply(svd.U, svd.S.expand_dims(-2)), svd.Vh), a), near);
  EXPECT_LT(from_identity(svd.U), near);
  // Another algorithm than with vectors, so as near as the greatest of them allows.
  EXPECT_LT(distance(la::svdvals(a), svd.S), near * std::max(1.0, svd.S.max().item<double>()));
  Array hermitian = xp::add(a, adjoint(a));
  la::EigResult eigh = la::eigh(hermitian);
  const Array& v = eigh.eigenvectors;
  EXPECT_LT(distance(xp::matmul(hermitian, v), xp::multiply(v, eigh.eigenvalues.expand_dims(-2))),
            near * 10);
  EXPECT_LT(from_identity(v), near);
  Array one = xp::eye(n, a.dtype(), a.device());
  Array positive = xp::add(xp::matmul(a, adjoint(a)), xp::multiply(one, n));
  Array l = la::cholesky(positive);
  EXPECT_LT(distance(xp::matmul(l, adjoint(l)), positive), near * static_cast<double>(n));
  Array well = xp::add(a, xp::multiply(one, n)), b = noise({n, 3}, a.dtype(), 5);
  EXPECT_LT(
      distance(xp::matmul(well, la::solve(well, b)), b.broadcast_to(la::solve(well, b).shape())),
      near);
  EXPECT_LT(distance(xp::matmul(well, la::inv(well)), one.broadcast_to(well.shape())), near);
}

TEST_P(Decompositions, LargeMatrices) {
  for (Dtype d : kDtypes) check_all(noise({260, 260}, d, 1));
}

TEST_P(Decompositions, LargeMatricesInABatch) {
  for (Dtype d : {float32, complex128}) check_all(noise({3, 270, 270}, d, 2));
}

TEST_P(Decompositions, ManySmallMatrices) {
  for (Dtype d : kDtypes) check_all(noise({1000, 6, 6}, d, 3));
}

TEST_P(Decompositions, TallAndWideMatrices) {
  for (Dtype d : kDtypes) {
    for (Shape shape : {Shape{300, 40}, Shape{40, 300}, Shape{2, 7, 60}, Shape{2, 60, 7}}) {
      Array a = noise(shape, d, 4);
      double near = limit(d);
      for (la::QrMode mode : {la::QrMode::reduced, la::QrMode::complete}) {
        la::QRResult qr = la::qr(a, mode);
        EXPECT_LT(distance(xp::matmul(qr.Q, qr.R), a), near);
        EXPECT_LT(from_identity(qr.Q), near);
      }
      la::SVDResult svd = la::svd(a, false), full = la::svd(a, true);
      EXPECT_LT(distance(xp::matmul(xp::multiply(svd.U, svd.S.expand_dims(-2)), svd.Vh), a), near);
      EXPECT_LT(from_identity(full.U), near);
      EXPECT_LT(from_identity(adjoint(full.Vh)), near);
      Array inverse = la::pinv(a, 1e-6);
      EXPECT_LT(distance(xp::matmul(xp::matmul(a, inverse), a), a), near);
    }
  }
}

// Of rank 1, of equal values, of values that fall by many powers of ten, and nothing at all.
TEST_P(Decompositions, SingularVectorsOfDegenerateMatrices) {
  constexpr std::int64_t n = 100;
  for (Dtype d : {float32, float64, complex64}) {
    Array graded = xp::multiply(noise({n, n}, d, 20), xp::logspace(0, -12, n).astype(d));
    Array repeated = noise({150, 45}, d, 21);
    repeated = xp::concatenate({repeated, repeated}, 1);
    for (const Array& a : {xp::ones({n, n}, d), xp::eye(n, d), xp::zeros({n, n}, d), graded,
                           repeated, Array(repeated.T())}) {
      la::SVDResult svd = la::svd(a, false), full = la::svd(a);
      double near = limit(d);
      EXPECT_LT(distance(xp::matmul(xp::multiply(svd.U, svd.S.expand_dims(-2)), svd.Vh), a), near);
      EXPECT_LT(from_identity(svd.U), near);
      EXPECT_LT(from_identity(adjoint(svd.Vh)), near);
      EXPECT_LT(from_identity(full.U), near);
      EXPECT_LT(from_identity(adjoint(full.Vh)), near);
      EXPECT_LT(distance(la::svdvals(a), svd.S), near * std::max(1.0, svd.S.max().item<double>()));
    }
  }
}

TEST_P(Decompositions, SingularVectorsOfNaN) {
  Array a = noise({2, 80, 70}, float32, 22);
  a[{1, 2, 2}].fill(std::numeric_limits<float>::quiet_NaN());
  std::string text = thrown<LinAlgError>([&] { la::svd(a).S.get(); });
  EXPECT_NE(text.find("linalg.svd: matrix 1 of 2 has values that were not found"),
            std::string::npos)
      << text;
}

// Either triangle alone is read.
TEST_P(Decompositions, CholeskyOfOneTriangle) {
  for (Dtype d : kDtypes) {
    for (Shape shape : {Shape{90, 90}, Shape{3, 20, 20}}) {
      Array a = noise(shape, d, 23), one = xp::eye(shape[shape.ndim() - 1], d);
      Array whole = xp::add(xp::matmul(a, adjoint(a)), one), wrong = xp::full(shape, 7, d);
      Array l = la::cholesky(xp::tril(whole) + xp::triu(wrong, 1));
      Array u = la::cholesky(xp::triu(whole) + xp::tril(wrong, -1), true);
      EXPECT_LT(distance(xp::matmul(l, adjoint(l)), whole), 10 * limit(d));
      EXPECT_LT(distance(xp::matmul(adjoint(u), u), whole), 10 * limit(d));
      EXPECT_EQ(distance(xp::triu(l, 1), xp::zeros(shape, d)), 0);
      EXPECT_TRUE(l.is_contiguous());
    }
  }
}

TEST_P(Decompositions, GeneralEigenvalues) {
  for (Dtype d : {float64, complex128}) {
    Array a = noise({2, 40, 40}, d, 6);
    la::EigResult eig = la::eig(a);
    EXPECT_EQ(eig.eigenvalues.dtype(), complex128);
    const Array& v = eig.eigenvectors;
    EXPECT_LT(distance(xp::matmul(a, v), xp::multiply(v, eig.eigenvalues.expand_dims(-2))), 1e-11);
  }
}

TEST_P(Decompositions, TheOperandStaysAsItWas) {
  Array a = noise({5, 5}, float64, 7), before = a.copy(), b = noise({5}, float64, 8);
  Array b_before = b.copy();
  la::svd(a);
  la::eigh(a);
  la::qr(a);
  la::inv(a);
  la::solve(a, b);
  la::det(a);
  EXPECT_EQ(distance(a, before), 0);
  EXPECT_EQ(distance(b, b_before), 0);
}

TEST_P(Decompositions, ErrorsSayWhichMatrix) {
  Array bad = xp::eye(2, float64).broadcast_to({5, 2, 2}).copy();
  bad[3].fill(1);
  std::string text = thrown<LinAlgError>([&] { la::inv(bad).get(); });
  EXPECT_NE(text.find("linalg.inv: matrix 3 of 5 is singular"), std::string::npos) << text;
  text = thrown<LinAlgError>([&] { la::solve(bad[3], xp::ones({2}, float64)).get(); });
  EXPECT_NE(text.find("linalg.solve: the matrix is singular"), std::string::npos) << text;
  text = thrown<ValueError>([&] { la::cholesky(xp::negative(bad)).get(); });
  EXPECT_NE(text.find("linalg.cholesky: matrix 0 of 5 is not positive definite"), std::string::npos)
      << text;
  // What follows an error is not touched by it.
  EXPECT_EQ(la::inv(xp::eye(2, float64)).to_vector<double>(), (std::vector<double>{1, 0, 0, 1}));
  EXPECT_EQ(la::det(bad).to_vector<double>(), (std::vector<double>{1, 1, 1, 0, 1}));
}

TEST_P(Decompositions, ErrorsBeforeTheLaunch) {
  Array a = xp::ones({2, 3}, float64);
  auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(thrown<ShapeError>([&] { la::inv(a); }), "linalg.inv: the last two axes of");
  has(thrown<ShapeError>([&] { la::svd(xp::ones({3})); }), "linalg.svd: ");
  has(thrown<ShapeError>([&] { la::solve(xp::eye(2), a.T()); }), "linalg.solve: ");
  has(thrown<ValueError>([&] { la::eigh(xp::eye(2), 'x'); }), "linalg.eigh: uplo");
  has(thrown<ValueError>([&] { la::qr(a, "full"); }), "linalg.qr: mode \"full\"");
  has(thrown<ValueError>([&] { la::norm(a, "frob"); }), "\"frob\"");
  has(thrown<ValueError>([&] { la::norm(a, 3); }), "linalg.norm: no norm of matrices");
  has(thrown<ValueError>([&] { la::inv(Array()); }), "linalg.inv");
  for (Dtype d : {float16, bfloat16}) {
    has(thrown<DtypeError>([&] { la::svd(xp::ones({2, 2}, d)); }), "cast to float32");
  }
  has(thrown<ShapeError>([&] { xp::einsum("ij,jk", a, a); }), "einsum: \"ij,jk\": label 'j'");
  has(thrown<ValueError>([&] { xp::einsum("ij->k", a); }), "names no operand's axis");
  has(thrown<ValueError>([&] { xp::einsum("i?", a); }), "'?'");
  has(thrown<ShapeError>([&] { xp::tensordot(a, a, 1); }), "tensordot: axis 1 of");
}

TEST_P(Decompositions, NormsOfEveryDtypeAndLayout) {
  Array wide = noise({6, 10, 4}, complex128, 24);
  Array a = wide[{Slice(none, none, 2), Slice(none, none, -3)}];
  double squares = xp::sum(xp::square(xp::absolute(a))).item<double>();
  EXPECT_NEAR(la::norm(a).item<double>(), std::sqrt(squares), 1e-13);
  EXPECT_EQ(la::norm(a).dtype(), float64);
  EXPECT_EQ(la::norm(a.astype(complex64)).dtype(), float32);
  EXPECT_NEAR(la::norm(xp::imag(a)).item<double>(),
              std::sqrt(xp::sum(xp::square(xp::imag(a))).item<double>()), 1e-13);
  EXPECT_EQ(la::norm(a, {}, 1, true).shape(), Shape({3, 1, 4}));
  EXPECT_LT(
      distance(la::norm(a, {}, {0, 2}), xp::sqrt(xp::sum(xp::square(xp::absolute(a)), {0, 2}))),
      1e-13);
  Array eight = noise({1, 2, 1, 2, 1, 2, 1, 2}, complex128, 25);
  EXPECT_NEAR(la::norm(eight).item<double>(),
              std::sqrt(xp::sum(xp::square(xp::absolute(eight))).item<double>()), 1e-13);
  for (Dtype d : {bool_, uint8, int64}) {
    Array norm = la::norm(xp::array({0, 1, 1, 1, 1}).astype(d));
    EXPECT_EQ(norm.dtype(), float64);
    EXPECT_EQ(norm.item<double>(), 2);
  }
  EXPECT_EQ(la::norm(xp::zeros({0}, complex64)).item<float>(), 0);
  EXPECT_EQ(la::norm(xp::zeros({0})).item<float>(), 0);
}

TEST_P(Decompositions, NormsOf16BitFloats) {
  for (Dtype d : {float16, bfloat16}) {
    Array norm = la::norm(xp::array({3.f, 4.f}).astype(d));
    EXPECT_EQ(norm.dtype(), d);
    EXPECT_EQ(norm.item<double>(), 5);
  }
}

TEST_P(Decompositions, TheyDoNotWait) {
  if (GetParam().is_cpu()) return;
  Array a = xp::add(noise({4, 4}, float64, 9), xp::multiply(xp::eye(4, float64), 4));
  std::int64_t before = cuda::sync_count();
  la::inv(a);
  la::det(a);
  la::svd(a);
  la::qr(a);
  la::norm(a);
  xp::einsum("ij,ji", a, a);
  EXPECT_EQ(cuda::sync_count(), before);
}

TEST(DecompositionThreads, SeveralAtOnce) {
  if (!testing::has_lapack()) GTEST_SKIP() << "this build has no LAPACK";
  DeviceScope scope{cpu()};
  Array large = noise({230, 230}, float64, 10), small = noise({200, 5, 5}, float64, 11);
  Array want_large = la::svdvals(large), want_small = la::svdvals(small);
  std::vector<std::thread> threads;
  std::array<double, 4> miss{};
  for (std::size_t i = 0; i < miss.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 3; ++round) {
        miss[i] = std::max(miss[i], i % 2 ? distance(la::svdvals(large), want_large)
                                          : distance(la::svdvals(small), want_small));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (double m : miss) EXPECT_LT(m, 1e-12);
}

TEST_P(Decompositions, EinsumOfOneOperandIsAView) {
  Array a = xp::zeros({3, 3}, float64);
  xp::einsum("ii->i", a).fill(1);
  EXPECT_EQ(distance(a, xp::eye(3, float64)), 0);
  EXPECT_EQ(xp::einsum("ij->ji", a).data(), a.data());
  EXPECT_EQ(la::diagonal(a, 1).data(), static_cast<char*>(a.data()) + 8);
}

TEST_P(Decompositions, EinsumOfLargeOperands) {
  Array a = noise({4, 70, 90}, float32, 12), b = noise({4, 90, 50}, float32, 13);
  EXPECT_LT(distance(xp::einsum("bij,bjk->bik", a, b), xp::matmul(a, b)), 1e-4);
  Array c = noise({50}, float32, 14);
  Array want = xp::matmul(xp::matmul(a, b), c);
  EXPECT_LT(distance(xp::einsum("bij,bjk,k->bi", a, b, c), want), 1e-3);
  EXPECT_LT(distance(xp::einsum("...ij,...jk,k->i...", a, b, c), want.T()), 1e-3);
  // In one piece this would be 50^6 elements.
  Array m = xp::multiply(noise({50, 50}, float64, 15), 0.1);
  EXPECT_LT(distance(xp::einsum("ab,bc,cd,de,ef->af", m, m, m, m, m), la::matrix_power(m, 5)),
            1e-10);
}

TEST_P(Decompositions, SumsOfManyShortProducts) {
  Array a = noise({20000, 3}, float64, 16), b = noise({20000, 3}, float64, 17);
  Array want = xp::sum(xp::multiply(a, b), 1);
  EXPECT_LT(distance(xp::einsum("ij,ij->i", a, b), want), 1e-14);
  EXPECT_LT(distance(xp::vecdot(a, b), want), 1e-14);
  EXPECT_LT(distance(xp::vecdot(a.T(), b.T(), 0), want), 1e-14);
}

TEST(DecompositionsOnTheCpu, ABuildWithoutLapackSaysSo) {
  if (testing::has_lapack()) GTEST_SKIP() << "this build has LAPACK";
  DeviceScope scope{cpu()};
  Array a = xp::eye(2, float64);
  auto says_so = [](const char* name, auto call) {
    std::string text = thrown<NotImplementedError>(call);
    EXPECT_EQ(text.find(std::string("linalg.") + name + ": "), 0u) << text;
    EXPECT_TRUE(testing::left_out(text)) << text;
  };
  says_so("cholesky", [&] { la::cholesky(a); });
  says_so("qr", [&] { la::qr(a); });
  says_so("svd", [&] { la::svd(a); });
  says_so("eigh", [&] { la::eigh(a); });
  says_so("eig", [&] { la::eig(a); });
  says_so("inv", [&] { la::inv(a); });
  says_so("solve", [&] { la::solve(a, a); });
  says_so("det", [&] { la::det(a); });
  EXPECT_EQ(la::norm(a, 1).item<double>(), 1);
}

TEST(DecompositionsOnTheCpu, NaNDoesNotConverge) {
  if (!testing::has_lapack()) GTEST_SKIP() << "this build has no LAPACK";
  DeviceScope scope{cpu()};
  Array a = xp::ones({2, 3, 3}, float64);
  a[{1, 2, 2}].fill(std::numeric_limits<double>::quiet_NaN());
  std::string text = thrown<LinAlgError>([&] { la::svd(a); });
  EXPECT_NE(text.find("linalg.svd: matrix 1 of 2 has values that were not found"),
            std::string::npos)
      << text;
}

TEST_P(Decompositions, EinsumOf16BitFloats) {
  Array a = xp::array({{1.f, 2.f}, {3.f, 4.f}}).astype(bfloat16);
  Array sum = xp::einsum("ij,ij->i", a, a);
  EXPECT_EQ(sum.dtype(), bfloat16);
  EXPECT_EQ(sum.to_vector<double>(), (std::vector<double>{5, 25}));
}

}  // namespace
}  // namespace rensa
