// Images looked at in places between their elements, on the CPU.
#include "rensa/core/thread_pool.h"
#include "rensa/functions/operations/spatial_sampling/spatial_sampling.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

namespace {

using operations::SampleMode;
using operations::SpatialSampling;

template <class T> class Sampler {
 public:
  using V = ComputeOf<T>;
  explicit Sampler(const SpatialSampling& op) : op_(op), order_(op.sample_order()) {}

  /// The places [begin, end) of all images.
  void values(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t at = begin; at < end; ++at) {
      Place p = place(at);
      for (std::int64_t c = 0; c < op_.channels; ++c) {
        V v[4];
        load(p, c, v);
        op_.out.view.as<T>()[p.of_channel(op_, c)] = convert<T>(sampled_between(p.y, p.x, v));
      }
    }
  }
  void keys(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t at = begin; at < end; ++at) {
      Place p = place(at);
      bool nowhere = p.y.nowhere || p.x.nowhere;
      op_.out.view.as<long long>()[at] =
          nowhere ? order_.count() : order_.key(p.image, p.y.below, p.x.below);
    }
  }
  void grid_gradient(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t at = begin; at < end; ++at) {
      Place p = place(at);
      V parts[kSampleParts][2] = {};
      for (std::int64_t c = 0; c < op_.channels; ++c) {
        V v[4];
        load(p, c, v);
        V g = convert<V>(op_.gy.view.as<const T>()[p.of_channel(op_, c)]);
        add_place_gradient(p.y, p.x, v, g, parts[c % kSampleParts]);
      }
      for (int a = 0; a < 2; ++a) {
        V sum = parts[0][a];
        for (int k = 1; k < kSampleParts; ++k) sum += parts[k][a];
        V slope = a == 0 ? p.x.slope : p.y.slope;
        op_.out.view.as<T>()[(p.image * 2 + a) * op_.places + p.number] = convert<T>(sum * slope);
      }
    }
  }
  /// The elements [begin, end) of all images and channels.
  void image_gradient(std::int64_t begin, std::int64_t end) const {
    std::int64_t plane = static_cast<std::int64_t>(op_.rows) * op_.columns;
    for (std::int64_t at = begin; at < end; ++at) {
      std::int64_t channel = at / plane, image = channel / op_.channels;
      auto i = static_cast<int>(at % plane / op_.columns);
      auto j = static_cast<int>(at % op_.columns);
      const T* gy = op_.gy.view.as<const T>() + channel * op_.places;
      V sum = V(0);
      each_place_of<V>(
          order_, image, i, j, op_.order.view.as<const long long>(),
          op_.starts.view.as<const long long>(), image * op_.places,
          [&](long long place, int axis) { return coordinate(image, place, axis); },
          [&](long long place, V weight) { sum += weight * convert<V>(gy[place]); });
      op_.out.view.as<T>()[at] = convert<T>(sum);
    }
  }

 private:
  struct Place {
    std::int64_t image, number;
    SampleAxis<V> y, x;
    std::int64_t of_channel(const SpatialSampling& op, std::int64_t c) const {
      return (image * op.channels + c) * op.places + number;
    }
  };
  V coordinate(std::int64_t image, std::int64_t place, int axis) const {
    return convert<V>(op_.grid.view.as<const T>()[(image * 2 + axis) * op_.places + place]);
  }
  Place place(std::int64_t at) const {
    std::int64_t image = at / op_.places, number = at % op_.places;
    return {image, number, SampleAxis<V>(coordinate(image, number, 1), op_.rows),
            SampleAxis<V>(coordinate(image, number, 0), op_.columns)};
  }
  void load(const Place& p, std::int64_t channel, V (&v)[4]) const {
    const T* x =
        op_.x.view.as<const T>() + (p.image * op_.channels + channel) * op_.rows * op_.columns;
    for (int k = 0; k < 4; ++k) {
      std::int64_t row = p.y.below - 1 + k / 2, column = p.x.below - 1 + k % 2;
      bool there = row >= 0 && row < op_.rows && column >= 0 && column < op_.columns;
      v[k] = there ? convert<V>(x[row * op_.columns + column]) : V(0);
    }
  }

  const SpatialSampling& op_;
  SampleOrder order_;
};

template <class T> void run(const SpatialSampling& op) {
  Sampler<T> sampler(op);
  std::int64_t places = op.images * op.places;
  constexpr std::int64_t kGrain = 256;
  auto each = [&](std::int64_t n, auto part) {
    parallel_for(n, kGrain,
                 [&](std::int64_t begin, std::int64_t end) { (sampler.*part)(begin, end); });
  };
  switch (op.mode) {
    case SampleMode::values: return each(places, &Sampler<T>::values);
    case SampleMode::keys: return each(places, &Sampler<T>::keys);
    case SampleMode::grid_gradient: return each(places, &Sampler<T>::grid_gradient);
    default: return each(op.out.view.size(), &Sampler<T>::image_gradient);
  }
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void SpatialSampling::run_cpu() {
  visit_floating(grid.view.dtype, [&](auto element) { host::run<decltype(element)>(*this); });
}

}  // namespace rensa::operations
