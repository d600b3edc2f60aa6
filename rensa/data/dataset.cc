// The dataset types: rows of arrays, and a function of the index.
#include "rensa/data/dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "rensa/core/error.h"

namespace rensa {

namespace {

using Example = std::function<Columns(std::int64_t, std::uint64_t seed)>;

class FunctionBody final : public DatasetBody {
 public:
  FunctionBody(std::int64_t size, Example example) : size_(size), example_(std::move(example)) {
    if (size < 0) throw ValueError(fmt::format("Dataset: a size of {}", size));
  }
  std::int64_t size() const override { return size_; }
  Columns example(std::int64_t i, std::uint64_t seed) const override { return example_(i, seed); }

 private:
  std::int64_t size_;
  Example example_;
};

class ArrayBody final : public DatasetBody {
 public:
  explicit ArrayBody(Columns columns) : columns_(std::move(columns)) {}
  std::int64_t size() const override { return columns_[0].shape()[0]; }
  Columns example(std::int64_t i, std::uint64_t) const override {
    Columns row;
    for (const Array& column : columns_) row.push_back(column[i]);
    return row;
  }
  const Columns* columns() const override { return &columns_; }

 private:
  Columns columns_;
};

std::shared_ptr<const DatasetBody> make_array_body(Columns columns) {
  if (columns.empty()) throw ValueError("TupleDataset: give at least one array");
  for (const Array& column : columns) {
    if (column.ndim() == 0) throw ValueError("TupleDataset: a 0-d array has no examples");
    if (column.shape()[0] != columns[0].shape()[0]) {
      throw ShapeError(fmt::format("TupleDataset: arrays of different lengths, {} and {}",
                                   columns[0].view().describe(), column.view().describe()));
    }
    check_same_device("TupleDataset", columns[0], column);
  }
  return std::make_shared<ArrayBody>(std::move(columns));
}

/// Several datasets behind one another.
class ChainBody final : public DatasetBody {
 public:
  explicit ChainBody(std::vector<Dataset> datasets) : datasets_(std::move(datasets)) {
    for (const Dataset& dataset : datasets_) ends_.push_back(size_ += dataset.size());
  }
  std::int64_t size() const override { return size_; }
  Columns example(std::int64_t i, std::uint64_t seed) const override {
    auto which = static_cast<std::size_t>(std::ranges::upper_bound(ends_, i) - ends_.begin());
    return datasets_[which].example(i - (which == 0 ? 0 : ends_[which - 1]), seed);
  }

 private:
  std::vector<Dataset> datasets_;
  std::vector<std::int64_t> ends_;
  std::int64_t size_ = 0;
};

std::vector<std::string> names_of(const std::vector<std::pair<std::string, Array>>& columns) {
  std::vector<std::string> names;
  for (const auto& [name, column] : columns) {
    if (std::ranges::count(names, name) != 0) {
      throw ValueError(fmt::format("DictDataset: two columns \"{}\"", name));
    }
    names.push_back(name);
  }
  return names;
}

Columns values_of(const std::vector<std::pair<std::string, Array>>& columns) {
  Columns values;
  for (const auto& [name, column] : columns) values.push_back(column);
  return values;
}

}  // namespace

Dataset::Dataset(std::int64_t size, std::function<Columns(std::int64_t)> example)
    : body_(std::make_shared<FunctionBody>(
          size,
          [example = std::move(example)](std::int64_t i, std::uint64_t) { return example(i); })) {}

Dataset::Dataset(std::int64_t size, std::function<Columns(std::int64_t, RandomStream&)> example)
    : body_(std::make_shared<FunctionBody>(
          size, [example = std::move(example)](std::int64_t i, std::uint64_t seed) {
            RandomStream random(seed);
            return example(i, random);
          })) {}

Columns Dataset::example(std::int64_t i, std::uint64_t seed) const {
  if (i < 0 || i >= size()) {
    throw IndexError(fmt::format("Dataset: index {} is out of bounds for {} examples", i, size()));
  }
  return body_->example(i, seed);
}

namespace datasets {

TupleDataset::TupleDataset(Columns columns) : Dataset(make_array_body(std::move(columns))) {}

TupleDataset TupleDataset::to(Device device) const {
  Columns moved;
  for (const Array& column : *columns()) moved.push_back(column.to(device));
  return TupleDataset(std::move(moved));
}

DictDataset::DictDataset(std::vector<std::pair<std::string, Array>> columns)
    : TupleDataset(values_of(columns)), names_(names_of(columns)) {}

const Array& DictDataset::column(const std::string& name) const {
  auto found = std::ranges::find(names_, name);
  if (found == names_.end()) {
    throw ValueError(
        fmt::format("DictDataset: no column \"{}\"; there are: {}", name, fmt::join(names_, ", ")));
  }
  return (*columns())[static_cast<std::size_t>(found - names_.begin())];
}

TransformDataset::TransformDataset(Dataset dataset,
                                   std::function<Columns(const Columns&)> transform)
    : Dataset(std::make_shared<FunctionBody>(
          dataset.size(),
          [dataset, transform = std::move(transform)](std::int64_t i, std::uint64_t seed) {
            return transform(dataset.example(i, seed));
          })) {}

TransformDataset::TransformDataset(Dataset dataset,
                                   std::function<Columns(const Columns&, RandomStream&)> transform)
    : Dataset(std::make_shared<FunctionBody>(
          dataset.size(),
          [dataset, transform = std::move(transform)](std::int64_t i, std::uint64_t seed) {
            RandomStream random(seed);
            // Another seed for what is below: one stream twice would give the same numbers.
            return transform(dataset.example(i, derived_seed(seed, 0, 0)), random);
          })) {}

ConcatenatedDataset::ConcatenatedDataset(std::vector<Dataset> datasets)
    : Dataset(std::make_shared<ChainBody>(std::move(datasets))) {}

}  // namespace datasets
}  // namespace rensa
