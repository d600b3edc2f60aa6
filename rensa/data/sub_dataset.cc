// Parts of datasets.
#include "rensa/data/sub_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "rensa/array/indexing_routines.h"
#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/data/epoch_order.h"

namespace rensa::datasets {

namespace {

/// Some examples of another dataset that has no arrays of them.
class PartBody final : public DatasetBody {
 public:
  PartBody(Dataset dataset, std::int64_t start, Order rows, std::int64_t size)
      : dataset_(std::move(dataset)), start_(start), rows_(std::move(rows)), size_(size) {}
  std::int64_t size() const override { return size_; }
  Columns example(std::int64_t i, std::uint64_t seed) const override {
    return dataset_.example(rows_.empty() ? start_ + i : rows_[static_cast<std::size_t>(i)], seed);
  }

 private:
  Dataset dataset_;
  std::int64_t start_;
  Order rows_;  // empty: those from start_ on
  std::int64_t size_;
};

void check(const Dataset& dataset, std::int64_t start, std::int64_t finish, const Order& order) {
  std::int64_t n = dataset.size();
  if (start < 0 || finish < start || finish > n) {
    throw ValueError(
        fmt::format("SubDataset: examples {} to {} of a dataset of {}", start, finish, n));
  }
  if (order.empty()) return;
  if (static_cast<std::int64_t>(order.size()) != n) {
    throw ValueError(
        fmt::format("SubDataset: an order of {} numbers for a dataset of {}", order.size(), n));
  }
  for (std::int64_t i : order) {
    if (i >= 0 && i < n) continue;
    throw ValueError(fmt::format("SubDataset: example {} in the order of a dataset of {}", i, n));
  }
}

std::shared_ptr<const DatasetBody> part(const Dataset& dataset, std::int64_t start,
                                        std::int64_t finish, const Order& order) {
  check(dataset, start, finish, order);
  Order rows;
  if (!order.empty()) rows.assign(order.begin() + start, order.begin() + finish);
  const Columns* columns = dataset.columns();
  if (!columns) {
    return std::make_shared<PartBody>(dataset, start, std::move(rows), finish - start);
  }
  Columns parts;
  for (const Array& column : *columns) {
    parts.push_back(order.empty() ? column[Slice(start, finish)]
                                  : xp::take(column, xp::array(rows, column.device()), 0));
  }
  return TupleDataset(std::move(parts)).body();
}

Order random_order_of(const Dataset& dataset, std::optional<std::uint64_t> seed) {
  if (!seed) {
    seed = static_cast<std::uint64_t>(
        xp::random::randint(0, std::int64_t{1} << 62, {1}, int64, cpu()).item<std::int64_t>());
  }
  Order order(static_cast<std::size_t>(dataset.size()));
  random_order(*seed, 0, dataset.size(), order.data());
  return order;
}

}  // namespace

SubDataset::SubDataset(const Dataset& dataset, std::int64_t start, std::int64_t finish,
                       const Order& order)
    : Dataset(part(dataset, start, finish, order)) {}

Split split_dataset(const Dataset& dataset, std::int64_t split_at, const Order& order) {
  return {SubDataset(dataset, 0, split_at, order),
          SubDataset(dataset, split_at, dataset.size(), order)};
}

Split split_dataset_random(const Dataset& dataset, std::int64_t first_size,
                           std::optional<std::uint64_t> seed) {
  return split_dataset(dataset, first_size, random_order_of(dataset, seed));
}

std::vector<SubDataset> split_dataset_n(const Dataset& dataset, std::int64_t n,
                                        const Order& order) {
  if (n < 1) throw ValueError(fmt::format("split_dataset_n: {} parts", n));
  std::vector<SubDataset> parts;
  std::int64_t size = dataset.size() / n;
  for (std::int64_t i = 0; i < n; ++i) parts.emplace_back(dataset, i * size, (i + 1) * size, order);
  return parts;
}

std::vector<SubDataset> split_dataset_n_random(const Dataset& dataset, std::int64_t n,
                                               std::optional<std::uint64_t> seed) {
  return split_dataset_n(dataset, n, random_order_of(dataset, seed));
}

std::vector<Split> get_cross_validation_datasets(const Dataset& dataset, std::int64_t n_folds,
                                                 const Order& order) {
  std::int64_t n = dataset.size();
  if (n_folds < 1 || n_folds > n) {
    throw ValueError(
        fmt::format("get_cross_validation_datasets: {} folds of {} examples", n_folds, n));
  }
  Order rotated = order;
  if (rotated.empty()) {
    rotated.resize(static_cast<std::size_t>(n));
    std::iota(rotated.begin(), rotated.end(), 0);
  }
  std::vector<Split> folds;
  for (std::int64_t fold = n_folds; fold-- > 0;) {
    std::int64_t test_size = n * (fold + 1) / n_folds - n * fold / n_folds;
    folds.push_back(split_dataset(dataset, n - test_size, rotated));
    std::rotate(rotated.begin(), rotated.end() - test_size, rotated.end());
  }
  return folds;
}

std::vector<Split> get_cross_validation_datasets_random(const Dataset& dataset,
                                                        std::int64_t n_folds,
                                                        std::optional<std::uint64_t> seed) {
  return get_cross_validation_datasets(dataset, n_folds, random_order_of(dataset, seed));
}

}  // namespace rensa::datasets
