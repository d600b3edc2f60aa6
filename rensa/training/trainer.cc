// The training loop.
#include "rensa/training/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <sstream>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/core/version.h"
#include "rensa/device/devices.h"
#include "rensa/training/interrupt.h"

namespace rensa::training {

namespace {
using Clock = std::chrono::steady_clock;

struct Entry {
  std::shared_ptr<Extension> extension;
  Trigger trigger;
  int priority;
};

/// Calls `use` with the exception being handled, or with what stands for one of another kind.
template <class F> void as_std_exception(F use) {
  try {
    throw;
  } catch (const std::exception& error) {
    use(error);
  } catch (...) {
    use(Error("an exception that is no std::exception"));
  }
}

void print_exception(const std::string& where) {
  as_std_exception([&](const std::exception& error) {
    std::fprintf(stderr, "Exception in %s: %s\n", where.c_str(), error.what());
  });
}

/// A file's "_format", 0 in Chainer's. To be raised where names stay and what they hold becomes
/// something else: those who show it then ask for the number of the file that they read.
constexpr std::int64_t kFormat = 1;

void check_format(const Visitor::Reading& file) {
  std::int64_t format = file.number("_format");
  if (format >= 0 && format <= kFormat) return;
  throw SerializationError(fmt::format(
      "Trainer: a file of format {}, made by a newer version; this one, {}, reads those "
      "up to {}",
      format, version(), kFormat));
}

/// The states of the generators of the host and of all GPUs: "cpu philox4x32-10 1 0", a line each.
std::string random_states() {
  std::string text = "cpu " + xp::random::get_random_state(cpu()).str();
  for (int i = 0; i < num_gpus(); ++i) {
    text += "\n" + gpu(i).str() + " " + xp::random::get_random_state(gpu(i)).str();
  }
  return text;
}

/// What gives the generators those states; GPUs that are not there are passed by.
Visitor::Commit setting_random_states(const std::string& text) {
  std::vector<std::pair<Device, xp::random::GeneratorState>> states;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::size_t space = line.find(' ');
    if (space == std::string::npos) throw SerializationError("Trainer: no generator: " + line);
    std::optional<Device> device;
    try {
      device = Device(line.substr(0, space));
    } catch (const DeviceError& error) {  // of the file, not of this machine
      throw SerializationError(fmt::format("Trainer: a generator: {}", error.what()));
    }
    if (device->is_cuda() && device->index >= num_gpus()) continue;
    states.emplace_back(*device, xp::random::GeneratorState::parse(line.substr(space + 1)));
  }
  return [states = std::move(states)] {
    for (const auto& [device, state] : states) xp::random::set_random_state(state, device);
  };
}
}  // namespace

struct Trainer::State {
  State(Updater u, Trigger s, std::string o)
      : updater(std::move(u)), stop(std::move(s)), out(std::move(o)) {}

  Updater updater;
  Trigger stop;
  std::string out;
  Reporter reporter;
  Observation observation;
  /// What the iteration before the first one observed, where a file told it: a stop trigger that
  /// looks at values is asked about it once more.
  DictSummary observed_before;
  std::vector<Entry> entries;
  bool started = false;
  std::atomic<bool> stopped{false};  // by Trainer::stop()
  Clock::time_point start, end;
  double elapsed_before = 0;  // in the run that this one goes on from
  bool running = false;

  /// Whether the stop trigger fires, or its interval is over: a run that was saved at its end is.
  bool is_over(Trainer& trainer) {
    bool fires = stop(trainer);
    double reached =
        stop.unit() == "epoch" ? updater.epoch_detail() : static_cast<double>(updater.iteration());
    return fires || (stop.period() > 0 && reached >= stop.period());
  }

  /// What comes before the first iteration.
  void begin(Trainer& trainer) {
    for (Entry& entry : entries) entry.extension->resume(trainer);
    for (Entry& entry : entries) entry.extension->initialize(trainer);
    for (const auto& [key, value] : observed_before.compute_mean()) {
      observation[key] = xp::array(value, cpu());
    }
  }

  /// Until `stop` fires or a signal comes; returns the signal, or 0.
  int loop(Trainer& trainer) {
    InterruptScope interrupt;
    while (!is_over(trainer) && !stopped) {
      int signal = interrupt.interrupted();
      for (Entry& entry : entries) signal = entry.extension->agreed_signal(signal);
      if (signal != 0) {
        observation.clear();  // the stop trigger has seen it
        each([&](Extension& extension) { extension.on_interrupt(trainer); });
        return signal;
      }
      observation.clear();
      Reporter::Scope scope = reporter.scope(observation);
      updater.update();
      for (Entry& entry : entries) {
        if (entry.trigger(trainer)) (*entry.extension)(trainer);
      }
    }
    return 0;
  }

  /// Calls `f` with every extension, whatever the others do; the first exception is rethrown.
  template <class F> void each(F f) {
    std::exception_ptr first;
    for (Entry& entry : entries) {
      try {
        f(*entry.extension);
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    }
    if (first) std::rethrow_exception(first);
  }

  void finalize() {
    running = false;
    end = Clock::now();
    each([](Extension& extension) { extension.finalize(); });
  }

  /// Ends a run that failed with the exception being handled; other exceptions are only printed.
  /// One that never began has nothing to show to on_error, which might save it.
  void fail(Trainer& trainer, bool began) {
    as_std_exception([&](const std::exception& error) {
      std::fprintf(stderr, "Exception in the training loop: %s\n", error.what());
      for (Entry& entry : entries) {
        if (!began) break;
        try {
          entry.extension->on_error(trainer, error);
        } catch (...) {
          print_exception("on_error of " + entry.extension->name);
        }
      }
    });
    try {
      finalize();
    } catch (...) {
      print_exception("finalize");
    }
  }
};

Trainer::Trainer(Updater updater, Trigger stop, std::string out) {
  if (!stop) throw ValueError("Trainer: give a stop trigger, {20, \"epoch\"} for instance");
  state_ = std::make_shared<State>(std::move(updater), std::move(stop), std::move(out));
  for (const auto& [name, optimizer] : state_->updater.get_all_optimizers()) {
    state_->reporter.add_observers(name, optimizer.target());
  }
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
  std::error_code error;
  std::filesystem::create_directories(state.out, error);
  if (error) {
    throw SerializationError(fmt::format("Trainer.run: the folder \"{}\" cannot be made: {}",
                                         state.out, error.message()));
  }
  state.started = true;
  std::stable_sort(state.entries.begin(), state.entries.end(),
                   [](const Entry& a, const Entry& b) { return a.priority > b.priority; });
  state.start = Clock::now();
  state.running = true;
  int signal = 0;
  bool began = false;
  try {
    state.begin(*this);
    began = true;
    signal = state.loop(*this);
  } catch (...) {
    state.fail(*this, began);
    throw;
  }
  state.finalize();
  if (signal != 0) {
    throw Interrupted(signal, fmt::format("training ended by {} after iteration {} ({} epochs)",
                                          signal == SIGINT ? "Ctrl-C" : "SIGTERM",
                                          state.updater.iteration(), state.updater.epoch()));
  }
}

void Trainer::stop() const { state_->stopped = true; }

const Updater& Trainer::updater() const { return state_->updater; }
const Reporter& Trainer::reporter() const { return state_->reporter; }
Observation& Trainer::observation() const { return state_->observation; }
const std::string& Trainer::out() const { return state_->out; }
const Trigger& Trainer::stop_trigger() const { return state_->stop; }

double Trainer::elapsed_time() const {
  if (!state_->started) return state_->elapsed_before;
  return state_->elapsed_before +
         std::chrono::duration<double>((state_->running ? Clock::now() : state_->end) -
                                       state_->start)
             .count();
}

void Trainer::members(Visitor& v) const {
  if (const Visitor::Reading* file = v.reading()) check_format(*file);
  if (v.reads("_format"))
    v.computed(
        "_format", [] { return kFormat; }, [](std::int64_t) {});
  v("updater", state_->updater);
  v("stop_trigger", state_->stop);
  if (state_->stop.period() == 0 && v.reads("_observation")) {
    if (!v.reading()) {
      state_->observed_before = {};
      state_->observed_before.add(state_->observation);
    }
    v("_observation", state_->observed_before);
  }
  for (Entry& entry : state_->entries) {
    const std::string& name = entry.extension->name;
    v("extensions/" + name, *entry.extension);
    v("extension_triggers/" + name, entry.trigger);
  }
  v.computed(
      "_snapshot_elapsed_time", [this] { return elapsed_time(); },
      [state = state_](double seconds) { state->elapsed_before = seconds; });
  if (v.reads("random")) v.computed("random", random_states, setting_random_states);
}

}  // namespace rensa::training
