// A locale as Germany's for a scope: numbers have a comma for the point and points between their
// thousands. It is made here, since a machine may have none installed.
#pragma once

#include <clocale>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <locale>
#include <stdexcept>
#include <string>

#include "tests/temporary_folder.h"

namespace rensa::testing {

class CommaLocale {
 public:
  CommaLocale() : iostreams_(std::locale::global(std::locale(std::locale(), new Commas))) {
    std::filesystem::create_directories(folder_ / "comma");
    write_file(folder_ / "comma/LC_NUMERIC", numeric_category());
    ::setenv("LOCPATH", folder_.str().c_str(), 1);
    if (!std::setlocale(LC_NUMERIC, "comma")) {
      throw std::runtime_error("the C library does not take the locale that the test has made");
    }
  }
  ~CommaLocale() {
    std::setlocale(LC_NUMERIC, "C");
    ::unsetenv("LOCPATH");
    std::locale::global(iostreams_);
  }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;

 private:
  struct Commas : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };

  // glibc's compiled form: a magic number, the count of items, where each begins, the items.
  static std::string numeric_category() {
    const std::uint32_t head[] = {0x20031114, 6, 32, 34, 36, 40, 44, 48};
    const std::uint32_t wide[] = {',', '.'};
    std::string bytes(reinterpret_cast<const char*>(head), sizeof(head));
    bytes += std::string(",\0.\0\3\3\0\0", 8);
    bytes += std::string(reinterpret_cast<const char*>(wide), sizeof(wide));
    return bytes + std::string("UTF-8\0", 6);
  }

  TemporaryFolder folder_;
  std::locale iostreams_;
};

}  // namespace rensa::testing
