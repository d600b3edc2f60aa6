// Links that normalize. Their parameters and statistics are float32 where config().dtype is mixed.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "rensa/array/axis_list.h"
#include "rensa/array/communicator.h"
#include "rensa/array/index.h"
#include "rensa/links/link_hook.h"

namespace rensa {
namespace links {

struct BatchNormalizationOptions {
  double decay = 0.9, eps = 2e-5;  // how much of an average stays at each call; added to variances
  bool use_gamma = true, use_beta = true;  // whether there are such parameters
  Initializer initial_gamma = {};          // 1 when left out
  Initializer initial_beta = {};           // 0 when left out
  Initializer initial_avg_mean = {};       // 0 when left out
  Initializer initial_avg_var = {};        // 1 when left out
  AxisList axis = {};                      // reduced: axis 0 and those behind gamma's when left out
  std::optional<Dtype> dtype = {};  // of parameters and averages: config().dtype when left out
};

/// y = F::batch_normalization(x, gamma, beta) while config().train is on, which moves avg_mean and
/// avg_var towards the batch's mean and variance (avg = decay * avg + (1 - decay) * found); else
/// y = F::fixed_batch_normalization by these. gamma and beta, with the averages, have the shape of
/// x's axes that are not reduced; made with a size left out, they get it at the first call (from
/// axis 1 of x, unless `axis` says which are reduced). A captured step moves the averages in each
/// replay. One that fold_batch_normalization() has put into the layer before it gives x as it is.
class BatchNormalization : public Chain<BatchNormalization>, public Hookable<BatchNormalization> {
 public:
  explicit BatchNormalization(None = none, const BatchNormalizationOptions& options = {});
  explicit BatchNormalization(std::int64_t size, const BatchNormalizationOptions& options = {});
  explicit BatchNormalization(const Shape& size, const BatchNormalizationOptions& options = {});
  /// Of a folded one, "folded" alone. Throws SerializationError where a file is read that was
  /// written of one that is folded and this is not, or the other way round.
  void members(Visitor& v) override;

  /// With `finetune`, the averages become those of all batches since start_finetuning(), each with
  /// equal weight: N counts them, and such a step stays eager in a capture. Throws ShapeError,
  /// DtypeError, DeviceError; ValueError where it is folded and config().train is on.
  Variable operator()(const Variable& x, bool finetune = false) const;
  void start_finetuning() { N = 0; }

  /// gamma and beta for x, made where they are not used. Throws ValueError where it is folded.
  std::pair<Variable, Variable> scale_and_shift() const;
  /// The decay of the averages, which counts a call with `finetune`.
  double next_decay(bool finetune) const;
  /// As among the options.
  const AxisList& axis() const { return axis_; }

  Parameter gamma, beta;  // undefined where they are not used
  // Calls write to them.
  mutable Persistent avg_mean, avg_var;
  mutable Counter N;  // batches since start_finetuning()
  double decay, eps;  // the options
  /// Whose ranks' batches the mean and the variance in training are of; where there is none, of
  /// this one's alone. synchronize_batch_normalization() sets it in a whole model.
  std::optional<Communicator> communicator;
  /// Set by fold_batch_normalization(), which takes parameters and averages away.
  bool folded = false;

 private:
  Variable normalized(const Variable& x, bool finetune) const;
  void initialize(const Shape& size) const;
  void check_not_folded() const;
  AxisList axis_;
  Initializer initial_avg_mean_, initial_avg_var_;
};

/// Has every BatchNormalization of the model normalize by the statistics of all ranks' batches
/// (ChainerMN's create_mnbn_model, for the model itself). All ranks call their models alike.
void synchronize_batch_normalization(Link& model, const Communicator& communicator);

/// As BatchNormalization; in training y = F::batch_renormalization(x, gamma, beta, rmax, dmax) by
/// the averages, which it moves as well. The names in files are the same.
class BatchRenormalization : public Chain<BatchRenormalization> {
 public:
  explicit BatchRenormalization(const Shape& size, double rmax = 1, double dmax = 0,
                                const BatchNormalizationOptions& options = {});
  explicit BatchRenormalization(std::int64_t size, double rmax = 1, double dmax = 0,
                                const BatchNormalizationOptions& options = {});
  void members(Visitor& v) override { statistics.members(v); }

  /// As BatchNormalization. Throws ValueError for an `axis` among the options: it is the first one
  /// and those behind gamma's.
  Variable operator()(const Variable& x, bool finetune = false) const;
  void start_finetuning() { statistics.start_finetuning(); }  // as BatchNormalization's

  BatchNormalization statistics;  // gamma, beta, avg_mean, avg_var, N
  double rmax, dmax;
};

struct NormalizationOptions {
  double eps = 1e-5;               // added to variances
  Initializer initial_gamma = {};  // 1 when left out
  Initializer initial_beta = {};   // 0 when left out
};

/// y = F::layer_normalization(x, gamma, beta) over the last axes of x, whose extents are `size`;
/// made without one, over all but the first of the first call.
class LayerNormalization : public Chain<LayerNormalization> {
 public:
  explicit LayerNormalization(None = none, const NormalizationOptions& options = {.eps = 1e-6});
  explicit LayerNormalization(const Shape& size,
                              const NormalizationOptions& options = {.eps = 1e-6});
  explicit LayerNormalization(std::int64_t size,
                              const NormalizationOptions& options = {.eps = 1e-6});
  void members(Visitor& v) override { v("gamma", gamma), v("beta", beta); }

  /// Throws ShapeError, DtypeError, DeviceError.
  Variable operator()(const Variable& x) const;

  Parameter gamma, beta;
  double eps;  // added to variances
};

/// y = F::rms_norm(x, gamma) over the last axes of x, whose extents are `size`; made without one,
/// over the last one.
class RMSNorm : public Chain<RMSNorm> {
 public:
  explicit RMSNorm(None = none, std::optional<double> eps = std::nullopt,
                   const Initializer& initial_gamma = 1);
  explicit RMSNorm(const Shape& size, std::optional<double> eps = std::nullopt,
                   const Initializer& initial_gamma = 1);
  explicit RMSNorm(std::int64_t size, std::optional<double> eps = std::nullopt,
                   const Initializer& initial_gamma = 1);
  void members(Visitor& v) override { v("gamma", gamma); }

  /// Throws ShapeError, DtypeError, DeviceError.
  Variable operator()(const Variable& x) const;

  Parameter gamma;
  std::optional<double> eps;  // F::rms_norm's when left out
};

/// y = F::group_normalization(x, groups, gamma, beta) of x (n, channels, ...); `size`, the number
/// of channels, may be left out until the first call.
class GroupNormalization : public Chain<GroupNormalization> {
 public:
  explicit GroupNormalization(std::int64_t groups, const NormalizationOptions& options = {});
  GroupNormalization(std::int64_t groups, std::int64_t size,
                     const NormalizationOptions& options = {});
  void members(Visitor& v) override { v("gamma", gamma), v("beta", beta); }

  /// Throws ShapeError, ValueError (groups that do not divide the channels), DtypeError,
  /// DeviceError.
  Variable operator()(const Variable& x) const;

  Parameter gamma, beta;
  std::int64_t groups;
  double eps;  // added to variances
};

}  // namespace links

// Made once, in normalization_links.cc: what users' files would compile again for each of their
// own.
extern template class Chain<links::BatchNormalization>;
extern template class Chain<links::LayerNormalization>;

namespace L = links;

}  // namespace rensa
