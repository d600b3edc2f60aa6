// What the tests share: the devices to run on, and a count of what a missing GPU left out.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rensa/device/devices.h"

namespace rensa::testing {

/// cpu(), and gpu(0) where there is a GPU.
std::vector<Device> test_devices();

/// Skips the running test, counted, unless there are `count` GPUs.
#define RENSA_NEEDS_GPUS(count)                                                      \
  if (::rensa::num_gpus() < (count)) {                                               \
    ::rensa::testing::count_skipped();                                               \
    GTEST_SKIP() << "needs " << (count) << " GPU(s), found " << ::rensa::num_gpus(); \
  }                                                                                  \
  ::rensa::testing::count_gpu_test()
void count_skipped();
void count_gpu_test();

inline constexpr char kNothingThrown[] = "nothing was thrown";

/// The text of the exception of that type that `f` throws, or kNothingThrown.
template <class Exception, class F> std::string message_of(F&& f) {
  try {
    f();
  } catch (const Exception& error) {
    return error.what();
  }
  return kNothingThrown;
}

/// message_of(); a failure where nothing is thrown.
template <class Exception, class F> std::string thrown(F&& f) {
  std::string message = message_of<Exception>(f);
  EXPECT_NE(message, kNothingThrown);
  return message;
}

/// Whether fewer sizes and steps will do (RENSA_TEST_QUICK=1): for checkers that slow every kernel
/// a hundredfold and keep an account of each of its accesses.
bool quick();

/// The path of a file of tests/answers, or of docs/ where a test reads a page: in $RENSA_TEST_DATA
/// if that is set, else in the folder `answers` beside the test program (tools/pack.sh puts it
/// there), else in the tree that the program was built from. Throws std::runtime_error naming the
/// folders where it is in none.
std::string data_file(const std::string& name);

}  // namespace rensa::testing
