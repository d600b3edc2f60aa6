// Arrays on GPUs: the current device, copies, functions for any device, the memory pool. Each part
// is one of docs/guide.md.
#include <rensa/array.h>

#include <iostream>
#include <stdexcept>

#include "arguments.h"

using namespace rensa;

static void check(bool as_the_guide_says, const char* what) {
  if (!as_the_guide_says) throw std::logic_error(what);
}

static void current_device(Device device) {
  Array x;
  {
    DeviceScope on(device);          // the current device, until the block ends
    x = xp::array({1, 2, 3, 4, 5});  // made there
  }
  Array y = x + 1;  // computed where x is, whichever device is current
  std::cout << "x is on " << x.device() << ", x + 1 on " << y.device() << "\n";
  check(x.device() == device && y.device() == device, "current_device");
}

static void copies(Device device) {
  Array x_cpu = xp::ones({5, 4, 3}, float32, cpu());
  Array x = x_cpu.to(device);  // to_gpu(x_cpu, 1) where that is gpu(1)
  Array made = xp::ones({5, 4, 3}, float32, device);
  Array back = x.to_cpu();  // to_cpu(x)
  Array fetched = x.get();  // a new array on the host in any case
  check(x.device() == device && fetched.device() == cpu(), "copies");
  check(xp::array_equal(x, made) && xp::array_equal(back, fetched), "copies");
}

static void by_number(int id) {
  cuda::get_device_from_id(id).use();  // current from now on
  Array x = xp::empty({4, 3}, float32);
  cpu().use();
  {
    DeviceScope on(cuda::get_device_from_id(id));  // current in this block
    x = xp::empty({4, 3}, float32);
  }
  DeviceScope on(cuda::get_device_from_array(x));
  Array y = xp::zeros({4, 3}) + x;  // zeros on x's device
  check(y.device() == gpu(id), "by_number");
}

/// x + 1, with what it makes of its own on x's device.
static Array add1(const Array& x) {
  DeviceScope on(cuda::get_device_from_array(x));  // of the CPU's arrays: nothing happens
  return x + 1;
}

/// log(1 + exp(x)) without an overflow, of arrays on any device.
static Array softplus(const Array& x) {
  return xp::maximum(0, x) + xp::log1p(xp::exp(-xp::abs(x)));
}

static void one_source(Device device) {
  Array x = xp::array({-1000.f, -1.f, 0.f, 1.f, 1000.f}, device);
  std::cout << "softplus: " << softplus(x) << "\n";
  check(xp::allclose(softplus(x).to_cpu(), softplus(x.to_cpu()), 1e-6), "softplus");
  check(xp::array_equal(add1(x), x + 1), "add1");
}

static void memory(Device device) {
  Array first = xp::ones({1000, 1000}, float32, device);  // sets the pool up; nobody has to
  first = Array();                                        // its memory goes back to the pool
  MemoryStatistics before = cuda::memory_pool(device).statistics();
  for (int i = 0; i < 1000; ++i) Array again = xp::ones({1000, 1000}, float32, device);
  MemoryStatistics after = cuda::memory_pool(device).statistics();
  std::cout << "asked of the driver for 1000 arrays: " << after.allocations - before.allocations
            << " times\n";
}

int main(int argc, char** argv) {
  Device device = Arguments("Arrays on GPUs").parse(argc, argv)[0];
  current_device(device);
  copies(device);
  one_source(device);
  if (device.is_cuda()) {
    by_number(device.index);
    memory(device);
  }
}
