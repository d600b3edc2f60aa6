// How a convolution on the CPU is cut into pieces, which the pool shares out: some images and some
// of what it makes. It follows from the shapes alone, and so do the bits of sums.
#pragma once

#include <cstdint>
#include <vector>

#include "rensa/functions/operations/convolution/cpu_geometry.h"

namespace rensa::host {

/// Which images a piece takes, and which units of what the convolution makes: filters, channels of
/// x for its gradient, or of several groups whole ones.
struct Piece {
  std::int64_t image, images, unit, units;
};

class Cut {
 public:
  Cut(const operations::Convolution& op, const ConvolutionGeometry& g);

  /// Pieces are numbered by the pile of images and by the slice of units. Of an activation that is
  /// made all piles have as many images; the last pile of a sum for weights may have fewer, and
  /// the last slice fewer units.
  std::int64_t piles() const { return piles_; }
  std::int64_t slices() const { return slices_; }
  Piece piece(std::int64_t pile, std::int64_t slice) const;

 private:
  std::int64_t batch_, units_, images_, piles_, slice_, slices_;
};

/// What a piece takes of an operand: where it begins, its shape and its strides. Those of weights
/// begin with the groups, as in oneDNN.
struct Part {
  std::int64_t offset = 0;                   // in bytes
  std::vector<std::int64_t> shape, strides;  // in elements
};

struct Parts {
  Parts(const operations::Convolution& op, const ConvolutionGeometry& g, const Piece& piece);
  Part x, w, y;
  std::int64_t first_filter;
};

}  // namespace rensa::host
