// Pieces of a convolution.
#include "rensa/functions/operations/convolution/cpu_pieces.h"

namespace rensa::host {

namespace {

using operations::Convolution;
using operations::ConvolutionDirection;

constexpr std::int64_t kPieces = 32;         // of a convolution that can be cut so
constexpr std::int64_t kPiecePixels = 512;   // of several images where one has fewer
constexpr std::int64_t kPieceChannels = 32;  // that a piece makes at least, of several
// Of the images whose weights' gradients are summed apart there are so many pixels at least, and of
// all those sums so many values at most.
constexpr std::int64_t kSummedPixels = 1024;
constexpr std::int64_t kSummedValues = 8 << 20;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The images of a pile that makes an activation: a divisor of the batch.
std::int64_t images_of_activations(const ConvolutionGeometry& g) {
  std::int64_t images = std::clamp<std::int64_t>(kPiecePixels / g.pixels, 1, g.batch);
  while (g.batch % images) --images;
  return images;
}

std::int64_t images_of_weights(std::int64_t size, const ConvolutionGeometry& g) {
  std::int64_t piles = std::min(kSummedValues / size, g.batch * g.pixels / kSummedPixels);
  return divide_up(g.batch, std::clamp<std::int64_t>(piles, 1, std::min(g.batch, kPieces)));
}

std::int64_t units_of(ConvolutionDirection direction, const ConvolutionGeometry& g) {
  if (g.groups > 1) return g.groups;
  return direction == ConvolutionDirection::input_gradient ? g.channels : g.filters;
}

/// `count` channels of a group from `channel` on, for some groups.
Part activation(const ArrayView& view, const Piece& piece, std::int64_t channel,
                std::int64_t count) {
  std::int64_t item = itemsize(view.dtype);
  Part part{piece.image * view.strides[0] + channel * view.strides[1],
            {piece.images, count},
            {view.strides[0] / item, view.strides[1] / item}};
  return part;
}

void append_axes(const ArrayView& view, Part& part) {
  for (int i = 2; i < view.ndim(); ++i) {
    part.shape.push_back(view.shape[i]);
    part.strides.push_back(view.strides[i] / itemsize(view.dtype));
  }
}

}  // namespace

Cut::Cut(const Convolution& op, const ConvolutionGeometry& g)
    : batch_(g.batch), units_(units_of(op.direction, g)) {
  bool makes_weights = op.direction == ConvolutionDirection::weight_gradient;
  images_ = makes_weights ? images_of_weights(op.w.view.size(), g) : images_of_activations(g);
  piles_ = divide_up(batch_, images_);
  std::int64_t channels = g.groups > 1 ? std::min(g.channels, g.filters) : 1;  // of a unit
  std::int64_t least = divide_up(kPieceChannels, channels);
  std::int64_t slices =
      std::min(divide_up(kPieces, piles_), std::max(units_ / least, std::int64_t(1)));
  slice_ = divide_up(divide_up(units_, slices), least) * least;
  slices_ = divide_up(units_, slice_);
}

Piece Cut::piece(std::int64_t pile, std::int64_t slice) const {
  std::int64_t image = pile * images_, unit = slice * slice_;
  return {image, std::min(images_, batch_ - image), unit, std::min(slice_, units_ - unit)};
}

Parts::Parts(const Convolution& op, const ConvolutionGeometry& g, const Piece& piece) {
  std::int64_t group = 0, groups = 1, filter = 0, filters = g.filters, channel = 0,
               channels = g.channels;
  if (g.groups > 1) group = piece.unit, groups = piece.units;
  else if (op.direction == ConvolutionDirection::input_gradient)
    channel = piece.unit, channels = piece.units;
  else filter = piece.unit, filters = piece.units;
  x = activation(op.x.view, piece, group * g.channels + channel, groups * channels);
  y = activation(op.y.view, piece, group * g.filters + filter, groups * filters);
  first_filter = group * g.filters + filter;
  const ArrayView& weights = op.w.view;
  std::int64_t of_filters = weights.strides[0], item = itemsize(weights.dtype);
  w = {first_filter * of_filters + channel * weights.strides[1],
       {groups, filters, channels},
       {g.filters * of_filters / item, of_filters / item, weights.strides[1] / item}};
  append_axes(op.x.view, x), append_axes(op.y.view, y), append_axes(weights, w);
}

}  // namespace rensa::host
