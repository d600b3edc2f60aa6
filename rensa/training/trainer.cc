// The training loop.
#include "rensa/training/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "rensa/core/error.h"

namespace rensa::training {

namespace {
using Clock = std::chrono::steady_clock;

struct Entry {
  std::shared_ptr<Extension> extension;
  Trigger trigger;
  int priority;
};
}  // namespace

struct Trainer::State {
  State(Updater u, Trigger s, std::string o)
      : updater(std::move(u)), stop(std::move(s)), out(std::move(o)) {}

  Updater updater;
  Trigger stop;
  std::string out;
  Reporter reporter;
  Observation observation;
  std::vector<Entry> entries;
  bool started = false;
  Clock::time_point start, end;
  bool running = false;

  void loop(Trainer& trainer) {
    for (Entry& entry : entries) entry.extension->initialize(trainer);
    while (!stop(trainer)) {
      observation.clear();
      Reporter::Scope scope = reporter.scope(observation);
      updater.update();
      for (Entry& entry : entries) {
        if (entry.trigger(trainer)) (*entry.extension)(trainer);
      }
    }
  }

  /// Every finalize is called, whatever the others do; the first exception is rethrown.
  void finalize() {
    std::exception_ptr first;
    for (Entry& entry : entries) {
      try {
        entry.extension->finalize();
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    }
    end = Clock::now();
    running = false;
    if (first) std::rethrow_exception(first);
  }

  void report_error(Trainer& trainer, const std::exception& error) {
    std::fprintf(stderr, "Exception in the training loop: %s\n", error.what());
    for (Entry& entry : entries) {
      try {
        entry.extension->on_error(trainer, error);
      } catch (const std::exception& another) {
        std::fprintf(stderr, "Exception in on_error of %s: %s\n", entry.extension->name.c_str(),
                     another.what());
      }
    }
  }
};

Trainer::Trainer(Updater updater, Trigger stop, std::string out) {
  if (!stop) throw ValueError("Trainer: give a stop trigger, {20, \"epoch\"} for instance");
  state_ = std::make_shared<State>(std::move(updater), std::move(stop), std::move(out));
  state_->reporter.add_observers("main", state_->updater.optimizer().target());
}

const Trainer& Trainer::add(std::shared_ptr<Extension> extension,
                            const ExtendOptions& options) const {
  if (state_->started) throw ValueError("Trainer.extend: the run has begun");
  std::string base = options.name.empty() ? extension->default_name() : options.name, name = base;
  auto taken = [&](const std::string& n) {
    return std::any_of(state_->entries.begin(), state_->entries.end(),
                       [&](const Entry& entry) { return entry.extension->name == n; });
  };
  for (int i = 1; taken(name); ++i) name = fmt::format("{}_{}", base, i);
  extension->name = name;
  Trigger trigger = options.trigger ? options.trigger : extension->default_trigger();
  int priority = options.priority.value_or(extension->default_priority());
  state_->entries.push_back({std::move(extension), std::move(trigger), priority});
  return *this;
}

Extension& Trainer::get_extension(const std::string& name) const {
  for (const Entry& entry : state_->entries) {
    if (entry.extension->name == name) return *entry.extension;
  }
  throw ValueError(fmt::format("Trainer: there is no extension named \"{}\"", name));
}

void Trainer::run() {
  State& state = *state_;
  if (state.started) throw ValueError("Trainer.run: a trainer runs once; make another one");
  state.started = true;
  std::filesystem::create_directories(state.out);
  std::stable_sort(state.entries.begin(), state.entries.end(),
                   [](const Entry& a, const Entry& b) { return a.priority > b.priority; });
  state.start = Clock::now();
  state.running = true;
  try {
    state.loop(*this);
  } catch (const std::exception& error) {
    state.report_error(*this, error);
    try {
      state.finalize();
    } catch (const std::exception& another) {
      std::fprintf(stderr, "Exception in finalize: %s\n", another.what());
    }
    throw;
  }
  state.finalize();
}

const Updater& Trainer::updater() const { return state_->updater; }
const Reporter& Trainer::reporter() const { return state_->reporter; }
Observation& Trainer::observation() const { return state_->observation; }
const std::string& Trainer::out() const { return state_->out; }
const Trigger& Trainer::stop_trigger() const { return state_->stop; }

double Trainer::elapsed_time() const {
  if (!state_->started) return 0;
  return std::chrono::duration<double>((state_->running ? Clock::now() : state_->end) -
                                       state_->start)
      .count();
}

}  // namespace rensa::training
