// JPEG and PNG: what PIL makes of them, and files that are no whole picture.
#include "rensa/data/images/read_image.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <zlib.h>

#include "rensa/array/io.h"
#include "rensa/array/math.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "tests/data/images/pictures.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa::images {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::message_of;
using testing::picture;
using testing::thrown;

/// The greatest difference of any pixel; 999 for other shapes or dtypes.
int difference(const Array& a, const Array& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return 999;
  return xp::abs(a.astype(int32) - b.astype(int32)).max().item<int>();
}

class ReadImageTest : public testing::ImageTest {};

TEST_F(ReadImageTest, AsPil) {
  xp::NpzFile answers = xp::load_npz(testing::data_file("images.npz"));
  int read = 0;
  for (const std::string& name : answers.files()) {
    std::string file = name.substr(0, name.find(' ')), rest = name.substr(file.size());
    ReadImageOptions options;
    if (rest == " gray") {
      options.mode = Mode::gray;
    } else if (rest == " rgb") {
      options.mode = Mode::rgb;
    } else if (!rest.empty()) {
      options.min_size = std::stoi(rest);
    }
    EXPECT_EQ(difference(decode_image(picture(file), file, options), answers[name]), 0) << name;
    ++read;
  }
  EXPECT_GE(read, 60);
}

TEST_F(ReadImageTest, GrayOfSixteenBitsHasItsHighByteInOtherModes) {
  Array deep = decode_image(picture("gray16.png"), "gray16.png");
  Array high = xp::right_shift(deep, 8).astype(uint8);
  for (Mode mode : {Mode::gray, Mode::rgb}) {
    Array read = decode_image(picture("gray16.png"), "gray16.png", {.mode = mode});
    EXPECT_EQ(difference(read, xp::broadcast_to(high, read.shape())), 0);
    EXPECT_EQ(read.shape(0), mode == Mode::rgb ? 3 : 1);
  }
}

TEST_F(ReadImageTest, InterlacedRowsStandWhereTheyBelong) {
  // 2 x 2 grey pixels in Adam7: passes of 1, 1 and 2 pixels.
  std::string file = testing::png_file(2, 2, 8, 0, std::string("\0\1\0\2\0\3\4", 7), 1);
  Array read = decode_image(file, "interlaced.png");
  EXPECT_THAT(read.to_vector<int>(), ::testing::ElementsAre(1, 2, 3, 4));
}

TEST_F(ReadImageTest, FilesThatAreNoPicture) {
  auto failure = [](const std::string& bytes, ReadImageOptions options = {}) {
    return thrown<SerializationError>([&] { decode_image(bytes, "a/photo", options); });
  };
  EXPECT_THAT(failure(""), AllOf(HasSubstr("a/photo"), HasSubstr("it is empty")));
  EXPECT_THAT(failure("GIF89a"),
              AllOf(HasSubstr("a/photo"), HasSubstr("neither a JPEG nor a PNG")));
  EXPECT_THAT(failure("\xff\xd8\xff"),
              HasSubstr("a damaged JPEG picture: the file ends too early"));
  EXPECT_THAT(failure("\x89PNG\r\n\x1a\n"), HasSubstr("a damaged PNG picture: the file ends too"));

  testing::TemporaryFolder folder;
  EXPECT_THAT(thrown<SerializationError>([&] { read_image(folder / "none.jpg"); }),
              HasSubstr(folder / "none.jpg"));
  EXPECT_THAT(thrown<SerializationError>([&] { read_image(folder.str()); }),
              HasSubstr(folder.str()));
  EXPECT_THAT(thrown<ValueError>([&] { decode_image(picture("rgb.jpg"), "x", {.min_size = -1}); }),
              HasSubstr("min_size"));
}

TEST_F(ReadImageTest, CutFilesAreErrors) {
  for (const char* name : {"rgb.jpg", "progressive.jpg", "gray.jpg", "cmyk.jpg", "rgb.png",
                           "palette4.png", "gray16.png"}) {
    const std::string whole = picture(name);
    // A JPEG without its last mark is whole.
    std::size_t longest = whole.size() - (whole[0] == '\x89' ? 1 : 8);
    for (std::size_t size = 3; size <= longest; size += size < 64 ? 1 : 37) {
      EXPECT_NE(message_of<SerializationError>([&] { decode_image(whole.substr(0, size), name); }),
                testing::kNothingThrown)
          << name << ", " << size << " of " << whole.size();
    }
  }
}

TEST_F(ReadImageTest, DamageIsAnErrorOrAPicture) {
  int errors = 0;
  for (const char* name : {"rgb.jpg", "progressive.jpg", "restarts.jpg", "cmyk.jpg", "rgba.png",
                           "palette2.png", "bits.png"}) {
    const std::string whole = picture(name);
    for (std::size_t place = 3; place < whole.size(); ++place) {
      std::string damaged = whole;
      damaged[place] = static_cast<char>(damaged[place] ^ (1 << place % 8));
      try {
        Array read = decode_image(damaged, name, {.max_pixels = 1 << 20});
        ASSERT_EQ(read.ndim(), 3);
        ASSERT_FALSE(whole[0] == '\x89' && read.size() == 0);
      } catch (const SerializationError& error) {
        ASSERT_THAT(error.what(), HasSubstr(name));
        ++errors;
      }
    }
  }
  EXPECT_GT(errors, 1000);
}

TEST_F(ReadImageTest, SizesOutOfBounds) {
  auto failure = [](const std::string& bytes, ReadImageOptions options = {}) {
    return thrown<SerializationError>([&] { decode_image(bytes, "photo", options); });
  };
  std::string jpeg = picture("progressive.jpg"), data = testing::png_file(40000, 40000, 8, 2, "");
  EXPECT_THAT(failure(data), HasSubstr("40000 x 40000 pixels, more than the 178956970"));
  EXPECT_THAT(failure(jpeg, {.max_pixels = 37 * 26 - 1}),
              HasSubstr("photo: a picture of 37 x 26 pixels, more than the 961"));
  EXPECT_EQ(decode_image(jpeg, "photo", {.max_pixels = 37 * 26}).shape(), (Shape{3, 26, 37}));
  // The header's extents follow its mark, SOF2, the segment's length and the precision.
  std::size_t frame = jpeg.find("\xff\xc2");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  EXPECT_THAT(failure(jpeg), HasSubstr("65500 x 65500 pixels, more than"));
  EXPECT_THAT(failure(jpeg, {.min_size = 1}), HasSubstr("65500 x 65500 pixels, more than"));
  jpeg.replace(frame + 5, 4, std::string("\0\1\0\0", 4));
  EXPECT_THAT(failure(jpeg), HasSubstr("damaged JPEG"));
  EXPECT_THAT(failure(testing::png_file(0, 5, 8, 2, "")), HasSubstr("damaged PNG"));
  EXPECT_THAT(failure(testing::png_file(5, 5, 3, 2, "")), HasSubstr("damaged PNG"));
}

#if !RENSA_TEST_IMAGES
TEST(ReadImage, WithoutTheLibrariesItSaysWhatIsMissing) {
  for (const char* name : {"rgb.jpg", "rgb.png"}) {
    EXPECT_THAT(thrown<NotImplementedError>([&] { decode_image(picture(name), name); }),
                AllOf(HasSubstr("libjpeg-dev"), HasSubstr("libpng-dev")))
        << name;
  }
}
#endif

}  // namespace
}  // namespace rensa::images
