// The unit in which a report shows its amounts.
#include "rensa/core/report_unit.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "rensa/core/error.h"
#include "tests/testing.h"

namespace rensa {
namespace {

constexpr std::array kUnits = {Unit{"m", 1, 2}, Unit{"cm", 1e-2, 1}, Unit{"mm", 1e-3, 0}};

TEST(ReportUnit, IsTheOneThatIsAskedFor) {
  EXPECT_EQ(ReportUnit(kUnits, "cm", 100)(0.123), "12.3cm");
  EXPECT_EQ(ReportUnit(kUnits, "m", 0.001)(0.5), "0.50m");
}

TEST(ReportUnit, AutoFitsTheLargestAndAutoForeachEach) {
  ReportUnit of_all(kUnits, "auto", 0.5), each(kUnits, "auto_foreach", 0.5);
  EXPECT_EQ(of_all(0.5), "50.0cm");
  EXPECT_EQ(of_all(0.001), "0.1cm");
  EXPECT_EQ(each(1), "1.00m");
  EXPECT_EQ(each(0.5), "50.0cm");
  EXPECT_EQ(each(0.0004), "0mm");  // smaller than all: in the smallest
  EXPECT_EQ(ReportUnit(kUnits, "auto", 0)(0), "0mm");
}

TEST(ReportUnit, NamesWhatItKnows) {
  std::string said = testing::thrown<ValueError>([] { ReportUnit(kUnits, "inch", 1); });
  EXPECT_NE(said.find("\"inch\"; give m, cm, mm, auto or auto_foreach"), std::string::npos) << said;
}

}  // namespace
}  // namespace rensa
