// Files in memory: what is written is there, by descriptor and by path.
#include "rensa/core/memory_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

namespace rensa {
namespace {

TEST(MemoryFile, HoldsWhatIsWrittenByAnyWay) {
  std::string bytes(10000, '\0');
  bytes += "end";
  MemoryFile file("test", bytes);
  EXPECT_EQ(file.contents(), bytes);
  std::ofstream(file.path(), std::ios::app) << "more";
  EXPECT_EQ(file.contents(), bytes + "more");
}

TEST(MemoryFile, NoTwoHaveOnePath) {
  std::set<std::string> paths;
  for (int i = 0; i < 100; ++i) paths.insert(MemoryFile("test").path());  // one descriptor for all
  EXPECT_EQ(paths.size(), 100u);
}

}  // namespace
}  // namespace rensa
