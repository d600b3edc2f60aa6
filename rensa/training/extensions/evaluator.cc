// The evaluator's loop.
#include "rensa/training/extensions/evaluator.h"

#include <fmt/format.h>

#include <utility>

#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"

namespace rensa::extensions {

Evaluator::Evaluator(Iterator iterator, Link& model, std::optional<Device> device,
                     EvaluatorOptions options)
    : iterator_(std::move(iterator)),
      model_(model.anchor()),
      device_(device),
      options_(std::move(options)),
      converter_(options_.converter_options) {
  if (iterator_.repeats()) {
    throw ValueError("Evaluator: its iterator never ends; make it with .repeat = false");
  }
}

Evaluator::Evaluator(Iterator iterator, const Link& model, std::optional<Device> device,
                     EvaluatorOptions options)
    : Evaluator(std::move(iterator), *model.anchor()->link, device, std::move(options)) {
  is_const_ = true;
}

Link& Evaluator::model() const {
  if (!model_->link) throw ValueError("Evaluator: its model has been destroyed");
  return *model_->link;
}

std::map<std::string, double> Evaluator::evaluate() {
  if (options_.eval_hook) options_.eval_hook(*this);
  Link& model = this->model();
  Device device = device_.value_or(training::device_of(model));
  Reporter reporter;
  reporter.add_observers(name.empty() ? "main" : name + "/main", model);
  UsingConfig not_training(&Config::train, false);
  no_backprop_mode no_graph;
  DictSummary summary;
  iterator_.reset();
  std::optional<detail::ProgressOutput> progress;
  if (options_.progress_bar) progress.emplace(*options_.progress_bar);
  std::int64_t batches = 0;
  while (std::optional<Batch> batch = iterator_.next()) {
    Variables columns;
    for (Array& column :
         options_.converter ? options_.converter(*batch, device) : converter_(*batch, device)) {
      columns.push_back(constant(std::move(column)));
    }
    Observation observation;
    {
      Reporter::Scope scope = reporter.scope(observation);
      if (options_.eval_func) options_.eval_func(columns);
      else if (is_const_) std::as_const(model).invoke(columns);
      else model.invoke(columns);
    }
    summary.add(observation);
    if (progress) show(++batches, &*progress);
  }
  if (progress) progress->clear();
  return summary.compute_mean();
}

void Evaluator::show(std::int64_t batches, detail::ProgressOutput* progress) const {
  std::string label = name.empty() ? "evaluation" : name;
  double done = iterator_.epoch_detail();
  progress->show(
      batches,
      [&] { return detail::progress_bar(label, done, options_.progress_bar->bar_length) + '\n'; },
      [&] { return fmt::format("  {}: {:.1f}%, batch {}\n", label, done * 100, batches); });
}

void Evaluator::operator()(training::Trainer&) {
  for (const auto& [key, mean] : evaluate()) report({{key, mean}});
}

}  // namespace rensa::extensions
