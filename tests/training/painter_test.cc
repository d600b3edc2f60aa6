// What painters leave in a picture of pixels, and its letters.
#include "rensa/training/painter.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/data/images/read_image.h"
#include "rensa/training/plot.h"
#include "rensa/training/stroke_font.h"

namespace rensa {
namespace {

/// (3, height, width); none where the build cannot read pictures.
std::optional<Array> decoded(const std::string& png) {
  try {
    return images::decode_image(png, "painted").astype(int32);
  } catch (const NotImplementedError&) {
    return std::nullopt;
  }
}

#define RENSA_DECODE(name, png)                                        \
  std::optional<Array> name##_or_none = decoded(png);                  \
  if (!name##_or_none) GTEST_SKIP() << "this build reads no pictures"; \
  const Array& name = *name##_or_none

int at(const Array& picture, int channel, int x, int y) {
  return picture[{channel, y, x}].item<int>();
}

/// Whether anything is not white in what lies from (left, top) on, before (right, bottom).
bool inked(const Array& picture, int left, int top, int right, int bottom) {
  return picture[{Slice(), Slice(top, bottom), Slice(left, right)}].min().item<int>() < 128;
}

TEST(PngPainter, LinesCoverTheirPixels) {
  auto painter = png_painter(100, 60);
  painter->line(10, 20, 90, 20, "#ff0000", 2);
  painter->path({{{10, 40}, {20, 50}}, {{60, 50}, {90, 50}}}, "#0000ff", 1);
  painter->circle(50, 30, 3, "#00ff00");
  RENSA_DECODE(picture, painter->str());
  EXPECT_EQ(picture.shape(), (Shape{3, 120, 200}));
  for (int y : {39, 40}) {  // within
    EXPECT_EQ(at(picture, 0, 100, y), 255);
    EXPECT_EQ(at(picture, 1, 100, y), 0);
  }
  EXPECT_FALSE(inked(picture, 0, 0, 200, 37));
  EXPECT_FALSE(inked(picture, 0, 0, 17, 120));
  EXPECT_EQ(at(picture, 2, 150, 100), 255);
  EXPECT_LT(at(picture, 0, 150, 100), 10);
  EXPECT_FALSE(inked(picture, 46, 80, 92, 120));  // between the runs of a path
  EXPECT_EQ(at(picture, 1, 100, 60), 255);
  EXPECT_EQ(at(picture, 0, 100, 60), 0);
}

TEST(PngPainter, ABoxHidesAsFarAsItIsOpaque) {
  auto painter = png_painter(40, 40);
  for (int x : {10, 30}) painter->line(x, 0, x, 40, "#000000", 4);
  painter->box(5, 5, 30, 10, 0.75, "#c0c0c0");
  RENSA_DECODE(picture, painter->str());
  EXPECT_NEAR(at(picture, 0, 20, 20), 191, 1);
  EXPECT_EQ(at(picture, 0, 20, 60), 0);
  EXPECT_EQ(at(picture, 0, 40, 10), 0xc0);
}

TEST(PngPainter, TextStandsWhereItIsAnchored) {
  auto painter = png_painter(100, 100);
  painter->text(50, 20, "Hill", {Painter::Anchor::start});
  painter->text(50, 40, "Hill", {Painter::Anchor::end, true});
  painter->text(20, 50, "Hill", {Painter::Anchor::middle, false, true});
  RENSA_DECODE(picture, painter->str());
  EXPECT_TRUE(inked(picture, 100, 18, 140, 42));
  EXPECT_FALSE(inked(picture, 45, 0, 97, 45));
  EXPECT_TRUE(inked(picture, 60, 58, 98, 82));
  EXPECT_FALSE(inked(picture, 104, 50, 200, 85));
  EXPECT_TRUE(inked(picture, 22, 80, 42, 100));  // half of it above the place, half below
  EXPECT_TRUE(inked(picture, 22, 100, 42, 120));
  EXPECT_FALSE(inked(picture, 43, 86, 200, 200));
}

TEST(PngPainter, PartsHaveTheirOwnPlaces) {
  auto painter = png_painter(100, 50);
  painter->begin_part(50, 10, 50, 40);
  painter->line(0, 10, 50, 10, "#000000", 2);
  painter->end_part();
  painter->line(0, 40, 10, 40, "#000000", 2);
  RENSA_DECODE(picture, painter->str());
  EXPECT_TRUE(inked(picture, 104, 38, 190, 42));
  EXPECT_FALSE(inked(picture, 0, 0, 96, 70));
  EXPECT_TRUE(inked(picture, 4, 78, 16, 82));
}

TEST(PngPainter, WhatLiesOutsideIsCut) {
  auto painter = png_painter(10, 10);
  painter->line(-100, -100, 100, 100, "#000000", 1);
  painter->box(-5, -5, 100, 100, 0.5, "#000000");
  painter->circle(200, 5, 3, "#000000");
  EXPECT_EQ(painter->str().substr(1, 3), "PNG");
}

TEST(Plot, IsTheSameChartAsAPng) {
  std::string png = plot({{"loss", {{1, 3}, {2, 1}, {3, 2}}}}, PictureFormat::png,
                         {.title = "A run", .x_label = "epoch", .y_label = "loss"});
  RENSA_DECODE(picture, png);
  EXPECT_EQ(picture.shape(), (Shape{3, 800, 1280}));
  EXPECT_TRUE(inked(picture, 600, 16, 760, 44));   // the title
  EXPECT_TRUE(inked(picture, 8, 300, 32, 450));    // the label of y
  EXPECT_TRUE(inked(picture, 120, 60, 136, 700));  // an axis
  EXPECT_EQ(plot_grid({{{}, {}}, {{}, {}}}, 2, PictureFormat::png).substr(1, 3), "PNG");
}

TEST(StrokeFont, HasAllOfAscii) {
  for (char c = '!'; c <= '~'; ++c) {
    StrokedText letter = stroked(std::string(1, c), 100);
    EXPECT_FALSE(letter.strokes.empty()) << c;
    for (const auto& stroke : letter.strokes) {
      EXPECT_GE(stroke.size(), 2U) << c;
      for (auto [across, up] : stroke) {
        EXPECT_TRUE(across >= 0 && across <= letter.width && up >= -30 && up <= 90) << c;
      }
    }
  }
  EXPECT_GT(stroked("a b", 12).width, stroked("ab", 12).width);
  EXPECT_EQ(stroked("\xc3\xa9", 12).strokes, stroked("?", 12).strokes);
  EXPECT_EQ(stroked("", 12).width, 0);
}

}  // namespace
}  // namespace rensa
