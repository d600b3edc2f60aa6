// The kernels of every instruction set that this machine has, against the sum that defines them.
#include "rensa/operations/fft/cpu_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "rensa/backend/cpu/kernels.h"

namespace rensa::host {
namespace {

template <class R> void check(const FftKernels<R>& kernels, std::int64_t n) {
  SCOPED_TRACE(std::to_string(n) + " values in " + std::to_string(kernels.lanes) + " lanes");
  int lanes = kernels.lanes;
  struct alignas(64) Line {
    R values[64 / sizeof(R)];
  };
  std::vector<Line> first(static_cast<std::size_t>(2 * n)), second(first.size());
  std::vector<std::complex<R>> in(static_cast<std::size_t>(lanes * n)), out(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    in[i] = {static_cast<R>(i * 7 % 11) - 5, static_cast<R>(i * 5 % 13) - 6};
  }
  FftLanes from, to;
  from.used = to.used = lanes;
  from.step = to.step = sizeof(in[0]);
  from.part = to.part = sizeof(R);
  for (int l = 0; l < lanes; ++l) {
    from.data[l] = reinterpret_cast<char*>(in.data() + l * n);
    to.data[l] = reinterpret_cast<char*>(out.data() + l * n);
  }
  R *a = first[0].values, *b = second[0].values;
  FftPlan<R> plan(n);
  kernels.gather(from, n, n, false, a, b);
  R* result = kernels.run(plan.passes.data(), plan.passes.size(), plan.factors.data(), a, b);
  kernels.scatter(result, n, false, 2, to, result == a ? b : a);
  double limit = (sizeof(R) == 4 ? 1e-5 : 1e-13) * static_cast<double>(n);
  for (int l = 0; l < lanes; l += lanes - 1) {
    for (std::int64_t k = 0; k < n; ++k) {
      std::complex<double> want = 0;
      for (std::int64_t j = 0; j < n; ++j) {
        double turn = static_cast<double>(j * k % n) / static_cast<double>(n);
        want += 2.0 * std::complex<double>(in[static_cast<std::size_t>(l * n + j)]) *
                std::polar(1.0, -2 * std::numbers::pi * turn);
      }
      ASSERT_LT(std::abs(std::complex<double>(out[static_cast<std::size_t>(l * n + k)]) - want),
                limit)
          << k << " of lane " << l;
    }
  }
}

using Get = void (*)(FftKernels<float>&, FftKernels<double>&);

void check_set(Get get) {
  FftKernels<float> narrow;
  FftKernels<double> wide;
  get(narrow, wide);
  for (std::int64_t n : {1, 2, 3, 4, 5, 6, 8, 16, 27, 32, 61, 64, 77, 120, 512}) {
    check(narrow, n);
    check(wide, n);
  }
}

TEST(FftKernels, OfEveryInstructionSet) {
  for (int set = 0; set <= static_cast<int>(best_instruction_set()); ++set) {
    check_set(RENSA_IN_SET(static_cast<InstructionSet>(set), get_fft_kernels));
  }
}

TEST(FftKernels, TurnsOfManyParts) {
  for (std::int64_t n : {1, 8, 8000, 30011, 1 << 20}) {
    Turns turns(n);
    for (std::int64_t k : {std::int64_t{0}, std::int64_t{1}, n / 4, n / 3, n / 2, n - 1, n}) {
      double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
      EXPECT_NEAR(turns(k).re, std::cos(angle), 1e-15) << k << " of " << n;
      EXPECT_NEAR(turns(k).im, std::sin(angle), 1e-15) << k << " of " << n;
    }
  }
}

}  // namespace
}  // namespace rensa::host
