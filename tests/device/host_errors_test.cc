// Errors that the host finds while a GPU works.
#include "rensa/device/host_errors.h"

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>

namespace rensa::cuda {
namespace {

std::exception_ptr error(const char* text) {
  return std::make_exception_ptr(std::runtime_error(text));
}

/// What a wait throws; empty where it throws nothing.
std::string wait(Device device) {
  try {
    throw_host_error(device);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

// Devices that no other test uses.
const Device kOne = gpu(kMaxGpus - 1), kOther = gpu(kMaxGpus - 2);

TEST(HostErrors, AreThrownOnce) {
  EXPECT_EQ(wait(kOne), "");
  report_host_error(kOne, error("first"));
  report_host_error(kOne, error("second"));
  report_host_error(kOther, error("of another"));
  EXPECT_EQ(wait(kOne), "first");
  EXPECT_EQ(wait(kOne), "");
  EXPECT_EQ(wait(kOther), "of another");
  EXPECT_EQ(wait(kOther), "");
}

TEST(HostErrors, LastWhereTheyAreSaidToLast) {
  std::optional<LastingError> lasting(std::in_place, kOne, error("lasting"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(wait(kOne), "lasting");
  EXPECT_EQ(wait(kOther), "");
  report_host_error(kOne, error("once"));
  EXPECT_EQ(wait(kOne), "once");
  EXPECT_EQ(wait(kOne), "lasting");
  LastingError second(kOne, error("second"));
  EXPECT_EQ(wait(kOne), "lasting");
  lasting.reset();
  EXPECT_EQ(wait(kOne), "second");
}

TEST(HostErrors, ThatLastAreThrownOnceAtLeast) {
  EXPECT_EQ(wait(kOne), "");  // what the test before left had been thrown
  { LastingError unseen(kOne, error("unseen")); }
  EXPECT_EQ(wait(kOne), "unseen");
  EXPECT_EQ(wait(kOne), "");
}

}  // namespace
}  // namespace rensa::cuda
