// TensorBoardReport.
#include "rensa/training/extensions/tensorboard_report.h"

#include <algorithm>
#include <utility>

#include "rensa/core/error.h"

namespace rensa::extensions {

namespace {

/// Calls f(); what it says of files begins with the extension's name.
template <class F> void writing(F f) {
  try {
    f();
  } catch (const SerializationError& error) {
    throw SerializationError(std::string("TensorBoardReport: ") + error.what());
  }
}

}  // namespace

TensorBoardReport::TensorBoardReport(TensorBoardReportOptions options)
    : options_(std::move(options)) {
  if (!options_.trigger) throw ValueError("TensorBoardReport: give a trigger, {1, \"epoch\"}");
}

void TensorBoardReport::initialize(training::Trainer& trainer) {
  std::string folder = trainer.out();
  if (!options_.folder.empty()) folder += "/" + options_.folder;
  training::SummaryWriterOptions options;
  if (std::int64_t done = trainer.updater().iteration(); done > 0) options.purge_step = done + 1;
  writing([&] { writer_.emplace(folder, options); });
}

const training::SummaryWriter& TensorBoardReport::writer() const {
  if (!writer_) throw ValueError("TensorBoardReport: its file is there while the trainer runs");
  return *writer_;
}

void TensorBoardReport::operator()(training::Trainer& trainer) {
  Observation wanted;
  for (const auto& [key, value] : trainer.observation()) {
    if (options_.keys.empty() || std::ranges::count(options_.keys, key)) wanted[key] = value;
  }
  summary_.add(wanted);
  bool means = options_.trigger(trainer);
  bool histograms = options_.histogram_trigger && options_.histogram_trigger(trainer);
  if (!means && !histograms) return;
  writing([&] {
    if (means) write_means(trainer);
    if (histograms) write_histograms(trainer);
    writer().flush();
  });
}

void TensorBoardReport::write_means(training::Trainer& trainer) {
  const training::Updater& updater = trainer.updater();
  LogEntry entry{std::exchange(summary_, {}).compute_mean(), updater.epoch(), updater.iteration(),
                 trainer.elapsed_time()};
  missing_.tell("TensorBoardReport", options_.keys, entry);
  for (const auto& [key, mean] : entry.values) writer().add_scalar(key, mean, entry.iteration);
}

void TensorBoardReport::write_histograms(training::Trainer& trainer) const {
  std::int64_t step = trainer.updater().iteration();
  for (const NamedParameter& p : trainer.updater().namedparams()) {
    if (!p.parameter.is_initialized()) continue;
    std::string key = p.path.starts_with('/') ? p.path.substr(1) : p.path;
    if (options_.report_params) writer().add_histogram(key + "/data", p.parameter.array(), step);
    Array gradient = p.parameter.grad();
    if (options_.report_grads && gradient.defined()) {
      writer().add_histogram(key + "/grad", gradient, step);
    }
  }
}

void TensorBoardReport::finalize() {
  // What extensions and the user have added behind the last flush.
  if (auto writer = std::exchange(writer_, {})) writing([&] { writer->flush(); });
}

void TensorBoardReport::members(Visitor& v) {
  v("_trigger", options_.trigger);
  v("_histogram_trigger", options_.histogram_trigger);
  v("_summary", summary_);
}

}  // namespace rensa::extensions
