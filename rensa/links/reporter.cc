// Reporter, Summary and DictSummary.
#include "rensa/links/reporter.h"

#include <fmt/format.h>

#include <deque>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "rensa/array/host_output.h"
#include "rensa/autograd/recomputation.h"
#include "rensa/core/error.h"
#include "rensa/device/tracer.h"
#include "rensa/links/mute_reports.h"

namespace rensa {

/// What the handles of one reporter share; a training run's threads may report at the same time.
struct ReporterState {
  std::mutex mutex;
  std::vector<std::pair<std::shared_ptr<LinkAnchor>, std::string>> observers;
  Observation* observation = nullptr;      // set within a Scope
  std::map<std::string, Variable> graphs;  // of the latest outermost Scope
};

Reporter::Reporter() : state_(std::make_shared<ReporterState>()) {}

void Reporter::add_observer(const std::string& name, const Link& link) const {
  stay_eager("it adds an observer to a Reporter");
  std::shared_ptr<LinkAnchor> anchor = link.anchor();
  std::lock_guard lock(state_->mutex);
  for (auto& [known, known_name] : state_->observers) {
    if (known == anchor) {
      known_name = name;
      return;
    }
  }
  state_->observers.emplace_back(std::move(anchor), name);
}

void Reporter::add_observers(const std::string& name, const Link& link) const {
  for (const auto& [path, child] : link.namedlinks()) {
    add_observer(path == "/" ? name : name + path, *child);
  }
}

Reporter::Scope::Scope(const Reporter& reporter, Observation& observation)
    : previous_(
          std::exchange(ThreadState::current().reporter, std::make_shared<Reporter>(reporter))),
      state_(reporter.state_) {
  stay_eager("it makes a Reporter's scope: replays report to the caller's");
  std::lock_guard lock(state_->mutex);
  previous_observation_ = std::exchange(state_->observation, &observation);
  if (!previous_observation_) state_->graphs.clear();
}

Reporter::Scope::~Scope() {
  ThreadState::current().reporter = std::move(previous_);
  std::lock_guard lock(state_->mutex);
  state_->observation = previous_observation_;
}

void Reporter::report(const std::string& name, const Array& value, LinkAnchor* observer) const {
  std::lock_guard lock(state_->mutex);
  // Null of a thread that outlived the scope it was started in.
  if (state_->observation) (*state_->observation)[key_of(name, observer)] = value;
}

void Reporter::keep_graph(const std::string& name, const Variable& variable,
                          LinkAnchor* observer) const {
  stay_eager("it keeps the graph of what it reports (keep_graph_on_report); replays make none");
  std::lock_guard lock(state_->mutex);
  if (state_->observation) state_->graphs[key_of(name, observer)] = variable;
}

Variable Reporter::reported_variable(const std::string& key) const {
  std::lock_guard lock(state_->mutex);
  auto found = state_->graphs.find(key);
  return found == state_->graphs.end() ? Variable() : found->second;
}

/// The caller has locked the state.
std::string Reporter::key_of(const std::string& name, LinkAnchor* observer) const {
  if (!observer) return name;
  for (const auto& [known, prefix] : state_->observers) {
    if (known.get() == observer) return prefix + "/" + name;
  }
  throw ValueError(
      fmt::format("report: the link that reports \"{}\" is not known to the current reporter; call "
                  "add_observer(name, link) first",
                  name));
}

namespace {

constinit thread_local bool muted = false;

/// Whether anybody takes what is reported, now or in replays.
bool is_heard() {
  ThreadState& thread = ThreadState::current();
  return !in_recomputing() && !muted && (thread.recorder || thread.reporter);
}

void report_values(std::initializer_list<Report> values,
                   const std::shared_ptr<LinkAnchor>& observer) {
  for (const Report& r : values) {
    // The reporter is looked up anew by each replay: it writes into that iteration's observation.
    auto use = [name = r.name, observer](const Array& value) {
      if (const auto& reporter = ThreadState::current().reporter) {
        reporter->report(name, value, observer.get());
      }
    };
    if (!r.number) {
      host_output(r.value, use);
      const auto& reporter = ThreadState::current().reporter;
      if (config().keep_graph_on_report && reporter && r.variable.defined()) {
        reporter->keep_graph(r.name, r.variable, observer.get());
      }
      continue;
    }
    auto ask = [use, number = r.number] {
      RecorderScope off(nullptr);
      use(xp::array(number(), cpu()));
    };
    host_effect(ask, r.fixed);
  }
}

}  // namespace

MuteReports::MuteReports(bool mute) : previous_(std::exchange(muted, mute || muted)) {}
MuteReports::~MuteReports() { muted = previous_; }

void report(std::initializer_list<Report> values, const Link& observer) {
  if (is_heard()) report_values(values, observer.anchor());
}

void report(std::initializer_list<Report> values) {
  if (is_heard()) report_values(values, nullptr);
}

void Summary::add(const Array& value) {
  stay_eager("it adds to a Summary, which counts on the host");
  if (total_.defined() && total_.device().is_cpu())
    total_ = total_.to(value.device());  // of a file
  if (total_.defined()) {
    total_ += value.to(total_.device());
  } else {
    total_ = value.astype(float64);
  }
  ++count_;
}

double Summary::mean() const {
  if (count_ == 0) return std::numeric_limits<double>::quiet_NaN();
  return total_.item<double>() / static_cast<double>(count_);
}

void Summary::members(Visitor& v) {
  auto sum = [this] { return total_.defined() ? total_ : xp::zeros({}, float64, cpu()); };
  v.computed("_x", sum, [this](const Array& x) {
    if (x.size() != 1) {
      throw ShapeError(fmt::format("Summary: a sum has one element, not {}", x.view().describe()));
    }
    return [this, total = x.astype(float64, false).reshape({})] { total_ = total; };
  });
  v("_n", count_);
  if (v.reading() && v.reads("_x2")) {
    v.computed(
        "_x2", [] { return Array(); }, [](const Array&) {});
  }
}

void DictSummary::add(const Observation& observation) {
  for (const auto& [key, value] : observation) {
    if (value.size() == 1) summaries_[key].add(value.reshape({}));
  }
}

namespace {

std::vector<std::string> parse_names(const std::string& text) {
  try {
    return nlohmann::json::parse(text).get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception& error) {
    throw SerializationError(std::string("DictSummary: the names in the file cannot be read: ") +
                             error.what());
  }
}

}  // namespace

void DictSummary::members(Visitor& v) {
  // What is read is put together when all of it is there.
  struct Read {
    std::vector<std::string> names;
    std::deque<Summary> summaries;
  };
  auto read = std::make_shared<Read>();
  auto names = [this] {
    auto list = nlohmann::json::array();
    for (const auto& [key, summary] : summaries_) list.push_back(key);
    return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  v.computed("_names", names, [read](const std::string& text) {
    std::vector<std::string> parsed = parse_names(text);
    if (parsed.size() != read->summaries.size()) {
      throw SerializationError(fmt::format("DictSummary: the file has {} summaries for {} names",
                                           read->summaries.size(), parsed.size()));
    }
    return [read, parsed] { read->names = parsed; };
  });
  v.group("_summaries", [&](Visitor& each) {
    std::int64_t i = 0;
    Visitor::Reading* file = each.reading();
    if (!file) {
      for (auto& [key, summary] : summaries_) each(std::to_string(i++), summary);
    }
    for (; file && file->contains(std::to_string(i)); ++i) {
      each(std::to_string(i), read->summaries.emplace_back());
    }
  });
  Visitor::Reading* file = v.reading();
  if (!file || !file->contains("_names")) return;
  file->then([this, read] {
    summaries_.clear();
    for (std::size_t i = 0; i < read->names.size(); ++i) {
      summaries_[read->names[i]] = read->summaries[i];
    }
  });
}

std::map<std::string, double> DictSummary::compute_mean() const {
  std::map<std::string, double> means;
  for (const auto& [key, summary] : summaries_) means[key] = summary.mean();
  return means;
}

Report::Report(std::string n, const Variable& v)
    : name(std::move(n)), value(v.array()), variable(v) {}
Report::Report(std::string n, Array v) : name(std::move(n)), value(std::move(v)) {}

}  // namespace rensa
