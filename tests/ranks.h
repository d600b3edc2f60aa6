// A group of threads for a test.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "rensa/array/communicator.h"
#include "rensa/core/thread_state.h"

namespace rensa::testing {

/// Calls job on every rank of a group of `size`, each in a thread of its own. What one of them
/// throws is a failure of the test.
inline void run_ranks(int size, const std::function<void(const Communicator&)>& job) {
  std::vector<Communicator> ends = create_thread_communicators(size);
  std::vector<std::thread> threads;
  for (Communicator& end : ends) {
    threads.emplace_back([&job, own = std::move(end)] {
      try {
        job(own);
      } catch (const std::exception& error) {
        ADD_FAILURE() << own.describe(own.rank()) << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Each with a GPU of its own, which is the thread's current device.
inline void run_ranks_on_gpus(int size, const std::function<void(const Communicator&)>& job) {
  run_ranks(size, [&](const Communicator& ranks) {
    DeviceScope scope(gpu(ranks.rank()));
    job(ranks.on(gpu(ranks.rank())));
  });
}

}  // namespace rensa::testing
