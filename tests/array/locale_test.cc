// Text is the same in every locale, of the C library's and of iostreams'.
#include <gmock/gmock.h>

#include <cmath>
#include <complex>
#include <cstdio>
#include <sstream>

#include "rensa/array/io.h"
#include "rensa/array/routines.h"
#include "rensa/device/timeline.h"
#include "rensa/kernel/elementwise_kernel.h"
#include "rensa/kernel/fuse.h"
#include "tests/array/arrays.h"
#include "tests/comma_locale.h"
#include "tests/temporary_folder.h"

namespace rensa {
namespace {

using testing::read_file;
using V = std::vector<double>;

TEST(Locale, TheTestsOwnHasAComma) {
  testing::CommaLocale comma;
  char text[16];
  std::snprintf(text, sizeof(text), "%.1f", 1.5);
  EXPECT_STREQ(text, "1,5");
  std::ostringstream stream;
  stream << 1234567;
  EXPECT_EQ(stream.str(), "1.234.567");
}

TEST(Locale, NumbersAreReadWithAPoint) {
  testing::CommaLocale comma;
  EXPECT_EQ(xp::parse_text("1.5e400 1.5e-400 -2.5e400 1.5").to_vector<double>(),
            V({HUGE_VAL, 0, -HUGE_VAL, 1.5}));
  EXPECT_THROW(xp::parse_text("1,5"), ValueError);
  std::istringstream stream("1234567.5 2");
  EXPECT_EQ(xp::loadtxt(stream).to_vector<double>(), V({1234567.5, 2}));
}

TEST(Locale, NumbersAreWrittenWithAPoint) {
  testing::CommaLocale comma;
  testing::TemporaryFolder folder;
  Array a = xp::array({{1.5, 2.25}, {1234567., -0.5}});
  xp::savetxt(folder / "a", a, {.fmt = "%.2f", .delimiter = ","});
  EXPECT_EQ(read_file(folder / "a"), "1.50,2.25\n1234567.00,-0.50\n");
  std::ostringstream stream;
  xp::savetxt(stream, a, {.fmt = "%d"});
  EXPECT_EQ(stream.str(), "1 2\n1234567 0\n");
  char text[16];
  std::snprintf(text, sizeof(text), "%.1f", 1.5);
  EXPECT_STREQ(text, "1,5") << "the program's locale is left as it was";
}

TEST(Locale, ArraysArePrintedWithPoints) {
  auto texts = [] {
    std::ostringstream out;
    out << xp::array({1234567.5, 1e-7, 3.0}) << xp::array({1234567, -1})
        << xp::array({1.5, 0.1}).astype(float16) << xp::array({3.1, 1e30}).astype(bfloat16)
        << xp::array({std::complex<double>(1.5, -2.5)}) << Shape({123456, 2}).str() << gpu(0)
        << xp::zeros({5000}).shape().str();
    return out.str() + xp::array_repr(xp::array({0.1, 1e10}));
  };
  std::string before = texts();
  testing::CommaLocale comma;
  EXPECT_EQ(texts(), before);
}

TEST(Locale, FilesOfNumpyAndTracesHoldPlainNumbers) {
  testing::CommaLocale comma;
  testing::TemporaryFolder folder;
  Array a = xp::arange(1234567, int8, cpu());
  xp::savez(folder / "a.npz", {{"a", a}});
  EXPECT_TRUE(xp::array_equal(xp::load_npz(folder / "a.npz").get("a", cpu()), a));
  timeline::Record record;
  record.name = "x";
  record.begin_ns = 1234567500;
  record.end_ns = 2234567500;
  record.bytes = 7654321;
  timeline::write({record}, folder / "trace");
  std::vector<timeline::Record> back = timeline::read(folder / "trace");
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].begin_ns, record.begin_ns);
  EXPECT_EQ(back[0].bytes, record.bytes);
  timeline::draw({record}, folder / "picture.svg");
  EXPECT_EQ(read_file(folder / "picture.svg").find("1.234"), std::string::npos);
}

TEST(Locale, KernelsAreCompiledFromPlainNumbers) {
  testing::CommaLocale comma;
  ElementwiseKernel kernel("T x, float64 y", "T z", "z = x * 1.5 + y", "in_a_comma_locale");
  EXPECT_EQ(kernel(xp::array({1.0, 2.0}), 0.25).to_vector<double>(), V({1.75, 3.25}));
  auto fused = fuse([](const Array& x) { return x * 2.5 + 0.125; });
  EXPECT_EQ(fused(xp::array({1.0, 2.0})).to_vector<double>(), V({2.625, 5.125}));
}

}  // namespace
}  // namespace rensa
