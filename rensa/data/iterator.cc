// Batch and SerialIterator: Chainer's state machine over an order that is drawn a whole epoch at a
// time.
#include "rensa/data/iterator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "rensa/array/random_basics.h"
#include "rensa/core/checked.h"
#include "rensa/core/error.h"
#include "rensa/core/host_memory.h"
#include "rensa/data/epoch_order.h"
#include "rensa/device/tracer.h"

namespace rensa {

Batch::Batch(Dataset dataset, Array indices)
    : Batch(std::move(dataset), std::move(indices), {}, 0) {}

Batch::Batch(Dataset dataset, Array indices, std::shared_ptr<const EpochOrder> order,
             std::int64_t begin)
    : dataset_(std::move(dataset)),
      indices_(std::move(indices)),
      order_(std::move(order)),
      begin_(begin) {
  if (indices_.ndim() != 1 || indices_.dtype() != int64 || !indices_.device().is_cpu()) {
    throw ValueError("Batch: indices must be one-dimensional, int64 and in host memory, not " +
                     indices_.view().describe());
  }
}

Array Batch::indices_on(Device device) const {
  if (device.is_cpu()) return indices_;
  if (order_) {
    if (auto order = order_->on(device)) {
      std::int64_t end = size() ? begin_ + (size() - 1) * step_ + 1 : begin_;
      return (*order)[{Slice(begin_, end, step_)}];
    }
  }
  return to_pinned_memory(indices_.ascontiguous()).to(device);
}

Batch Batch::strided(std::int64_t start, std::int64_t step) const {
  Batch part = *this;
  part.indices_ = indices_[{Slice(start, none, step)}];
  part.begin_ = begin_ + start * step_;
  part.step_ = step_ * step;
  return part;
}

IteratorBody& Iterator::body() const {
  stay_eager("it asks an iterator for a batch or where it is, or resets it");
  return *body_;
}

namespace iterators {

namespace {

class SerialBody final : public IteratorBody {
 public:
  SerialBody(Dataset dataset, std::int64_t batch_size, SerialIteratorOptions options)
      : dataset_(std::move(dataset)),
        n_(dataset_.size()),
        batch_size_(batch_size),
        options_(options) {
    if (batch_size < 1) {
      throw ValueError(
          fmt::format("SerialIterator: a batch size of {}; give 1 or more", batch_size));
    }
    if (n_ == 0 && options.repeat) {
      throw ValueError("SerialIterator: an empty dataset cannot be repeated; give .repeat = false");
    }
    if (!options_.seed) {
      options_.seed =
          xp::random::randint(0, std::int64_t{1} << 62, {1}, int64, cpu()).item<std::int64_t>();
    }
    seed_ = static_cast<std::int64_t>(*options_.seed);
    reset();
    draw_order();
  }

  std::optional<Batch> next() override {
    if (!options_.repeat && (epoch_ > 0 || n_ == 0)) return std::nullopt;
    previous_epoch_detail_ = epoch_detail();
    draw_order();
    is_new_epoch_ = false;
    std::int64_t count = options_.repeat ? batch_size_ : std::min(batch_size_, n_ - position_);
    std::optional<Batch> batch = peek(count);
    position_ += count;
    if (std::int64_t epochs = position_ / n_; epochs > 0) {
      position_ %= n_;
      epoch_ += epochs;
      is_new_epoch_ = true;
      if (options_.repeat) generation_ += epochs;
    }
    return batch;
  }

  void reset() override {
    epoch_ = 0;
    position_ = 0;
    is_new_epoch_ = false;
    previous_epoch_detail_ = -1;
    ++generation_;
  }

  std::int64_t epoch() const override { return epoch_; }
  bool is_new_epoch() const override { return is_new_epoch_; }
  double epoch_detail() const override {
    return static_cast<double>(epoch_) +
           (n_ ? static_cast<double>(position_) / static_cast<double>(n_) : 0.0);
  }
  std::optional<double> previous_epoch_detail() const override {
    return previous_epoch_detail_ < 0 ? std::nullopt : std::optional(previous_epoch_detail_);
  }
  const Dataset& dataset() const override { return dataset_; }
  bool repeats() const override { return options_.repeat; }

  void members(Visitor& v) override {
    if (Visitor::Reading* file = v.reading()) check(*file);
    v("current_position", position_);
    v("epoch", epoch_);
    v("is_new_epoch", is_new_epoch_);
    v("previous_epoch_detail", previous_epoch_detail_);
    v.optional("seed", seed_);  // Chainer's files have no seed
    v.optional("generation", generation_);
    if (options_.shuffle) show_given_order(v);
  }

 private:
  /// Chainer's files have the order of the epoch that they stand in; its rest is gone through as
  /// it is there.
  void show_given_order(Visitor& v) {
    Visitor::Reading* file = v.reading();
    if (file ? file->contains("order") : has_given_order()) {
      v.computed(
          "order", [this] { return given_order_; },
          [this](const Array& values) {
            return [this, order = checked_order(values)] { give_order(order); };
          });
    } else if (file) {
      file->then([this] { give_order({}); });
    }
  }
  bool has_given_order() const {
    return given_order_.defined() && given_generation_ == generation_;
  }
  void give_order(const Array& order) {
    if (!order.defined() && !given_order_.defined()) return;
    given_order_ = order;
    given_generation_ = generation_;
    order_ = nullptr;
  }
  Array checked_order(const Array& values) const {
    auto refuse = [&](const char* what) {
      throw SerializationError(
          fmt::format("SerialIterator: the order {} is no order of the dataset's {} examples: {}",
                      values.view().describe(), n_, what));
    };
    if (dtype_kind(values.dtype()) != 'i' && dtype_kind(values.dtype()) != 'u') refuse("its dtype");
    if (values.shape() != Shape{n_}) refuse("its shape");
    Array order = values.astype(int64).ascontiguous();
    std::vector<bool> seen(static_cast<std::size_t>(n_));
    for (std::int64_t i : order.to_vector<std::int64_t>()) {
      if (i < 0 || i >= n_ || seen[static_cast<std::size_t>(i)]) {
        refuse("it does not name each once");
      }
      seen[static_cast<std::size_t>(i)] = true;
    }
    return order;
  }

  void check(const Visitor::Reading& file) const {
    std::int64_t position = file.number("current_position"), orders = file.number("generation");
    if (position >= 0 && position < std::max<std::int64_t>(n_, 1) && orders >= 0) return;
    throw SerializationError(fmt::format(
        "SerialIterator: the file stands at example {} of order {}; the dataset has {} examples",
        position, orders, n_));
  }

  /// Examples that an order goes on beyond its epoch, into the next order, so that a batch that
  /// crosses the end is one piece of it.
  std::int64_t overhang() const { return options_.repeat ? batch_size_ : 0; }

  Batch peek(std::int64_t count) const {
    return Batch(dataset_, order_->indices()[{Slice(position_, position_ + count)}], order_,
                 position_);
  }

  /// Makes order_ that of this generation: its examples are followed by the first of the next ones,
  /// as far as the overhang reaches.
  void draw_order() {
    std::int64_t generation = options_.shuffle ? generation_ : 0;
    bool same_seed = order_ && drawn_seed_ == seed_;
    if (same_seed && order_->generation() == generation) return;
    // The memory on GPUs takes later orders of one seed only.
    if (!same_seed || order_->generation() > generation) {
      buffers_ = std::make_shared<OrderBuffers>();
    }
    Array indices = xp::empty({checked_add("SerialIterator", n_, overhang())}, int64, cpu());
    auto* out = static_cast<std::int64_t*>(indices.data());
    auto drawn = host_vector<std::int64_t>("SerialIterator", n_);
    for (std::int64_t g = generation, done = 0; done < indices.size(); ++g) {
      if (has_given_order() && g == given_generation_) {
        std::copy_n(static_cast<const std::int64_t*>(given_order_.data()), n_, drawn.data());
      } else if (options_.shuffle) {
        random_order(static_cast<std::uint64_t>(seed_), g, n_, drawn.data());
      } else {
        for (std::int64_t i = 0; i < n_; ++i) drawn[static_cast<std::size_t>(i)] = i;
      }
      std::int64_t take = std::min(n_, indices.size() - done);
      std::copy_n(drawn.begin(), take, out + done);
      done += take;
    }
    order_ = std::make_shared<EpochOrder>(std::move(indices), generation, buffers_);
    drawn_seed_ = seed_;
  }

  Dataset dataset_;
  std::int64_t n_, batch_size_;
  SerialIteratorOptions options_;
  std::shared_ptr<OrderBuffers> buffers_;
  std::shared_ptr<const EpochOrder> order_;
  std::int64_t seed_ = 0, drawn_seed_ = 0;  // of order_
  std::int64_t generation_ = -1;            // of the orders that the epochs have had
  std::int64_t epoch_ = 0, position_ = 0;
  bool is_new_epoch_ = false;
  double previous_epoch_detail_ = -1;  // before the first batch
  Array given_order_;                  // by a file, for this generation alone
  std::int64_t given_generation_ = 0;
};

}  // namespace

SerialIterator::SerialIterator(Dataset dataset, std::int64_t batch_size,
                               SerialIteratorOptions options)
    : Iterator(std::make_shared<SerialBody>(std::move(dataset), batch_size, options)) {}

}  // namespace iterators
}  // namespace rensa
