// Factorizations: values by what they are for, both derivatives against differences.
#include "rensa/functions/linalg_functions.h"

#include <gtest/gtest.h>

#include "rensa/array/linalg.h"
#include "rensa/array/random_basics.h"
#include "rensa/autograd/gradient_check.h"
#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "tests/optional_parts.h"
#include "tests/testing.h"

namespace rensa {
namespace {

/// Matrices far from singular ones.
Array matrices(const Shape& shape, Device device) {
  Array noise = xp::random::uniform(-0.5, 0.5, shape, float64, device);
  return noise + xp::eye(shape[-1], float64, device) * 2;
}

TEST(LinalgFunctions, FactorizationsHaveBothDerivatives) {
  xp::random::seed(3);
  const std::pair<const char*, gradient_check::Function> functions[] = {
      {"inv", [](const Variables& x) { return Variables{F::inv(x[0])}; }},
      {"det", [](const Variables& x) { return Variables{F::det(x[0])}; }},
      {"cholesky",
       [](const Variables& x) {
         return Variables{F::cholesky(F::matmul(x[0], x[0], false, true))};
       }},
  };
  for (Device device : testing::linalg_devices()) {
    for (const auto& [name, f] : functions) {
      for (Shape shape : {Shape{3, 3}, Shape{2, 3, 3}, Shape{1, 1}}) {
        SCOPED_TRACE(std::string(name) + " of " + shape.str() + " on " + device.str());
        Array x = matrices(shape, device);
        Array y = f({Variable(x)})[0].array();
        Array gy = xp::random::uniform(0.5, 1.5, y.shape(), float64, device);
        EXPECT_NO_THROW(gradient_check::check_backward(f, {x}, {gy}));
        EXPECT_NO_THROW(gradient_check::check_double_backward(f, {x}, {gy}));
      }
    }
  }
}

TEST(LinalgFunctions, FactorizationsAreXps) {
  for (Device device : testing::linalg_devices()) {
    Array x = matrices({2, 3, 3}, device), s = xp::matmul(x, xp::matrix_transpose(x));
    EXPECT_TRUE(xp::array_equal(F::batch_inv(x).array(), xp::linalg::inv(x)));
    EXPECT_TRUE(xp::array_equal(F::batch_det(x).array(), xp::linalg::det(x)));
    EXPECT_TRUE(xp::array_equal(F::cholesky(s).array(), xp::linalg::cholesky(s)));
    Variable flat = F::cast(Variable(x), float32);
    F::sum(F::det(flat)).backward();
    EXPECT_THROW(F::inv(x.astype(float16)), DtypeError);
  }
}

TEST(LinalgFunctions, TermsWithoutLabelsHaveGradients) {
  Array v = xp::array({0.5, -1.0, 2.0}), w = xp::array({1.0, 3.0, -0.5}), number = xp::array(1.5);
  for (const auto& [subscripts, x] :
       std::vector<std::pair<const char*, Arrays>>{{"i,i", {v, w}},
                                                   {",i->i", {number, v}},
                                                   {"i,->i", {v, number}},
                                                   {",->", {number, number}}}) {
    SCOPED_TRACE(subscripts);
    auto f = [&](const Variables& in) -> Variables { return {F::einsum(subscripts, in)}; };
    Arrays gy{xp::ones_like(xp::einsum(subscripts, x))};
    EXPECT_NO_THROW(gradient_check::check_backward(f, x, gy));
    EXPECT_NO_THROW(gradient_check::check_double_backward(f, x, gy));
  }
}

TEST(LinalgFunctions, ExtentsOfOneAreStretched) {
  xp::random::seed(4);
  for (const auto& [subscripts, shapes] : std::vector<std::pair<const char*, std::vector<Shape>>>{
           {"ij,ij->ij", {{2, 1}, {2, 3}}},
           {"ij,jk->ik", {{2, 3}, {1, 2}}},
           {"ij,jk->ik", {{2, 1}, {3, 2}}},
           {"ij,jk,k", {{2, 1}, {3, 4}, {1}}},
           {"ij,jk->k", {{1, 3}, {1, 2}}},
           {"ii,i->i", {{1, 1}, {3}}},
           {"...i,...i", {{2, 1}, {1, 2, 3}}}}) {
    SCOPED_TRACE(subscripts);
    Arrays x;
    for (const Shape& shape : shapes)
      x.push_back(xp::random::uniform(-1, 1, shape, float64, cpu()));
    Variables in(x.begin(), x.end());
    Array y = xp::einsum(subscripts, x);
    EXPECT_TRUE(xp::allclose(F::einsum(subscripts, in).array(), y));
    auto f = [&](const Variables& given) -> Variables { return {F::einsum(subscripts, given)}; };
    EXPECT_NO_THROW(gradient_check::check_backward(f, x, {xp::ones_like(y)}));
    EXPECT_NO_THROW(gradient_check::check_double_backward(f, x, {xp::ones_like(y)}));
  }
}

TEST(LinalgFunctions, SubscriptsThatDoNotFitAreErrors) {
  Variable a(xp::ones({2, 3})), b(xp::ones({3, 4}));
  EXPECT_THROW(F::einsum("ij->ij", {a, b}), ValueError);
  EXPECT_THROW(F::einsum("ijk->i", {a}), ValueError);
  EXPECT_THROW(F::einsum("i->i", {a}), ValueError);
  EXPECT_THROW(F::einsum("ij,ij->ij", {a, b}), ShapeError);
  EXPECT_THROW(F::einsum("ii->i", {Variable(xp::ones({1, 3}))}), ShapeError);
  EXPECT_THROW(F::einsum("i.j", {a}), ValueError);
  EXPECT_THROW(F::einsum("ij->ii", {a}), ValueError);
  EXPECT_THROW(F::einsum("...j,...j->...", {a, b}), ShapeError);
  EXPECT_THROW(F::tensordot(a, b, 2), ShapeError);
  EXPECT_THROW(F::tensordot(a, b, 3), ValueError);
  EXPECT_THROW(F::batch_matmul(a, xp::ones({2})), ShapeError);
  EXPECT_THROW(F::fft(a, b), ShapeError);
  EXPECT_THROW(F::fft(a, xp::ones({2, 3}, float64)), DtypeError);
}

}  // namespace
}  // namespace rensa
