// Where the elements of a convolution's operands lie.
#include "rensa/functions/operations/convolution/cpu_geometry.h"

namespace rensa::host {

ConvolutionGeometry::ConvolutionGeometry(const operations::Convolution& op)
    : axes(op.stride.size()),
      batch(op.x.view.shape[0]),
      groups(op.groups),
      channels(op.w.view.shape[1]),
      filters(op.w.view.shape[0] / op.groups),
      places(1),
      pixels(1),
      positions(1),
      pointwise(true) {
  for (int i = 0; i < axes; ++i) {
    in[i] = op.x.view.shape[2 + i];
    out[i] = op.y.view.shape[2 + i];
    stride_[i] = op.stride[i];
    places *= op.w.view.shape[2 + i];
    pixels *= out[i];
    positions *= in[i];
    if (op.w.view.shape[2 + i] != 1 || op.stride[i] != 1 || op.pad[i] != 0) pointwise = false;
  }
  starts_.resize(static_cast<std::size_t>(places * axes));
  for (std::int64_t k = 0; k < places; ++k) {
    std::int64_t rest = k;
    for (int i = axes; i-- > 0;) {
      std::int64_t extent = op.w.view.shape[2 + i];
      starts_[static_cast<std::size_t>(k * axes + i)] = rest % extent * op.dilate[i] - op.pad[i];
      rest /= extent;
    }
  }
}

std::vector<PixelRun> ConvolutionGeometry::runs(std::int64_t begin, std::int64_t end) const {
  std::vector<PixelRun> result;
  int last = axes - 1;
  for (std::int64_t pixel = begin; pixel < end;) {
    PixelRun run{pixel - begin, 0, {}};
    std::int64_t rest = pixel;
    for (int i = axes; i-- > 0; rest /= out[i]) run.place[i] = rest % out[i];
    run.count = std::min(out[last] - run.place[last], end - pixel);
    pixel += run.count;
    result.push_back(run);
  }
  return result;
}

Reach ConvolutionGeometry::reach(const PixelRun& run, std::int64_t k,
                                 const std::int64_t* strides) const {
  const std::int64_t* start = starts_.data() + k * axes;
  Reach reach{0, 0, 0, 0};
  int last = axes - 1;
  for (int i = 0; i < last; ++i) {
    std::int64_t position = run.place[i] * stride_[i] + start[i];
    if (position < 0 || position >= in[i]) return reach;
    reach.offset += position * strides[i];
  }
  std::int64_t step = stride_[last], first = run.place[last] * step + start[last];
  std::int64_t begin = first >= 0 ? 0 : (step - 1 - first) / step;
  std::int64_t end = first >= in[last] ? 0 : (in[last] - 1 - first) / step + 1;
  end = std::min(end, run.count);
  if (begin >= end) return reach;
  reach.begin = begin;
  reach.end = end;
  reach.offset += (first + begin * step) * strides[last];
  reach.step = step * strides[last];
  return reach;
}

ArrayView channels_of(const ArrayView& view, std::int64_t n, std::int64_t first,
                      std::int64_t count) {
  ArrayView part = view;
  part.data = channel_of(view, n, first);
  part.shape[0] = 1;
  part.shape[1] = count;
  return part;
}

}  // namespace rensa::host
