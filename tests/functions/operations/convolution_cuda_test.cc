// Convolutions on a GPU: how their plans are chosen, limited and kept.
#include <gtest/gtest.h>

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
  UsingConfig<bool> tuned(&Config::autotune, true);
  no_backprop_mode no_graph;
  cuda::Stream stream(gpu(0), cuda::non_blocking);
  Array x = xp::random::uniform(-1, 1, {2, 5, 11, 9}, float32, gpu(0));
  Array W = xp::random::uniform(-1, 1, {7, 5, 3, 3}, float32, gpu(0)), y;
  (void)F::convolution_2d(x[Slice(0, 1)], W);  // the library is loaded by now
  cuda::synchronize(gpu(0));
  cuda::Graph graph =
      cuda::capture_graph(stream, [&] { y = F::convolution_2d(x, W, {}, {.pad = 1}).array(); });
  graph.launch(stream);
  stream.synchronize();
  Array want = F::convolution_2d(x.astype(float64), W.astype(float64), {}, {.pad = 1}).array();
  expect_close(y, want, 2e-6, "y");
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
  auto expect_same = [&] {
    Arrays got = work(float32);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(xp::array_equal(got[i], want[i])) << i;
  };
  expect_same();
  EXPECT_EQ(cuda::sync_count(), waits);  // nothing is timed anew
  std::string text = testing::read_file(path);
  EXPECT_NE(text.find("\nconvolution "), std::string::npos);
  // Lines that nobody can read, and choices that are none, do no harm.
  testing::write_file(path, text + "convolution x\nconvolution x : y\nconvolution 1 2 : 4 5=6\n");
  cuda::load_plans(path);
  expect_same();
  for (const char* choice : {" : 999999 2=1\n", " : nonsense\n", " : 0 2\n"}) {
    testing::write_file(path, std::regex_replace(text, std::regex(" : [^\n]*\n"), choice));
    cuda::load_plans(path);
    Arrays got = work(float32);
    for (std::size_t i = 0; i < got.size(); ++i) {
      expect_close(got[i], want[i], 5e-6, choice + std::to_string(i));
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
