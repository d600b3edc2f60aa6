// The generated digit set: each digit is a few strokes, drawn with a pen through a random map.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/core/philox.h"
#include "rensa/core/thread_pool.h"
#include "rensa/data/mnist.h"

namespace rensa::datasets {

namespace {

constexpr int kSide = 28;
constexpr int kArcPieces = 10;

struct Point {
  float x, y;
};
using Stroke = std::vector<Point>;
using Glyph = std::vector<Stroke>;

/// Part of an ellipse, angles in degrees: 0 to the right, 90 down.
Stroke arc(float cx, float cy, float rx, float ry, float from, float to) {
  Stroke stroke;
  for (int i = 0; i <= kArcPieces; ++i) {
    float t = (from + (to - from) * static_cast<float>(i) / kArcPieces) *
              (std::numbers::pi_v<float> / 180);
    stroke.push_back({cx + rx * std::cos(t), cy + ry * std::sin(t)});
  }
  return stroke;
}

Stroke joined(Stroke a, const Stroke& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Every way of writing the digit `d`, in the square [-1, 1], y downwards.
std::vector<Glyph> glyphs_of(int d) {
  switch (d) {
    case 0: return {{arc(0, 0, .6f, .9f, -90, 270)}, {arc(0, 0, .45f, .9f, -60, 300)}};
    case 1:
      return {{{{0, -.9f}, {0, .9f}}},
              {{{-.35f, -.5f}, {.05f, -.9f}, {.05f, .9f}}},
              {{{-.3f, -.55f}, {0, -.9f}, {0, .9f}}, {{-.4f, .9f}, {.4f, .9f}}}};
    case 2:
      return {
          {joined(arc(0, -.4f, .55f, .5f, -170, 40), {{-.6f, .9f}, {.65f, .9f}})},
          {joined(joined(arc(0, -.45f, .5f, .45f, -180, 30), arc(-.4f, .7f, .2f, .2f, 200, -20)),
                  {{.65f, .85f}})}};
    case 3:
      return {
          {arc(0, -.45f, .5f, .45f, -160, 90), arc(0, .45f, .6f, .45f, -90, 160)},
          {joined({{-.5f, -.9f}, {.5f, -.9f}, {-.05f, -.15f}}, arc(0, .4f, .55f, .5f, -90, 155))}};
    case 4:
      return {{{{.1f, -.9f}, {-.6f, .3f}, {.65f, .3f}}, {{.3f, -.3f}, {.3f, .9f}}},
              {{{-.5f, -.9f}, {-.5f, 0}, {.5f, 0}}, {{.5f, -.9f}, {.45f, .9f}}}};
    case 5:
      return {{joined({{.5f, -.9f}, {-.4f, -.9f}, {-.45f, -.1f}},
                      arc(0, .35f, .55f, .55f, -125, 150))}};
    case 6:
      return {{joined({{.4f, -.9f}, {-.2f, -.4f}, {-.5f, .2f}}, arc(0, .4f, .5f, .5f, 180, -180))},
              {joined(arc(.3f, 0, .8f, .9f, -100, -180), arc(0, .4f, .5f, .45f, 180, -180))}};
    case 7:
      return {{{{-.6f, -.9f}, {.6f, -.9f}, {-.1f, .9f}}},
              {{{-.6f, -.9f}, {.6f, -.9f}, {-.1f, .9f}}, {{-.3f, 0}, {.5f, 0}}}};
    case 8: return {{arc(0, -.45f, .45f, .42f, 90, 450), arc(0, .45f, .55f, .45f, -90, 270)}};
    default:
      return {{joined(arc(0, -.4f, .5f, .48f, 0, 360), {{.45f, .1f}, {.3f, .9f}})},
              {joined(arc(0, -.4f, .5f, .48f, 0, 360), arc(-.1f, .3f, .6f, .6f, -30, 110))}};
  }
}

/// The random numbers of one image.
class Draw {
 public:
  Draw(std::uint64_t seed, std::uint64_t image) : seed_(seed), counter_(image << 20) {}
  float uniform(float low, float high) {
    if (used_ == 4) {
      words_ = philox(seed_, counter_++);
      used_ = 0;
    }
    return low + (high - low) * uniform_float(words_.word[used_++]);
  }
  int below(int n) { return std::min(n - 1, static_cast<int>(uniform(0, static_cast<float>(n)))); }

 private:
  std::uint64_t seed_, counter_;
  PhiloxWords words_{};
  int used_ = 4;
};

/// An affine map from the glyph's square to pixels.
struct Pose {
  float a, b, c, d, x, y;
  explicit Pose(Draw& draw) {
    float angle = draw.uniform(-.22f, .22f), shear = draw.uniform(-.35f, .2f);
    float sx = draw.uniform(6.5f, 9.5f), sy = draw.uniform(8.f, 10.5f);
    float cosine = std::cos(angle), sine = std::sin(angle);
    a = sx * cosine;
    b = sy * (shear * cosine - sine);
    c = sx * sine;
    d = sy * (shear * sine + cosine);
    x = kSide / 2.f + draw.uniform(-1.8f, 1.8f);
    y = kSide / 2.f + draw.uniform(-1.8f, 1.8f);
  }
  Point operator()(Point p) const { return {a * p.x + b * p.y + x, c * p.x + d * p.y + y}; }
};

/// Ink within `radius` of the segment, with an edge one pixel soft.
void draw_segment(Point p, Point q, float radius, float* pixels) {
  float reach = radius + 1;
  auto low = [&](float u, float v) {
    return std::max(0, static_cast<int>(std::min(u, v) - reach));
  };
  auto high = [&](float u, float v) {
    return std::min(kSide - 1, static_cast<int>(std::max(u, v) + reach));
  };
  float dx = q.x - p.x, dy = q.y - p.y, length2 = std::max(dx * dx + dy * dy, 1e-6f);
  for (int row = low(p.y, q.y); row <= high(p.y, q.y); ++row) {
    for (int column = low(p.x, q.x); column <= high(p.x, q.x); ++column) {
      float ux = static_cast<float>(column) + .5f - p.x, uy = static_cast<float>(row) + .5f - p.y;
      float t = std::clamp((ux * dx + uy * dy) / length2, 0.f, 1.f);
      float ex = ux - t * dx, ey = uy - t * dy;
      float ink = std::clamp(radius + .5f - std::sqrt(ex * ex + ey * ey), 0.f, 1.f);
      float& pixel = pixels[row * kSide + column];
      pixel = std::max(pixel, ink);
    }
  }
}

void draw_digit(const std::vector<Glyph>& ways, Draw& draw, float* pixels) {
  std::fill(pixels, pixels + kSide * kSide, 0.f);
  const Glyph& glyph = ways[static_cast<std::size_t>(draw.below(static_cast<int>(ways.size())))];
  Pose pose(draw);
  float radius = draw.uniform(.7f, 1.7f);
  // A slow wave bends the strokes; each control point also jitters on its own.
  float wave_x = draw.uniform(-.1f, .1f), wave_y = draw.uniform(-.1f, .1f);
  float phase = draw.uniform(0, 6.28f);
  for (const Stroke& stroke : glyph) {
    Point previous{};
    for (std::size_t i = 0; i < stroke.size(); ++i) {
      Point p = stroke[i];
      p.x += wave_x * std::sin(3 * stroke[i].y + phase) + draw.uniform(-.03f, .03f);
      p.y += wave_y * std::sin(3 * stroke[i].x + phase) + draw.uniform(-.03f, .03f);
      p = pose(p);
      if (i > 0) draw_segment(previous, p, radius, pixels);
      previous = p;
    }
  }
  float strength = draw.uniform(.75f, 1.f), noise = draw.uniform(0, .12f);
  for (int i = 0; i < kSide * kSide; ++i) {
    pixels[i] = std::clamp(strength * pixels[i] + draw.uniform(-noise, noise), 0.f, 1.f);
  }
}

TupleDataset draw_set(std::int64_t n, std::uint64_t seed, std::uint64_t first_image) {
  std::array<std::vector<Glyph>, 10> glyphs;
  for (int d = 0; d < 10; ++d) glyphs[static_cast<std::size_t>(d)] = glyphs_of(d);
  Array x = xp::empty({n, kSide * kSide}, float32, cpu()), t = xp::empty({n}, int32, cpu());
  auto* pixels = static_cast<float*>(x.data());
  auto* labels = static_cast<std::int32_t*>(t.data());
  parallel_for(n, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      Draw draw(seed, first_image + static_cast<std::uint64_t>(i));
      labels[i] = draw.below(10);
      draw_digit(glyphs[static_cast<std::size_t>(labels[i])], draw, pixels + i * kSide * kSide);
    }
  });
  return TupleDataset(x, t);
}

}  // namespace

TrainTest get_synthetic_digits(std::int64_t n_train, std::int64_t n_test, std::uint64_t seed) {
  if (n_train < 0 || n_test < 0)
    throw ValueError("get_synthetic_digits: a negative number of digits");
  // The test digits are images of their own, far behind the training ones.
  return {draw_set(n_train, seed, 0), draw_set(n_test, seed, std::uint64_t{1} << 40)};
}

}  // namespace rensa::datasets
