// Devices by number and by array, Chainer's dummy device, and the snippets of its guide to GPUs.
#include "rensa/array/cuda_names.h"

#include <gmock/gmock.h>

#include <sstream>
#include <type_traits>

#include "tests/array/arrays.h"

namespace rensa {
namespace {

using cuda::DeviceOrDummy;
using ::testing::HasSubstr;
using testing::thrown;
using V = std::vector<double>;

Device current() { return ThreadState::current().device; }

/// The CPU and the last GPU that there is: another one than the first where there are two.
std::vector<Device> some_devices() {
  std::vector<Device> devices{cpu()};
  if (num_gpus() > 0) devices.push_back(gpu(num_gpus() - 1));
  return devices;
}

TEST(CudaNames, TheDummyChangesNothing) {
  Array host = xp::ones({2}, float32, cpu());
  for (Device device : some_devices()) {
    DeviceScope outer(device);
    for (DeviceOrDummy dummy :
         {cuda::get_device_from_id(none), cuda::get_device_from_array(host), DeviceOrDummy()}) {
      EXPECT_TRUE(dummy.is_dummy());
      {
        DeviceScope on(dummy);
        EXPECT_EQ(current(), device);
        EXPECT_EQ(xp::ones({2}).device(), device);
      }
      EXPECT_EQ(current(), device);
      dummy.use();
      EXPECT_EQ(current(), device);
      EXPECT_EQ(Device(dummy), device);
      EXPECT_FALSE(dummy == device);
      EXPECT_EQ(dummy, DeviceOrDummy());
      EXPECT_EQ(dummy.str(), "dummy");
    }
  }
  EXPECT_EQ(current(), cpu());
}

// The dummy asks when its scope is entered; get_device(none), the older name, when it is called.
TEST(CudaNames, NoneIsTheCurrentDeviceOrTheDummy) {
  static_assert(std::is_same_v<decltype(cuda::get_device(none)), Device>);
  static_assert(std::is_same_v<decltype(cuda::get_device_from_id(none)), DeviceOrDummy>);
  for (Device device : some_devices()) {
    DeviceScope outer(device);
    Device then = cuda::get_device(none);
    DeviceOrDummy dummy = cuda::get_device_from_id(none);
    EXPECT_EQ(then, device);
    DeviceScope inner(cpu());
    EXPECT_EQ(then, device);
    EXPECT_EQ(Device(dummy), cpu());
  }
}

TEST(CudaNames, AGpuByItsNumber) {
  for (int id : {num_gpus(), kMaxGpus - 1}) {
    std::string text = thrown<DeviceError>([&] { cuda::get_device_from_id(id); });
    EXPECT_EQ(text, thrown<DeviceError>([&] { check_device(gpu(id)); }));
    EXPECT_THROW(cuda::get_device(id), DeviceError);
  }
  EXPECT_THROW(cuda::get_device_from_id(-1), DeviceError);
  for (int id = 0; id < num_gpus(); ++id) {
    EXPECT_EQ(cuda::get_device_from_id(id), gpu(id));
    EXPECT_EQ(cuda::get_device(id), gpu(id));
  }
  RENSA_NEEDS_GPUS(1);
  EXPECT_THAT(thrown<DeviceError>([] { cuda::get_device_from_id(num_gpus()); }),
              HasSubstr("this machine has " + std::to_string(num_gpus()) + " GPU"));
}

TEST(CudaNames, TheFirstGpuAmongArrays) {
  Array host = xp::ones({2}, float32, cpu());
  EXPECT_TRUE(cuda::get_device_from_array(host, host[0]).is_dummy());
  EXPECT_TRUE(cuda::get_device(host).is_dummy());
  EXPECT_TRUE(cuda::first_gpu({cpu(), cpu()}).is_dummy());
  EXPECT_EQ(cuda::first_gpu({cpu(), gpu(3), gpu(1)}), gpu(3));
  std::ostringstream text;
  text << cuda::first_gpu({gpu(3)}) << " " << cuda::first_gpu({cpu()});
  EXPECT_EQ(text.str(), "cuda:3 dummy");
  RENSA_NEEDS_GPUS(1);
  Array on_gpu = host.to(gpu(num_gpus() - 1));
  EXPECT_EQ(cuda::get_device_from_array(on_gpu), on_gpu.device());
  EXPECT_EQ(cuda::get_device_from_array(host, on_gpu), on_gpu.device());
  EXPECT_EQ(cuda::get_device(on_gpu), on_gpu.device());
}

Array add1(const Array& x) {
  DeviceScope on(cuda::get_device_from_array(x));
  return x + 1;
}

TEST(CudaNames, OneFunctionForAnyDevice) {
  for (Device device : some_devices()) {
    Array y = add1(xp::array({1.f, 2.f}, device));
    EXPECT_EQ(y.device(), device);
    EXPECT_EQ(y.to_vector<double>(), V({2, 3}));
    EXPECT_EQ(current(), cpu());
  }
}

TEST(CudaNames, ArraysByTheModulesNames) {
  static_assert(std::is_same_v<cuda::Device, Device>);
  for (Device device : some_devices()) {
    DeviceScope on(device);
    Array x = cuda::array({1, 2, 3});
    EXPECT_EQ(x.device(), device);
    EXPECT_EQ(cuda::empty({4, 3}, parse_dtype("f")).dtype(), float32);
    EXPECT_EQ(cuda::to_cpu(cuda::cupy::arange(3) + x).to_vector<double>(), V({1, 3, 5}));
  }
}

TEST(CudaNames, ScopesAndUseOfAGpu) {
  RENSA_NEEDS_GPUS(1);
  for (int id = 0; id < num_gpus(); ++id) {
    Array x;
    {
      DeviceScope on(cuda::get_device_from_id(id));
      x = xp::array({1, 2, 3, 4, 5});
    }
    EXPECT_EQ(x.device(), gpu(id));
    EXPECT_EQ(current(), cpu());
    {
      DeviceScope on(cuda::get_device_from_array(x));
      EXPECT_EQ(xp::empty({4, 3}).device(), gpu(id));
      EXPECT_EQ(xp::ones({2}, float32, cpu()).device(), cpu());
    }
    cuda::get_device_from_id(id).use();  // for good
    EXPECT_EQ(xp::empty({4, 3}, float32).device(), gpu(id));
    cuda::get_device_from_array(x).use();
    EXPECT_EQ(current(), gpu(id));
    EXPECT_EQ((x + 1).device(), gpu(id));
    cpu().use();
  }
}

// A copy lies where its source does, in a scope too; the device is named, or host values are given.
TEST(CudaNames, ToGpuIsACopyThatNamesTheDevice) {
  RENSA_NEEDS_GPUS(1);
  int id = num_gpus() - 1;
  Array host = xp::ones({5, 4, 3}, float32, cpu());
  Array moved = cuda::to_gpu(host, id), named = xp::array(host, gpu(id)), from_values;
  EXPECT_EQ(current(), cpu());
  {
    DeviceScope on(gpu(id));
    EXPECT_EQ(xp::array(host).device(), cpu());
    from_values = xp::array(std::vector<float>(60, 1)).reshape({5, 4, 3});
  }
  for (const Array& a : {moved, named, from_values}) {
    EXPECT_EQ(a.device(), gpu(id));
    EXPECT_EQ(a.shape(), Shape({5, 4, 3}));
    EXPECT_EQ(a.dtype(), float32);
    EXPECT_TRUE(xp::array_equal(cuda::to_cpu(a), host));
    EXPECT_TRUE(xp::array_equal(a.get(), host));
  }
}

}  // namespace
}  // namespace rensa
