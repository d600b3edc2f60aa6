// VariableStatisticsPlot.
#include "rensa/training/extensions/variable_statistics_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rensa/array/order_statistics.h"
#include "rensa/core/error.h"
#include "rensa/core/files.h"

namespace rensa::extensions {

namespace {

std::string percentile_name(double percent) { return fmt::format("percentile/{:g}", percent); }

/// The elements of all arrays in a row, on the first one's device; undefined of none.
Array elements_of(const std::vector<Array>& arrays) {
  std::vector<Array> flat;
  for (const Array& a : arrays) {
    if (a.size() > 0) flat.push_back(a.reshape({-1}).to(arrays[0].device()));
  }
  if (flat.empty()) return {};
  return flat.size() == 1 ? flat[0] : xp::concatenate(flat);
}

}  // namespace

VariableStatisticsPlot::VariableStatisticsPlot(const Link& model,
                                               VariableStatisticsPlotOptions options)
    : model_(model.anchor()), options_(std::move(options)) {
  check();
}
VariableStatisticsPlot::VariableStatisticsPlot(Variables targets,
                                               VariableStatisticsPlotOptions options)
    : variables_(std::move(targets)), options_(std::move(options)) {
  check();
  if (variables_.empty()) throw ValueError("VariableStatisticsPlot: give variables to look at");
}

void VariableStatisticsPlot::check() const {
  const VariableStatisticsPlotOptions& o = options_;
  std::string fault;
  picture_format("VariableStatisticsPlot", o.filename);
  if (o.max_sample_size < 2) {
    fault = fmt::format("curves of {} points; give 2 or more", o.max_sample_size);
  } else if (!o.trigger) {
    fault = "give a trigger, {1, \"epoch\"}";
  } else if (!o.report_data && !o.report_grad) {
    fault = "nothing to report: neither data nor gradients";
  } else if (!o.plot_mean && !o.plot_std && o.percentile_sigmas.empty()) {
    fault = "nothing to plot: no mean, no standard deviation, no percentiles";
  }
  for (double percent : o.percentile_sigmas) {
    if (!(percent >= 0 && percent <= 100)) fault = fmt::format("the percentile {}", percent);
  }
  if (!fault.empty()) throw ValueError("VariableStatisticsPlot: " + fault);
}

Variables VariableStatisticsPlot::targets() const {
  if (!model_) return variables_;
  if (!model_->link) throw ValueError("VariableStatisticsPlot: its model has been destroyed");
  Variables found;
  for (const ParameterRef& p : model_->link->params()) {
    if (p.is_initialized()) found.push_back(p);
  }
  return found;
}

void VariableStatisticsPlot::take_sample(std::int64_t iteration) {
  std::vector<Array> data, gradients;
  for (const Variable& target : targets()) {
    if (options_.report_data) data.push_back(target.array());
    Array gradient = options_.report_grad ? target.grad() : Array();
    if (gradient.defined()) gradients.push_back(gradient);
  }
  Sample sample{iteration, {}, {}};
  std::vector<Array> values;
  auto add = [&](const std::string& name, const Array& value) {
    sample.names.push_back(name);
    values.push_back(value.astype(float64).reshape({1}));
  };
  for (const auto& [kind, arrays] : {std::pair("data/", &data), std::pair("grad/", &gradients)}) {
    Array x = elements_of(*arrays);
    if (!x.defined()) continue;
    if (options_.plot_mean) add(std::string(kind) + "mean", x.mean());
    if (options_.plot_std) add(std::string(kind) + "std", x.std());
    if (options_.percentile_sigmas.empty()) continue;
    Array percentiles = xp::percentile(x, options_.percentile_sigmas);
    for (std::size_t i = 0; i < options_.percentile_sigmas.size(); ++i) {
      add(kind + percentile_name(options_.percentile_sigmas[i]),
          percentiles[static_cast<std::int64_t>(i)]);
    }
  }
  if (values.empty()) return;
  sample.values = xp::concatenate(values);
  samples_.push_back(std::move(sample));
}

/// Brings the points to the host, and thins them out where there are too many.
void VariableStatisticsPlot::fetch() {
  for (const Sample& sample : std::exchange(samples_, {})) {
    std::vector<double> values = sample.values.to_vector<double>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      curves_[sample.names[i]].emplace_back(static_cast<double>(sample.iteration), values[i]);
    }
  }
  auto longest = [&] {
    std::size_t most = 0;
    for (const auto& [name, points] : curves_) most = std::max(most, points.size());
    return static_cast<std::int64_t>(most);
  };
  while (longest() > options_.max_sample_size) {
    every_ *= 2;
    for (auto& [name, points] : curves_) {
      std::erase_if(points, [&](const std::pair<double, double>& point) {
        return static_cast<std::int64_t>(point.first) % every_ != 0;
      });
    }
  }
}

void VariableStatisticsPlot::operator()(training::Trainer& trainer) {
  std::int64_t iteration = trainer.updater().iteration();
  if (iteration % every_ == 0) take_sample(iteration);
  // So that many iterations between pictures do not hold many arrays.
  bool draws = options_.trigger(trainer);
  if (draws || std::ssize(samples_) > options_.max_sample_size) fetch();
  if (draws) draw(trainer.out());
}

void VariableStatisticsPlot::draw(const std::string& folder) const {
  std::vector<std::string> kinds, rows;
  if (options_.report_data) kinds.emplace_back("data");
  if (options_.report_grad) kinds.emplace_back("grad");
  if (options_.plot_mean) rows.emplace_back("mean");
  if (options_.plot_std) rows.emplace_back("std");
  if (!options_.percentile_sigmas.empty()) rows.emplace_back("percentile");
  std::vector<PlotPanel> panels;
  for (const std::string& row : rows) {
    for (const std::string& kind : kinds) {
      PlotPanel panel;
      panel.options.title = kind + ": " + row;
      panel.options.x_label = "iteration";
      panel.options.width = options_.width, panel.options.height = options_.height;
      panel.options.markers = options_.marker, panel.options.grid = options_.grid;
      auto add = [&](const std::string& name, const std::string& shown) {
        auto found = curves_.find(kind + "/" + name);
        if (found != curves_.end()) panel.series.push_back({shown, found->second});
      };
      if (row != "percentile") add(row, "");
      for (double percent :
           row == "percentile" ? options_.percentile_sigmas : std::vector<double>()) {
        add(percentile_name(percent), fmt::format("{:g}%", percent));
      }
      panels.push_back(std::move(panel));
    }
  }
  try {
    PictureFormat format = picture_format("VariableStatisticsPlot", options_.filename);
    rensa::detail::write_whole_file(folder + "/" + options_.filename,
                                    plot_grid(panels, static_cast<int>(kinds.size()), format));
  } catch (const SerializationError& error) {
    throw SerializationError(std::string("VariableStatisticsPlot: ") + error.what());
  }
}

void VariableStatisticsPlot::members(Visitor& v) {
  v.optional("_trigger", options_.trigger);
  v.optional("_every", every_);
  v.computed(
      "_curves",
      [this] {
        fetch();
        return rensa::detail::curves_to_json(curves_);
      },
      [this](const std::string& text) {
        return [this, curves = rensa::detail::curves_from_json("VariableStatisticsPlot", text)] {
          curves_ = curves;
          samples_.clear();
        };
      });
}

}  // namespace rensa::extensions
