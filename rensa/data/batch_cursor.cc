// BatchCursor.
#include "rensa/data/batch_cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rensa/array/random_basics.h"
#include "rensa/core/checked.h"
#include "rensa/core/error.h"
#include "rensa/core/host_memory.h"
#include "rensa/data/epoch_order.h"

namespace rensa {

BatchCursor::BatchCursor(const char* name, Dataset dataset, std::int64_t batch_size,
                         iterators::SerialIteratorOptions options) {
  if (batch_size < 1) {
    throw ValueError(fmt::format("{}: a batch size of {}; give 1 or more", name, batch_size));
  }
  if (options.order_sampler && !options.shuffle) {
    throw ValueError(fmt::format(
        "{}: .shuffle = false and an order sampler; leave out the one that shall not hold", name));
  }
  std::uint64_t seed = options.seed
                           ? *options.seed
                           : static_cast<std::uint64_t>(
                                 xp::random::randint(0, std::int64_t{1} << 62, {1}, int64, cpu())
                                     .item<std::int64_t>());
  seed_ = static_cast<std::int64_t>(seed);
  settings_ = std::make_shared<const Settings>(
      Settings{name, std::move(dataset), batch_size, std::move(options)});
  epoch_size_ = settings_->options.order_sampler ? static_cast<std::int64_t>(sampled(0).size())
                                                 : settings_->dataset.size();
  if (epoch_size_ == 0 && repeats()) {
    throw ValueError(fmt::format(
        "{}: {} cannot be repeated; give .repeat = false", name,
        settings_->dataset.size() == 0 ? "an empty dataset" : "an order of no examples"));
  }
  reset();
  draw_order();
}

std::optional<Batch> BatchCursor::next() {
  if (!repeats() && (epoch_ > 0 || epoch_size_ == 0)) return std::nullopt;
  draw_order();  // the only step that may fail
  previous_epoch_detail_ = epoch_detail();
  is_new_epoch_ = false;
  std::int64_t most = settings_->batch_size;
  std::int64_t count = repeats() ? most : std::min(most, epoch_size_ - position_);
  Batch batch(dataset(), order_->indices()[{Slice(position_, position_ + count)}], order_,
              generation_, position_);
  position_ += count;
  if (std::int64_t epochs = position_ / epoch_size_; epochs > 0) {
    position_ %= epoch_size_;
    epoch_ += epochs;
    is_new_epoch_ = true;
    if (repeats()) generation_ += epochs;
  }
  return batch;
}

void BatchCursor::reset() {
  epoch_ = 0;
  position_ = 0;
  is_new_epoch_ = false;
  previous_epoch_detail_ = -1;
  ++generation_;
}

double BatchCursor::epoch_detail() const {
  double part = epoch_size_ ? static_cast<double>(position_) / static_cast<double>(epoch_size_) : 0;
  return static_cast<double>(epoch_) + part;
}

std::optional<double> BatchCursor::previous_epoch_detail() const {
  return previous_epoch_detail_ < 0 ? std::nullopt : std::optional(previous_epoch_detail_);
}

std::string BatchCursor::describe() const {
  const auto& options = settings_->options;
  return fmt::format("{} over {} examples ({} an epoch) in batches of {}, {}{}", settings_->name,
                     dataset().size(), epoch_size_, settings_->batch_size,
                     options.order_sampler ? "by an order sampler"
                     : options.shuffle     ? "shuffled"
                                           : "in order",
                     options.repeat ? "" : ", once");
}

void BatchCursor::members(Visitor& v) {
  if (Visitor::Reading* file = v.reading()) check(*file);
  v("current_position", position_);
  v("epoch", epoch_);
  v("is_new_epoch", is_new_epoch_);
  v("previous_epoch_detail", previous_epoch_detail_);
  v.optional("seed", seed_);  // Chainer's files have no seed
  v.optional("generation", generation_);
  if (draws()) show_given_order(v);
}

/// Chainer's files have the order of the epoch that they stand in; its rest is gone through as it
/// is there.
void BatchCursor::show_given_order(Visitor& v) {
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

bool BatchCursor::has_given_order() const {
  return given_order_.defined() && given_generation_ == generation_;
}

void BatchCursor::give_order(const Array& order) {
  if (!order.defined() && !given_order_.defined()) return;
  given_order_ = order;
  given_generation_ = generation_;
  order_ = nullptr;
}

Array BatchCursor::checked_order(const Array& values) const {
  std::int64_t n = dataset().size();
  auto refuse = [&](const char* what) {
    throw SerializationError(
        fmt::format("{}: the order {} is no order of the dataset's {} examples: {}",
                    settings_->name, values.view().describe(), n, what));
  };
  if (dtype_kind(values.dtype()) != 'i' && dtype_kind(values.dtype()) != 'u') refuse("its dtype");
  if (values.shape() != Shape{epoch_size_}) refuse("its shape");
  Array order = values.astype(int64).ascontiguous();
  std::vector<bool> seen(static_cast<std::size_t>(n));
  bool once = !settings_->options.order_sampler;
  for (std::int64_t i : order.to_vector<std::int64_t>()) {
    if (i < 0 || i >= n) refuse("it names others");
    if (once && seen[static_cast<std::size_t>(i)]) refuse("it does not name each once");
    seen[static_cast<std::size_t>(i)] = true;
  }
  return order;
}

void BatchCursor::check(const Visitor::Reading& file) const {
  std::int64_t position = file.number("current_position"), orders = file.number("generation");
  if (position >= 0 && position < std::max<std::int64_t>(epoch_size_, 1) && orders >= 0) return;
  throw SerializationError(
      fmt::format("{}: the file stands at example {} of order {}; an epoch has {} examples",
                  settings_->name, position, orders, epoch_size_));
}

std::vector<std::int64_t> BatchCursor::sampled(std::int64_t generation) const {
  std::int64_t n = dataset().size();
  std::vector<std::int64_t> order =
      settings_->options.order_sampler({n, generation, static_cast<std::uint64_t>(seed_)});
  for (std::int64_t i : order) {
    if (i >= 0 && i < n) continue;
    throw ValueError(fmt::format("{}: the order sampler gave example {} of a dataset of {}",
                                 settings_->name, i, n));
  }
  return order;
}

void BatchCursor::draw(std::int64_t generation, std::int64_t* out) const {
  if (has_given_order() && generation == given_generation_) {
    std::copy_n(static_cast<const std::int64_t*>(given_order_.data()), epoch_size_, out);
  } else if (settings_->options.order_sampler) {
    std::vector<std::int64_t> order = sampled(generation);
    if (static_cast<std::int64_t>(order.size()) != epoch_size_) {
      throw ValueError(fmt::format(
          "{}: the order sampler gave an order of {} examples after one of {}; they have to be of "
          "one size",
          settings_->name, order.size(), epoch_size_));
    }
    std::ranges::copy(order, out);
  } else if (settings_->options.shuffle) {
    random_order(static_cast<std::uint64_t>(seed_), generation, epoch_size_, out);
  } else {
    for (std::int64_t i = 0; i < epoch_size_; ++i) out[i] = i;
  }
}

void BatchCursor::draw_order() {
  std::int64_t generation = draws() ? generation_ : 0;
  auto seed = static_cast<std::uint64_t>(seed_);
  bool same_seed = order_ && order_->seed() == seed;
  if (same_seed && order_->generation() == generation) return;
  Array indices = xp::empty({checked_add(settings_->name, epoch_size_, overhang())}, int64, cpu());
  auto* out = static_cast<std::int64_t*>(indices.data());
  auto drawn = host_vector<std::int64_t>(settings_->name, epoch_size_);
  for (std::int64_t g = generation, done = 0; done < indices.size(); ++g) {
    draw(g, drawn.data());
    std::int64_t take = std::min(epoch_size_, indices.size() - done);
    std::copy_n(drawn.begin(), take, out + done);
    done += take;
  }
  // The memory on GPUs takes later orders of one seed only.
  if (!same_seed || order_->generation() > generation) buffers_ = std::make_shared<OrderBuffers>();
  order_ =
      std::make_shared<EpochOrder>(std::move(indices), generation, epoch_size_, seed, buffers_);
}

}  // namespace rensa
