// Updaters: one training iteration. Shared handles: a factory may return a Trainer made of its
// locals.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rensa/data/converter.h"
#include "rensa/graph/capture.h"
#include "rensa/optimizers/optimizer.h"

namespace rensa::training {

/// What an updater does, behind the handles.
class UpdaterBody {
 public:
  UpdaterBody(Iterator iterator, Optimizer optimizer)
      : iterator_(std::move(iterator)), optimizer_(std::move(optimizer)) {}
  virtual ~UpdaterBody() = default;
  /// One iteration, counted when it succeeds.
  void update();
  const Iterator& iterator() const { return iterator_; }     // where batches come from
  const Optimizer& optimizer() const { return optimizer_; }  // what updates the model
  std::int64_t iteration() const { return iteration_; }      // how many iterations succeeded
  /// Shows "iteration", and as Chainer names them "iterator:main", "optimizer:main", "model:main".
  /// An override that adds its own goes on with UpdaterBody::members().
  virtual void members(Visitor& v);

 protected:
  virtual void update_core(const Batch& batch) = 0;

 private:
  Iterator iterator_;
  Optimizer optimizer_;
  std::int64_t iteration_ = 0;
};

/// A handle: what does one update of a run, and knows its iterator and optimizers.
class Updater {
 public:
  explicit Updater(std::shared_ptr<UpdaterBody> body) : body_(std::move(body)) {}
  /// One iteration: a batch, its loss and gradients, the optimizer's update. Throws ValueError when
  /// the iterator has come to its end.
  void update() const { body_->update(); }
  std::int64_t iteration() const;                                   // how many iterations succeeded
  std::int64_t epoch() const { return body_->iterator().epoch(); }  // of the iterator
  bool is_new_epoch() const { return body_->iterator().is_new_epoch(); }    // of the iterator
  double epoch_detail() const { return body_->iterator().epoch_detail(); }  // of the iterator
  /// Of the iterator.
  std::optional<double> previous_epoch_detail() const {
    return body_->iterator().previous_epoch_detail();
  }
  const Iterator& iterator() const { return body_->iterator(); }     // where batches come from
  const Optimizer& optimizer() const { return body_->optimizer(); }  // what updates the model
  /// The model, its optimizer and iterator, and the count of iterations.
  void members(Visitor& v) const { body_->members(v); }

 protected:
  std::shared_ptr<UpdaterBody> body_;
};

struct StandardUpdaterOptions {
  /// The model is moved there, and batches are sent there. Left out: the model stays where it is.
  std::optional<Device> device = {};
  /// Where batches are sent, if not to `device` or else to the model's first parameter: for a model
  /// that lies on several devices.
  std::optional<Device> input_device = {};
  ConverterOptions converter_options = {};  // of the default converter
  /// Makes arrays of a batch, in place of Converter.
  std::function<Columns(const Batch&, Device)> converter = {};
  /// The loss of a batch's columns; the optimizer's model, called with them, when left out.
  std::function<Variable(const Variables&)> loss_func = {};
  /// A batch is taken in that many parts, one after the other, whose gradients add up to those of
  /// the mean of their losses, each weighed by its samples: the activations of one part are in
  /// memory at a time. Fewer where a batch has not so many samples.
  int accumulate = 1;
  /// Iterations are recorded and replayed as CUDA graphs (graph/capture.h).
  bool capture = false;
  CaptureOptions capture_options = {};  // as capture() takes them
};

class StandardUpdater : public Updater {
 public:
  /// `optimizer` has been set up on its model. Throws ValueError where it has not, and where
  /// `accumulate` is less than 1.
  StandardUpdater(Iterator iterator, Optimizer optimizer, StandardUpdaterOptions options = {});
  const CaptureStats& capture_stats() const;  // what captured iterations came to so far
};

/// Where the parameters of `model` are: the first one's device, the CPU for a model without any.
Device device_of(const Link& model);

}  // namespace rensa::training
