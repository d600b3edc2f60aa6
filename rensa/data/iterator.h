// Iterators: which examples come next. They give a batch as numbers of examples; data/converter.h
// makes arrays of it. Iterators are shared handles.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rensa/data/dataset.h"
#include "rensa/data/order_sampler.h"
#include "rensa/links/visitor.h"

namespace rensa {

class EpochOrder;

/// Some examples of a dataset. Most are not fetched yet; those of a MultithreadIterator are.
class Batch {
 public:
  /// `indices` is a one-dimensional int64 array in host memory.
  Batch(Dataset dataset, Array indices);
  /// Those of `order` that lie from `begin` on, in the epoch of that generation.
  Batch(Dataset dataset, Array indices, std::shared_ptr<const EpochOrder> order,
        std::int64_t generation, std::int64_t begin);

  const Dataset& dataset() const { return dataset_; }    // what the batch is of
  std::int64_t size() const { return indices_.size(); }  // the number of examples
  const Array& indices() const { return indices_; }
  /// The indices on `device`, for use on its current stream. A whole epoch's order is sent there at
  /// once, from pinned memory, so that most batches cost no copy at all.
  Array indices_on(Device device) const;
  /// What is random in element `k` of [0, size()) is drawn from this: it follows from the
  /// iterator's seed, its epoch and the element's place in that, and from nothing else.
  std::uint64_t seed(std::int64_t k) const;
  /// Example `k` of [0, size()) of the batch: the one that was fetched, or fetched now. Converters
  /// of one's own take it from here.
  Columns example(std::int64_t k) const;
  /// Python's batch[start::step], as Chainer splits a batch between devices.
  Batch strided(std::int64_t start, std::int64_t step) const;
  /// The same batch with its examples: as many as there are indices. Those of another rank come
  /// with their seeds.
  Batch with_examples(std::shared_ptr<const std::vector<Columns>> examples,
                      std::shared_ptr<const std::vector<std::uint64_t>> seeds = nullptr) const;

 private:
  std::int64_t index(std::int64_t k) const;
  Dataset dataset_;
  Array indices_;
  std::shared_ptr<const EpochOrder> order_;  // where indices_ is a part of an epoch's order
  std::int64_t generation_ = 0;              // of the epoch that the order begins with
  std::int64_t begin_ = 0, step_ = 1;
  std::shared_ptr<const std::vector<Columns>> examples_;
  std::shared_ptr<const std::vector<std::uint64_t>> seeds_;  // of examples_; null: order_ has them
  std::int64_t fetched_from_ = 0;                            // the place of the first of examples_
};

/// What an iterator does, behind the handles: its methods are those of Iterator.
class IteratorBody {
 public:
  virtual ~IteratorBody() = default;
  virtual std::optional<Batch> next() = 0;                          // as of Iterator
  virtual void reset() = 0;                                         // as of Iterator
  virtual std::int64_t epoch() const = 0;                           // as of Iterator
  virtual bool is_new_epoch() const = 0;                            // as of Iterator
  virtual double epoch_detail() const = 0;                          // as of Iterator
  virtual std::optional<double> previous_epoch_detail() const = 0;  // as of Iterator
  virtual const Dataset& dataset() const = 0;                       // as of Iterator
  virtual bool repeats() const = 0;  // whether it goes on behind the end of an epoch
  /// Shows where it is, so that the next batch of one that read this from a file is the same.
  virtual void members(Visitor& v) = 0;
  /// What ranks have to have alike to go through one order: "SerialIterator over 12 examples in
  /// batches of 3, shuffled". By default the class and the number of examples.
  virtual std::string describe() const;
};

/// A handle: batches of a dataset, one after another.
class Iterator {
 public:
  explicit Iterator(std::shared_ptr<IteratorBody> body) : body_(std::move(body)) {}
  /// The next batch; none at the end of an iterator that does not repeat.
  std::optional<Batch> next() const { return body().next(); }
  /// Back to the start.
  void reset() const { body().reset(); }
  /// Epochs completed.
  std::int64_t epoch() const { return body().epoch(); }
  /// Whether the latest batch completed an epoch.
  bool is_new_epoch() const { return body().is_new_epoch(); }
  /// Epochs completed, with the fraction of the current one.
  double epoch_detail() const { return body().epoch_detail(); }
  /// epoch_detail() before the latest batch; none before the first.
  std::optional<double> previous_epoch_detail() const { return body().previous_epoch_detail(); }
  const Dataset& dataset() const { return body_->dataset(); }  // what it goes over
  /// Whether it goes on behind the end of an epoch.
  bool repeats() const { return body_->repeats(); }
  /// Where it is, for files; not the dataset.
  void members(Visitor& v) const { body_->members(v); }
  /// What it is, in words: its kind, length, batch size and settings.
  std::string describe() const { return body_->describe(); }

 protected:
  std::shared_ptr<IteratorBody> body_;

 private:
  /// For what replays of a recorded step would not do: the step stays eager.
  IteratorBody& body() const;
};

namespace iterators {

struct SerialIteratorOptions {
  bool repeat = true;
  bool shuffle = true;
  /// Of the orders and of what examples draw at random; drawn from the host's generator
  /// (xp::random::seed) when left out.
  std::optional<std::uint64_t> seed = {};
  /// Makes the orders in place of `shuffle` (data/order_sampler.h). An epoch is one of them.
  OrderSampler order_sampler = {};
};

/// Chainer's SerialIterator. A batch that crosses the epoch's end goes on into the next order when
/// `repeat`, else the last one is short. The order is drawn on the host. Throws ValueError for
/// batch_size < 1, for an empty dataset that shall repeat, for `shuffle = false` beside an order
/// sampler, and for a sampler's orders that differ in size or go beyond the dataset.
class SerialIterator : public Iterator {
 public:
  SerialIterator(Dataset dataset, std::int64_t batch_size, SerialIteratorOptions options = {});
};

}  // namespace iterators
}  // namespace rensa
