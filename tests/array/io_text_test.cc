// Arrays, shapes, dtypes and devices in streams and in format strings.
#include "rensa/fmt.h"
#include "rensa/format.h"
#include "tests/array/arrays.h"

namespace rensa {
namespace {

TEST(Texts, AreTheSameInStreamsAndFormatStrings) {
  for (Device device : testing::test_devices()) {
    Array a = xp::arange(4, float32, device).reshape({2, 2});
    std::ostringstream os;
    os << a << a[0] << a[a > 1] << a.sum() << a.shape() << a.dtype() << a.device();
    std::string name = device.is_cpu() ? "cpu" : "cuda:0";
    std::string want = "array([[0., 1.],\n       [2., 3.]], dtype=float32, device='" + name + "')";
    want += "array([0., 1.], dtype=float32, device='" + name + "')";
    want += "array([2., 3.], dtype=float32, device='" + name + "')";
    want += "6.0(2, 2)float32" + name;
    EXPECT_EQ(os.str(), want);
    EXPECT_EQ(
        fmt::format("{}{}{}{}{}{}{}", a, a[0], a[a > 1], a.sum(), a.shape(), a.dtype(), a.device()),
        want);
#ifdef __cpp_lib_format
    EXPECT_EQ(
        std::format("{}{}{}{}{}{}{}", a, a[0], a[a > 1], a.sum(), a.shape(), a.dtype(), a.device()),
        want);
#endif
  }
  EXPECT_EQ(fmt::format("{:>8}|{:<8}|{:^5}", Shape({2, 3}), float64, cpu()),
            "  (2, 3)|float64 | cpu ");
  EXPECT_EQ(fmt::format("{}", Array()), "array(undefined)");
}

TEST(Constants, AreNumpys) {
  EXPECT_EQ(xp::pi, 3.141592653589793);
  EXPECT_EQ(xp::e, 2.718281828459045);
  EXPECT_EQ(xp::euler_gamma, 0.5772156649015329);
  EXPECT_TRUE(std::isinf(xp::inf) && xp::inf > 0);
  EXPECT_TRUE(std::isnan(xp::nan));
  EXPECT_EQ((xp::zeros(3)[{xp::newaxis, xp::ellipsis}].shape()), Shape({1, 3}));
  EXPECT_EQ(xp::zeros(3, xp::float64).dtype(), float64);
}

}  // namespace
}  // namespace rensa
