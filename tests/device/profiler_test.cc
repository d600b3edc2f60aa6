// What profilers are told: harmless where none listens.
#include "rensa/device/profiler.h"

#include <gtest/gtest.h>

#include "rensa/device/devices.h"

namespace rensa {
namespace {

TEST(Profiler, NobodyListening) {
  cuda::Profile profile;
  cuda::TimeRange outer("outer"), inner("inner", 0xff00ff00);
  cuda::nvtx::range_push("pushed");
  cuda::nvtx::mark("now");
  cuda::nvtx::range_pop();
  EXPECT_NO_THROW(cuda::profiler::start());
  EXPECT_NO_THROW(cuda::profiler::stop());
}

}  // namespace
}  // namespace rensa
