// k-means by Lloyd's algorithm: the distances are one product, the new centres a scatter_add. All
// on the device of the points; the host looks only at the number of points that moved.
#include <rensa/array.h>

#include <chrono>
#include <cstdio>

#include "arguments.h"

using namespace rensa;

struct Clustering {
  Array centres, labels;  // (clusters, 2) and (points,)
  int iterations = 0;
};

/// For each point the nearest centre: |p - c|^2 less the |p|^2 that is the same for all centres.
static Array nearest(const Array& points, const Array& centres) {
  return (xp::square(centres).sum(1) - 2 * xp::matmul(points, centres.T())).argmin(1);
}

/// The first centres: a point, then each time the one that is farthest from those chosen.
static Array spread_out(const Array& points, std::int64_t clusters) {
  auto distance = [&](const Array& centre) { return xp::square(points - centre).sum(1); };
  Array centres = points[{Slice(1)}].copy(), nearest = distance(centres);
  while (centres.shape(0) < clusters) {
    Array farthest = points[nearest.argmax().reshape({1})];
    nearest = xp::minimum(nearest, distance(farthest));
    centres = xp::concatenate({centres, farthest});
  }
  return centres;
}

static Clustering kmeans(const Array& points, std::int64_t clusters, int max_iterations = 100) {
  Device device = points.device();
  Clustering result;
  result.centres = spread_out(points, clusters);
  result.labels = nearest(points, result.centres);
  Array one = xp::ones({points.shape(0)}, float32, device);
  for (int moved = 1; moved > 0 && result.iterations < max_iterations; ++result.iterations) {
    Array sums = xp::zeros(result.centres.shape(), float32, device);
    Array counts = xp::zeros({clusters}, float32, device);
    xp::scatter_add(sums, result.labels, points);
    xp::scatter_add(counts, result.labels, one);
    Array means = sums / xp::maximum(counts, 1).expand_dims(1);
    result.centres = xp::where((counts > 0).expand_dims(1), means, result.centres);
    Array labels = nearest(points, result.centres);
    moved = xp::not_equal(labels, result.labels).sum().item<int>();
    result.labels = labels;
  }
  return result;
}

/// The mean squared distance of the points to their centres.
static double spread(const Array& points, const Clustering& c) {
  return xp::square(points - c.centres[c.labels]).sum(1).mean().item<double>();
}

int main(int argc, char** argv) {
  std::int64_t count = 1000000, clusters = 5;
  Device device = Arguments("k-means by Lloyd's algorithm")
                      .number("points", &count, "points in the plane")
                      .number("clusters", &clusters, "clusters to find")
                      .parse(argc, argv)[0];
  DeviceScope on(device);
  xp::random::seed(1);

  // Points around the corners of a regular polygon.
  Array angle = xp::arange(clusters, float32) * (2 * 3.14159265f / static_cast<float>(clusters));
  Array corners = xp::stack({xp::cos(angle), xp::sin(angle)}, 1);
  Array of = xp::random::randint(0, clusters, {count});
  Array points = corners[of] + xp::random::normal(0, 0.1, {count, 2});

  auto start = std::chrono::steady_clock::now();
  Clustering found = kmeans(points, clusters);
  std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
  std::printf("%lld points, %lld clusters on %s: %d iterations, %.1f ms\n",
              static_cast<long long>(count), static_cast<long long>(clusters), device.str().c_str(),
              found.iterations, elapsed.count());
  std::printf("centres\n%s\n", found.centres.str().c_str());
  double mean = spread(points, found), at_corners = 2 * 0.1 * 0.1;
  std::printf("mean squared distance %.4f (%.4f around the true centres)\n", mean, at_corners);
  return mean < 1.5 * at_corners ? 0 : 1;
}
