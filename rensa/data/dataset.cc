// The dataset types: rows of arrays, and a function of the index.
#include "rensa/data/dataset.h"

#include <fmt/format.h>

#include "rensa/core/error.h"

namespace rensa {

namespace {

class FunctionBody final : public DatasetBody {
 public:
  FunctionBody(std::int64_t size, std::function<Columns(std::int64_t)> example)
      : size_(size), example_(std::move(example)) {}
  std::int64_t size() const override { return size_; }
  Columns example(std::int64_t i) const override { return example_(i); }

 private:
  std::int64_t size_;
  std::function<Columns(std::int64_t)> example_;
};

class ArrayBody final : public DatasetBody {
 public:
  explicit ArrayBody(Columns columns) : columns_(std::move(columns)) {}
  std::int64_t size() const override { return columns_[0].shape()[0]; }
  Columns example(std::int64_t i) const override {
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

}  // namespace

Dataset::Dataset(std::int64_t size, std::function<Columns(std::int64_t)> example) {
  if (size < 0) throw ValueError(fmt::format("Dataset: a size of {}", size));
  body_ = std::make_shared<FunctionBody>(size, std::move(example));
}

Columns Dataset::operator[](std::int64_t i) const {
  if (i < 0 || i >= size()) {
    throw IndexError(fmt::format("Dataset: index {} is out of bounds for {} examples", i, size()));
  }
  return body_->example(i);
}

namespace datasets {

TupleDataset::TupleDataset(Columns columns) : Dataset(make_array_body(std::move(columns))) {}

TupleDataset TupleDataset::to(Device device) const {
  Columns moved;
  for (const Array& column : *columns()) moved.push_back(column.to(device));
  return TupleDataset(std::move(moved));
}

}  // namespace datasets
}  // namespace rensa
