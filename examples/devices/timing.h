// Seconds of wall-clock time that some work takes, the device's part of it included.
#pragma once

#include <rensa/array.h>

#include <chrono>
#include <initializer_list>

template <class F> double seconds(std::initializer_list<rensa::Device> devices, F&& work) {
  auto wait = [&] {
    for (rensa::Device device : devices) {
      if (device.is_cuda()) rensa::cuda::synchronize(device);
    }
  };
  work();  // the first call may load kernels
  wait();
  auto start = std::chrono::steady_clock::now();
  work();
  wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
