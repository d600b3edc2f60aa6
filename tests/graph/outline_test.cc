// Outlines: runs that did the same, and what tells others apart.
#include "rensa/graph/outline.h"

#include <gmock/gmock.h>

#include <functional>
#include <ostream>

#include "rensa/array/random.h"
#include "rensa/array/routines.h"
#include "rensa/array/signal.h"
#include "rensa/array/sorting.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/recording.h"
#include "rensa/kernel/elementwise_kernel.h"
#include "rensa/kernel/reduction_kernel.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using ::testing::HasSubstr;

template <class F> Outline outline_of(F step) {
  Recording recording;
  RecorderScope scope(&recording);
  step();
  return std::move(recording.outline);
}

/// A call with a number of the host's, which makes it other work.
struct Row {
  const char* name;
  std::function<void(const Array& x, int number)> call;
};
std::ostream& operator<<(std::ostream& os, const Row& row) { return os << row.name; }

std::vector<Row> rows() {
  static ElementwiseKernel scaled("T x, T scale", "T y", "y = scale * x", "outline_scaled");
  static ReductionKernel powers("T x, T scale", "T y", "scale * x", "a + b", "y = a", "0",
                                "outline_powers");
  Array labels = xp::arange(0, 3, 1, int32, cpu());
  return {
      {"add", [](const Array& x, int n) { x + static_cast<float>(n); }},
      {"power", [](const Array& x, int n) { xp::power(x, n); }},
      {"where", [](const Array& x, int n) { xp::where(x > 0.f, x, n); }},
      {"full", [](const Array& x, int n) { xp::full({3}, n, float32, x.device()); }},
      {"sum", [](const Array& x, int n) { x.sum(n - 1, true); }},
      {"arange", [](const Array& x, int n) { xp::arange(n, n + 3, 1, int64, x.device()); }},
      {"uniform", [](const Array&, int n) { xp::random::uniform(0, n, {3}, float32, cpu()); }},
      {"randint", [](const Array&, int n) { xp::random::randint(0, 5 * n, {3}, int64, cpu()); }},
      {"gamma", [](const Array&, int n) { xp::random::gamma(n, 1, {3}, float64, cpu()); }},
      {"dropout", [](const Array& x, int n) { F::dropout(Variable(x), 0.1 * n); }},
      {"rrelu", [](const Array& x, int n) { F::rrelu(Variable(x), 0.1, 0.2 * n); }},
      {"local_response_normalization",
       [](const Array& x, int n) { F::local_response_normalization(Variable(x), 3, n); }},
      {"softmax_cross_entropy",
       [labels](const Array& x, int n) {
         F::softmax_cross_entropy(Variable(x), constant(labels.to(x.device())),
                                  {.ignore_label = -n});
       }},
      {"leaky_relu", [](const Array& x, int n) { F::leaky_relu(Variable(x), 0.1 * n); }},
      {"tril", [](const Array& x, int n) { xp::tril(x, n); }},
      {"isclose", [](const Array& x, int n) { xp::isclose(x, x, 1e-3 * n); }},
      {"searchsorted",
       [](const Array& x, int n) { xp::searchsorted(x.ravel(), x, n == 1 ? "left" : "right"); }},
      {"isclose_nan", [](const Array& x, int n) { xp::isclose(x, x, 0, 0, n == 1); }},
      {"partition", [](const Array& x, int n) { xp::partition(x, n); }},
      {"zero_on_a_side", [](const Array& x, int n) { Array(n == 1 ? x - 0 : 0 - x); }},
      {"zero_where_not",
       [](const Array& x, int n) { n == 1 ? xp::where(x > 1, x, 0) : xp::where(x > 1, 0, x); }},
      {"elementwise_kernel", [](const Array& x, int n) { scaled(x, static_cast<float>(n)); }},
      {"reduction_kernel", [](const Array& x, int n) { powers(x, static_cast<float>(n)); }},
  };
}

class OutlineOf : public ::testing::TestWithParam<Row> {};

TEST_P(OutlineOf, ANumberOfTheHost) {
  Array x = xp::ones({3, 3}, float32, cpu());
  auto outline = [&](int number) { return outline_of([&] { GetParam().call(x, number); }); };
  Outline one = outline(1);
  EXPECT_EQ(one.difference(outline(1)), "");
  EXPECT_NE(one.difference(outline(2)), "");
}

INSTANTIATE_TEST_SUITE_P(Rows, OutlineOf, ::testing::ValuesIn(rows()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Outline, TellsWhatARunMadeFromWhatItFound) {
  for (Device device : testing::test_devices()) {
    Array x = xp::ones({3}, float32, device), written = xp::empty({3}, float32, device), y;
    written.fill(1);
    Outline outline = outline_of([&] {
      y = x + 1.f;
      y += 1.f;
      written.assign(y);
    });
    EXPECT_TRUE(outline.made(y.storage().get()));
    EXPECT_FALSE(outline.made(x.storage().get()));
    EXPECT_EQ(outline.made().size(), 1u);
    EXPECT_EQ(outline.found().size(), 2u);
  }
}

TEST(Outline, SaysWhatDiffers) {
  Array x = xp::ones({4}), same = xp::ones({4});
  auto add = outline_of([&] { x + 1.f; });
  auto expect = [&](const Outline& later, const char* text) {
    EXPECT_THAT(add.difference(later), HasSubstr(text));
  };
  expect(outline_of([&] { x * 1.f; }), "operation 0 (multiply) was add before");
  expect(outline_of([&] { x + 2.f; }), "operation 0 (add) has other numbers than before");
  expect(outline_of([&] { same + 1.f; }), "operation 0 (add) reads another array float32 (4,)");
  expect(outline_of([&] { x[Slice(0, 2)] + 1.f; }),
         "operation 0 (add) reads float32 (2,), and float32 (4,) before");
  expect(outline_of([&] { x + 1.f + 1.f; }), "it has 2 operations, and had 1 before");
  expect(outline_of([&] {
           x + 1.f;
           host_effect([] {});
         }),
         "what it does on the host");
  EXPECT_EQ(outline_of([&] { x + 1.f; }).difference(add), "");
}

}  // namespace
}  // namespace rensa
