// What the tests of rensa/array share: arrays read from the files that make_numpy_cases.py writes,
// and comparison with what is wanted.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/array/calculus.h"
#include "rensa/array/constants.h"
#include "rensa/array/dlpack.h"
#include "rensa/array/dtype_info.h"
#include "rensa/array/exchange.h"
#include "rensa/array/fft.h"
#include "rensa/array/functional.h"
#include "rensa/array/histogram.h"
#include "rensa/array/host_output.h"
#include "rensa/array/index.h"
#include "rensa/array/index_grids.h"
#include "rensa/array/indexing_routines.h"
#include "rensa/array/io.h"
#include "rensa/array/ipc.h"
#include "rensa/array/linalg.h"
#include "rensa/array/math.h"
#include "rensa/array/order_statistics.h"
#include "rensa/array/polynomial.h"
#include "rensa/array/print.h"
#include "rensa/array/routines.h"
#include "rensa/array/scan.h"
#include "rensa/array/sets.h"
#include "rensa/array/signal.h"
#include "rensa/array/softmax.h"
#include "rensa/array/sorting.h"
#include "rensa/array/statistics.h"
#include "rensa/core/device.h"
#include "rensa/core/dtype.h"
#include "rensa/core/error.h"
#include "rensa/core/scalar.h"
#include "rensa/core/shape.h"
#include "rensa/core/thread_pool.h"
#include "rensa/core/thread_state.h"
#include "rensa/core/version.h"
#include "rensa/device/allocators.h"
#include "rensa/device/devices.h"
#include "rensa/device/limits.h"
#include "rensa/device/memory_hooks.h"
#include "rensa/device/memory_pool.h"
#include "rensa/device/profiler.h"
#include "rensa/device/stream.h"
#include "rensa/device/stream_graph.h"
#include "rensa/device/timeline.h"
#include "rensa/device/transfer_stats.h"
#include "tests/testing.h"

namespace rensa::testing {

/// "float32:2,3:0000803f..." as an array on `device`.
inline Array read_array(const std::string& text, Device device) {
  std::size_t first = text.find(':'), second = text.find(':', first + 1);
  Dtype dtype = parse_dtype(text.substr(0, first));
  std::string extents = text.substr(first + 1, second - first - 1), bytes = text.substr(second + 1);
  Shape shape;
  std::istringstream stream(extents == "-" ? "" : extents);
  for (std::string extent; std::getline(stream, extent, ',');) shape.push_back(std::stoll(extent));
  std::vector<char> data;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    data.push_back(static_cast<char>(std::stoi(bytes.substr(i, 2), nullptr, 16)));
  }
  EXPECT_EQ(static_cast<std::int64_t>(data.size()), shape.total() * itemsize(dtype)) << text;
  return xp::from_host(data.data(), shape, dtype, device);
}

/// The relative error that a floating function may have.
inline double tolerance(Dtype dtype) {
  switch (dtype) {
    case Dtype::float16: return 1.2e-3;
    case Dtype::bfloat16: return 9e-3;
    case Dtype::float32: return 2e-6;
    case Dtype::complex64: return 1e-5;
    case Dtype::complex128: return 1e-12;
    default: return 2e-14;
  }
}

struct Closeness {
  double rtol = 0;
  double atol = 0;
  bool zero_signs = false;  // tell -0 from 0
};

inline bool is_close(double got, double want, Closeness c) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  if (want == 0 && got == 0) return !c.zero_signs || std::signbit(got) == std::signbit(want);
  return std::abs(got - want) <= c.rtol * std::abs(want) + c.atol;
}

/// Same dtype, shape and values; integers exactly.
inline ::testing::AssertionResult matches(const Array& got, const Array& want, Closeness c) {
  auto fail = [&] {
    return ::testing::AssertionFailure() << "got  " << got.str() << "\nwant " << want.str();
  };
  if (got.dtype() != want.dtype() || got.shape() != want.shape()) return fail();
  char kind = dtype_kind(want.dtype());
  if (kind == 'c') {
    auto g = got.to_vector<std::complex<double>>(), w = want.to_vector<std::complex<double>>();
    for (std::size_t i = 0; i < w.size(); ++i) {
      double size = std::isfinite(std::abs(w[i])) ? std::abs(w[i]) : 0;
      Closeness part{0, c.rtol * size + c.atol, false};  // beside the number, not the part
      if (!is_close(g[i].real(), w[i].real(), part)) return fail();
      if (!is_close(g[i].imag(), w[i].imag(), part)) return fail();
    }
  } else if (kind == 'f') {
    auto g = got.to_vector<double>(), w = want.to_vector<double>();
    for (std::size_t i = 0; i < w.size(); ++i) {
      if (!is_close(g[i], w[i], c)) return fail();
    }
  } else if (got.to_vector<std::uint64_t>() != want.to_vector<std::uint64_t>()) {
    return fail();
  }
  return ::testing::AssertionSuccess();
}

}  // namespace rensa::testing
