// capture(step): a training step recorded once per signature, rewritten, and replayed as one CUDA
// graph with the same numbers, bit for bit. On the CPU it calls through.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rensa/autograd/variable.h"
#include "rensa/core/error.h"
#include "rensa/device/renewal.h"

namespace rensa {

/// An audit found that a step does other work than its recording: the results of replays before it
/// may be wrong. Those of the audited call are right, and the step runs eagerly from then on.
class CaptureError : public Error {
 public:
  using Error::Error;
};

struct CaptureOptions {
  bool rewrite = true;        // off: the recorded list as it is, to test the rewritten one against
  bool branches = true;       // independent work side by side
  bool replay_lists = false;  // on the CPU, replay the list operation by operation: for tests
  int max_signatures = 8;     // recordings kept, least recently used go first
  /// Every so many calls one runs eagerly and is held against the recording: operations in order,
  /// their arrays and numbers. A difference throws CaptureError. Left out: every 100th in debug
  /// mode (config().debug), none otherwise; 0 is none.
  std::optional<int> audit_every = {};
};

/// What captured calls came to.
struct CaptureStats {
  /// How often each.
  std::int64_t calls = 0, warmups = 0, recordings = 0, replays = 0, fallbacks = 0;
  std::string last_fallback;                              // why a step stayed eager
  std::int64_t operations = 0, rewritten_operations = 0;  // of the latest recording
  std::int64_t joined_operations = 0;  // of those: elementwise ones that went into joint kernels
  std::int64_t longest_chain = 0;      // rewritten operations that wait for one another, at most
  std::int64_t audits = 0;             // calls that were held against the recording
};

/// The recordings of one step function; what Captured and the updaters hold.
class CaptureCache {
 public:
  using Step = std::function<Variables(const Variables&)>;  // what is captured
  explicit CaptureCache(CaptureOptions options = {});
  ~CaptureCache();
  /// Runs `step` eagerly the first time a signature (shapes, dtypes, devices of `inputs`, the
  /// configuration) is seen, records it while it runs until two runs in a row did the same work on
  /// the same arrays (mostly the second and the third), and replays that from then on. What the
  /// step returns and reports is fresh memory each time. A step may make several updates, of a
  /// batch each: what a replay costs beside its kernels is then shared by them.
  ///
  /// A replay runs no host code of the step. What links keep in State, Counter, Persistent and
  /// Parameter members goes on as it would eagerly, as do random numbers, optimizers and arrays
  /// that are written in place. A step that replaces an array it reads, decides by values that it
  /// reads on the host, sets the configuration, an iterator or numbers of an optimizer, or differs
  /// from call to call when it is recorded stays eager, and stats().last_fallback says why. What
  /// begins to differ later is found by audits (CaptureOptions::audit_every). Calls in the scope of
  /// a hook of functions or links (FunctionHookScope, LinkHookScope) run eagerly, so that the hook
  /// sees them; they count as fallbacks. An array that the
  /// step leaves to others by other ways than its results and reports holds the latest call's
  /// values. On a GPU a replay has the priority of the stream that was current when the step was
  /// recorded.
  Variables call(const Step& step, const Variables& inputs);
  /// What calls came to so far.
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
  const CaptureStats& stats() const { return cache_->stats(); }  // what calls came to so far

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
