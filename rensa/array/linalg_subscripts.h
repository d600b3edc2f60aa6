// Einstein's sums by labels: what xp::einsum and its function's gradients share.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rensa/array/array.h"

namespace rensa::detail {

/// The name of an axis: a letter's code, kBroadcastLabel + i for the i-th axis from the right among
/// those of "...", or any other number below that where nobody wrote it.
using Label = int;
using Labels = std::vector<Label>;
inline constexpr Label kBroadcastLabel = 256;

bool holds(const Labels& labels, Label label);
/// The first axis of that label, which is there.
int axis_of(const Labels& labels, Label label);

/// Subscripts with "..." spelled out: a label for each axis of each operand and of the result.
struct Subscripts {
  std::vector<Labels> operands;
  Labels result;
  std::string text;  // as somebody wrote them, for errors
};

/// Reads NumPy's notation, "ij,jk->ik", for these operands. Throws ValueError for what is no
/// subscripts, or does not fit the operands' numbers of axes.
Subscripts parse_subscripts(std::string_view text, std::span<const Array> operands);

/// The sums of products that they say. Throws ShapeError where axes of one label have other extents
/// than one, or 1 in another operand; DeviceError.
Array einsum(const Subscripts& subscripts, std::span<const Array> operands);

}  // namespace rensa::detail
