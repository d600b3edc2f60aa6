// Elementwise operations of the CPU backend: layouts, conversions, chunk borders, instruction sets.
// (tests/array/op_table_test.cc has the values of every operation.)
#include "rensa/operations/elementwise/cpu_elementwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "rensa/backend/cpu/kernels.h"
#include "rensa/backend/cpu/strided.h"
#include "rensa/core/functors.h"
#include "rensa/operations/elementwise/elementwise.h"
#include "rensa/operations/random/cpu_kernels.h"
#include "tests/backend/cpu/test_array.h"

namespace rensa::ufunc {
extern const UfuncInfo square, tanh, erf, expm1;
}

namespace rensa::testing {
namespace {

using operations::Elementwise;

Elementwise operation(Ufunc ufunc, Dtype compute, const TestArray& out,
                      std::initializer_list<const TestArray*> inputs) {
  Elementwise op(ufunc_info(ufunc).name, ufunc);
  op.compute = compute;
  op.out = out.operand();
  for (const TestArray* in : inputs) {
    op.in[op.num_inputs].array = in->operand();
    op.in[op.num_inputs].array.view = broadcast_view(in->view(), out.view().shape);
    ++op.num_inputs;
  }
  return op;
}

TEST(CpuElementwise, EveryLayoutOfEveryOperand) {
  const Shape shapes[] = {{},
                          {0},
                          {1},
                          {7},
                          {3, 0, 2},
                          {5, 3},
                          {2, 3, 4},
                          {300, 5},
                          {5, 300},
                          {3, 1500},
                          {2, 2, 2, 2, 2, 2, 2, 2}};
  for (const Shape& shape : shapes) {
    for (Layout a_layout : kLayouts) {
      for (Layout b_layout : kLayouts) {
        for (Layout out_layout : kLayouts) {
          TestArray a(shape, float32, a_layout), b(shape, int16, b_layout);
          TestArray out(shape, float64, out_layout);
          a.fill(1);
          b.fill(2);
          operation(ufunc::subtract, float32, out, {&a, &b}).run_cpu();
          for (std::int64_t i = 0; i < out.size(); ++i) {
            ASSERT_EQ(out.real(i), a.real(i) - b.real(i)) << shape.str() << " at " << i;
          }
        }
      }
    }
  }
}

TEST(CpuElementwise, Broadcasts) {
  for (std::int64_t n : {1, 31, 1000, 5000}) {
    TestArray row({n}, float32), column({6, 1}, float32), one({}, float32), out({6, n}, float32);
    row.fill(1);
    column.fill(2);
    one.set(0, 2.5);
    operation(ufunc::add, float32, out, {&row, &column}).run_cpu();
    for (std::int64_t i = 0; i < 6 * n; ++i) {
      ASSERT_EQ(out.real(i), row.real(i % n) + column.real(i / n));
    }
    operation(ufunc::multiply, float32, out, {&one, &row}).run_cpu();
    for (std::int64_t i = 0; i < 6 * n; ++i) ASSERT_EQ(out.real(i), 2.5 * row.real(i % n));
  }
}

TEST(CpuElementwise, CastsBetweenAllDtypes) {
  const double values[] = {0, 1, 2.75, 100, -1, -2.75, 127};
  for (Dtype from : all_dtypes()) {
    for (Dtype to : all_dtypes()) {
      for (Layout layout : {Layout::contiguous, Layout::spread}) {
        TestArray in({7}, from, layout), out({7}, to, layout);
        for (std::int64_t i = 0; i < 7; ++i) {
          bool fits = dtype_kind(from) != 'u' || values[i] >= 0;
          in.set(i, fits ? values[i] : 3);
        }
        operation(ufunc::copy, from, out, {&in}).run_cpu();
        for (std::int64_t i = 0; i < 7; ++i) {
          std::complex<double> x = in.get(i);
          std::complex<double> expected = x;
          if (dtype_kind(to) != 'c') expected = x.real();
          if (to == bool_) expected = x != 0.0;
          if (dtype_kind(to) == 'i' || dtype_kind(to) == 'u') {
            auto whole = static_cast<long long>(x.real());
            if (to == uint64) expected = static_cast<double>(static_cast<std::uint64_t>(whole));
            else if (to == uint32) expected = static_cast<std::uint32_t>(whole);
            else if (to == uint16) expected = static_cast<std::uint16_t>(whole);
            else if (to == uint8) expected = static_cast<std::uint8_t>(whole);
            else expected = static_cast<double>(whole);
          }
          EXPECT_EQ(out.get(i), expected) << dtype_name(from) << " to " << dtype_name(to);
        }
      }
    }
  }
}

TEST(CpuElementwise, TruthIsOfTheElementAsItIs) {
  TestArray condition({4}, float64), a({4}, float32), b({4}, float32), out({4}, float32);
  const double conditions[] = {1e-300, 0.0, -0.0, std::numeric_limits<double>::quiet_NaN()};
  for (int i = 0; i < 4; ++i) condition.set(i, conditions[i]);
  a.fill(1);
  b.fill(2);
  operation(ufunc::where, float32, out, {&condition, &a, &b}).run_cpu();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(out.real(i), (conditions[i] != 0 ? a : b).real(i)) << i;
  }
  TestArray truth({4}, bool_);
  operation(ufunc::copy, bool_, truth, {&condition}).run_cpu();
  EXPECT_EQ(truth.bytes(), (std::vector<char>{1, 0, 0, 1}));
}

TEST(CpuElementwise, NumbersAsInputs) {
  for (Dtype d : all_dtypes()) {
    TestArray out({70}, d);
    Elementwise fill("full", ufunc::copy);
    fill.compute = d;
    fill.num_inputs = 1;
    fill.in[0].scalar = 1;
    fill.out = out.operand();
    fill.run_cpu();
    for (int i = 0; i < 70; ++i) ASSERT_EQ(out.get(i), 1.0) << dtype_name(d);
  }
}

TEST(CpuElementwise, InPlace) {
  for (Dtype d : {float32, float16, int8, complex128}) {
    for (Layout layout : kLayouts) {
      TestArray x({40, 77}, d, layout), expected({40, 77}, d);
      x.fill(3);
      operation(ufunc::square, d, expected, {&x}).run_cpu();
      operation(ufunc::square, d, x, {&x}).run_cpu();
      EXPECT_EQ(x.bytes(), expected.bytes()) << dtype_name(d);
    }
  }
}

// The same bits wherever an element stands, however many threads there are.
TEST(CpuElementwise, ResultsDoNotDependOnPositionOrThreads) {
  constexpr std::int64_t kSize = 100'003;
  TestArray x({kSize}, float32), whole({kSize}, float32);
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-4, 4);
  for (std::int64_t i = 0; i < kSize; ++i) x.set(i, uniform(random));
  for (Ufunc ufunc : {ufunc::exp, ufunc::tanh, ufunc::sin, ufunc::expm1, ufunc::erf}) {
    for_thread_counts([&](int threads) {
      TestArray out({kSize}, float32);
      operation(ufunc, float32, threads == 1 ? whole : out, {&x}).run_cpu();
      if (threads == 1) return;
      EXPECT_EQ(out.bytes(), whole.bytes());
    });
    for (std::int64_t i : {0, 1, 31, 32, 33, 1000, 65535, 100'002}) {
      TestArray one({}, float32), result({}, float32);
      one.set(0, x.real(i));
      operation(ufunc, float32, result, {&one}).run_cpu();
      EXPECT_EQ(result.real(0), whole.real(i)) << ufunc_info(ufunc).name << " at " << i;
    }
  }
}

TEST(CpuElementwise, CopiesAndTransposes) {
  for (Dtype d : {uint8, float16, float32, float64, complex128}) {
    for (const Shape& shape : {Shape{100, 67}, Shape{3, 50, 40}, Shape{1, 5}, Shape{600, 500}}) {
      for (Layout from : kLayouts) {
        for (Layout to : kLayouts) {
          TestArray in(shape, d, from), out(shape, d, to);
          in.fill(9);
          operation(ufunc::copy, d, out, {&in}).run_cpu();
          ASSERT_EQ(in.bytes(), out.bytes()) << dtype_name(d) << shape.str();
        }
      }
    }
  }
  // Middle axis densest.
  TestArray in({4, 30, 20}, float32), out({4, 20, 30}, float32);
  in.fill(1);
  ArrayView view = in.view();
  std::swap(view.shape[1], view.shape[2]);
  std::swap(view.strides[1], view.strides[2]);
  Elementwise op = operation(ufunc::copy, float32, out, {&out});
  op.in[0].array.view = view;
  op.run_cpu();
  for (std::int64_t i = 0; i < 4 * 600; ++i) {
    std::int64_t a = i / 600, b = i / 30 % 20, c = i % 30;
    ASSERT_EQ(out.real(i), in.real(a * 600 + c * 20 + b));
  }
}

// Every kernel of each instruction set against the baseline's.
TEST(CpuKernels, InstructionSetsAgree) {
  using host::InstructionSet;
  host::KernelTable baseline = host::make_kernel_table(InstructionSet::baseline);
  for (InstructionSet set : {InstructionSet::avx2, InstructionSet::avx512}) {
    if (set > host::best_instruction_set()) continue;
    host::KernelTable table = host::make_kernel_table(set);
    constexpr int kCount = 133;
    int compared = 0;
    auto compare = [&]<class V>(ComputeType type, V tolerance) {
      std::vector<V> inputs[3];
      std::mt19937 random(7);
      for (auto& values : inputs) {
        for (int i = 0; i < kCount; ++i) {
          values.push_back(static_cast<V>(static_cast<double>(random() % 2000) / 500 + 0.1));
        }
      }
      for (Ufunc u : all_ufuncs()) {
        auto kernel = table.of(u, type);
        auto reference = baseline.of(u, type);
        ASSERT_EQ(!kernel, !reference);
        if (!kernel) continue;
        ++compared;
        const void* in[] = {inputs[0].data(), inputs[1].data(), inputs[2].data()};
        std::vector<V> a(kCount), b(kCount);
        kernel(kCount, in, a.data(), 0);
        reference(kCount, in, b.data(), 0);
        for (std::size_t i = 0; i < kCount; ++i) {
          bool both_nan = a[i] != a[i] && b[i] != b[i];
          V distance = a[i] < b[i] ? b[i] - a[i] : a[i] - b[i];
          V size = b[i] < V(0) ? -b[i] : b[i];
          EXPECT_TRUE(both_nan || distance <= tolerance * (size + (tolerance > V(0) ? V(1) : V(0))))
              << ufunc_info(u).name << " " << a[i] << " " << b[i];
        }
      }
    };
    compare.operator()<float>(ComputeType::f32, 1e-6f);
    compare.operator()<double>(ComputeType::f64, 2e-15);
    compare.operator()<long long>(ComputeType::i64, 0);
    EXPECT_GT(compared, 150);
  }
}

// An input that is one number for all elements, given once, gives the bits of all of them written
// out.
TEST(CpuKernels, RepeatedInputsAreThoseWrittenOut) {
  using host::InstructionSet;
  for (InstructionSet set :
       {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512}) {
    if (set > host::best_instruction_set()) continue;
    host::KernelTable table = host::make_kernel_table(set);
    auto compare = [&]<class V>(ComputeType type) {
      for (std::int64_t n : {1, 31, 64, 255, 256, 257, 700}) {
        auto count = static_cast<std::size_t>(n);
        std::mt19937 random(static_cast<unsigned>(n));
        for (Ufunc u : all_ufuncs()) {
          auto kernel = table.of(u, type);
          if (!kernel) continue;
          int inputs = ufunc_info(u).inputs;
          for (unsigned repeated = 1; repeated < 1u << inputs; ++repeated) {
            std::vector<V> values[3], once[3];
            const void *written[3], *given[3];
            for (unsigned k = 0; k < 3; ++k) {
              for (std::size_t i = 0; i < count; ++i) {
                bool again = i > 0 && (repeated >> k & 1) != 0;
                double drawn = static_cast<double>(random() % 2000) / 500 + 0.1;
                values[k].push_back(again ? values[k][0] : static_cast<V>(drawn));
              }
              auto kept = static_cast<std::ptrdiff_t>(
                  (repeated >> k & 1) != 0 ? std::min(n, host::kRepeats) : n);
              once[k].assign(values[k].begin(), values[k].begin() + kept);
              written[k] = values[k].data(), given[k] = once[k].data();
            }
            std::vector<V> want(count), got(count);
            kernel(n, written, want.data(), 0);
            kernel(n, given, got.data(), repeated);
            ASSERT_EQ(std::memcmp(want.data(), got.data(), count * sizeof(V)), 0)
                << ufunc_info(u).name << " of " << n << ", " << repeated;
          }
        }
      }
    };
    compare.operator()<float>(ComputeType::f32);
    compare.operator()<double>(ComputeType::f64);
    compare.operator()<long long>(ComputeType::i64);
    compare.operator()<complex_t<float>>(ComputeType::c64);
  }
}

TEST(CpuKernels, HalvesOfEveryInstructionSetAreTheSame) {
  std::vector<float> x;
  for (unsigned high = 0; high < 1u << 16; ++high) {  // NaN of every kind, ties, subnormals, ends
    for (unsigned low : {0u, 0x0fffu, 0x1000u, 0x1001u, 0x3000u}) {
      x.push_back(detail::bit_cast<float>(high << 16 | low));
    }
  }
  x.resize(x.size() - 3);
  auto n = static_cast<std::int64_t>(x.size());
  for (int set = 0; set <= static_cast<int>(host::best_instruction_set()); ++set) {
    host::KernelTable table = host::make_kernel_table(static_cast<host::InstructionSet>(set));
    std::vector<unsigned short> got(x.size());
    table.store_of(float16, ComputeType::f32)(n, x.data(), reinterpret_cast<char*>(got.data()), 2);
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(got[i], half_t(x[i]).bits) << x[i] << " by instruction set " << set;
    }
  }
}

TEST(CpuKernels, FillsElementsOfEverySize) {
  for (int set = 0; set <= static_cast<int>(host::best_instruction_set()); ++set) {
    host::KernelTable table = host::make_kernel_table(static_cast<host::InstructionSet>(set));
    for (std::size_t size : {1u, 2u, 4u, 8u, 16u}) {
      std::string element("0123456789abcdef", size), want, got(1 + 77 * size + 1, '-');
      for (int i = 0; i < 77; ++i) want += element;
      table.fill(77, element.data(), static_cast<std::int64_t>(size), got.data() + 1);
      EXPECT_EQ(got, "-" + want + "-");
    }
  }
}

TEST(CpuKernels, PhiloxOfEveryInstructionSetIsTheSame) {
  std::vector<std::uint32_t> expected(4 * 77), words(4 * 77);
  host::baseline::get_random_kernels().philox(0x123456789abcdefull, 0xfffffff0ull, 77,
                                              expected.data());
  EXPECT_NE(expected[0], expected[4]);
  host::random_kernels().philox(0x123456789abcdefull, 0xfffffff0ull, 77, words.data());
  EXPECT_EQ(words, expected);
}

}  // namespace
}  // namespace rensa::testing
