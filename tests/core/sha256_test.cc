// SHA-256 against the examples of FIPS 180-4.
#include "rensa/core/sha256.h"

#include "tests/testing.h"

namespace rensa {
namespace {

std::string digest(const std::string& text, std::size_t piece) {
  Sha256 hash;
  for (std::size_t i = 0; i < text.size(); i += piece) {
    hash.update(text.data() + i, std::min(piece, text.size() - i));
  }
  return hash.hex_digest();
}

TEST(Sha256, PublishedExamples) {
  EXPECT_EQ(digest("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc", 1), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 5),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest(std::string(1000000, 'a'), 997),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesDoNotMatter) {
  for (std::size_t n : {55, 56, 63, 64, 65, 119, 120, 128}) {
    std::string text(n, 'x');
    EXPECT_EQ(digest(text, 1), digest(text, n)) << n;
  }
}

}  // namespace
}  // namespace rensa
