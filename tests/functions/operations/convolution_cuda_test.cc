// Convolutions on a GPU: how their plans are chosen, limited and kept.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>
#include <string>

#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/launcher.h"
#include "rensa/device/limits.h"
#include "rensa/device/plans.h"
#include "rensa/device/stream.h"
#include "rensa/device/stream_graph.h"
#include "rensa/functions/functions.h"
#include "rensa/functions/operations/convolution/convolution.h"
#include "rensa/graph/recording.h"
#include "rensa/graph/rewrite.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using operations::Convolution;
using operations::ConvolutionDirection;

void expect_close(const Array& got, const Array& want, double tolerance, const std::string& what) {
  Array difference = xp::absolute(got.astype(float64) - want.astype(float64));
  double scale = xp::absolute(want.astype(float64)).max().item<double>();
  EXPECT_LE(difference.max().item<double>(), tolerance * scale) << what;
}

/// Operands of a convolution, and what it and its gradients give.
struct Work {
  Shape x_shape, W_shape;
  F::ConvolutionOptions options;
  bool last = false;

  Arrays operator()(Dtype dtype) const {
    xp::random::seed(6);
    auto make = [&](const Shape& shape) {
      Array a = xp::random::uniform(-1, 1, shape, float64, gpu(0)).astype(dtype);
      return last ? F::channels_last(a) : a;
    };
    Variable x(make(x_shape)), W(make(W_shape));
    Variable y = F::convolution_2d(x, W, {}, options);
    Variables g = grad({y}, {x, W}, {constant(make(y.shape()))});
    return {y.array(), g[0].array(), g[1].array()};
  }
};

const Work kWorks[] = {
    {{4, 24, 15, 14}, {32, 24, 3, 3}, {.pad = 1}, false},
    {{4, 32, 15, 14}, {16, 32, 3, 3}, {.stride = 2, .pad = 1}, true},
    {{3, 16, 12, 12}, {16, 1, 3, 3}, {.pad = 1, .groups = 16}, true},
};

class CudaConvolution : public ::testing::Test {
 protected:
  void SetUp() override { RENSA_NEEDS_GPUS(1); }
};

TEST_F(CudaConvolution, TunedPlansAreRightAndAreTimedOnce) {
  for (const Work& work : kWorks) {
    Arrays want = work(float64);
    for (auto [dtype, tolerance] : {std::pair{float32, 2e-6}, {float16, 2e-3}, {bfloat16, 1e-2}}) {
      UsingConfig<bool> tuned(&Config::autotune, true);
      Arrays got = work(dtype);
      std::int64_t waits = cuda::sync_count();
      Arrays again = work(dtype);
      EXPECT_EQ(cuda::sync_count(), waits);
      for (std::size_t i = 0; i < got.size(); ++i) {
        std::string what = std::string(dtype_name(dtype)) + " " + std::to_string(i);
        expect_close(got[i], want[i], tolerance, what);
        EXPECT_TRUE(xp::array_equal(got[i], again[i])) << what;
      }
    }
  }
}

TEST_F(CudaConvolution, NothingIsTimedWhileAStreamIsCaptured) {
  no_backprop_mode no_graph;
  cuda::Stream stream(gpu(0), cuda::non_blocking);
  Array x = xp::random::uniform(-1, 1, {2, 5, 11, 9}, float32, gpu(0));
  Array W = xp::random::uniform(-1, 1, {7, 5, 3, 3}, float32, gpu(0)), y;
  auto convolve = [&] { return F::convolution_2d(x, W, {}, {.pad = 1}).array(); };
  Array want = convolve();  // by the plan of the heuristic, whose kernels are loaded by now
  cuda::synchronize(gpu(0));
  UsingConfig<bool> tuned(&Config::autotune, true);
  std::int64_t waits = cuda::sync_count();
  cuda::Graph graph = cuda::capture_graph(stream, [&] { y = convolve(); });
  EXPECT_EQ(cuda::sync_count(), waits);
  graph.launch(stream);
  stream.synchronize();
  EXPECT_TRUE(xp::array_equal(y, want));
}

TEST_F(CudaConvolution, OtherEnginesAreAllowedBySwitch) {
  for (bool autotune : {false, true}) {
    UsingConfig<bool> tuned(&Config::autotune, autotune);
    UsingConfig<bool> any(&Config::cudnn_deterministic, false);
    for (const Work& work : kWorks) {
      Arrays want = work(float64), got = work(float32);
      for (std::size_t i = 0; i < got.size(); ++i) {
        expect_close(got[i], want[i], 5e-6, std::to_string(i));
      }
    }
  }
}

TEST_F(CudaConvolution, PlansSurviveAFile) {
  UsingConfig<bool> tuned(&Config::autotune, true);
  const Work work{{4, 20, 13, 17}, {24, 20, 3, 3}, {.pad = 1}};
  Arrays want = work(float32);
  testing::TemporaryFolder folder;
  std::string path = folder / "plans.txt";
  cuda::save_plans(path);
  cuda::load_plans(path);
  std::int64_t waits = cuda::sync_count();
  Arrays again = work(float32);
  EXPECT_EQ(cuda::sync_count(), waits);  // nothing is timed anew
  auto expect_same = [&](const Arrays& got) {
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(xp::array_equal(got[i], want[i])) << i;
  };
  expect_same(again);
  std::string text = testing::read_file(path);
  EXPECT_NE(text.find("\nconvolution "), std::string::npos);
  // Lines that nobody can read, and choices that are none, do no harm.
  testing::write_file(path, text + "convolution x\nconvolution x : y\nconvolution 1 2 : 4 5=6\n");
  cuda::load_plans(path);
  expect_same(work(float32));
  for (const char* choice : {" : 999999 2=1\n", " : nonsense\n", " : 0 2\n"}) {
    testing::write_file(path, std::regex_replace(text, std::regex(" : [^\n]*\n"), choice));
    cuda::load_plans(path);
    Arrays got = work(float32);
    for (std::size_t i = 0; i < got.size(); ++i) {
      expect_close(got[i], want[i], 5e-6, choice + std::to_string(i));
    }
  }
}

TEST_F(CudaConvolution, IsRoundedOnceWithItsBias) {
  Array x = xp::ones({2, 64, 5, 5}, bfloat16, gpu(0));
  Array W = xp::ones({32, 64, 3, 3}, bfloat16, gpu(0));
  W[{Slice(), 0, 0, 0}].fill(2);  // sums of 577, which is 576 in bfloat16
  Variable b(xp::full({32}, -576, bfloat16, gpu(0)));
  for (bool last : {false, true}) {
    Variable vx(last ? F::channels_last(x) : x);
    Array y = F::convolution_2d(vx, Variable(W), b).array();
    EXPECT_EQ(y.min().item<float>(), 1);
    EXPECT_EQ(y.max().item<float>(), 1);
  }
}

TEST_F(CudaConvolution, TunedPlansAddTheBias) {
  UsingConfig<bool> tuned(&Config::autotune, true);
  for (const Work& work : kWorks) {
    for (auto [dtype, tolerance] : {std::pair{float64, 1e-12}, {float32, 2e-6}, {bfloat16, 1e-2}}) {
      Array x = xp::random::uniform(-1, 1, work.x_shape, float64, gpu(0)).astype(dtype);
      Array W = xp::random::uniform(-1, 1, work.W_shape, float64, gpu(0)).astype(dtype);
      Array b = xp::random::uniform(-1, 1, {work.W_shape[0]}, float64, gpu(0)).astype(dtype);
      if (work.last) x = F::channels_last(x), W = F::channels_last(W);
      auto convolve = [&](Dtype d) {
        return F::convolution_2d(x.astype(d), W.astype(d), b.astype(d), work.options).array();
      };
      expect_close(convolve(dtype), convolve(float64), tolerance, std::string(dtype_name(dtype)));
    }
  }
}

// Windows side by side, along 1 to 3 axes; the last of some images that do not fit together.
TEST_F(CudaConvolution, ExactTilesAreOneProduct) {
  struct Sizes {
    Shape y, W, stride;
  };
  for (const Sizes& sizes : {Sizes{{2, 5, 9}, {5, 3, 4}, {4}},
                             {{3, 4, 5, 7}, {4, 6, 2, 3}, {2, 3}},
                             {{2, 3, 4, 1, 20}, {3, 7, 2, 1, 2}, {2, 1, 2}},
                             {{3, 8, 256, 256}, {8, 16, 2, 2}, {2, 2}}}) {
    Array y = xp::random::uniform(-1, 1, sizes.y, float64, cpu());
    Array W = xp::random::uniform(-1, 1, sizes.W, float64, cpu());
    Array b = xp::random::uniform(-1, 1, {sizes.W[1]}, float64, cpu());
    F::DeconvolutionOptions options{.stride = sizes.stride};
    Array want = F::deconvolution_nd(y, W, b, options).array();
    for (auto [dtype, tolerance] : {std::pair{float32, 1e-6}, {float64, 1e-13}}) {
      for (bool last : {false, true}) {
        SCOPED_TRACE(sizes.y.str() + " " + std::string(dtype_name(dtype)) + (last ? " last" : ""));
        auto moved = [&, dtype = dtype](const Array& a) {
          Array there = a.astype(dtype).to(gpu(0));
          return last && a.ndim() > 2 ? F::channels_last(there) : there;
        };
        Variable x(moved(y)), filters(moved(W)), bias(moved(b));
        Recording recording;
        Array got;
        {
          RecorderScope scope(&recording);
          got = F::deconvolution_nd(x, filters, bias, options).array();
        }
        for (const auto& operation : recording.operations) {
          EXPECT_EQ(dynamic_cast<const Convolution*>(operation.get()), nullptr);
        }
        expect_close(got.to(cpu()), want, tolerance, "x");
        EXPECT_EQ(got.is_contiguous(), !last);
      }
    }
  }
}

/// Whether the numbers are the same bit for bit, but for which NaN it is.
void expect_same_numbers(const Array& got, const Array& want, const std::string& what) {
  auto a = got.astype(float64).to_vector<double>(), b = want.astype(float64).to_vector<double>();
  ASSERT_EQ(a.size(), b.size());
  std::size_t differ = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    bool same = std::isnan(a[i]) ? std::isnan(b[i])
                                 : a[i] == b[i] && std::signbit(a[i]) == std::signbit(b[i]);
    differ += !same;
  }
  EXPECT_EQ(differ, 0u) << what;
}

// Of a recorded list, with numbers that are none, infinite and below what 16 bits can tell from 0.
TEST_F(CudaConvolution, ReluJoinsWithTheSameBits) {
  no_backprop_mode no_graph;
  for (bool autotune : {false, true}) {
    UsingConfig<bool> tuned(&Config::autotune, autotune);
    for (const Work& work : kWorks) {
      for (Dtype dtype : {float32, float16, bfloat16, float64}) {
        std::string what = std::string(dtype_name(dtype)) + (autotune ? " tuned, " : ", ") +
                           work.x_shape.str() + (work.last ? " last" : "");
        Array x = xp::random::uniform(-1, 1, work.x_shape, float64, gpu(0));
        x[{0, 0, 2, 3}].fill(std::numeric_limits<double>::quiet_NaN());
        x[{1, 0, 7, 8}].fill(std::numeric_limits<double>::infinity());
        x[{2}] *= 1e-10;
        Array W = xp::random::uniform(-1, 1, work.W_shape, float64, gpu(0)).astype(dtype);
        Array b = xp::random::uniform(-1, 1, {work.W_shape[0]}, float64, gpu(0)).astype(dtype);
        b[Slice(0, 4)].fill(0);
        x = x.astype(dtype);
        if (work.last) x = F::channels_last(x), W = F::channels_last(W);
        Array y;
        auto step = [&] { y = F::relu(F::convolution_2d(x, W, b, work.options)).array(); };
        step();
        Recording recording;
        {
          RecorderScope scope(&recording);
          step();
        }
        Array eager = y.copy();
        ASSERT_EQ(recording.operations.size(), 2u) << what;
        rewrite(recording);
        bool joined = recording.operations.size() == 1;
        // Of float64 and of groups cuDNN has better ways to compute the sums alone.
        if (!autotune && dtype != float64 && work.options.groups == 1) {
          EXPECT_TRUE(joined) << what;
        }
        y.fill(7);
        for (auto& operation : recording.operations) launch(*operation);
        expect_same_numbers(y, eager, what);
      }
    }
  }
}

/// Sets the limit for a scope.
struct WorkspaceLimit {
  explicit WorkspaceLimit(std::size_t size) { cuda::set_max_workspace_size(size); }
  ~WorkspaceLimit() { cuda::set_max_workspace_size(before); }
  std::size_t before = cuda::get_max_workspace_size();
};

TEST_F(CudaConvolution, TakesNoMoreWorkspaceThanIsAllowed) {
  Array x = xp::ones({8, 64, 28, 28}, float32, gpu(0)),
        W = xp::ones({64, 64, 3, 3}, float32, gpu(0));
  Array y = xp::empty({8, 64, 26, 26}, float32, gpu(0));
  auto workspace = [&](std::size_t limit, bool autotune) {
    WorkspaceLimit scope(limit);
    Convolution op("convolution", ConvolutionDirection::forward);
    op.stride = op.dilate = {1, 1};
    op.pad = {0, 0};
    op.autotune = autotune;
    op.x = x.operand(), op.w = W.operand(), op.y = y.operand();
    std::size_t bytes = op.workspace_bytes();
    launch(op);
    EXPECT_EQ(y.min().item<float>(), 9 * 64);
    return bytes;
  };
  for (std::size_t limit : {std::size_t{0}, std::size_t{1} << 20, std::size_t{1} << 30}) {
    for (bool autotune : {false, true}) EXPECT_LE(workspace(limit, autotune), limit);
  }
}

}  // namespace
}  // namespace rensa
