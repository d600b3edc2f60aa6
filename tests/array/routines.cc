#include "tests/array/routines.h"

#include <limits>

#include "rensa/array.h"

namespace rensa::testing {

RoutineTable::RoutineTable(std::int64_t size, std::int64_t rows, std::int64_t order, Device where,
                           std::string path)
    : n(size), r(rows), t(order), device(where), path_(std::move(path)), bytes(64, '\0') {
  xp::random::seed(7);
  auto uniform = [&](const Shape& shape) {
    return xp::random::uniform(0.1, 0.9, shape, float32, device);
  };
  x = uniform({n});
  y = uniform({n});
  g = x + 1;
  z = x.copy();
  z[{1}] = std::numeric_limits<float>::quiet_NaN();
  o = x.copy();
  a = uniform({r, r});
  b = uniform({r, r});
  c = uniform({n / 2}).astype(complex64) * std::complex<float>(1, 2);
  i = xp::random::randint(1, 31, {n}, int32, device);
  u = xp::random::randint(0, 8, {n}, int32, device);
  k = xp::random::randint(0, 2, {n}, int32, device).astype(bool_);
  l = xp::random::randint(0, 2, {n}, int32, device).astype(bool_);
  w = xp::linspace(0, 1, r, float32, device);
  v = uniform({r});
  j = xp::random::randint(0, n, {n / 4}, int64, device);
  p = xp::random::permutation(n, device);
  q = xp::random::randint(0, r, {r}, int64, device);
  m = uniform({t, t}) + xp::eye(t, float32, device) * static_cast<float>(t);
  s = xp::matmul(m, m.T()) + xp::eye(t, float32, device);
  e = uniform({r, 64});
  f = m.copy();
  fill_rows();
}

void RoutineTable::fill_rows() {
#define RENSA_ROUTINE(name, numpy, torch, ...) \
  rows_.push_back({name, true, [this] { (void)(__VA_ARGS__); }});
#define RENSA_COVERED(name, ...) rows_.push_back({name, false, [this] { (void)(__VA_ARGS__); }});
#include "tests/array/routines.def"
#undef RENSA_ROUTINE
#undef RENSA_COVERED
}

}  // namespace rensa::testing
