// capture(step): a training step recorded once a signature, rewritten, and replayed as one CUDA
// graph with the same numbers, bit for bit. On the CPU it calls through.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rensa/autograd/variable.h"

namespace rensa {

struct CaptureOptions {
  bool rewrite = true;        // off: the recorded list as it is, to test the rewritten one against
  bool branches = true;       // independent work side by side
  bool replay_lists = false;  // on the CPU, replay the list operation by operation: for tests
  int max_signatures = 8;     // recordings kept, least recently used go first
};

struct CaptureStats {
  std::int64_t calls = 0, warmups = 0, recordings = 0, replays = 0, fallbacks = 0;
  std::string last_fallback;                              // why a step stayed eager
  std::int64_t operations = 0, rewritten_operations = 0;  // of the latest recording
  std::int64_t joined_operations = 0;  // of those: elementwise ones that went into joint kernels
};

/// The recordings of one step function; what Captured and the updaters hold.
class CaptureCache {
 public:
  using Step = std::function<Variables(const Variables&)>;
  explicit CaptureCache(CaptureOptions options = {});
  ~CaptureCache();
  /// Runs `step` eagerly the first time a signature (shapes, dtypes, devices of `inputs`, the
  /// configuration) is seen, records while running it the second time, replays from then on. What
  /// the step returns and reports is fresh memory each time.
  Variables call(const Step& step, const Variables& inputs);
  const CaptureStats& stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// What capture() gives: callable as the step is.
template <class F> class Captured {
 public:
  Captured(F step, CaptureOptions options)
      : step_(std::move(step)), cache_(std::make_shared<CaptureCache>(options)) {}
  template <class... Args> Variable operator()(const Args&... args) {
    Variables inputs{Variable(args)...};
    auto results = cache_->call(
        [this](const Variables& in) { return invoke(in, std::index_sequence_for<Args...>{}); },
        inputs);
    return results.at(0);
  }
  const CaptureStats& stats() const { return cache_->stats(); }

 private:
  template <std::size_t... I> Variables invoke(const Variables& in, std::index_sequence<I...>) {
    return {step_(in[I]...)};
  }
  F step_;
  std::shared_ptr<CaptureCache> cache_;
};

template <class F> Captured<F> capture(F step, CaptureOptions options = {}) {
  return Captured<F>(std::move(step), options);
}

}  // namespace rensa
