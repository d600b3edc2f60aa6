// Batch and SerialIterator.
#include "rensa/data/iterator.h"

#include <fmt/format.h>

#include <typeinfo>
#include <utility>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/data/batch_cursor.h"
#include "rensa/data/epoch_order.h"
#include "rensa/device/tracer.h"

namespace rensa {

Batch::Batch(Dataset dataset, Array indices)
    : Batch(std::move(dataset), std::move(indices), {}, 0, 0) {}

Batch::Batch(Dataset dataset, Array indices, std::shared_ptr<const EpochOrder> order,
             std::int64_t generation, std::int64_t begin)
    : dataset_(std::move(dataset)),
      indices_(std::move(indices)),
      order_(std::move(order)),
      generation_(generation),
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

std::int64_t Batch::index(std::int64_t k) const {
  if (k < 0 || k >= size()) {
    throw IndexError(fmt::format("Batch: element {} of a batch of {}", k, size()));
  }
  const ArrayView& view = indices_.view();
  return view.as<std::int64_t>()[k * (view.strides[0] / itemsize(int64))];
}

std::uint64_t Batch::seed(std::int64_t k) const {
  std::int64_t number = index(k);
  if (seeds_) return (*seeds_)[static_cast<std::size_t>(begin_ + k * step_ - fetched_from_)];
  if (!order_) return static_cast<std::uint64_t>(number);  // as dataset()[number]
  std::int64_t place = begin_ + k * step_, n = order_->epoch_size();
  return derived_seed(order_->seed(), static_cast<std::uint64_t>(place % n),
                      static_cast<std::uint64_t>(generation_ + place / n));
}

Columns Batch::example(std::int64_t k) const {
  std::int64_t number = index(k);
  if (examples_) return (*examples_)[static_cast<std::size_t>(begin_ + k * step_ - fetched_from_)];
  return dataset_.example(number, seed(k));
}

Batch Batch::with_examples(std::shared_ptr<const std::vector<Columns>> examples,
                           std::shared_ptr<const std::vector<std::uint64_t>> seeds) const {
  if (step_ != 1 || static_cast<std::int64_t>(examples->size()) != size()) {
    throw ValueError(fmt::format("Batch: {} examples for a batch of {}{}", examples->size(), size(),
                                 step_ == 1 ? "" : ", which is a part of another"));
  }
  Batch fetched = *this;
  fetched.examples_ = std::move(examples);
  fetched.seeds_ = std::move(seeds);
  fetched.fetched_from_ = begin_;
  return fetched;
}

Batch Batch::strided(std::int64_t start, std::int64_t step) const {
  Batch part = *this;
  part.indices_ = indices_[{Slice(start, none, step)}];
  part.begin_ = begin_ + start * step_;
  part.step_ = step_ * step;
  return part;
}

std::string IteratorBody::describe() const {
  return fmt::format("{} over {} examples", typeid(*this).name(), dataset().size());
}

IteratorBody& Iterator::body() const {
  stay_eager("it asks an iterator for a batch or where it is, or resets it");
  return *body_;
}

namespace iterators {

SerialIterator::SerialIterator(Dataset dataset, std::int64_t batch_size,
                               SerialIteratorOptions options)
    : Iterator(std::make_shared<CursorBody>(
          BatchCursor("SerialIterator", std::move(dataset), batch_size, std::move(options)))) {}

}  // namespace iterators
}  // namespace rensa
