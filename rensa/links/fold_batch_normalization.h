// fold_batch_normalization: a model for inference, whose batch normalizations are part of the
// weights of the layers in front of them.
//
//   auto folded = L::fold_batch_normalization(model, x);  // x: a batch as the model gets
//   std::cout << folded.str();
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rensa/links/link.h"

namespace rensa {
namespace links {

struct FoldOptions {
  rensa::detail::NamedOptions named = {};
  /// How far what the model gives for x may move, as a part of its greatest magnitude. Left out:
  /// the square root of the epsilon of the narrowest dtype that it or a folded layer gives (3e-4 of
  /// float32).
  std::optional<double> tolerance = {};
};

/// What became of a model's BatchNormalizations, by their paths ("/bn1", "/res2/a/bn1").
struct FoldedNormalizations {
  /// One that is folded.
  struct Folded {
    std::string normalization;  // its path
    std::string layer;          // whose W and b have taken it in
  };
  /// One that is not.
  struct Left {
    std::string normalization;  // its path
    std::string reason;         // why not, in words
  };
  std::vector<Folded> folded;  // those that are in layers now
  std::vector<Left> left;      // those that normalize as before
  /// How far what the model gives for x has moved.
  double moved = 0;

  /// "20 of 21 batch normalizations folded", and a line for each that is left.
  std::string str() const;
};

/// Takes the model's batch normalizations, those of a BatchRenormalization too, out of inference.
/// Where one's input is what a layer of filters (Convolution1D to 3D, ConvolutionND, the
/// deconvolutions, DepthwiseConvolution2D, LocalConvolution2D) or a Linear gives, and nothing else
/// takes that,
///
///   gamma * (W x + b - mean) / sqrt(var + eps) + beta = (s W) x + (s (b - mean) + beta)
///
/// with s = gamma / sqrt(var + eps): the layer gets these weights, and a b where it had none, and
/// the normalization gives its input as it is (Jacob et al., "Quantization and training of neural
/// networks for efficient integer-arithmetic-only inference", section 3.2; torch.nn.utils.fusion).
/// They are computed in float64, have the dtype, device and order in memory of W, and are new
/// arrays: links that share the old ones do not see them.
///
/// What belongs together is seen in a run on x, with config().train off and no graph; parameters
/// that wait for their shapes get them. A normalization is left, and the reason told, where the run
/// does not show that folding it is right: its input is something else, or is also taken by another
/// function, or is kept or given by the model; the layer or it is called another time without the
/// other; it normalizes along other axes, changes the dtype or was called in training; a weight is
/// tied, taken by another function or replaced by a hook; it was not called. So x has to be such
/// that the model takes the ways that it takes later.
///
/// A second run on x checks what the model gives. Where that has moved by more than the tolerance,
/// the model becomes as it was, and ValueError is thrown: it works with a layer's array outside of
/// functions (`h.array()`), keeps a state from run to run or draws random numbers. So is it where
/// the model gives no finite floating numbers, which alone are compared.
///
/// From then on a folded BatchNormalization throws ValueError in training, and link hooks do not
/// see it. A file of a folded model is read by a model that is folded likewise, and a file of
/// another one by another one: the wrong one is a SerializationError. Copies are folded as the
/// model is, and an optimizer is to be set up again. Folding once more finds what is left. Steps
/// that were captured before are recorded anew. Waits for the device.
///
/// Throws ValueError as check_members, and what the model throws.
FoldedNormalizations fold_batch_normalization(Link& model, const Variables& x,
                                              const FoldOptions& options = {});
FoldedNormalizations fold_batch_normalization(Link& model, const Variable& x,
                                              const FoldOptions& options = {});
/// The same with `run` in place of a call of the model: what it gives is what is to stay the same.
FoldedNormalizations fold_batch_normalization(Link& model, const std::function<Variables()>& run,
                                              const FoldOptions& options = {});

}  // namespace links

namespace L = links;

}  // namespace rensa
