// What the CPU backend does to elements as they are stored, and where it stops early: bools, of
// which any byte but 0 is true, int32, quotients of floats, and answers that few elements decide.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

#include "rensa/array/routines.h"
#include "rensa/array/ufuncs/arithmetic.h"
#include "rensa/backend/cpu/kernels.h"
#include "rensa/core/functors.h"
#include "tests/backend/cpu/test_array.h"
#include "tests/testing.h"

namespace rensa::ufunc {
extern const UfuncInfo bitwise_and, bitwise_or, bitwise_xor, fmod, nextafter;
}

namespace rensa::testing {
namespace {

unsigned char* bytes_of(const Array& a) { return reinterpret_cast<unsigned char*>(a.view().data); }

// Bools of the bytes 0, 1, 2 and 255.
Array any_bytes(std::int64_t n, unsigned seed) {
  Array a = xp::zeros({n}, bool_, cpu());
  std::mt19937 random(seed);
  constexpr unsigned char kBytes[] = {0, 1, 2, 255};
  for (std::int64_t i = 0; i < n; ++i) bytes_of(a)[i] = kBytes[random() % 4];
  return a;
}

TEST(CpuStored, EveryByteButZeroIsTrue) {
  struct Row {
    Ufunc ufunc;
    bool (*formula)(bool, bool);
  };
  const Row rows[] = {{ufunc::logical_and, [](bool a, bool b) { return a && b; }},
                      {ufunc::logical_or, [](bool a, bool b) { return a || b; }},
                      {ufunc::logical_xor, [](bool a, bool b) { return a != b; }},
                      {ufunc::bitwise_and, [](bool a, bool b) { return a && b; }},
                      {ufunc::bitwise_or, [](bool a, bool b) { return a || b; }},
                      {ufunc::bitwise_xor, [](bool a, bool b) { return a != b; }},
                      {ufunc::equal, [](bool a, bool b) { return a == b; }},
                      {ufunc::not_equal, [](bool a, bool b) { return a != b; }},
                      {ufunc::add, [](bool a, bool b) { return a || b; }},
                      {ufunc::multiply, [](bool a, bool b) { return a && b; }},
                      {ufunc::maximum, [](bool a, bool b) { return a || b; }},
                      {ufunc::minimum, [](bool a, bool b) { return a && b; }}};
  constexpr std::int64_t kCount = 300'001;  // several chunks and pieces, and an odd rest
  Array a = any_bytes(kCount, 1), b = any_bytes(kCount, 2);
  Array step = any_bytes(2 * kCount, 3)[Slice(none, none, 2)];
  for (const Row& row : rows) {
    Array both = xp::elementwise(row.ufunc, {a, b}), one = xp::elementwise(row.ufunc, {a, true});
    Array strided = xp::elementwise(row.ufunc, {a, step});
    for (std::int64_t i = 0; i < kCount; ++i) {
      bool x = bytes_of(a)[i] != 0, y = bytes_of(b)[i] != 0;
      bool z = bytes_of(step)[2 * i] != 0;
      ASSERT_EQ(bytes_of(both)[i], row.formula(x, y)) << ufunc_info(row.ufunc).name << " at " << i;
      ASSERT_EQ(bytes_of(one)[i], row.formula(x, true)) << ufunc_info(row.ufunc).name;
      ASSERT_EQ(bytes_of(strided)[i], row.formula(x, z)) << ufunc_info(row.ufunc).name;
    }
  }
  Array flipped = xp::logical_not(a);
  for (std::int64_t i = 0; i < kCount; ++i) ASSERT_EQ(bytes_of(flipped)[i], bytes_of(a)[i] == 0);
}

TEST(CpuStored, Int32WrapsAroundAndShiftsOut) {
  using L = std::numeric_limits<std::int32_t>;
  Array a = xp::array({L::max(), L::min(), -5, 7, 1}, cpu());
  Array b = xp::array({1, -1, 40, 31, 32}, cpu());
  using V = std::vector<std::int32_t>;
  EXPECT_EQ((a + b).to_vector<std::int32_t>(), (V{L::min(), L::max(), 35, 38, 33}));
  EXPECT_EQ((a - b).to_vector<std::int32_t>(), (V{L::max() - 1, L::min() + 1, -45, -24, -31}));
  EXPECT_EQ((a * b).to_vector<std::int32_t>(), (V{L::max(), L::min(), -200, 217, 32}));
  EXPECT_EQ((a << b).to_vector<std::int32_t>(), (V{-2, 0, 0, L::min(), 0}));
  EXPECT_EQ((a >> b).to_vector<std::int32_t>(), (V{L::max() / 2, -1, -1, 0, 0}));
  EXPECT_EQ((a << 33).to_vector<std::int32_t>(), (V{0, 0, 0, 0, 0}));
  EXPECT_EQ(xp::invert(a).to_vector<std::int32_t>(), (V{L::min(), L::max(), 4, -8, -2}));
  EXPECT_EQ(xp::maximum(a, 2).to_vector<std::int32_t>(), (V{L::max(), 2, 2, 7, 2}));
  // One element for all, of another dtype, and a result in another.
  Array small = xp::array({3}, cpu()).astype(int8);
  EXPECT_EQ((a & small).to_vector<std::int32_t>(), (V{3, 0, 3, 3, 1}));
  Array wide = xp::zeros({5}, int64, cpu());
  xp::add(a, a, {.out = wide});
  EXPECT_EQ(wide.dtype(), int64);
}

// Pairs of all kinds: any bits, specials, multiples and what lies beside them, large quotients.
std::vector<float> floats(std::size_t n, unsigned seed) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float specials[] = {0.0f, -0.0f,  kInf,    -kInf,  std::nanf(""), 1.0f,  -3.0f,
                            0.1f, 1e-45f, 3.4e38f, 1e-38f, 16777215.0f,   -7.5f, 2.5f};
  std::mt19937 random(seed);
  std::vector<float> values;
  for (std::size_t i = 0; i < n; ++i) {
    std::uint32_t bits = random();
    // Blocks of ordinary numbers alone, since one large quotient sends a block another way.
    if (i / 64 % 2 == 0) bits = (bits & 0x807fffffu) | ((120 + random() % 12) << 23);
    float any;
    std::memcpy(&any, &bits, sizeof(any));
    values.push_back(i / 64 % 4 == 1 ? specials[random() % std::size(specials)] : any);
  }
  return values;
}

TEST(CpuStored, QuotientsOfFloatsAreLibms) {
  constexpr std::size_t kCount = 64 * 3000 + 5;
  std::vector<float> a = floats(kCount, 1), b = floats(kCount, 2), got(kCount);
  for (std::size_t i = 0; i < kCount; i += 7) a[i] = b[i] * std::rint(a[i]);
  using host::InstructionSet;
  for (InstructionSet set :
       {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512}) {
    if (set > host::best_instruction_set()) continue;
    host::KernelTable table = host::make_kernel_table(set);
    const void* in[] = {a.data(), b.data()};
    auto check = [&](Ufunc ufunc, auto formula) {
      table.of(ufunc, ComputeType::f32)(kCount, in, got.data(), 0);
      for (std::size_t i = 0; i < kCount; ++i) {
        float want = formula(a[i], b[i]);
        bool same = std::memcmp(&want, &got[i], sizeof(want)) == 0;
        ASSERT_TRUE(same || (std::isnan(want) && std::isnan(got[i])))
            << ufunc_info(ufunc).name << " of " << a[i] << " and " << b[i] << ": " << got[i];
      }
    };
    check(ufunc::fmod, [](float x, float y) { return std::fmod(x, y); });
    check(ufunc::remainder, [](float x, float y) { return m::remainder(x, y); });
    check(ufunc::floor_divide, [](float x, float y) { return m::floor_divide(x, y); });
    check(ufunc::nextafter, [](float x, float y) { return std::nextafter(x, y); });
  }
}

// any, all and count_nonzero where a single element differs, at every kind of place.
TEST(CpuStored, OneElementDecides) {
  constexpr std::int64_t kRows = 300, kColumns = 1100;
  for (Dtype dtype : {bool_, float32, int16}) {
    for (std::int64_t at : {0l, 1023l, 1024l, 65'535l, 65'536l, 299 * 1100 + 1099l}) {
      for_thread_counts([&](int) {
        Array x = xp::zeros({kRows * kColumns}, dtype, cpu());
        if (dtype == bool_) bytes_of(x)[at] = 2;
        else x[at] = 3;
        Array none_but = x.reshape({kRows, kColumns}), all_but = xp::logical_not(none_but);
        EXPECT_TRUE(xp::any(x).item<bool>());
        EXPECT_FALSE(xp::all(all_but).item<bool>());
        EXPECT_TRUE(xp::any(none_but.T()).item<bool>());
        EXPECT_EQ(xp::count_nonzero(x).item<std::int64_t>(), 1);
        EXPECT_EQ(xp::sum(all_but).item<std::int64_t>(), kRows * kColumns - 1);
        for (int axis : {0, 1}) {
          EXPECT_EQ(xp::sum(xp::any(none_but, axis)).item<std::int64_t>(), 1);
          EXPECT_EQ(xp::sum(xp::logical_not(xp::all(all_but, axis))).item<std::int64_t>(), 1);
          EXPECT_EQ(xp::sum(xp::count_nonzero(none_but, axis)).item<std::int64_t>(), 1);
        }
        Array inner = none_but[{Slice(), Slice(0, 1000)}];  // runs that do not touch
        EXPECT_EQ(xp::any(inner).item<bool>(), at % kColumns < 1000);
        EXPECT_EQ(xp::count_nonzero(inner).item<std::int64_t>(), at % kColumns < 1000);
      });
    }
    Array nothing = xp::zeros({kRows * kColumns}, dtype, cpu());
    EXPECT_FALSE(xp::any(nothing).item<bool>());
    EXPECT_TRUE(xp::all(xp::logical_not(nothing)).item<bool>());
  }
}

TEST(CpuStored, EqualityLooksAtEveryElement) {
  constexpr std::int64_t kCount = 200'003;
  for (Dtype dtype : {bool_, float16, float32, float64, int32}) {
    Array a = xp::ones({kCount}, dtype, cpu());
    for (std::int64_t at : {0l, 1023l, 1024l, 150'000l, 200'002l}) {
      Array b = a.copy();
      EXPECT_TRUE(xp::array_equal(a, b));
      b[at] = 0;
      EXPECT_FALSE(xp::array_equal(a, b)) << dtype_name(dtype) << " " << at;
      if (dtype_kind(dtype) == 'f') {
        EXPECT_FALSE(xp::allclose(a, b));
        b[at] = NAN;
        EXPECT_FALSE(xp::array_equal(b, b));
        EXPECT_TRUE(xp::array_equal(b, b, true));
        EXPECT_FALSE(xp::array_equal(a, b, true));
      }
    }
  }
  EXPECT_TRUE(xp::array_equal(xp::array({0.0f, 1.0f}, cpu()), xp::array({-0.0f, 1.0f}, cpu())));
}

TEST(CpuStored, TheFirstExtremumOfAllParts) {
  constexpr std::int64_t kCount = 300'000;
  for_thread_counts([&](int) {
    Array x = xp::zeros({kCount}, float32, cpu());
    EXPECT_EQ(xp::argmax(x).item<std::int64_t>(), 0);
    for (std::int64_t at : {70'000, 200'000}) x[at] = 5;
    for (std::int64_t at : {80'000, 299'999}) x[at] = -5;
    EXPECT_EQ(xp::argmax(x).item<std::int64_t>(), 70'000);
    EXPECT_EQ(xp::argmin(x).item<std::int64_t>(), 80'000);
    for (std::int64_t at : {150'000, 250'000}) x[at] = NAN;
    EXPECT_EQ(xp::argmax(x).item<std::int64_t>(), 150'000);
    EXPECT_EQ(xp::argmin(x).item<std::int64_t>(), 150'000);
    Array two = xp::stack({x, -x});
    EXPECT_EQ(xp::argmax(two, 1).to_vector<std::int64_t>(),
              (std::vector<std::int64_t>{150'000, 150'000}));
  });
}

// A matrix with a column, a row or a number gives what it gives with their copies of its own shape.
TEST(CpuRows, BroadcastOperandsAreThoseWrittenOut) {
  std::vector<Dtype> dtypes = {float32, float64, int64, float16, complex64};
  std::vector<std::int64_t> widths = {255, 256, 257, 700};
  if (testing::quick()) dtypes = {float32, float16}, widths = {257};
  for (Dtype dtype : dtypes) {
    for (std::int64_t columns : widths) {
      Shape shape = {70, columns};
      Array matrix = (xp::arange(70 * columns).reshape(shape) % 97 + 1).astype(dtype);
      Array column = (xp::arange(70).reshape({70, 1}) % 13 + 1).astype(dtype);
      Array row = (xp::arange(columns) % 11 + 1).astype(dtype), one = xp::full({}, 3, dtype);
      auto written = [&](const Array& a) { return xp::copy(xp::broadcast_to(a, shape)); };
      for_thread_counts([&](int) {
        for (const Array& a : {matrix, column, row, one}) {
          for (const Array& b : {matrix, column, row, one}) {
            Array wide_a = written(a), wide_b = written(b);
            auto expect = [&](const Array& got, const Array& want) {
              EXPECT_TRUE(xp::array_equal(written(got), want, true))
                  << dtype_name(dtype) << columns;
            };
            expect(a * b, wide_a * wide_b);
            expect(a - b, wide_a - wide_b);
            expect(xp::power(a, b), xp::power(wide_a, wide_b));
            expect(xp::where(a.astype(bool_), b, matrix),
                   xp::where(wide_a.astype(bool_), wide_b, matrix));
            if (dtype == complex64) continue;
            expect(xp::fmod(a, b), xp::fmod(wide_a, wide_b));
            expect(xp::clip(matrix, a, b), xp::clip(matrix, wide_a, wide_b));
          }
        }
        Array out = xp::empty(shape, dtype);
        xp::copyto(out, column);
        EXPECT_TRUE(xp::array_equal(out, written(column)));
      });
    }
  }
}

}  // namespace
}  // namespace rensa::testing
