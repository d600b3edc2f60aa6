// Parts, sizes and colours of pictures, beside PIL and torchvision.
#include "rensa/data/images/image_transforms.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>
#include <sstream>

#include "rensa/array/io.h"
#include "rensa/array/math.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/data/converter.h"
#include "rensa/data/multithread_iterator.h"
#include "tests/testing.h"

namespace rensa::transforms {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::thrown;

class TransformTest : public ::testing::Test {
 protected:
  xp::NpzFile answers_ = xp::load_npz(testing::data_file("image_transforms.npz"));
  Array image_ = answers_["uint8"];
};

/// The greatest difference; NaN for other shapes or dtypes.
double difference(const Array& a, const Array& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return NAN;
  return xp::abs(a.astype(float64) - b.astype(float64)).max().item<double>();
}

/// The values 0 to n-1 as a picture of one channel, so that a pixel says where it is from.
Array numbered(std::int64_t height, std::int64_t width) {
  return xp::arange(height * width, float32).reshape({1, height, width});
}

TEST_F(TransformTest, AsPilAndTorchvision) {
  int compared = 0;
  for (const std::string& name : answers_.files()) {
    std::istringstream words(name);
    std::string source, function, argument;
    if (!(words >> source >> function)) continue;
    std::vector<double> arguments;
    while (words >> argument) arguments.push_back(std::stod(argument));
    auto size = [&] {
      return Size{static_cast<std::int64_t>(arguments[0]), static_cast<std::int64_t>(arguments[1])};
    };
    Array img = answers_[source], result;
    double most = 0;
    if (function == "resize") {
      result = resize(img, size());
    } else if (function == "center_crop") {
      result = center_crop(img, size());
    } else if (function == "normalize") {
      result = normalize(img, {123.675f, 116.28f, 103.53f}, {58.395f, 57.12f, 57.375f});
    } else if (function == "adjust_brightness") {
      result = adjust_brightness(img, arguments[0]);
    } else if (function == "adjust_saturation") {
      result = adjust_saturation(img, arguments[0]);
    } else {
      ASSERT_EQ(function, "adjust_contrast");
      result = adjust_contrast(img, arguments[0]);
      most = source == "unit" ? 1e-6 : 1;  // the mean is added up in another order
    }
    EXPECT_LE(difference(result, answers_[name]), most) << name;
    ++compared;
  }
  EXPECT_GE(compared, 40);
}

TEST_F(TransformTest, ViewsAreTransformedAsTheirCopies) {
  Array view = flip(crop(image_, 3, 5, {17, 22}), {.y_flip = true, .x_flip = true});
  Array copy = view.copy();
  EXPECT_EQ(difference(resize(view, {9, 40}), resize(copy, {9, 40})), 0);
  EXPECT_EQ(difference(adjust_contrast(view, 0.4), adjust_contrast(copy, 0.4)), 0);
  EXPECT_EQ(difference(adjust_saturation(view, 0.4), adjust_saturation(copy, 0.4)), 0);
  EXPECT_EQ(difference(normalize(view, {3}, {2}), normalize(copy, {3}, {2})), 0);
  EXPECT_EQ(difference(resize(crop(image_, 3, 5, {17, 22}), {9, 40}),
                       resize(crop(image_, 3, 5, {17, 22}).copy(), {9, 40})),
            0);
}

TEST_F(TransformTest, PartsStandWhereTheyAreAskedFor) {
  Array img = numbered(5, 7);
  EXPECT_EQ(crop(img, 1, 2, {2, 3}).to_vector<float>(),
            (std::vector<float>{9, 10, 11, 16, 17, 18}));
  EXPECT_EQ(flip(crop(img, 0, 0, {2, 2}), {.y_flip = true}).to_vector<float>(),
            (std::vector<float>{7, 8, 0, 1}));
  EXPECT_EQ(flip(crop(img, 0, 0, {2, 2}), {.x_flip = true}).to_vector<float>(),
            (std::vector<float>{1, 0, 8, 7}));
  EXPECT_THAT(thrown<ShapeError>([&] {
                crop(img, 4, 0, {2, 2});
              }),
              HasSubstr("2 x 2 pixels from (4, 0) on of a picture of 5 x 7"));
  for (Size size : {Size{6, 1}, Size{1, 8}, Size{0, 1}, Size{1, -1}}) {
    RandomStream random(1);
    EXPECT_THROW(crop(img, 0, 0, size), ShapeError);
    EXPECT_THROW(center_crop(img, size), ShapeError);
    EXPECT_THROW(random_crop(img, size, random), ShapeError);
  }
  EXPECT_THROW(crop(img, -1, 0, {1, 1}), ShapeError);
}

TEST_F(TransformTest, RandomPartsReachEveryPlace) {
  Array img = numbered(4, 5);
  RandomStream random(5);
  std::set<float> begins;
  for (int i = 0; i < 400; ++i)
    begins.insert(random_crop(img, {3, 3}, random)[{0, 0, 0}].item<float>());
  EXPECT_EQ(begins, (std::set<float>{0, 1, 2, 5, 6, 7}));
  int flips[4] = {};
  for (int i = 0; i < 400; ++i) {
    Array flipped = random_flip(img, random, {.y_random = true, .x_random = true});
    float corner = flipped[{0, 0, 0}].item<float>();
    ++flips[corner == 0 ? 0 : corner == 4 ? 1 : corner == 15 ? 2 : 3];
  }
  for (int count : flips) EXPECT_NEAR(count, 100, 40);
  EXPECT_EQ(difference(random_flip(img, random, RandomFlipOptions()), img), 0);
}

TEST_F(TransformTest, RandomSizedPartsKeepTheirBounds) {
  Array img = numbered(60, 90);
  RandomStream random(2);
  double least = 1, most = 0;
  for (int i = 0; i < 500; ++i) {
    Array part = random_sized_crop(img, random);
    auto height = static_cast<double>(part.shape(1)), width = static_cast<double>(part.shape(2));
    double area = height * width / (60 * 90);
    least = std::min(least, area), most = std::max(most, area);
    EXPECT_GT(height / width, 0.7);
    EXPECT_LT(height / width, 1.45);
  }
  EXPECT_GT(least, 0.07);
  EXPECT_LT(least, 0.12);
  EXPECT_GT(most, 0.8);
  // Where no such part fits, it is the largest one.
  Array line = numbered(2, 100);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(random_sized_crop(line, random, {{0.5, 1}, {1, 1}}).shape(), (Shape{1, 2, 2}));
  }
  Array whole = random_sized_crop(img, random, {{1, 1}, {2.0 / 3, 2.0 / 3}});
  EXPECT_GE(whole.shape(1), 40);
  using Options = RandomSizedCropOptions;
  for (const Options& bad : {Options{{0, 1}, {1, 1}}, Options{{0.5, 0.4}, {1, 1}},
                             Options{{0.5, 1.1}, {1, 1}}, Options{{0.5, 1}, {-1, 1}}}) {
    EXPECT_THROW(random_sized_crop(img, random, bad), ValueError);
  }
}

TEST_F(TransformTest, TheShorterSide) {
  EXPECT_EQ(scale(image_, 13).shape(), (Shape{3, 13, 18}));
  EXPECT_EQ(scale(image_.transpose({0, 2, 1}), 13).shape(), (Shape{3, 18, 13}));
  EXPECT_EQ(scale(image_, 26).shape(), image_.shape());
  EXPECT_THROW(scale(image_, 0), ValueError);
  EXPECT_THROW(resize(image_, {0, 4}), ValueError);
  EXPECT_THROW(resize(numbered(3, 4)[{Slice(), Slice(0, 0)}], {2, 2}), ValueError);
}

TEST_F(TransformTest, LightIsAddedAlongTheComponents) {
  RandomStream random(9), same(9);
  Array img = xp::full({3, 2, 2}, 100.f, float32, cpu());
  Array lit = pca_lighting(img, 25.5, random);
  const double values[3] = {0.2175, 0.0188, 0.0045};
  const double vectors[3][3] = {
      {-0.5675, 0.7192, 0.4009}, {-0.5808, -0.0045, -0.8140}, {-0.5836, -0.6948, 0.4203}};
  double want[3] = {100, 100, 100};
  for (int k = 0; k < 3; ++k) {
    double strength = same.normal(0, 25.5) * values[k];
    for (int c = 0; c < 3; ++c) want[c] += vectors[c][k] * strength;
  }
  for (int c = 0; c < 3; ++c) EXPECT_NEAR((lit[{c, 1, 1}].item<float>()), want[c], 1e-4);
  RandomStream again(9);
  Array bytes = pca_lighting(img.astype(uint8), 25.5, again);
  for (int c = 0; c < 3; ++c) EXPECT_EQ((bytes[{c, 0, 1}].item<int>()), std::lround(want[c]));
  EXPECT_EQ(difference(pca_lighting(img, 0, random), img), 0);
}

TEST_F(TransformTest, JitterIsOneOfItsOrders) {
  const ColorJitterOptions options{.brightness = 0.4, .contrast = 0.3, .saturation = 0.5};
  std::set<std::vector<int>> results;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    RandomStream random(seed), same(seed);
    Array once = color_jitter(image_, random, options);
    EXPECT_EQ(difference(once, color_jitter(image_, same, options)), 0);
    results.insert(once.to_vector<int>());
  }
  EXPECT_EQ(results.size(), 20U);
  // One strength alone is one function with a factor of its range.
  RandomStream random(3);
  Array gray = xp::full({1, 1, 1}, 100.f, float32, cpu());
  double least = 1000, most = 0;
  for (int i = 0; i < 300; ++i) {
    double value = color_jitter(gray, random, {.brightness = 0.4}).item<float>();
    least = std::min(least, value), most = std::max(most, value);
  }
  EXPECT_NEAR(least, 60, 2);
  EXPECT_NEAR(most, 140, 2);
  EXPECT_EQ(difference(color_jitter(image_, random, {}), image_), 0);
  EXPECT_THROW(color_jitter(image_, random, {.contrast = -1}), ValueError);
}

TEST_F(TransformTest, WhatIsNoPicture) {
  Array wrong = image_.astype(float64), flat = image_[0];
  RandomStream random(1);
  EXPECT_THAT(thrown<DtypeError>([&] {
                resize(wrong, {2, 2});
              }),
              AllOf(HasSubstr("resize"), HasSubstr("float64")));
  EXPECT_THROW(normalize(wrong, {0}, {1}), DtypeError);
  EXPECT_THAT(thrown<ShapeError>([&] { random_flip(flat, random, {}); }),
              AllOf(HasSubstr("random_flip"), HasSubstr("(channels, height, width)")));
  EXPECT_THROW(center_crop(flat, {1, 1}), ShapeError);
  EXPECT_THROW(normalize(image_, {1, 2}, {1}), ShapeError);
  EXPECT_THROW(pca_lighting(numbered(2, 2), 1, random), ShapeError);
  EXPECT_THROW(adjust_saturation(xp::zeros({2, 1, 1}, uint8), 1), ShapeError);
  EXPECT_EQ(difference(adjust_saturation(numbered(2, 2), 0.1), numbered(2, 2)), 0);
  for (auto adjust : {adjust_brightness, adjust_contrast, adjust_saturation}) {
    EXPECT_THROW(adjust(image_, -0.1), ValueError);
    EXPECT_THROW(adjust(image_, NAN), ValueError);
  }
}

TEST_F(TransformTest, ThreadsChangeNothing) {
  Array img = image_;
  Dataset pictures(12, [img](std::int64_t i) { return Columns{img, xp::array(i, cpu())}; });
  datasets::TransformDataset augmented(pictures, [](const Columns& in, RandomStream& random) {
    Array x = resize(random_sized_crop(in[0], random), {16, 16});
    x = color_jitter(random_flip(x, random, {.x_random = true}), random,
                     {.brightness = 0.4, .contrast = 0.4, .saturation = 0.4});
    x = pca_lighting(x, 25.5, random);
    return Columns{normalize(x, {124, 116, 104}, {58, 57, 57}), in[1]};
  });
  iterators::SerialIterator serial(augmented, 5, {.seed = 4});
  std::vector<std::vector<float>> want;
  for (int i = 0; i < 6; ++i) want.push_back(concat_examples(*serial.next())[0].to_vector<float>());
  EXPECT_NE(want[0], want[1]);
  for (int threads : {1, 2, 5}) {
    iterators::MultithreadIterator it(augmented, 5, {.seed = 4, .n_threads = threads});
    for (int i = 0; i < 6; ++i) {
      EXPECT_EQ(concat_examples(*it.next())[0].to_vector<float>(),
                want[static_cast<std::size_t>(i)]);
    }
  }
}

}  // namespace
}  // namespace rensa::transforms
