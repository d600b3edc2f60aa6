// Pointwise rows of the CPU backend: instruction sets, chunk borders, threads. (tests/array's
// pointwise_test.cc has layouts and dtypes.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "rensa/operations/pointwise/cpu_kernels.h"
#include "tests/backend/cpu/test_array.h"
#include "tests/num_threads.h"

namespace rensa::testing {
namespace {

operations::Pointwise operation(const PointwiseRow& row, Dtype compute,
                                std::vector<const TestArray*> inputs,
                                std::vector<const TestArray*> outputs) {
  operations::Pointwise op(row);
  op.compute = compute;
  for (const TestArray* in : inputs) op.in.emplace_back().array = in->operand();
  for (const TestArray* out : outputs) op.out.push_back(out->operand());
  return op;
}

// Each instruction set's kernels come to the baseline's values, whole blocks and rests.
TEST(CpuPointwise, InstructionSetsAgree) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> uniform(-3, 3);
  constexpr int kSize = 75;
  auto best = static_cast<int>(host::best_instruction_set());
  host::PointwiseTable baseline = host::make_pointwise_table(host::InstructionSet::baseline);
  for (int set = 1; set <= best; ++set) {
    host::PointwiseTable table = host::make_pointwise_table(static_cast<host::InstructionSet>(set));
    for (const PointwiseRow* row : pointwise::all_rows()) {
      double in[kMostPointwiseInputs][kSize];
      double want[kMostPointwiseOutputs][kSize], got[kMostPointwiseOutputs][kSize];
      const void* inputs[kMostPointwiseInputs];
      void *wanted[kMostPointwiseOutputs], *gotten[kMostPointwiseOutputs];
      for (int k = 0; k < row->inputs; ++k) {
        std::ranges::generate(in[k], [&] { return uniform(random); });
        inputs[k] = in[k];
      }
      for (int k = 0; k < row->outputs; ++k) wanted[k] = want[k], gotten[k] = got[k];
      auto f64 = static_cast<int>(ComputeType::f64);
      baseline.kernel[row->index][f64](kSize, inputs, wanted);
      table.kernel[row->index][f64](kSize, inputs, gotten);
      for (int k = 0; k < row->outputs; ++k) {
        for (int i = 0; i < kSize; ++i) {
          if (std::isnan(want[k][i]) && std::isnan(got[k][i])) continue;  // of a negative base
          EXPECT_NEAR(got[k][i], want[k][i], 1e-12 * (1 + std::abs(want[k][i])))
              << row->name << " at " << i;
        }
      }
    }
  }
}

// The same bits wherever an element stands, however many threads there are, whether or not the
// operands are used in place.
TEST(CpuPointwise, ResultsDoNotDependOnPositionThreadsOrLayout) {
  constexpr std::int64_t kSize = 100'003;
  TestArray x({kSize}, float32), gy({kSize}, float32), whole({kSize}, float32);
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-4, 4);
  for (std::int64_t i = 0; i < kSize; ++i) x.set(i, uniform(random)), gy.set(i, uniform(random));
  for (const PointwiseRow* row : {&pointwise::gelu_grad, &pointwise::silu_grad}) {
    for_thread_counts([&](int threads) {
      TestArray out({kSize}, float32);
      operation(*row, float32, {&x, &gy}, {threads == 1 ? &whole : &out}).run_cpu();
      if (threads == 1) return;
      EXPECT_EQ(out.bytes(), whole.bytes());
    });
    TestArray spread({kSize}, float32, Layout::spread), wide({kSize}, float64);
    for (std::int64_t i = 0; i < kSize; ++i) spread.set(i, gy.real(i));
    operation(*row, float32, {&x, &spread}, {&wide}).run_cpu();
    for (std::int64_t i = 0; i < kSize; ++i) ASSERT_EQ(wide.real(i), whole.real(i)) << i;
  }
}

}  // namespace
}  // namespace rensa::testing
