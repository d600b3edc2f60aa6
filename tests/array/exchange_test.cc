// Foreign memory and DLPack: shared, let go once, and refused where it cannot be an array's.
#include "rensa/array/exchange.h"

#include <gmock/gmock.h>

#include "rensa/array/dlpack.h"
#include "tests/array/arrays.h"

namespace rensa {
namespace {

using namespace dlpack;
using testing::thrown;
using V = std::vector<double>;

TEST(Wrap, SharesTheMemory) {
  std::vector<float> values{1, 2, 3, 4, 5, 6};
  Array a = xp::from_span(std::span(values));
  EXPECT_EQ(a.data(), values.data());
  a += 1;
  EXPECT_EQ(values[5], 7);
  values[0] = 100;
  EXPECT_EQ(a[0].item<float>(), 100);
  Array b = xp::wrap(values.data(), {2, 3}, float32, cpu());
  EXPECT_EQ(b.to_vector<double>(), V({100, 3, 4, 5, 6, 7}));
  // Backwards, every other one.
  Array c = xp::wrap(values.data() + 5, {3}, {-8}, float32, cpu());
  EXPECT_EQ(c.to_vector<double>(), V({7, 5, 3}));
  EXPECT_EQ(c[Slice(none, none, -1)].to_vector<double>(), V({3, 5, 7}));
  EXPECT_EQ(static_cast<void*>(c.storage()->data()), values.data() + 1);
  EXPECT_EQ(c.storage()->nbytes(), 20);
}

TEST(Wrap, LetsTheOwnerGoWithTheLastHandle) {
  int calls = 0;
  std::vector<double> values(8);
  {
    Array part;
    {
      std::shared_ptr<void> owner(&values, [&](void*) { ++calls; });
      Array a = xp::wrap(values.data(), {8}, float64, cpu(), owner);
      owner.reset();
      part = a[Slice(2, 4)];
    }
    EXPECT_EQ(calls, 0);
    part.fill(1);
  }
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(values[3], 1);
}

TEST(Wrap, RefusesWhatCannotBe) {
  double values[4] = {};
  EXPECT_THROW(xp::wrap(nullptr, {2}, float64, cpu()), ValueError);
  EXPECT_EQ(xp::wrap(nullptr, {0, 3}, float64, cpu()).size(), 0);
  EXPECT_THROW(xp::wrap(reinterpret_cast<char*>(values) + 1, {2}, float32, cpu()), ValueError);
  EXPECT_THROW(xp::wrap(values, {2}, {3}, float64, cpu()), ValueError);
  EXPECT_THROW(xp::wrap(values, {-1}, float64, cpu()), ShapeError);
  EXPECT_THROW(xp::wrap(values, {2, 2}, {8}, float64, cpu()), ShapeError);
  EXPECT_THROW(xp::wrap(values, {std::int64_t{1} << 62}, float64, cpu()), ShapeError);
  EXPECT_THROW(xp::wrap(values, {1 << 20, 1 << 20}, {std::int64_t{1} << 50, 8}, float64, cpu()),
               ShapeError);
  EXPECT_THROW(xp::wrap(values, {1}, float64, gpu(kMaxGpus - 1)), DeviceError);
}

class DlpackTest : public ::testing::TestWithParam<Device> {
 protected:
  DeviceScope scope_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Devices, DlpackTest, ::testing::ValuesIn(testing::test_devices()),
                         [](const auto& info) { return info.param.is_cpu() ? "cpu" : "cuda"; });

TEST_P(DlpackTest, EveryDtypeBothWays) {
  for (int d = 0; d < kNumDtypes; ++d) {
    auto dtype = static_cast<Dtype>(d);
    Array whole = xp::arange(24).reshape({4, 6}).astype(dtype);
    for (const Array& a :
         {whole, whole.transpose(), Array(whole[{Slice(none, none, -1), Slice(1, 4)}]),
          Array(whole[{1, 2}]), Array(whole[{Slice(0), Slice()}]),
          Array(whole[0]).broadcast_to({3, 6})}) {
      Array b = xp::from_dlpack(to_dlpack(a));
      Array c = xp::from_dlpack(to_dlpack_unversioned(a));
      for (const Array& got : {b, c}) {
        EXPECT_EQ(got.dtype(), dtype);
        EXPECT_EQ(got.device(), GetParam());
        EXPECT_EQ(got.data(), a.data());
        EXPECT_TRUE(testing::matches(got.to(cpu()), a.to(cpu()), {})) << dtype_name(dtype);
      }
    }
  }
}

TEST_P(DlpackTest, TheTensorKeepsTheArray) {
  DLManagedTensorVersioned* tensor = nullptr;
  const Storage* storage = nullptr;
  Array keep;
  {
    Array a = xp::arange(6, float32).reshape({2, 3});
    storage = a.storage().get();
    keep = a;
    tensor = to_dlpack(a, {.stream = nullptr});
  }
  EXPECT_EQ(storage->use_count(), 2);
  EXPECT_EQ(tensor->version.major, 1u);
  EXPECT_EQ(tensor->flags, 0u);
  EXPECT_EQ(tensor->dl_tensor.ndim, 2);
  EXPECT_EQ(tensor->dl_tensor.strides[0], 3);
  EXPECT_EQ(tensor->dl_tensor.dtype.code, kDLFloat);
  EXPECT_EQ(tensor->dl_tensor.dtype.bits, 32);
  EXPECT_EQ(tensor->dl_tensor.device.device_type, GetParam().is_cpu() ? kDLCPU : kDLCUDA);
  {
    Array back = xp::from_dlpack(tensor);
    EXPECT_EQ(storage->use_count(), 2);
    back += 1;
  }
  EXPECT_EQ(storage->use_count(), 1);
  EXPECT_EQ(keep.to_vector<double>(), V({1, 2, 3, 4, 5, 6}));
}

TEST(Dlpack, ForeignTensors) {
  static int deleted;
  deleted = 0;
  float values[6] = {0, 1, 2, 3, 4, 5};
  std::int64_t shape[2] = {1, 5};
  DLManagedTensorVersioned tensor = {};
  tensor.version = {1, 3};
  tensor.deleter = [](DLManagedTensorVersioned*) { ++deleted; };
  tensor.dl_tensor = {values, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 4};
  EXPECT_EQ(xp::from_dlpack(&tensor).to_vector<double>(), V({1, 2, 3, 4, 5}));
  EXPECT_EQ(deleted, 1);
  tensor.flags = kReadOnly;
  {
    Array read_only = xp::from_dlpack(&tensor);
    EXPECT_EQ(read_only.data(), values + 1);
    EXPECT_THROW(read_only.fill(9), ValueError);
    EXPECT_THROW(to_dlpack_unversioned(read_only), ValueError);
    DLManagedTensorVersioned* again = to_dlpack(read_only);
    EXPECT_EQ(again->flags, kReadOnly);
    EXPECT_THROW(xp::from_dlpack(again) += 1, ValueError);
    EXPECT_EQ(values[1], 1);
    EXPECT_EQ(deleted, 1);
  }
  EXPECT_EQ(deleted, 2);

  auto refused = [&](auto change) {
    DLManagedTensorVersioned bad = tensor;
    change(bad);
    deleted = 0;
    try {
      xp::from_dlpack(&bad);
    } catch (const Error&) {
      return deleted == 0;  // the tensor is still the caller's
    }
    return false;
  };
  EXPECT_TRUE(refused([](auto& t) { t.version.major = 2; }));
  EXPECT_TRUE(refused([](auto& t) { t.dl_tensor.dtype.lanes = 4; }));
  EXPECT_TRUE(refused([](auto& t) { t.dl_tensor.dtype.bits = 8; }));
  EXPECT_TRUE(refused([](auto& t) { t.dl_tensor.dtype.code = 3; }));
  EXPECT_TRUE(refused([](auto& t) { t.dl_tensor.ndim = kMaxNdim + 1; }));
  EXPECT_TRUE(refused([](auto& t) { t.dl_tensor.ndim = -1; }));
  EXPECT_TRUE(refused([](auto& t) { t.dl_tensor.shape = nullptr; }));
  EXPECT_TRUE(refused([](auto& t) { t.dl_tensor.byte_offset = 2; }));
  EXPECT_TRUE(refused([](auto& t) { t.dl_tensor.device = {static_cast<DLDeviceType>(4), 0}; }));
  EXPECT_TRUE(refused([](auto& t) { t.dl_tensor.device = {kDLCUDA, kMaxGpus + 3}; }));
  EXPECT_TRUE(refused([](auto& t) {
    static std::int64_t wide[2] = {std::int64_t{1} << 62, 5};
    t.dl_tensor.shape = wide;
  }));
  EXPECT_THROW(xp::from_dlpack(static_cast<DLManagedTensor*>(nullptr)), ValueError);
}

}  // namespace
}  // namespace rensa
