// Arrays in files: NumPy's own, and what goes out comes back.
#include "rensa/array/io.h"

#include <gmock/gmock.h>

#include <cmath>
#include <complex>
#include <sstream>

#include "rensa/array/npy.h"
#include "tests/array/arrays.h"
#include "tests/temporary_folder.h"

namespace rensa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::read_file;
using testing::thrown;
using testing::write_file;
using V = std::vector<double>;

class IoTest : public ::testing::TestWithParam<Device> {
 protected:
  DeviceScope scope_{GetParam()};
  testing::TemporaryFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Devices, IoTest, ::testing::ValuesIn(testing::test_devices()),
                         [](const auto& info) { return info.param.is_cpu() ? "cpu" : "cuda"; });

TEST_P(IoTest, ReadsWhatNumpyWrites) {
  xp::NpzFile file(testing::data_file("numpy_arrays.npz"));
  EXPECT_GE(file.files().size(), 18u);
  for (const std::string& name : file.files()) {
    Array a = file[name];
    EXPECT_EQ(a.device(), GetParam());
    if (name.starts_with("dtype_")) {
      EXPECT_EQ(a.dtype(), parse_dtype(name.substr(6))) << name;
      EXPECT_EQ(a.shape(), Shape({2, 3}));
      EXPECT_EQ(a.astype(float64).to_vector<double>(), V({0, 1, 2, 3, 4, 5})) << name;
    }
  }
  EXPECT_EQ(file["bool"].to_vector<int>(), std::vector<int>({1, 0, 1, 0, 1, 0}));
  EXPECT_EQ(file["big_endian"].to_vector<double>(), V({0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(file["big_complex"].to_vector<std::complex<double>>()[5], std::complex<double>(5, -10));
  EXPECT_EQ(file["fortran"].to_vector<double>(), V({0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(file["empty"].shape(), Shape({2, 0}));
  EXPECT_EQ(file["scalar"].item<std::uint64_t>(), 7u);
  EXPECT_THAT(thrown<IndexError>([&] { file["nothing"]; }), HasSubstr("no array 'nothing'"));
}

TEST_P(IoTest, SaveAndLoad) {
  for (int d = 0; d < kNumDtypes; ++d) {
    auto dtype = static_cast<Dtype>(d);
    Array a = xp::arange(24).reshape({4, 6}).astype(dtype);
    for (const Array& part : {a, Array(a[{Slice(none, none, -2), Slice(1, none, 3)}]),
                              a.transpose(), Array(a[{Slice(0), Slice()}]), Array(a[{1, 2}])}) {
      xp::save(folder_ / "a", part);
      Array b = xp::load(folder_ / "a.npy");
      EXPECT_EQ(b.device(), GetParam());
      EXPECT_EQ(b.dtype(), dtype);
      EXPECT_EQ(b.shape(), part.shape());
      EXPECT_TRUE(xp::array_equal(part, b)) << dtype_name(dtype);
    }
  }
  EXPECT_EQ(xp::load(folder_ / "a.npy", cpu()).device(), cpu());
}

TEST_P(IoTest, SavezByNameAndByNumber) {
  Array x = xp::arange(5), y = xp::ones({2, 2}, bfloat16);
  xp::savez(folder_ / "two", {x, y});
  auto two = xp::load_npz(folder_ / "two.npz");
  EXPECT_THAT(two.files(), ElementsAre("arr_0", "arr_1"));
  EXPECT_TRUE(xp::array_equal(two["arr_0"], x));
  EXPECT_EQ(two["arr_1"].dtype(), bfloat16);
  Array big = xp::zeros({10000}, float64);
  xp::savez(folder_ / "plain.npz", {{"big", big}, {"x/y", x}});
  xp::savez_compressed(folder_ / "small.npz", {{"big", big}, {"x/y", x}});
  EXPECT_GT(read_file(folder_ / "plain.npz").size(), 80000u);
  EXPECT_LT(read_file(folder_ / "small.npz").size(), 1000u);
  for (const char* name : {"plain.npz", "small.npz"}) {
    auto file = xp::load_npz(folder_ / name);
    EXPECT_TRUE(file.contains("x/y") && !file.contains("x"));
    EXPECT_TRUE(xp::array_equal(file["x/y"], x));
    EXPECT_TRUE(xp::array_equal(file.get("big"), big));
  }
  EXPECT_THROW(xp::savez(folder_ / "c", {{"a", x}, {"a", y}}), ValueError);
  EXPECT_THAT(thrown<SerializationError>([&] { xp::load(folder_ / "two.npz"); }),
              HasSubstr("load_npz"));
}

TEST_P(IoTest, FilesThatCannotBe) {
  EXPECT_THAT(thrown<SerializationError>([&] { xp::load(folder_ / "none.npy"); }),
              HasSubstr("none.npy"));
  EXPECT_THROW(xp::load(folder_.str()), SerializationError);
  EXPECT_THROW(xp::save(folder_ / "no/such/folder.npy", xp::ones({2})), SerializationError);
  EXPECT_THROW(xp::save(folder_ / "a", Array()), ValueError);
  write_file(folder_ / "short.npy", read_file(testing::data_file("numpy_savetxt.txt")));
  EXPECT_THROW(xp::load(folder_ / "short.npy"), SerializationError);
}

TEST_P(IoTest, Buffers) {
  Array a = xp::arange(12, float32).reshape({3, 4});
  std::string bytes = xp::tobytes(a.transpose());
  EXPECT_EQ(bytes.size(), 48u);
  Array b = xp::frombuffer(bytes, float32);
  EXPECT_EQ(b.device(), GetParam());
  EXPECT_EQ(b.to_vector<double>(), V({0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  EXPECT_EQ(xp::frombuffer(bytes, float32, 2, 4).to_vector<double>(), V({4, 8}));
  EXPECT_EQ(xp::frombuffer(std::string_view(), int8).shape(), Shape({0}));
  EXPECT_EQ(xp::frombuffer(std::string_view("\x00\x05\x01", 3), bool_).to_vector<int>(),
            std::vector<int>({0, 1, 1}));
  EXPECT_THROW(xp::frombuffer(bytes, float32, 13), ValueError);
  EXPECT_THROW(xp::frombuffer(bytes, float32, -1, 2), ValueError);
  EXPECT_THROW(xp::frombuffer(bytes, float32, -1, 49), ValueError);
  xp::tofile(a, folder_ / "raw");
  EXPECT_TRUE(xp::array_equal(xp::fromfile(folder_ / "raw", float32).reshape({3, 4}), a));
  EXPECT_EQ(xp::fromfile(folder_ / "raw", float32, 100, 42).to_vector<double>().size(), 1u);
  EXPECT_THROW(xp::fromfile(folder_ / "raw", float32, 1, 49), ValueError);
}

TEST_P(IoTest, SavetxtWritesAsNumpy) {
  Array values = xp::array({{1.5, -2.0, 3e300}, {std::nan(""), HUGE_VAL, 0.0}});
  xp::savetxt(folder_ / "a", values,
              {.fmt = "%10.4g", .delimiter = ",", .header = "a\nb", .footer = "end"});
  EXPECT_EQ(read_file(folder_ / "a"), read_file(testing::data_file("numpy_savetxt.txt")));
  using C = std::complex<double>;
  Array c = xp::array(std::vector<C>{C(1, 2), C(-3.5, -1e-3)});
  xp::savetxt(folder_ / "c", c);
  EXPECT_EQ(read_file(folder_ / "c"), read_file(testing::data_file("numpy_savetxt_complex.txt")));
  EXPECT_TRUE(xp::array_equal(xp::loadtxt(folder_ / "c", {.dtype = complex128}), c));
  xp::savetxt(folder_ / "i", xp::array({{1, -20}, {300, 4}}).astype(bfloat16),
              {.fmt = "<%+5d>%%", .newline = ";"});
  EXPECT_EQ(read_file(folder_ / "i"), "<   +1>% <  -20>%;< +300>% <   +4>%;");
  for (const char* fmt : {"", "%", "%s", "%n", "%d %d", "%9999d", "%*d", "%lld", "%.18e%"}) {
    EXPECT_THROW(xp::savetxt(folder_ / "x", values, {.fmt = fmt}), ValueError) << fmt;
  }
  EXPECT_THROW(xp::savetxt(folder_ / "x", xp::array(1)), ShapeError);
}

TEST_P(IoTest, SavetxtWritesIntegersExactlyOrNotAtAll) {
  auto text = [](const Array& a, const char* fmt) {
    std::ostringstream out;
    xp::savetxt(out, a, {.fmt = fmt, .newline = ";"});
    return out.str();
  };
  EXPECT_EQ(text(xp::array({1e30, -1e19, 1.9, -1.9}), "%d"),
            "1000000000000000019884624838656;-10000000000000000000;1;-1;");
  EXPECT_EQ(text(xp::array({1e20}), "%+24d"), "  +100000000000000000000;");
  EXPECT_EQ(text(xp::array({std::uint64_t{1} << 63}), "%22d"), "   9223372036854775808;");
  for (double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    Array a = xp::array({1.0, value});
    EXPECT_THAT(thrown<ValueError>([&] { text(a, "%d"); }), HasSubstr("no integer"));
    EXPECT_THROW(text(a.astype(float16), "%i"), ValueError);
    EXPECT_THROW(text(a.astype(complex64), "%d"), ValueError);
  }
  EXPECT_THROW(text(xp::array({1e300}), "%x"), ValueError);
  write_file(folder_ / "a", "old");
  EXPECT_THROW(xp::savetxt(folder_ / "a", xp::array({1.0, HUGE_VAL}), {.fmt = "%d"}), ValueError);
  EXPECT_EQ(read_file(folder_ / "a"), "old");
}

TEST_P(IoTest, TextComesBack) {
  for (Dtype d : {int8, uint64, float16, bfloat16, float32, float64, complex64, bool_}) {
    Array a = (xp::arange(6, float64) / 3 + 100).reshape({2, 3}).astype(d);
    std::string fmt = dtype_kind(d) == 'i' || dtype_kind(d) == 'u' || d == bool_ ? "%d" : "%.18e";
    xp::savetxt(folder_ / "a", a, {.fmt = fmt});
    Array b = xp::loadtxt(folder_ / "a", {.dtype = d});
    EXPECT_EQ(b.device(), GetParam());
    EXPECT_TRUE(testing::matches(b, a, {})) << dtype_name(d);
  }
}

Array text(const std::string& content, xp::LoadtxtOptions options = {}) {
  return xp::parse_text(content, options);
}

TEST(Loadtxt, RowsColumnsAndComments) {
  Array a = text("# head\n1 2\t 3 # tail\r\n\n  4 5 6\r7 8 9");
  EXPECT_EQ(a.shape(), Shape({3, 3}));
  EXPECT_EQ(a.to_vector<double>(), V({1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(text("1,2\n3,4", {.delimiter = ",", .unpack = true}).to_vector<double>(),
            V({1, 3, 2, 4}));
  EXPECT_EQ(text("x y\n1 2 3\n4 5 6", {.skiprows = 1, .usecols = {-1, 0}}).to_vector<double>(),
            V({3, 1, 6, 4}));
  EXPECT_EQ(text("1\n2\n#\n3\n4", {.max_rows = 3}).to_vector<double>(), V({1, 2, 3}));
  EXPECT_EQ(text("1e400 -inf nan +5 -1e-400 Infinity").to_vector<double>()[0], HUGE_VAL);
  EXPECT_EQ(text("(1+2j) -3j 4", {.dtype = complex128}).to_vector<std::complex<double>>(),
            (std::vector<std::complex<double>>{{1, 2}, {0, -3}, {4, 0}}));
  EXPECT_EQ(text("True False 2 0", {.dtype = bool_}).to_vector<int>(),
            std::vector<int>({1, 0, 1, 0}));
}

TEST(Loadtxt, Shapes) {
  auto shape = [](const char* content, int ndmin) {
    return text(content, {.ndmin = ndmin}).shape();
  };
  EXPECT_EQ(shape("7", 0), Shape({}));
  EXPECT_EQ(shape("7", 1), Shape({1}));
  EXPECT_EQ(shape("7", 2), Shape({1, 1}));
  EXPECT_EQ(shape("7 8", 0), Shape({2}));
  EXPECT_EQ(shape("7 8", 2), Shape({1, 2}));
  EXPECT_EQ(shape("7\n8", 0), Shape({2}));
  EXPECT_EQ(shape("7\n8", 2), Shape({2, 1}));
  EXPECT_EQ(shape("", 0), Shape({0}));
  EXPECT_EQ(shape("# nothing", 2), Shape({0, 0}));
}

TEST(Loadtxt, FaultsNameTheirPlace) {
  EXPECT_THAT(thrown<ValueError>([] { text("1 2\n3 x"); }), HasSubstr("line 2, field 2: 'x'"));
  EXPECT_THAT(thrown<ValueError>([] { text("1 2\n\n3"); }), HasSubstr("line 3 has 1 fields"));
  EXPECT_THROW(text("1,,2", {.delimiter = ","}), ValueError);
  EXPECT_THROW(text("1.5", {.dtype = int32}), ValueError);
  EXPECT_THROW(text("300", {.dtype = int8}), ValueError);
  EXPECT_THROW(text("-1", {.dtype = uint8}), ValueError);
  EXPECT_THROW(text("+-1"), ValueError);
  EXPECT_THROW(text("1+2", {.dtype = complex64}), ValueError);
  EXPECT_THROW(text("1 2", {.usecols = {2}}), ValueError);
  EXPECT_THROW(text("1", {.ndmin = 3}), ValueError);
  EXPECT_THROW(xp::loadtxt("/no/such/file"), SerializationError);
}

TEST_P(IoTest, GenfromtxtFillsWhatIsMissing) {
  write_file(folder_ / "a", "name,b\n1,\n,x\n3,4\nend,end\n");
  Array a = xp::genfromtxt(folder_ / "a", {.delimiter = ",", .skip_header = 1, .skip_footer = 1});
  V v = a.to_vector<double>();
  EXPECT_EQ(a.shape(), Shape({3, 2}));
  EXPECT_TRUE(v[0] == 1 && std::isnan(v[1]) && std::isnan(v[2]) && std::isnan(v[3]) && v[5] == 4);
  EXPECT_EQ(xp::genfromtxt(folder_ / "a", {.dtype = int32,
                                           .delimiter = ",",
                                           .skip_header = 1,
                                           .skip_footer = 1,
                                           .usecols = {1},
                                           .filling_value = -7})
                .to_vector<double>(),
            V({-7, -7, 4}));
  write_file(folder_ / "b", "1 2\n3\n");
  EXPECT_THROW(xp::genfromtxt(folder_ / "b"), ValueError);
}

TEST(Genfromtxt, FillingsAreNumbersOfTheDtype) {
  auto filled = [](Dtype dtype, std::optional<Scalar> filling) {
    std::istringstream text("1,\n0,1\n");
    return xp::genfromtxt(text, {.dtype = dtype, .delimiter = ",", .filling_value = filling})
        .to_vector<double>()[1];
  };
  EXPECT_EQ(filled(int8, {}), -1);
  EXPECT_EQ(filled(bool_, {}), 0);
  EXPECT_TRUE(std::isnan(filled(float16, {})));
  EXPECT_EQ(filled(uint8, 255), 255);
  EXPECT_EQ(filled(uint8, 1.9), 1);
  EXPECT_EQ(filled(uint8, -0.5), 0);
  EXPECT_EQ(filled(int8, -128.5), -128);
  EXPECT_EQ(filled(bool_, 300), 1);
  EXPECT_EQ(filled(float32, 300), 300);
  EXPECT_EQ(filled(uint64, std::uint64_t{1} << 63), 0x1p63);
  for (Dtype dtype : {uint8, uint64}) {
    EXPECT_THAT(thrown<ValueError>([&] { filled(dtype, {}); }),
                HasSubstr("line 1, field 2 is missing, and the filling_value -1 is no uint"));
  }
  EXPECT_THROW(filled(uint8, 300), ValueError);
  EXPECT_THROW(filled(uint8, -1), ValueError);
  EXPECT_THROW(filled(int8, 128.0), ValueError);
  EXPECT_THROW(filled(int32, std::nan("")), ValueError);
  EXPECT_THROW(filled(int64, 0x1p63), ValueError);
  EXPECT_THROW(filled(int64, HUGE_VAL), ValueError);
}

}  // namespace
}  // namespace rensa
