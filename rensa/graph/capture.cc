// CaptureCache: signatures, warm-up, recording and replay of one step function.
#include "rensa/graph/capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <list>

#include "rensa/array/internal.h"
#include "rensa/autograd/autocast.h"
#include "rensa/autograd/function_hook.h"
#include "rensa/core/error.h"
#include "rensa/graph/recording.h"
#include "rensa/graph/replay.h"
#include "rensa/graph/rewrite.h"
#include "rensa/links/link_hook.h"

namespace rensa {

namespace {

/// What a recording is good for: equal signatures may share one.
using Signature = std::vector<std::int64_t>;

/// What host code of a step looks at without being given it: the configuration, the current device.
Signature surroundings() {
  const Config& c = config();
  Device device = ThreadState::current().device;
  return {c.train,
          c.enable_backprop,
          c.debug,
          c.keep_graph_on_report,
          c.tf32,
          c.tf32.is_x3(),
          c.autotune,
          c.cudnn_deterministic,
          static_cast<int>(c.use_cudnn),
          static_cast<int>(Dtype(c.dtype)),
          c.dtype.is_mixed(),
          c.autocast ? static_cast<int>(*c.autocast) : -1,
          static_cast<int>(device.type) * kMaxGpus + device.index};
}

Signature signature_of(const Variables& inputs) {
  Signature s = surroundings();
  for (const Variable& input : inputs) {
    const Array& a = input.array();
    s.push_back(static_cast<int>(a.dtype()));
    s.push_back(static_cast<int>(a.device().type) * kMaxGpus + a.device().index);
    s.push_back(input.requires_grad());
    s.push_back(a.ndim());
    s.insert(s.end(), a.shape().begin(), a.shape().end());
    const Shape axes = detail::MemoryOrder(a, 'K').axes();  // none: C order
    s.push_back(axes.ndim());
    s.insert(s.end(), axes.begin(), axes.end());
  }
  return s;
}

/// The values of a step's results, off the graph that made them.
Variables detached(const Variables& results) {
  Variables values;
  values.reserve(results.size());
  for (const Variable& result : results) values.push_back(constant(result.array()));
  return values;
}

/// One run of a step with a recorder.
struct Run {
  std::shared_ptr<Recording> recording = std::make_shared<Recording>();
  std::vector<Array> inputs;  // the memory that stands for the step's: replays copy theirs into it
  std::size_t num_results = 0;
  Variables results;  // in memory of their own
};

/// Why a step cannot be replayed that found `before` and leaves `after`; empty where it can.
std::string change_of(const std::vector<std::string>& before,
                      const std::vector<std::string>& after) {
  auto [was, is] = std::mismatch(before.begin(), before.end(), after.begin(), after.end());
  if (was == before.end() && is == after.end()) return "";
  return fmt::format(
      "it changes numbers of the host, as replays would not: \"{}\" was \"{}\" before it; what a "
      "Counter counts replays count on",
      is == after.end() ? "nothing" : *is, was == before.end() ? "nothing" : *was);
}

/// `watched`: what the run before worked with.
Run record(const CaptureCache::Step& step, const Variables& inputs, const WatchedNumbers& watched) {
  Run run;
  const Signature surrounded = surroundings();
  const std::vector<std::string> numbers = watched.now();
  Recording& recording = *run.recording;
  Variables step_inputs, results;
  std::vector<std::uint32_t> versions;
  for (const Variable& input : inputs) {
    run.inputs.push_back(input.array().copy('K'));
    recording.outline.add_stand_in(run.inputs.back().storage().get());
    versions.push_back(run.inputs.back().storage()->version());
    step_inputs.emplace_back(run.inputs.back(), input.requires_grad());
  }
  {
    RecorderScope scope(&recording);
    autograd::FreshCasts fresh;
    results = detached(step(step_inputs));
    for (Variable& result : results) result = constant(detail::dense(result.array()));
    if (recording.failure().empty()) recording.states.settle(recording.outline);
  }
  if (surroundings() != surrounded) {
    recording.cannot_record("it changes the configuration or the current device, and leaves it so");
  }
  if (std::string change = change_of(numbers, watched.now()); !change.empty()) {
    recording.cannot_record(change.c_str());
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (run.inputs[i].storage()->version() == versions[i]) continue;
    inputs[i].array().assign(run.inputs[i]);
    recording.cannot_record("it writes into its inputs");
  }
  std::vector<RecordedOutput> outputs;
  for (const Variable& result : results) {
    run.results.push_back(constant(result.array().copy('K')));
    outputs.push_back({result.array(), nullptr});
  }
  run.num_results = outputs.size();
  for (auto& output : recording.outputs) outputs.push_back(std::move(output));
  recording.outputs = std::move(outputs);
  for (const RecordedOutput& output : recording.outputs) {
    if (std::ranges::count(recording.devices(), output.array.device()) > 0) continue;
    recording.cannot_record("it hands out an array of a device on which it does no work");
  }
  return run;
}

/// What is known of one signature.
struct Entry {
  Signature signature;
  bool eager_only = false;
  bool cold = false;    // what it was warmed up for is no more
  bool traced = false;  // the members below say something
  Outline outline;      // of the latest run that was recorded
  RecordedStates states;
  WatchedNumbers watched;
  std::uint64_t renewals = 0;     // of all recordings, before that run
  std::vector<StoragePtr> found;  // what that run found, lest other memory take its address
  int differences = 0;            // runs in a row that were not as the one before

  std::shared_ptr<Recording> recording;  // null until two runs were alike
  std::unique_ptr<Replay> replay;
  std::size_t num_results = 0;   // the first outputs; the others are reports
  Recording::Changed changed;    // by each replay
  std::vector<Storage*> shared;  // what others held when the recording was made
  int replays = 0;               // since then
  int useless = 0;               // recordings in a row that were not replayed

  /// Whether it belongs to something that is no more: a model that was moved or replaced.
  bool gone() const {
    if (traced && (states.gone() || renewals != recording_renewals())) return true;
    return recording && !recording->bindings_hold();
  }
  /// Somebody let go of memory that the step had found or left behind: the step would not find it
  /// there again, or leave it to him again.
  bool stale() const {
    return std::any_of(shared.begin(), shared.end(),
                       [](const Storage* storage) { return storage->use_count() == 1; });
  }
  void forget() {
    traced = false;
    found.clear();
    shared.clear();
    replay = nullptr;
    recording = nullptr;
    replays = 0;
    states = {};
    watched = {};
  }
};

constexpr int kMostDifferences = 2;
constexpr int kMostUseless = 3;
constexpr int kDebugAudit = 100;  // debug mode audits so often

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
    if (FunctionHookScope::is_open() || LinkHookScope::is_open()) {
      ++stats.fallbacks;
      stats.last_fallback = "it was called in the scope of a hook, which replays would not call";
      return detached(step(inputs));
    }
    Signature signature = signature_of(inputs);
    auto found = find(signature);
    if (found == entries.end()) return warm_up(step, inputs, std::move(signature), 0);
    if (found->cold && !found->eager_only) {
      int useless = found->useless;
      entries.erase(found);
      return warm_up(step, inputs, std::move(signature), useless);
    }
    entries.splice(entries.begin(), entries, found);
    if (found->replay && found->stale()) retire(*found);
    if (found->eager_only) {
      ++stats.fallbacks;
      return detached(step(inputs));
    }
    if (!found->replay) return trace(*found, step, inputs);
    return audit_is_due(*found) ? audit(*found, step, inputs) : replay(*found, inputs);
  }

  /// The entry for this call: of those of the signature the one whose States are such, or one that
  /// knows of no States yet.
  std::list<Entry>::iterator find(const Signature& signature) {
    auto unknown = entries.end();
    for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
      if (entry->signature != signature) continue;
      if (entry->gone()) {
        retire(*entry);
        entry->cold = true;
      }
      if (entry->traced && entry->states.fit()) return entry;
      if (!entry->traced && unknown == entries.end()) unknown = entry;
    }
    return unknown;
  }

  /// The first run: parameters and optimizer states come into being, library plans are chosen.
  Variables warm_up(const Step& step, const Variables& inputs, Signature signature, int useless) {
    Variables results = detached(step(inputs));
    ++stats.warmups;
    Entry& entry = entries.emplace_front();
    entry.signature = std::move(signature);
    entry.useless = useless;
    if (entries.size() > static_cast<std::size_t>(options.max_signatures)) entries.pop_back();
    return results;
  }

  /// A run whose recording is replayed from then on if the run before was like it.
  Variables trace(Entry& entry, const Step& step, const Variables& inputs) {
    std::uint64_t renewals = recording_renewals();
    Run run = record(step, inputs, entry.watched);
    std::string failure = failure_of(run);
    bool alike = false;
    if (failure.empty() && entry.traced) {
      std::string difference = entry.outline.difference(run.recording->outline);
      alike = difference.empty();
      entry.differences = alike ? 0 : entry.differences + 1;
      if (entry.differences == kMostDifferences) failure = difference;
    }
    remember(entry, run, renewals);
    if (!failure.empty()) {
      stay_eager(entry, failure);
    } else if (alike) {
      finish(entry, run);
    } else {
      ++stats.warmups;
    }
    return std::move(run.results);
  }

  static std::string failure_of(const Run& run) {
    const std::string& failure = run.recording->failure();
    return failure.empty() && run.recording->operations.empty() ? "it queues no work" : failure;
  }

  static void remember(Entry& entry, Run& run, std::uint64_t renewals) {
    run.recording->give_back_memory();
    entry.traced = true;
    entry.renewals = renewals;
    entry.watched = run.recording->watched;
    entry.outline = std::move(run.recording->outline);
    entry.states = std::move(run.recording->states);
    entry.found.clear();
    for (Storage* storage : entry.outline.found()) entry.found.emplace_back(storage);
  }

  void stay_eager(Entry& entry, const std::string& reason) {
    entry.forget();
    entry.eager_only = true;
    stats.last_fallback = reason;
    std::fprintf(stderr, "rensa: capture: this step stays eager: %s\n", reason.c_str());
  }

  /// Rewrites, plans and emits what was recorded, or marks the signature as eager.
  void finish(Entry& entry, Run& run) {
    const std::shared_ptr<Recording>& recording = run.recording;
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
    stats.longest_chain = plan.longest_chain();
    try {
      entry.replay = recording->is_on_gpus()
                         ? make_cuda_replay(recording, std::move(plan), std::move(run.inputs))
                         : make_list_replay(recording, std::move(plan), std::move(run.inputs));
    } catch (const Error& error) {
      stay_eager(entry, error.what());
      return;
    }
    entry.recording = recording;
    entry.num_results = run.num_results;
    entry.found.clear();  // the recording holds what it uses
    entry.shared = shared_memory(entry.outline, *recording);
    entry.replays = 0;
    ++stats.recordings;
  }

  /// Memory that was there before the run, or that it has left to somebody.
  static std::vector<Storage*> shared_memory(const Outline& outline, const Recording& recording) {
    std::vector<Storage*> shared;
    auto add = [&](Storage* storage) {
      if (recording.storages.count(storage) == 0 || is_own(*storage)) return;
      shared.push_back(storage);
    };
    for (Storage* storage : outline.found()) add(storage);
    for (Storage* storage : outline.made()) add(storage);
    return shared;
  }

  /// What was recorded no longer holds. Where that happens again and again before a replay, there
  /// is no use in it.
  void retire(Entry& entry) {
    entry.useless = entry.replays == 0 ? entry.useless + 1 : 0;
    entry.forget();
    if (entry.useless < kMostUseless) return;
    stay_eager(entry, "what it works with or leaves behind is replaced between its calls");
  }

  bool audit_is_due(const Entry& entry) const {
    int every = options.audit_every.value_or(config().debug ? kDebugAudit : 0);
    return every > 0 && entry.replays + 1 >= every;
  }

  /// A call that runs eagerly and is held against the recording, whose place it takes: what a run
  /// leaves to others is its own memory.
  Variables audit(Entry& entry, const Step& step, const Variables& inputs) {
    std::uint64_t renewals = recording_renewals();
    Run run = record(step, inputs, entry.watched);
    ++stats.audits;
    std::string difference = failure_of(run);
    if (difference.empty()) difference = entry.outline.difference(run.recording->outline);
    if (difference.empty()) {
      entry.forget();
      remember(entry, run, renewals);
      finish(entry, run);
      return std::move(run.results);
    }
    stay_eager(entry, difference);
    throw CaptureError(
        "capture: the step does other work than was recorded, and replayed since: " + difference +
        ". Host code that decides otherwise from call to call is not run by a "
        "replay: give what it decides by to the step as an input, keep it in a State "
        "or a Counter, or do not capture the step");
  }

  Variables replay(Entry& entry, const Variables& inputs) {
    Recording& recording = *entry.recording;
    std::vector<Array> arrays;
    arrays.reserve(inputs.size());
    for (const Variable& input : inputs) arrays.push_back(detail::dense(input.array()));
    entry.states.before_replay();
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
      results.push_back(xp::empty_like(output.array, {.order = 'K'}));
    }
    entry.replay->launch(arrays, slots, results);
    entry.changed.count();
    entry.states.after_replay();
    ++entry.replays;
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
