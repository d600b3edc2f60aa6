// PNG files as they are written, read by libpng.
#include "rensa/data/images/png.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "rensa/array/creation.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/data/images/write_image.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa {
namespace {

Array pixels_of(const Shape& shape) {
  Array ramp = xp::arange(shape[0] * shape[1] * shape[2], int64, cpu());
  return ((ramp * ramp + ramp / std::int64_t{7}) % std::int64_t{256}).astype(uint8).reshape(shape);
}

TEST(Png, WhatIsWrittenIsRead) {
  if (!RENSA_TEST_IMAGES) GTEST_SKIP() << "this build reads no PNG";
  for (std::int64_t channels : {1, 3}) {
    for (Shape shape : {Shape{1, 1, channels}, Shape{5, 7, channels}, Shape{300, 1, channels},
                        Shape{2, 999, channels}}) {
      Array pixels = pixels_of(shape);
      Array back = images::decode_png(images::encode_png(pixels), "a.png", {});
      EXPECT_TRUE(xp::array_equal(back, xp::transpose(pixels, {2, 0, 1}))) << shape.str();
    }
  }
}

TEST(Png, AlphaIsWritten) {
  if (!RENSA_TEST_IMAGES) GTEST_SKIP() << "this build reads no PNG";
  for (std::int64_t channels : {2, 4}) {
    Array pixels = pixels_of({4, 6, channels});
    Array back =
        images::decode_png(images::encode_png(pixels), "a.png", {.mode = images::Mode::unchanged});
    EXPECT_TRUE(xp::array_equal(back, xp::transpose(pixels, {2, 0, 1}))) << channels;
  }
}

TEST(Png, APictureIsAFile) {
  if (!RENSA_TEST_IMAGES) GTEST_SKIP() << "this build reads no PNG";
  testing::TemporaryFolder folder;
  Array picture = xp::transpose(pixels_of({4, 6, 3}), {2, 0, 1});
  for (Device device : testing::test_devices()) {
    images::write_png(folder / "a.png", picture.to(device));
    EXPECT_TRUE(xp::array_equal(images::read_image(folder / "a.png"), picture));
  }
}

TEST(Png, NoPictureIsNoFile) {
  testing::TemporaryFolder folder;
  std::string path = folder / "a.png";
  EXPECT_THROW(images::write_png(path, xp::zeros({4, 6}, uint8, cpu())), ShapeError);
  EXPECT_THROW(images::write_png(path, xp::zeros({5, 4, 6}, uint8, cpu())), ShapeError);
  EXPECT_THROW(images::write_png(path, xp::zeros({3, 0, 6}, uint8, cpu())), ShapeError);
  EXPECT_THROW(images::write_png(path, xp::zeros({3, 4, 6}, float32, cpu())), DtypeError);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_THROW(images::write_png(folder / "none/a.png", xp::zeros({1, 1, 1}, uint8, cpu())),
               SerializationError);
}

}  // namespace
}  // namespace rensa
