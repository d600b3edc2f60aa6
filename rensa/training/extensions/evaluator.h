// Evaluator: the model on a validation set.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "rensa/training/extensions/progress_bar.h"
#include "rensa/training/trainer.h"

namespace rensa::extensions {

class Evaluator;

struct EvaluatorOptions {
  ConverterOptions converter_options = {};  // of the default converter
  /// What makes arrays of a batch; concat_examples when left out.
  std::function<Columns(const Batch&, Device)> converter = {};
  /// Called with each batch's columns in place of the model, to report.
  std::function<void(const Variables&)> eval_func = {};
  /// Called when an evaluation begins, before the iterator is reset: to prepare the model.
  std::function<void(Evaluator&)> eval_hook = {};
  /// Shows how far a long evaluation is, as ProgressBar does (but for `entries`), its batches being
  /// the iterations: ProgressBarOptions().
  std::optional<ProgressBarOptions> progress_bar = {};
};

/// Runs the model over the whole of `iterator` with config().train off and no graph, and reports
/// the means over the batches as "validation/main/loss" and so on (under the extension's name).
/// Called at the end of each epoch. Waits for the device once.
class Evaluator final : public training::Extension {
 public:
  /// `device` is where batches are sent: the model's first parameter when left out. Throws
  /// ValueError for an iterator that repeats.
  Evaluator(Iterator iterator, Link& model, std::optional<Device> device = {},
            EvaluatorOptions options = {});
  /// A model that may not change is called by its const operator().
  Evaluator(Iterator iterator, const Link& model, std::optional<Device> device = {},
            EvaluatorOptions options = {});

  /// The means by key ("main/loss", with the extension's name before it once it has one).
  std::map<std::string, double> evaluate();
  void operator()(training::Trainer& trainer) override;
  const Iterator& iterator() const { return iterator_; }
  /// The model. Throws ValueError where it has been destroyed.
  const Link& target() const { return model(); }
  /// The iterator: one that shuffles goes on with its next order.
  void members(Visitor& v) override { v.optional("iterator:main", iterator_); }
  std::string default_name() const override { return "validation"; }
  training::Trigger default_trigger() const override { return {1, "epoch"}; }
  int default_priority() const override { return training::kPriorityWriter; }

 private:
  Link& model() const;
  void show(std::int64_t batches, detail::ProgressOutput* progress) const;
  Iterator iterator_;
  std::shared_ptr<LinkAnchor> model_;
  bool is_const_ = false;
  std::optional<Device> device_;
  EvaluatorOptions options_;
  Converter converter_;
};

}  // namespace rensa::extensions
