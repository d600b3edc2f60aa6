// CRC-32C against the examples of RFC 3720, appendix B.4.
#include "rensa/core/crc32c.h"

#include <numeric>
#include <string>

#include "tests/testing.h"

namespace rensa {
namespace {

TEST(Crc32c, PublishedExamples) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  std::string rising(32, '\0');
  std::iota(rising.begin(), rising.end(), '\0');
  EXPECT_EQ(crc32c(rising), 0x46DD794Eu);
  EXPECT_EQ(crc32c(std::string(rising.rbegin(), rising.rend())), 0x113FDB5Cu);
  // An iSCSI Read (10) command.
  const unsigned char command[48] = {
      0x01, 0xc0, 0, 0,    0, 0, 0, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0,
      0,    0,    0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0,    0};
  EXPECT_EQ(crc32c({reinterpret_cast<const char*>(command), sizeof(command)}), 0xD9963A56u);
  EXPECT_EQ(crc32c(""), 0u);
}

}  // namespace
}  // namespace rensa
