// CaptureCache: signatures, warm-up, recording and replay of one step function.
#include "rensa/graph/capture.h"

#include <cstdio>
#include <list>

#include "rensa/core/error.h"
#include "rensa/graph/recording.h"
#include "rensa/graph/replay.h"
#include "rensa/graph/rewrite.h"

namespace rensa {

namespace {

/// What a recording is good for: equal signatures may share one.
using Signature = std::vector<std::int64_t>;

Signature signature_of(const Variables& inputs) {
  const Config& c = config();
  Signature s{c.train, c.enable_backprop, c.debug, c.tf32, c.autotune, static_cast<int>(c.dtype)};
  for (const Variable& input : inputs) {
    const Array& a = input.array();
    s.push_back(static_cast<int>(a.dtype()));
    s.push_back(static_cast<int>(a.device().type) * kMaxGpus + a.device().index);
    s.push_back(input.requires_grad());
    s.push_back(a.ndim());
    s.insert(s.end(), a.shape().begin(), a.shape().end());
  }
  return s;
}

/// Installs a recorder on the thread for a scope.
class RecordingScope {
 public:
  explicit RecordingScope(Recorder* recorder) { ThreadState::current().recorder = recorder; }
  ~RecordingScope() { ThreadState::current().recorder = nullptr; }
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;
};

/// The values of a step's results, off the graph that made them.
Variables detached(const Variables& results) {
  Variables values;
  values.reserve(results.size());
  for (const Variable& result : results) values.push_back(constant(result.array()));
  return values;
}

struct Entry {
  Signature signature;
  bool eager_only = false;
  std::shared_ptr<Recording> recording;  // null until the second call
  std::unique_ptr<Replay> replay;
  std::size_t num_results = 0;    // the first outputs; the others are reports
  std::vector<Storage*> changed;  // what each replay writes to that others see
};

}  // namespace

struct CaptureCache::Impl {
  CaptureOptions options;
  CaptureStats stats;
  std::list<Entry> entries;  // most recently used first

  Variables call(const Step& step, const Variables& inputs) {
    ++stats.calls;
    bool on_cpu = inputs.empty() || inputs[0].device().is_cpu();
    if (ThreadState::current().recorder || (on_cpu && !options.replay_lists)) {
      return detached(step(inputs));
    }
    Signature signature = signature_of(inputs);
    auto found = entries.begin();
    while (found != entries.end() && found->signature != signature) ++found;
    if (found != entries.end() && found->recording && !found->recording->bindings_hold()) {
      entries.erase(found);  // the model was moved or replaced: it is a new one to us
      found = entries.end();
    }
    if (found == entries.end()) return warm_up(step, inputs, std::move(signature));
    entries.splice(entries.begin(), entries, found);
    if (found->eager_only) {
      ++stats.fallbacks;
      return detached(step(inputs));
    }
    return found->replay ? replay(*found, inputs) : record(*found, step, inputs);
  }

  /// The first run: parameters and optimizer states come into being, library plans are chosen.
  Variables warm_up(const Step& step, const Variables& inputs, Signature signature) {
    Variables results = detached(step(inputs));
    ++stats.warmups;
    entries.emplace_front().signature = std::move(signature);
    if (entries.size() > static_cast<std::size_t>(options.max_signatures)) entries.pop_back();
    return results;
  }

  Variables record(Entry& entry, const Step& step, const Variables& inputs) {
    auto recording = std::make_shared<Recording>();
    std::vector<Array> held;  // the recorded inputs: replays copy theirs into them
    Variables step_inputs;
    for (const Variable& input : inputs) {
      held.push_back(input.array().copy());
      step_inputs.emplace_back(held.back(), input.requires_grad());
    }
    Variables results;
    {
      RecordingScope scope(recording.get());
      results = detached(step(step_inputs));
      for (Variable& result : results) {
        if (!result.array().is_contiguous()) result = constant(result.array().copy());
      }
    }
    step_inputs.clear();
    Variables fresh;
    std::vector<RecordedOutput> outputs;
    for (const Variable& result : results) {
      fresh.push_back(constant(result.array().copy()));
      outputs.push_back({result.array(), nullptr});
    }
    entry.num_results = outputs.size();
    for (auto& output : recording->outputs) outputs.push_back(std::move(output));
    recording->outputs = std::move(outputs);
    finish(entry, recording, std::move(held));
    return fresh;
  }

  /// Rewrites, plans and emits what was recorded, or marks the signature as eager.
  void finish(Entry& entry, const std::shared_ptr<Recording>& recording, std::vector<Array> held) {
    std::string failure = recording->failure();
    if (failure.empty() && recording->operations.empty()) failure = "it queues no work";
    if (failure.empty()) {
      stats.operations = static_cast<std::int64_t>(recording->operations.size());
      JoinedChains joined;
      if (options.rewrite) joined = rewrite(*recording);
      if (!joined.failure.empty()) {
        std::fprintf(stderr, "rensa: capture: elementwise operations stay apart: %s\n",
                     joined.failure.c_str());
      }
      stats.joined_operations = joined.operations;
      stats.rewritten_operations = static_cast<std::int64_t>(recording->operations.size());
      entry.changed = recording->changed();
      Plan plan = make_plan(*recording, options.branches);
      entry.recording = recording;
      try {
        entry.replay = recording->device().is_cuda()
                           ? make_cuda_replay(recording, std::move(plan), std::move(held))
                           : make_list_replay(recording, std::move(plan), std::move(held));
        ++stats.recordings;
        return;
      } catch (const Error& error) {
        failure = error.what();
      }
    }
    entry.eager_only = true;
    entry.recording = nullptr;
    stats.last_fallback = failure;
    std::fprintf(stderr, "rensa: capture: this step stays eager: %s\n", failure.c_str());
  }

  Variables replay(Entry& entry, const Variables& inputs) {
    Recording& recording = *entry.recording;
    std::vector<Array> arrays;
    arrays.reserve(inputs.size());
    for (const Variable& input : inputs) arrays.push_back(input.array().ascontiguous());
    std::vector<std::uint64_t> slots(static_cast<std::size_t>(recording.num_slots));
    for (const HostAction& action : recording.actions) {
      if (action.effect) {
        action.effect();
      } else {
        slots[static_cast<std::size_t>(action.slot)] =
            static_cast<std::uint64_t>(action.source().integer);
      }
    }
    std::vector<Array> results;
    results.reserve(recording.outputs.size());
    for (const RecordedOutput& output : recording.outputs) {
      results.push_back(xp::empty_like(output.array));
    }
    entry.replay->launch(arrays, slots, results);
    for (Storage* storage : entry.changed) storage->count_write();
    ++stats.replays;
    Variables values;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (i < entry.num_results) values.push_back(constant(results[i]));
      else recording.outputs[i].use(results[i].storage(), results[i].view());
    }
    return values;
  }
};

CaptureCache::CaptureCache(CaptureOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->options = options;
}
CaptureCache::~CaptureCache() = default;

Variables CaptureCache::call(const Step& step, const Variables& inputs) {
  return impl_->call(step, inputs);
}

const CaptureStats& CaptureCache::stats() const { return impl_->stats; }

}  // namespace rensa
