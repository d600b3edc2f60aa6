// Links that normalize.
#pragma once

#include <cstdint>

#include "rensa/array/axis_list.h"
#include "rensa/array/index.h"
#include "rensa/links/link.h"

namespace rensa {
namespace links {

struct BatchNormalizationOptions {
  double decay = 0.9, eps = 2e-5;
  bool use_gamma = true, use_beta = true;
  Initializer initial_gamma = {};     // 1 when left out
  Initializer initial_beta = {};      // 0 when left out
  Initializer initial_avg_mean = {};  // 0 when left out
  Initializer initial_avg_var = {};   // 1 when left out
  AxisList axis = {};                 // reduced: axis 0 and those behind gamma's when left out
};

/// y = F::batch_normalization(x, gamma, beta) while config().train is on, which moves avg_mean and
/// avg_var towards the batch's mean and variance (avg = decay * avg + (1 - decay) * found); else
/// y = F::fixed_batch_normalization by these. gamma and beta, with the averages, have the shape of
/// x's axes that are not reduced; made with a size left out, they get it at the first call (from
/// axis 1 of x, unless `axis` says which are reduced). A captured step moves the averages in each
/// replay.
class BatchNormalization : public Chain<BatchNormalization> {
 public:
  explicit BatchNormalization(None = none, const BatchNormalizationOptions& options = {});
  explicit BatchNormalization(std::int64_t size, const BatchNormalizationOptions& options = {});
  explicit BatchNormalization(const Shape& size, const BatchNormalizationOptions& options = {});
  void members(Visitor& v) override;

  /// With `finetune`, the averages become those of all batches since start_finetuning(), each with
  /// equal weight: N counts them, and such a step stays eager in a capture. Throws ShapeError,
  /// DtypeError, DeviceError.
  Variable operator()(const Variable& x, bool finetune = false) const;
  void start_finetuning() { N = 0; }

  Parameter gamma, beta;  // undefined where they are not used
  // Calls write to them.
  mutable Persistent avg_mean, avg_var;
  mutable Counter N;
  double decay, eps;

 private:
  void initialize(const Shape& size) const;
  AxisList axis_;
  Initializer initial_avg_mean_, initial_avg_var_;
};

}  // namespace links

namespace L = links;

}  // namespace rensa
