// Bad input that only the device can see, and memory that is not there: a typed error with a text
// worth reading, and a process that goes on.
#include <gtest/gtest.h>

#include <cmath>

#include "rensa/core/error.h"
#include "rensa/device/memory_pool.h"
#include "rensa/functions/functions.h"
#include "tests/testing.h"

namespace rensa {
namespace {

/// The text of the E that `f` throws.
template <class E, class F> std::string error_text(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(DeviceErrors, IndexOutOfRange) {
  for (Device device : testing::test_devices()) {
    Array x = xp::arange(10, float32, device).reshape({5, 2});
    for (std::int64_t bad : {std::int64_t{5}, std::int64_t{-6}, std::int64_t{1} << 40}) {
      Array index = xp::array({0, bad, 1}, device);
      std::string text = error_text<IndexError>([&] {
        Array rows = x[index];
        rows.to_vector<float>();
      });
      EXPECT_NE(text.find("getitem"), std::string::npos) << text;
      EXPECT_NE(text.find(std::to_string(bad)), std::string::npos) << text;
      EXPECT_NE(text.find('5'), std::string::npos) << text;
    }
    Array good = x[xp::array({-1, 0}, device)];
    EXPECT_EQ(good.to_vector<float>(), (std::vector<float>{8, 9, 0, 1})) << device;
  }
}

TEST(DeviceErrors, LabelOutOfRange) {
  for (Device device : testing::test_devices()) {
    Array x = xp::zeros({3, 4}, float32, device);
    for (int bad : {4, -2}) {
      Array t = xp::array({0, bad, 1}, device).astype(int32);
      std::string text =
          error_text<IndexError>([&] { F::softmax_cross_entropy(x, t).item<float>(); });
      EXPECT_NE(text.find("softmax_cross_entropy"), std::string::npos) << text;
      EXPECT_NE(text.find(std::to_string(bad)), std::string::npos) << text;
    }
    Array t = xp::array({0, -1, 1}, device).astype(int32);  // -1 is left out
    EXPECT_NEAR(F::softmax_cross_entropy(x, t).item<float>(), std::log(4.0), 1e-6) << device;
  }
}

TEST(DeviceErrors, AllocationBeyondTheLimit) {
  RENSA_NEEDS_GPUS(1);
  MemoryPool& pool = cuda::memory_pool(gpu(0));
  pool.free_all_blocks();
  std::int64_t before = pool.total_bytes();
  pool.set_limit(before + 64_MiB);
  Array kept = xp::ones({1 << 20}, float32, gpu(0));
  std::string text = error_text<OutOfMemoryError>([&] { xp::empty({1 << 26}, float32, gpu(0)); });
  pool.set_limit(0);
  EXPECT_NE(text.find("cuda:0"), std::string::npos) << text;
  EXPECT_NE(text.find("limit"), std::string::npos) << text;
  EXPECT_EQ(kept.sum().item<float>(), static_cast<float>(1 << 20));
  EXPECT_EQ(xp::ones({1 << 26}, float32, gpu(0)).sum().item<float>(), static_cast<float>(1 << 26));
}

TEST(DeviceErrors, AllocationBeyondTheDevice) {
  RENSA_NEEDS_GPUS(1);
  std::string text =
      error_text<OutOfMemoryError>([&] { xp::empty({std::int64_t{1} << 40}, float64, gpu(0)); });
  EXPECT_NE(text.find("8796093022208"), std::string::npos) << text;
  EXPECT_EQ(xp::ones({4}, float32, gpu(0)).sum().item<float>(), 4.f);
}

TEST(DeviceErrors, OperandsOnTwoDevices) {
  RENSA_NEEDS_GPUS(1);
  Array a = xp::ones({2, 3}, float32, gpu(0)), b = xp::ones({2, 3});
  std::string text = error_text<DeviceError>([&] { a + b; });
  EXPECT_NE(text.find("add"), std::string::npos) << text;
  EXPECT_NE(text.find("cuda:0 (2, 3) float32"), std::string::npos) << text;
  EXPECT_NE(text.find("cpu (2, 3) float32"), std::string::npos) << text;
  EXPECT_EQ((a + b.to(gpu(0))).sum().item<float>(), 12.f);
}

}  // namespace
}  // namespace rensa
