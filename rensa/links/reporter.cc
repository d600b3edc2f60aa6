// Reporter, Summary and DictSummary.
#include "rensa/links/reporter.h"

#include <fmt/format.h>

#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "rensa/array/host_output.h"
#include "rensa/core/error.h"
#include "rensa/device/tracer.h"

namespace rensa {

/// What the handles of one reporter share; a training run's threads may report at the same time.
struct ReporterState {
  std::mutex mutex;
  std::vector<std::pair<std::shared_ptr<LinkAnchor>, std::string>> observers;
  Observation* observation = nullptr;  // set within a Scope
};

Reporter::Reporter() : state_(std::make_shared<ReporterState>()) {}

void Reporter::add_observer(const std::string& name, const Link& link) const {
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
  std::lock_guard lock(state_->mutex);
  previous_observation_ = std::exchange(state_->observation, &observation);
}

Reporter::Scope::~Scope() {
  ThreadState::current().reporter = std::move(previous_);
  std::lock_guard lock(state_->mutex);
  state_->observation = previous_observation_;
}

void Reporter::report(const std::string& name, const Array& value, LinkAnchor* observer) const {
  std::lock_guard lock(state_->mutex);
  if (!state_->observation) return;  // a thread that outlived the scope it was started in
  if (!observer) {
    (*state_->observation)[name] = value;
    return;
  }
  for (const auto& [known, prefix] : state_->observers) {
    if (known.get() != observer) continue;
    (*state_->observation)[prefix + "/" + name] = value;
    return;
  }
  throw ValueError(
      fmt::format("report: the link that reports \"{}\" is not known to the current reporter; call "
                  "add_observer(name, link) first",
                  name));
}

namespace {

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

void report(std::initializer_list<Report> values, const Link& observer) {
  ThreadState& thread = ThreadState::current();
  if (thread.recorder || thread.reporter) report_values(values, observer.anchor());
}

void report(std::initializer_list<Report> values) { report_values(values, nullptr); }

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

void DictSummary::add(const Observation& observation) {
  for (const auto& [key, value] : observation) {
    if (value.size() == 1) summaries_[key].add(value.reshape({}));
  }
}

void DictSummary::members(Visitor& v) {
  auto names = [this] {
    auto list = nlohmann::json::array();
    for (const auto& [key, summary] : summaries_) list.push_back(key);
    return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  auto sums = [this] {
    std::vector<double> sums;
    for (const auto& [key, summary] : summaries_) sums.push_back(summary.total_.item<double>());
    return xp::array(sums, cpu());
  };
  auto counts = [this] {
    std::vector<std::int64_t> counts;
    for (const auto& [key, summary] : summaries_) counts.push_back(summary.count_);
    return xp::array(counts, cpu());
  };
  // What is read is put together when all of it is there.
  struct Read {
    std::vector<std::string> names;
    Array sums, counts;
  };
  auto read = std::make_shared<Read>();
  v.computed("_names", names, [read](const std::string& text) {
    try {
      read->names = nlohmann::json::parse(text).get<std::vector<std::string>>();
    } catch (const nlohmann::json::exception& error) {
      throw SerializationError(std::string("DictSummary: the names in the file cannot be read: ") +
                               error.what());
    }
  });
  if (!v.reads("_sums")) return;  // Chainer's files
  v.computed("_sums", sums, [read](const Array& values) { read->sums = values; });
  v.computed("_counts", counts, [read](const Array& values) { read->counts = values; });
  if (Visitor::Reading* file = v.reading()) {
    file->then([this, read] {
      summaries_.clear();
      for (std::size_t i = 0; i < read->names.size(); ++i) {
        auto at = static_cast<std::int64_t>(i);
        Summary& summary = summaries_[read->names[i]];
        summary.total_ = read->sums[at].astype(float64);
        summary.count_ = read->counts[at].item<std::int64_t>();
      }
    });
  }
}

std::map<std::string, double> DictSummary::compute_mean() const {
  std::map<std::string, double> means;
  for (const auto& [key, summary] : summaries_) means[key] = summary.mean();
  return means;
}

}  // namespace rensa
