// Convolutions on the CPU: the pieces they are cut into, and what oneDNN takes of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "rensa/functions/operations/convolution/cpu_onednn.h"
#include "rensa/functions/operations/convolution/cpu_pieces.h"
#include "tests/backend/cpu/test_array.h"

namespace rensa::testing {
namespace {

using operations::Convolution;
using operations::ConvolutionDirection;

constexpr ConvolutionDirection kDirections[] = {ConvolutionDirection::forward,
                                                ConvolutionDirection::input_gradient,
                                                ConvolutionDirection::weight_gradient};

/// A convolution of squares with a kernel of `places` x `places` and no padding.
struct Squares {
  Squares(ConvolutionDirection direction, const Shape& x, std::int64_t filters, std::int64_t groups,
          std::int64_t places, Dtype dtype = float32, Layout layout = Layout::contiguous)
      : input(x, dtype, layout),
        weights({filters, x[1] / groups, places, places}, dtype),
        output({x[0], filters, x[2] - places + 1, x[3] - places + 1}, dtype),
        op("convolution", direction) {
    op.stride = op.dilate = {1, 1};
    op.pad = {0, 0};
    op.groups = groups;
    op.x = input.operand(), op.w = weights.operand(), op.y = output.operand();
  }
  TestArray input, weights, output;
  Convolution op;
};

TEST(ConvolutionPieces, MakeEachResultOnceAndReadWhatItIsMadeOf) {
  struct Case {
    Shape x;
    std::int64_t filters, groups;
  };
  const Case cases[] = {{{1, 3, 9, 9}, 8, 1},    {{7, 70, 5, 5}, 100, 1}, {{64, 16, 40, 40}, 32, 1},
                        {{2, 96, 6, 6}, 96, 96}, {{5, 24, 8, 8}, 48, 3},  {{1, 512, 4, 4}, 512, 1}};
  for (const Case& c : cases) {
    for (ConvolutionDirection direction : kDirections) {
      Squares squares(direction, c.x, c.filters, c.groups, 3);
      const Convolution& op = squares.op;
      host::ConvolutionGeometry g(op);
      host::Cut cut(op, g);
      EXPECT_GE(cut.piles() * cut.slices(), c.x[0] >= 32 ? 16 : 1);
      bool makes_w = direction == ConvolutionDirection::weight_gradient;
      bool makes_x = direction == ConvolutionDirection::input_gradient;
      const TestArray& made = makes_w ? squares.weights : makes_x ? squares.input : squares.output;
      // By the first element of what each piece makes: how often it is made.
      std::vector<int> times(static_cast<std::size_t>(made.size()));
      for (std::int64_t pile = 0; pile < cut.piles(); ++pile) {
        for (std::int64_t slice = 0; slice < cut.slices(); ++slice) {
          host::Parts parts(op, g, cut.piece(pile, slice));
          EXPECT_EQ(parts.x.shape[0], parts.y.shape[0]);
          EXPECT_EQ(parts.x.shape[1], parts.w.shape[0] * parts.w.shape[2]);
          EXPECT_EQ(parts.y.shape[1], parts.w.shape[0] * parts.w.shape[1]);
          const host::Part& part = makes_w ? parts.w : makes_x ? parts.x : parts.y;
          if (makes_w && pile > 0) continue;  // sums of other images
          std::vector<std::int64_t> at(part.shape.size());
          for (bool more = true; more;) {
            std::int64_t index = part.offset / 4;
            for (std::size_t i = 0; i < at.size(); ++i) index += at[i] * part.strides[i];
            ++times.at(static_cast<std::size_t>(index));
            more = false;
            for (std::size_t i = at.size(); i-- > 0 && !more;) {
              more = ++at[i] < part.shape[i];
              if (!more) at[i] = 0;
            }
          }
        }
      }
      EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](int n) { return n == 1; }));
    }
  }
}

TEST(ConvolutionByOneDnn, IsOfManyChannelsAndOfSeveralPlaces) {
#if RENSA_TEST_ONEDNN
  auto takes = [](ConvolutionDirection direction, std::int64_t channels, std::int64_t filters,
                  std::int64_t places, Dtype dtype = float32, Layout layout = Layout::contiguous) {
    Squares squares(direction, {2, channels, 9, 9}, filters, 1, places, dtype, layout);
    for (TestArray* array : {&squares.input, &squares.weights, &squares.output}) array->fill(1);
    return host::convolve_by_onednn(squares.op);
  };
  for (ConvolutionDirection direction : kDirections) {
    EXPECT_TRUE(takes(direction, 32, 16, 3));
    EXPECT_FALSE(takes(direction, 32, 16, 1));
    EXPECT_FALSE(takes(direction, 8, 8, 3));
    EXPECT_FALSE(takes(direction, 17, 17, 3));
    EXPECT_FALSE(takes(direction, 32, 16, 3, float64));
    EXPECT_FALSE(takes(direction, 32, 16, 3, float32, Layout::reversed));
  }
  EXPECT_TRUE(takes(ConvolutionDirection::forward, 3, 16, 3));
  EXPECT_FALSE(takes(ConvolutionDirection::forward, 3, 20, 3));
  EXPECT_FALSE(takes(ConvolutionDirection::input_gradient, 3, 16, 3));
#else
  GTEST_SKIP() << "this build has no oneDNN";
#endif
}

}  // namespace
}  // namespace rensa::testing
