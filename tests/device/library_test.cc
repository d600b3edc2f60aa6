// The search for libraries needs no GPU: it is tried with a library that every system has.
#include "rensa/device/library.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "rensa/core/error.h"

namespace rensa::cuda {
namespace {

std::string failure(const LibrarySource& source) {
  try {
    Library library(source);
    return "found " + library.path();
  } catch (const CudaError& error) {
    return error.what();
  }
}

TEST(Library, BindsFunctions) {
  Library library({"libm", {"libm.so.6"}, "", "install it"});
  double (*cosine)(double) = nullptr;
  library.bind("cos", cosine);
  EXPECT_EQ(cosine(1.5), std::cos(1.5));
  EXPECT_NE(library.path().find("libm.so.6"), std::string::npos);
  EXPECT_THROW(library.bind("no_such_function", cosine), CudaError);
}

TEST(Library, TakesTheFirstNameThatIsThere) {
  EXPECT_NE(failure({"libm", {"libm.so.77", "libm.so.6"}, "", "install it"}).find("libm.so.6"),
            std::string::npos);
}

TEST(Library, NamesWhatIsMissingWhereItLookedAndTheWayOut) {
  setenv("RENSA_LIBRARY_PATH", "/first/place:/second/place", 1);
  std::string text =
      failure({"Missing", {"libmissing.so.2"}, "/third/place", "install the package"});
  unsetenv("RENSA_LIBRARY_PATH");
  for (const char* part : {"Missing", "libmissing.so.2", "/first/place", "/second/place",
                           "/third/place", "install the package"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(Library, LooksBelowARootAndSaysWhatIsBroken) {
  namespace fs = std::filesystem;
  fs::path root = fs::path(::testing::TempDir()) / "rensa_library_root";
  fs::create_directories(root / "package" / "lib");
  std::ofstream(root / "package" / "lib" / "libbroken.so.1") << "no library";
  std::string text = failure({"Broken", {"libbroken.so.1"}, root.c_str(), "install it anew"});
  fs::remove_all(root);
  EXPECT_NE(text.find("package/lib/libbroken.so.1: "), std::string::npos) << text;
}

}  // namespace
}  // namespace rensa::cuda
