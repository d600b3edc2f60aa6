// Every routine of routines.def runs on every device and leaves nothing wrong behind.
#include "tests/array/routines.h"

#include "rensa/core/thread_state.h"
#include "rensa/device/stream.h"
#include "tests/optional_parts.h"
#include "tests/temporary_folder.h"

namespace rensa::testing {
namespace {

TEST(ArrayRoutines, AllRunOnEveryDevice) {
  TemporaryFolder folder;
  for (Device device : test_devices()) {
    DeviceScope scope(device);
    RoutineTable table(256, 16, 8, device, folder / "routine");
    for (const RoutineTable::Row& row : table.rows()) {
      SCOPED_TRACE(std::string(row.name) + " on " + device.str());
      try {
        row.call();
        if (device.is_cuda()) cuda::synchronize(device);
      } catch (const std::exception& e) {
        EXPECT_TRUE(left_out(e.what())) << e.what();
      }
    }
    EXPECT_GT(table.rows().size(), 400u);
  }
}

}  // namespace
}  // namespace rensa::testing
