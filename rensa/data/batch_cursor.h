// BatchCursor: which examples come next, for every kind of iterator.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rensa/data/iterator.h"

namespace rensa {

class OrderBuffers;

/// Chainer's state machine over an order that is drawn a whole epoch at a time. A value: a copy
/// goes on from where it was made, and gives the same batches.
class BatchCursor {
 public:
  /// `name` is the iterator's, for errors. Throws as the iterators do.
  BatchCursor(const char* name, Dataset dataset, std::int64_t batch_size,
              iterators::SerialIteratorOptions options);

  std::optional<Batch> next();
  void reset();
  std::int64_t epoch() const { return epoch_; }
  bool is_new_epoch() const { return is_new_epoch_; }
  double epoch_detail() const;
  std::optional<double> previous_epoch_detail() const;
  const Dataset& dataset() const { return settings_->dataset; }
  bool repeats() const { return settings_->options.repeat; }
  void members(Visitor& v);
  std::string describe() const;

 private:
  struct Settings {
    const char* name;
    Dataset dataset;
    std::int64_t batch_size;
    iterators::SerialIteratorOptions options;
  };

  void show_given_order(Visitor& v);
  bool has_given_order() const;
  void give_order(const Array& order);
  Array checked_order(const Array& values) const;
  void check(const Visitor::Reading& file) const;

  /// Whether epochs have orders of their own.
  bool draws() const { return settings_->options.shuffle || settings_->options.order_sampler; }
  /// Examples that an order goes on beyond its epoch, into the next order, so that a batch that
  /// crosses the end is one piece of it.
  std::int64_t overhang() const { return repeats() ? settings_->batch_size : 0; }
  /// The order of that generation into `out`, of epoch_size_ numbers.
  void draw(std::int64_t generation, std::int64_t* out) const;
  /// What the sampler gives, with each number checked.
  std::vector<std::int64_t> sampled(std::int64_t generation) const;
  /// Makes order_ that of this generation: its examples are followed by the first of the next ones,
  /// as far as the overhang reaches.
  void draw_order();

  std::shared_ptr<const Settings> settings_;
  std::int64_t epoch_size_ = 0;
  std::shared_ptr<OrderBuffers> buffers_;
  std::shared_ptr<const EpochOrder> order_;
  std::int64_t seed_ = 0;
  std::int64_t generation_ = -1;  // of the orders that the epochs have had
  std::int64_t epoch_ = 0, position_ = 0;
  bool is_new_epoch_ = false;
  double previous_epoch_detail_ = -1;  // before the first batch
  Array given_order_;                  // by a file, for this generation alone
  std::int64_t given_generation_ = 0;
};

/// An iterator that is where its cursor is.
class CursorBody : public IteratorBody {
 public:
  explicit CursorBody(BatchCursor cursor) : cursor_(std::move(cursor)) {}
  std::optional<Batch> next() override { return cursor_.next(); }
  void reset() override { cursor_.reset(); }
  std::int64_t epoch() const override { return cursor_.epoch(); }
  bool is_new_epoch() const override { return cursor_.is_new_epoch(); }
  double epoch_detail() const override { return cursor_.epoch_detail(); }
  std::optional<double> previous_epoch_detail() const override {
    return cursor_.previous_epoch_detail();
  }
  const Dataset& dataset() const override { return cursor_.dataset(); }
  bool repeats() const override { return cursor_.repeats(); }
  void members(Visitor& v) override { cursor_.members(v); }
  std::string describe() const override { return cursor_.describe(); }

 protected:
  BatchCursor cursor_;
};

}  // namespace rensa
