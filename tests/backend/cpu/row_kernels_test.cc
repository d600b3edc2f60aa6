// The loops over rows: those of each instruction set come to the same bits, which are right.
#include "rensa/backend/cpu/row_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace rensa::host {
namespace {

template <class V> const RowKernels<V>& of(InstructionSet set) {
  static RowKernels<float> f;
  static RowKernels<double> d;
  RENSA_IN_SET(set, get_row_kernels)(f, d);
  if constexpr (std::is_same_v<V, float>) return f;
  else return d;
}

/// n values, neither sorted nor of one sign.
template <class V> std::vector<V> some(std::size_t n, int seed) {
  std::vector<V> values(n);
  for (std::size_t k = 0; k < n; ++k) {
    values[k] = static_cast<V>(std::sin(1.0 + 12.9898 * static_cast<double>(k + 1) * seed));
  }
  return values;
}

/// All that the kernels give, the outputs of loops from n + 2 elements that a loop must not reach.
template <class V> std::vector<std::vector<V>> results(const RowKernels<V>& k, std::size_t n) {
  const auto count = static_cast<std::int64_t>(n);
  const std::vector<V> a = some<V>(n, 1), b = some<V>(n, 2), c = some<V>(n, 3);
  const V *x = a.data(), *y = b.data(), *z = c.data(), by = V(0.3), scale = V(1.7);
  std::vector<std::vector<V>> all(10, some<V>(n + 2, 4));
  std::size_t next = 0;
  auto out = [&] { return all[next++].data(); };
  k.subtract(count, x, by, out());
  k.multiply(count, x, by, out());
  k.scale(count, x, by, scale, out());
  k.add(count, x, out());
  k.weigh(count, x, y, by, out());
  k.subtract_weighted(count, x, y, by, out());
  k.normalize(count, x, by, scale, y, z, out());
  k.normalize_grad(count, x, y, by, scale, z, true, out());
  k.normalize_grad(count, x, y, V(0), scale, z, false, out());
  k.subtract(count, all[next].data(), by, all[next].data());  // in place
  all.push_back({k.dot(count, x, y), k.squares(count, x, by)});
  all.push_back(some<V>(n, 5));
  all.push_back(some<V>(n, 6));
  k.add_normalized(count, x, y, by, scale, all[11].data(), all[12].data());
  return all;
}

/// The same, straight from the definitions.
template <class V> std::vector<std::vector<V>> expected(std::size_t n) {
  const std::vector<V> x = some<V>(n, 1), y = some<V>(n, 2), z = some<V>(n, 3);
  const V by = V(0.3), scale = V(1.7);
  std::vector<std::vector<V>> all(10, some<V>(n + 2, 4));
  all.push_back({V(0), V(0)});
  all.push_back(some<V>(n, 5));
  all.push_back(some<V>(n, 6));
  double dot = 0, squares = 0, sum = 0, along = 0, uncentered = 0;
  for (std::size_t k = 0; k < n; ++k) {
    dot += x[k] * y[k], squares += (x[k] - by) * (x[k] - by);
    sum += y[k] * z[k];
    along += y[k] * z[k] * ((x[k] - by) * scale), uncentered += y[k] * z[k] * (x[k] * scale);
  }
  all[10] = {V(dot), V(squares)};
  const double count = static_cast<double>(n);
  for (std::size_t k = 0; k < n; ++k) {
    const V hat = (x[k] - by) * scale;
    all[0][k] = x[k] - by;
    all[1][k] = x[k] * by;
    all[2][k] = x[k] * by / scale;
    all[3][k] += x[k];
    all[4][k] = x[k] * (y[k] - by);
    all[5][k] = x[k] - y[k] * by;
    all[6][k] = hat * y[k] + z[k];
    all[7][k] = scale * (y[k] * z[k] - V(sum / count) - hat * V(along / count));
    all[8][k] = scale * (y[k] * z[k] - x[k] * scale * V(uncentered / count));
    all[9][k] -= by;
    all[11][k] += y[k];
    all[12][k] += y[k] * hat;
  }
  return all;
}

const std::size_t kLengths[] = {0, 1, 2, 15, 16, 17, 31, 63, 64, 65, 127, 129, 200, 1000};

template <class V> void all_sets_agree(double tolerance) {
  const InstructionSet best = best_instruction_set();
  for (std::size_t n : kLengths) {
    const auto plain = results(of<V>(InstructionSet::baseline), n), want = expected<V>(n);
    for (std::size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(plain[i].size(), want[i].size());
      for (std::size_t k = 0; k < want[i].size(); ++k) {
        EXPECT_NEAR(plain[i][k], want[i][k], tolerance * static_cast<double>(n + 1))
            << "result " << i << " of " << n << " at " << k;
      }
    }
    for (InstructionSet set : {InstructionSet::avx2, InstructionSet::avx512}) {
      if (set > best) continue;
      const auto got = results(of<V>(set), n);
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_TRUE(got[i].empty() ||
                    std::memcmp(got[i].data(), plain[i].data(), got[i].size() * sizeof(V)) == 0)
            << "result " << i << " of " << n << " with set " << static_cast<int>(set);
      }
    }
  }
}

TEST(RowKernels, AreTheSameBitsForEachSetOverFloat) { all_sets_agree<float>(2e-7); }
TEST(RowKernels, AreTheSameBitsForEachSetOverDouble) { all_sets_agree<double>(2e-15); }

}  // namespace
}  // namespace rensa::host
