// Devices: where arrays are made, how they move, and what is refused. Runs with no GPU, one or two.
#include <rensa/rensa.h>

#include <iostream>

#include "arguments.h"

using namespace rensa;

int main(int argc, char** argv) {
  Device device = Arguments("Where arrays are made and how they move").parse(argc, argv)[0];
  std::cout << cuda::diagnose();  // what is there, and what is missing for a GPU
  std::cout << "num_gpus(): " << num_gpus() << "\n";
  std::cout << "try_gpu(): " << try_gpu() << ", try_gpu(10): " << try_gpu(10) << "\n";
  for (Device device : try_all_gpus()) std::cout << "one of try_all_gpus(): " << device << "\n";

  // Arrays are on the current device, the CPU unless changed; every creation routine takes another.
  Array x = xp::array({1, 2, 3});
  std::cout << "x is on " << x.device() << "\n";
  Array ones = xp::ones({2, 3}, float32, device);
  std::cout << ones << "\n";
  {
    DeviceScope on(device);
    std::cout << "made in the scope of " << device << ": " << xp::random::random({2, 3}).device()
              << "\n";
  }

  // A name says nothing of the hardware: naming a GPU that is not there is no error, using it is.
  std::cout << "the same place: " << std::boolalpha << (Device("gpu") == gpu(0)) << ", "
            << (Device("cuda:1") == gpu(1)) << "\n";
  if (device.is_cuda()) {
    cuda::MemoryInfo memory = device.mem_info();
    std::cout << device.name() << ": " << memory.free << " of " << memory.total << " bytes free\n"
              << cuda::current_pool(device).report();
  }

  // to() gives the same array where it is there already; copy(device) always makes a new one.
  Array same = ones.to(device), copy = ones.copy(device);
  std::cout << "to() shares: " << std::boolalpha << (same.data() == ones.data())
            << ", copy(device) shares: " << (copy.data() == ones.data()) << "\n";

  // Each copy between the host and a GPU, or between GPUs, is counted.
  std::int64_t sent = cuda::transfer_stats().host_to_device.transfers;
  Array there = x.to(device);
  std::cout << "copies that x.to(" << device
            << ") took: " << cuda::transfer_stats().host_to_device.transfers - sent << "\n";

  // Nothing is moved behind one's back: operands on two devices are an error that names both.
  if (num_gpus() > 0) {
    try {
      Array sum = ones + xp::ones({2, 3});
    } catch (const DeviceError& error) {
      std::cout << "refused: " << error.what() << "\n";
    }
    std::cout << "moved first: " << (ones + xp::ones({2, 3}).to(device)).sum().item<float>()
              << "\n";
  }

  // A model computes where its parameters are.
  L::Linear layer(1);
  layer.to(device);
  Variable y = layer(Variable(ones));
  std::cout << "layer(ones) has shape " << y.shape().str() << " on " << y.array().device() << "\n";
}
