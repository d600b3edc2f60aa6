// PlotReport.
#include "rensa/training/extensions/plot_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "rensa/core/error.h"
#include "rensa/core/files.h"

namespace rensa::extensions {

PlotReport::PlotReport(std::vector<std::string> y_keys, PlotReportOptions options)
    : y_keys_(std::move(y_keys)), options_(std::move(options)) {
  if (y_keys_.empty()) throw ValueError("PlotReport: give the keys of the curves");
  if (!options_.trigger) throw ValueError("PlotReport: give a trigger, {1, \"epoch\"}");
  picture_format("PlotReport", options_.filename);
}

void PlotReport::operator()(training::Trainer& trainer) {
  Observation wanted;
  for (const auto& [key, value] : trainer.observation()) {
    if (key == options_.x_key || std::ranges::count(y_keys_, key) != 0) wanted[key] = value;
  }
  summary_.add(wanted);
  if (!options_.trigger(trainer)) return;
  std::map<std::string, double> means = std::exchange(summary_, {}).compute_mean();
  const training::Updater& updater = trainer.updater();
  means.emplace("epoch", static_cast<double>(updater.epoch()));
  means.emplace("iteration", static_cast<double>(updater.iteration()));
  auto x = means.find(options_.x_key);
  if (x == means.end()) return;
  for (const std::string& key : y_keys_) {
    if (auto y = means.find(key); y != means.end()) curves_[key].emplace_back(x->second, y->second);
  }
  draw(trainer.out());
}

void PlotReport::draw(const std::string& folder) const {
  std::vector<PlotSeries> series;
  for (const std::string& key : y_keys_) {
    auto found = curves_.find(key);
    if (found != curves_.end()) series.push_back({key, found->second});
  }
  if (options_.postprocess) options_.postprocess(series);
  PlotOptions plot = options_.plot;
  if (plot.x_label.empty()) plot.x_label = options_.x_key;
  try {
    PictureFormat format = picture_format("PlotReport", options_.filename);
    rensa::detail::write_whole_file(folder + "/" + options_.filename,
                                    rensa::plot(series, format, plot));
  } catch (const SerializationError& error) {
    throw SerializationError(std::string("PlotReport: ") + error.what());
  }
}

void PlotReport::members(Visitor& v) {
  v.optional("_trigger", options_.trigger);
  if (v.reads("_summary")) v("_summary", summary_);
  std::string name = "_plot_" + options_.filename, other = name;
  other.replace(other.size() - 3, 3, name.ends_with("png") ? "svg" : "png");
  if (v.reading() && !v.reads(name) && v.reads(other))
    name = other;  // of a run with other pictures
  v.computed(
      name, [this] { return rensa::detail::curves_to_json(curves_); },
      [this](const std::string& text) {
        return [this, curves = rensa::detail::curves_from_json("PlotReport", text)] {
          curves_ = curves;
        };
      });
}

}  // namespace rensa::extensions
