// What a program says that it runs with.
#include "rensa/functions/runtime_info.h"

#include <gmock/gmock.h>

#include <sstream>

#include "rensa/core/thread_pool.h"
#include "rensa/core/version.h"
#include "rensa/device/devices.h"
#include "tests/optional_parts.h"

namespace rensa {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST(RuntimeInfo, HasALineForEachPart) {
  std::string text = runtime_info();
  EXPECT_THAT(text, ContainsRegex("(^|\n)Platform: Linux [^\n]+, glibc 2\\.[0-9]+\n"));
  EXPECT_THAT(text, HasSubstr(std::string("\nRensa: ") + version() + "\n"));
  EXPECT_THAT(text,
              ContainsRegex("\nCompiler: (GCC|[A-Za-z ]*[Cc]lang) ?[0-9]+[^\n]*, C\\+\\+20, "));
  EXPECT_THAT(text, HasSubstr(", " + std::to_string(get_num_threads()) + " threads, kernels for "));
  EXPECT_THAT(text, ContainsRegex(testing::has_lapack() ? "\nBLAS: [^n][^\n]+\n"
                                                        : "\nBLAS: none in this build"));
  EXPECT_THAT(text, ContainsRegex(num_gpus() > 0 ? "\nGPUs: [0-9]+\n" : "\nGPUs: none: [^\n]+\n"));
  EXPECT_THAT(text,
              ContainsRegex("\noneDNN: ([0-9]+\\.[0-9]+\\.[0-9]+|none in this build[^\n]*)\n"));
  EXPECT_THAT(text,
              ContainsRegex("\nHDF5: ([0-9]+\\.[0-9]+\\.[0-9]+|none in this build[^\n]*)\n$"));
}

TEST(RuntimeInfo, NamesGpusAndTheirLibraries) {
  RENSA_NEEDS_GPUS(1);
  std::string text = runtime_info();
  EXPECT_THAT(text, HasSubstr("\ncuda:0: " + gpu(0).name() + ", compute capability "));
  EXPECT_THAT(text, ContainsRegex("\nCUDA runtime: [0-9]+\\.[0-9]+, driver for up to: [0-9]+\\."));
  EXPECT_THAT(text, ContainsRegex("\ncuBLASLt: 1[0-9]\\.[0-9]+\\.[0-9]+, /"));
}

TEST(RuntimeInfo, IsPrinted) {
  std::ostringstream out;
  print_runtime_info(out);
  EXPECT_EQ(out.str(), runtime_info());
}

}  // namespace
}  // namespace rensa
