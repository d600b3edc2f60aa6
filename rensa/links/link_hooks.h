// Hooks that normalize a link's weights, and one that times its calls.
#pragma once

#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rensa/device/call_times.h"
#include "rensa/links/link_hook.h"

namespace rensa::link_hooks {

struct SpectralNormalizationOptions {
  rensa::detail::NamedOptions named = {};
  int n_power_iteration = 1;
  double eps = 1e-6;  // added to norms
  bool use_gamma = false;
  std::optional<double> factor = {};
  std::string weight_name = "W";               // which parameter
  std::string name = "SpectralNormalization";  // of the hook
};

/// Miyato et al., "Spectral normalization for generative adversarial networks": the link computes
/// with W * factor / sigma, where sigma, u W v of unit vectors, approaches the greatest singular
/// value of W as a matrix whose rows are its outputs. Each call goes n_power_iteration steps on
/// with u, which stays where config().train is set: a persistent of the link, "W_u". With use_gamma
/// W is scaled by a parameter, "gamma", which begins as the greatest singular value.
///
/// Throws ValueError for a link without such a parameter, n_power_iteration below 1, and weights
/// without outputs.
class SpectralNormalization : public LinkHook {
 public:
  explicit SpectralNormalization(const SpectralNormalizationOptions& options = {});
  std::string name() const override { return options_.name; }
  std::unique_ptr<LinkHook> clone() const override;
  void members(Visitor& v) override;
  void added(const HookedLink& link) override;
  void forward_preprocess(HookedCall& call) override;

  Persistent u;
  Parameter gamma;

 private:
  void prepare(const HookedLink& link, const Variable& W);
  SpectralNormalizationOptions options_;
};

struct WeightStandardizationOptions {
  rensa::detail::NamedOptions named = {};
  double eps = 1e-5;                           // added to variances
  std::string weight_name = "W";               // which parameter
  std::string name = "WeightStandardization";  // of the hook
};

/// Qiao et al., "Weight standardization": the link computes with weights whose mean is 0 and whose
/// variance 1 in each slice along W's first axis.
class WeightStandardization : public LinkHook {
 public:
  explicit WeightStandardization(const WeightStandardizationOptions& options = {});
  std::string name() const override { return options_.name; }
  std::unique_ptr<LinkHook> clone() const override;
  void added(const HookedLink& link) override;
  void forward_preprocess(HookedCall& call) override;

 private:
  WeightStandardizationOptions options_;
};

/// How long the forward of links takes, by the names of their classes: function_hooks::TimerHook
/// says what is timed, and what waits. Mostly of a scope,
///   link_hooks::TimerHook timer;
///   LinkHookScope scope(timer);
///   model(x);
///   timer.print_report();
/// or added to a link. A handle: copies, and those that links have, count together; not for several
/// threads at once. A captured step with such a link stays eager: replays call no hooks.
class TimerHook final : public LinkHook {
 public:
  TimerHook();
  std::string name() const override { return "TimerHook"; }
  std::unique_ptr<LinkHook> clone() const override;

  /// Every call so far, in the order in which they ended. Waits for what is not done.
  const std::vector<TimedCall>& call_history() const { return times_->history(); }
  /// Of all calls, in seconds. Waits for what is not done.
  double total_time() const { return times_->total(); }
  /// By the links' names. Waits for what is not done.
  std::map<std::string, CallSummary> summary() const;
  /// As function_hooks::TimerHook's.
  std::string str(std::string_view unit = "auto") const { return times_->str("LinkName", unit); }
  void print_report(std::string_view unit = "auto") const;
  void print_report(std::string_view unit, std::ostream& out) const;

  void forward_preprocess(HookedCall& call) override;
  void forward_postprocess(HookedCall& call, const Variable& y) override;
  void forward_failed(HookedCall& call) noexcept override;

 private:
  std::shared_ptr<CallTimes> times_;
};

}  // namespace rensa::link_hooks
