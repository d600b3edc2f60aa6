// Updaters: one training iteration. Shared handles: a factory may return a Trainer made of its
// locals.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rensa/data/converter.h"
#include "rensa/graph/capture.h"
#include "rensa/links/link.h"
#include "rensa/optimizers/optimizer.h"

namespace rensa::training {

/// Iterators or optimizers by name, in the order given. One without a name is "main".
template <class T> class Named {
 public:
  using Entry = std::pair<std::string, T>;  // the name, and what it names
  Named(T main) { entries_.emplace_back("main", std::move(main)); }
  Named(std::initializer_list<Entry> entries) : entries_(entries) {}
  explicit Named(std::vector<Entry> entries) : entries_(std::move(entries)) {}
  auto begin() const { return entries_.begin(); }       // the first entry
  auto end() const { return entries_.end(); }           // behind the last one
  std::size_t size() const { return entries_.size(); }  // how many there are
  /// Null for a name there is not.
  const T* find(const std::string& name) const {
    for (const Entry& entry : entries_) {
      if (entry.first == name) return &entry.second;
    }
    return nullptr;
  }

 private:
  std::vector<Entry> entries_;
};

/// What an updater does, behind the handles. One of the user's own overrides update_core():
///   struct GAN : UpdaterBody {
///     using UpdaterBody::UpdaterBody;
///     void update_core() override {
///       Batch batch = next_batch();
///       get_optimizer("dis").update(...), get_optimizer("gen").update(...);
///     }
///   };
///   Updater updater(std::make_shared<GAN>(iterator, Named<Optimizer>{{"gen", g}, {"dis", d}}));
class UpdaterBody {
 public:
  /// The optimizers have been set up on their models. The run's epochs are those of the iterator
  /// "main". Throws ValueError where there is none of that name, without an optimizer, for one that
  /// has no model, and for a name that is empty or given twice.
  UpdaterBody(Named<Iterator> iterators, Named<Optimizer> optimizers);
  virtual ~UpdaterBody() = default;
  /// One iteration, counted when it succeeds. Where it ends an epoch of the iterator "main", the
  /// optimizers are told.
  void update();
  /// These throw ValueError for a name there is not.
  const Iterator& get_iterator(const std::string& name) const;
  const Optimizer& get_optimizer(const std::string& name) const;
  const Named<Iterator>& get_all_iterators() const { return iterators_; }
  const Named<Optimizer>& get_all_optimizers() const { return optimizers_; }
  /// Those named "main".
  const Iterator& iterator() const { return *iterators_.find("main"); }
  const Optimizer& optimizer() const { return get_optimizer("main"); }  // the optimizer of "main"
  std::int64_t iteration() const { return iteration_; }                 // how many succeeded
  /// Shows "iteration", and by their names, as Chainer has them, "iterator:main", "optimizer:main"
  /// and the optimizer's model, "model:main". An override that adds its own goes on with
  /// UpdaterBody::members().
  virtual void members(Visitor& v);

 protected:
  virtual void update_core() = 0;
  /// The iterator's next batch. Throws ValueError where it has come to its end.
  Batch next_batch(const std::string& name = "main") const;

 private:
  Named<Iterator> iterators_;
  Named<Optimizer> optimizers_;
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
  /// These throw ValueError for a name there is not.
  const Iterator& get_iterator(const std::string& name) const { return body_->get_iterator(name); }
  const Optimizer& get_optimizer(const std::string& name) const {
    return body_->get_optimizer(name);
  }
  const Named<Iterator>& get_all_iterators() const { return body_->get_all_iterators(); }
  const Named<Optimizer>& get_all_optimizers() const { return body_->get_all_optimizers(); }
  /// Those named "main"; optimizer() throws as get_optimizer does.
  const Iterator& iterator() const { return body_->iterator(); }
  const Optimizer& optimizer() const { return body_->optimizer(); }
  /// The parameters of all optimizers' models: those of "main" under their paths ("/l1/W"), those
  /// of another behind its name ("/gen/l1/W").
  std::vector<NamedParameter> namedparams() const;
  /// The models, their optimizers, the iterators, and the count of iterations.
  void members(Visitor& v) const { body_->members(v); }

 protected:
  std::shared_ptr<UpdaterBody> body_;
};

struct StandardUpdaterOptions {
  /// The models are moved there, and batches are sent there. Left out: they stay where they are.
  std::optional<Device> device = {};
  /// Where batches are sent, if not to `device` or else to the first model's first parameter: for a
  /// model that lies on several devices.
  std::optional<Device> input_device = {};
  ConverterOptions converter_options = {};  // of the default converter
  /// Makes arrays of a batch, in place of Converter.
  std::function<Columns(const Batch&, Device)> converter = {};
  /// The loss of a batch's columns; the optimizer's model, called with them, when left out.
  std::function<Variable(const Variables&)> loss_func = {};
  /// What an iteration does with a batch's columns, in place of an update of the optimizer "main"
  /// by the loss: of several optimizers, each one's update.
  std::function<void(const Variables&)> update_core = {};
  /// A batch is taken in that many parts, one after the other, whose gradients add up to those of
  /// the mean of their losses, each weighed by its samples: the activations of one part are in
  /// memory at a time. Fewer where a batch has not so many samples.
  int accumulate = 1;
  /// Iterations are recorded and replayed as CUDA graphs (graph/capture.h).
  bool capture = false;
  CaptureOptions capture_options = {};  // as capture() takes them
};

/// Each iteration takes a batch of every iterator; the columns are those of all of them, in the
/// order in which they are named.
class StandardUpdater : public Updater {
 public:
  /// StandardUpdater(iterator, optimizer), or several of either by name:
  ///   StandardUpdater(iterator, {{"gen", g}, {"dis", d}}, {.update_core = ...})
  /// Throws as UpdaterBody does; and ValueError where `accumulate` is less than 1, for optimizers
  /// beside "main" without an `update_core`, and for a `loss_func` or `accumulate` beside one.
  StandardUpdater(Named<Iterator> iterators, Named<Optimizer> optimizers,
                  StandardUpdaterOptions options = {});
  const CaptureStats& capture_stats() const;  // what captured iterations came to so far
};

/// Where the parameters of `model` are: the first one's device, the CPU for a model without any.
Device device_of(const Link& model);

}  // namespace rensa::training
