// Loss functions. What they compare has one shape: nothing broadcasts. `reduce` says what becomes
// of the losses of single elements or samples: their "sum", their "mean", or, by "no", nothing; any
// other word throws ValueError. Shapes and dtypes that do not fit throw ShapeError and DtypeError.
// Nothing here waits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

// --- classification ---

struct SoftmaxCrossEntropyOptions {
  bool normalize = true;                   // divide by the labels counted, else by x.shape(0)
  std::int64_t ignore_label = -1;          // what has this label counts for nothing
  std::optional<Array> class_weight = {};  // (classes,): a label's loss is multiplied by its own
  std::string reduce = "mean";
  double label_smoothing = 0;  // the share of a label that goes to all classes alike
  /// Of soft targets: "cross-entropy" or "kl-divergence".
  std::string soft_target_loss = "cross-entropy";
};

/// -log softmax(x)[t], softmax along axis 1. x is (n, classes, ...) floating, t (n, ...) integer;
/// 0-d, or t's shape by reduce "no". A label outside [0, classes) that is not ignored throws
/// IndexError, on a GPU at the next wait.
/// With label_smoothing e a label's target is 1 - e, and e / classes is added to that of each class
/// (Szegedy et al., "Rethinking the inception architecture"). "mean" divides by the number of
/// labels, of whatever weight, as Chainer does (PyTorch divides by the sum of their weights).
/// A floating t of x's shape has probabilities, -sum(t * log softmax(x)) along axis 1, and takes
/// neither ignore_label nor label_smoothing; "kl-divergence" adds sum(t * log(t + 1e-7)); "mean" is
/// over the samples. No gradient reaches t. Throws ValueError for a smoothing outside [0, 1].
[[nodiscard]] Variable softmax_cross_entropy(const Variable& x, const Variable& t,
                                             const SoftmaxCrossEntropyOptions& options = {});

struct NllLossOptions {
  std::optional<Array> class_weight = {};  // (classes,)
  std::int64_t ignore_label = -1;          // samples of this label count for nothing
  std::string reduce = "mean";             // "mean", "sum" or "no"
};
/// -x[t] of logarithms of probabilities x (n, classes, ...), t (n, ...) integer. "mean" divides by
/// the sum of the weights of the labels counted, as PyTorch's does. Labels as those of
/// softmax_cross_entropy.
[[nodiscard]] Variable nll_loss(const Variable& x, const Variable& t,
                                const NllLossOptions& options = {});

/// The cross entropy of sigmoid(x) and labels t of x's shape: 0, 1, or -1, which counts for
/// nothing. "mean" divides by the number of the labels counted, or by x.shape(0) where not
/// `normalize`.
[[nodiscard]] Variable sigmoid_cross_entropy(const Variable& x, const Variable& t,
                                             bool normalize = true,
                                             std::string_view reduce = "mean");
/// The cross entropy of probabilities x and targets t, both of one shape and in [0, 1]. No
/// logarithm is taken below -100. No gradient reaches t.
[[nodiscard]] Variable binary_cross_entropy(const Variable& x, const Variable& t,
                                            std::string_view reduce = "mean");
/// The same of sigmoid(x), in a form that does not overflow.
[[nodiscard]] Variable binary_cross_entropy_with_logits(const Variable& x, const Variable& t,
                                                        std::string_view reduce = "mean");
/// max(0, 1 - s * x), s = 1 at the label t (n,) and -1 at the other classes of x (n, classes); by
/// norm "L2" its square. "mean" is over the samples. A label outside [0, classes) throws
/// IndexError, on a GPU at the next wait. Throws ValueError for another norm.
[[nodiscard]] Variable hinge(const Variable& x, const Variable& t, std::string_view norm = "L1",
                             std::string_view reduce = "mean");

/// Draws integers in an array of that shape: of words that are taken for others.
using NegativeSampler = std::function<Array(const Shape&)>;
/// The options of negative_sampling.
struct NegativeSamplingOptions {
  std::string reduce = "sum";       // or "no": (n,)
  Array* return_samples = nullptr;  // where those that were used go: (n, sample_size + 1)
};
/// log(1 + exp(-x W[t])) + the sum of log(1 + exp(x W[s])) over `sample_size` rows s that `sampler`
/// draws for each sample: x (n, k), t (n,) integer, -1 counts for nothing, W (classes, k) (Mikolov
/// et al., "Distributed representations of words and phrases and their compositionality").
/// `sampler` is asked for (n, sample_size + 1) integers, the first of which the labels replace. A
/// label outside [0, classes) throws IndexError, on a GPU at the next wait; throws ValueError for
/// another reduce.
[[nodiscard]] Variable negative_sampling(const Variable& x, const Variable& t, const Variable& W,
                                         const NegativeSampler& sampler, int sample_size,
                                         const NegativeSamplingOptions& options = {});

/// -log p(t) - the sum of log(1 - p(s)) over samples s (Ji et al., "BlackOut"): x (n, k), t (n,)
/// integer, W (classes, k), samples (n, s) integer; p(c) is exp(x W[c]) over the sum of those of t
/// and all samples. `reduce` is "mean", or "no": (n,). A label or sample outside [0, classes)
/// throws IndexError, on a GPU at the next wait. Throws ShapeError, DtypeError, ValueError.
[[nodiscard]] Variable black_out(const Variable& x, const Variable& t, const Variable& W,
                                 const Variable& samples, std::string_view reduce = "mean");

// --- instances of images ---

struct DiscriminativeLossOptions {
  rensa::detail::NamedOptions named = {};
  int norm = 1;  // or 2
  /// The weights of variance, distance and regularization.
  double alpha = 1, beta = 1, gamma = 0.001;
};
/// The parts of the loss, times alpha, beta and gamma.
struct DiscriminativeLoss {
  Variable variance, distance, regularization;  // of one element each
};
/// De Brabandere et al., "Semantic instance segmentation with a discriminative loss function": of
/// embeddings (n, max_embedding_dim, height, width) of pixels and labels (n, height, width), which
/// number instances from 1 to max_embedding_dim (others count for nothing), how far pixels are from
/// the mean of their instance beyond delta_v, how far those means are within 2 * delta_d of each
/// other, squared, and their norms. Throws ShapeError, DtypeError, ValueError for another norm or
/// no instances.
[[nodiscard]] DiscriminativeLoss discriminative_margin_based_clustering_loss(
    const Variable& embeddings, const Variable& labels, double delta_v, double delta_d,
    std::int64_t max_embedding_dim, const DiscriminativeLossOptions& options = {});

// --- regression ---

/// (x0 - x1)^2, element by element.
[[nodiscard]] Variable squared_error(const Variable& x0, const Variable& x1);
/// squared_error by its other name.
[[nodiscard]] Variable squared_difference(const Variable& x1, const Variable& x2);
/// |x0 - x1|, element by element; the gradient at 0 is 0.
[[nodiscard]] Variable absolute_error(const Variable& x0, const Variable& x1);
/// The mean of squared_error.
[[nodiscard]] Variable mean_squared_error(const Variable& x0, const Variable& x1);
/// The mean of absolute_error.
[[nodiscard]] Variable mean_absolute_error(const Variable& x0, const Variable& x1);
/// a^2 / 2 of a = |x - t| up to delta, delta * (a - delta / 2) beyond (Huber, "Robust estimation of
/// a location parameter"). `reduce` is "sum_along_second_axis", over axis 1, or "no". Throws
/// ValueError for a delta below 0.
[[nodiscard]] Variable huber_loss(const Variable& x, const Variable& t, double delta,
                                  std::string_view reduce = "sum_along_second_axis");

// --- likelihoods ---

/// -log of Bernoulli's probability of x (0 to 1), whose logits are y: softplus(y) - x * y.
[[nodiscard]] Variable bernoulli_nll(const Variable& x, const Variable& y,
                                     std::string_view reduce = "sum");
/// -log of the normal distribution's density at x, of that mean and logarithm of the variance.
[[nodiscard]] Variable gaussian_nll(const Variable& x, const Variable& mean, const Variable& ln_var,
                                    std::string_view reduce = "sum");
/// The divergence of that normal distribution from the standard one:
/// (mean^2 + exp(ln_var) - ln_var - 1) / 2 (Kingma and Welling, "Auto-encoding variational Bayes").
[[nodiscard]] Variable gaussian_kl_divergence(const Variable& mean, const Variable& ln_var,
                                              std::string_view reduce = "sum");
/// t * (log(t) - x) of probabilities t and logarithms of probabilities x; 0 where t is 0. Also
/// "batchmean": the sum divided by x.shape(0). No gradient reaches t.
[[nodiscard]] Variable kl_div(const Variable& x, const Variable& t,
                              std::string_view reduce = "mean");

// --- distances ---

/// (y * d^2 + (1 - y) * max(margin - d, 0)^2) / 2, d the distance of rows of x0 and x1 (n, k), y
/// (n,) integer: 1 for pairs that are alike, 0 for others (Hadsell et al., "Dimensionality
/// reduction by learning an invariant mapping"). Throws ValueError for a margin that is not above
/// 0.
[[nodiscard]] Variable contrastive(const Variable& x0, const Variable& x1, const Variable& y,
                                   double margin = 1, std::string_view reduce = "mean");
/// max(|anchor - positive|^2 - |anchor - negative|^2 + margin, 0) of rows of (n, k) (Schroff et
/// al., "FaceNet"). Throws ValueError for a margin that is not above 0.
[[nodiscard]] Variable triplet(const Variable& anchor, const Variable& positive,
                               const Variable& negative, double margin = 0.2,
                               std::string_view reduce = "mean");
/// The cosine of the angle of x0 and x1 along `axis`, which goes; no length is below eps.
[[nodiscard]] Variable cosine_similarity(const Variable& x0, const Variable& x1, int axis = 1,
                                         double eps = 1e-8);
/// Of rows of x0 and x1 (n, k): 1 - cosine where y (n,) is 1, max(0, cosine - margin) where it is
/// -1.
[[nodiscard]] Variable cosine_embedding_loss(const Variable& x0, const Variable& x1,
                                             const Variable& y, double margin = 0,
                                             std::string_view reduce = "mean");

// --- covariances ---

/// Of C, the covariances of the columns of h (n, k) with 0 on its diagonal: sum(C^2) / 2, or C
/// itself by reduce "no"; the other is "half_squared_sum" (Cogswell et al., "Reducing overfitting
/// in deep networks by decorrelating representations").
[[nodiscard]] Variable decov(const Variable& h, std::string_view reduce = "half_squared_sum");
/// The same of the covariances of the columns of y (n, j) and those of z (n, k), all of them
/// (Cheung et al., "Discovering hidden factors of variation in deep networks").
[[nodiscard]] Variable cross_covariance(const Variable& y, const Variable& z,
                                        std::string_view reduce = "half_squared_sum");

}  // namespace functions

namespace F = functions;

}  // namespace rensa
