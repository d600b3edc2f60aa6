// An account of the driver's functions that a piece of a program has called, taken by CUPTI and so
// independent of the library's own.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace rensa::testing {

/// Calls by name, as the driver spells it ("cuMemAlloc_v2").
struct DriverCalls {
  std::map<std::string, std::int64_t> calls;
  std::int64_t pageable_copies =
      0;  // asynchronous copies from or to host memory that is not pinned

  std::int64_t waits() const;           // cuStreamSynchronize, cuCtxSynchronize, cuEventSynchronize
  std::int64_t waiting_copies() const;  // copies that return when they are done, and pageable ones
  std::int64_t allocations() const;     // of device or pinned memory, and frees
  std::int64_t module_loads() const;
  /// "cuLaunchKernel 12, cuMemAlloc_v2 1", for a failing test.
  std::string str() const;

  /// What was called between two snapshots.
  friend DriverCalls operator-(const DriverCalls& later, const DriverCalls& earlier);

 private:
  template <class Predicate> std::int64_t sum(Predicate&& counts) const;
};

/// Counts from its construction to its end, in all threads; one at a time. Throws CudaError without
/// CUPTI or without CUDA in the build.
class DriverCallCounter {
 public:
  DriverCallCounter();
  ~DriverCallCounter();
  DriverCallCounter(const DriverCallCounter&) = delete;
  DriverCallCounter& operator=(const DriverCallCounter&) = delete;

  DriverCalls snapshot() const;

  /// False where a tool, as compute-sanitizer, has CUPTI for itself.
  static bool can_count();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rensa::testing

/// Skips the test where no DriverCallCounter can count.
#define RENSA_NEEDS_DRIVER_CALLS()                       \
  if (!::rensa::testing::DriverCallCounter::can_count()) \
  GTEST_SKIP() << "a tool has CUPTI: driver calls cannot be counted"
