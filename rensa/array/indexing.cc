// Indexing: views by basic indexes, gathers and scatters by index arrays and masks.
#include <fmt/format.h>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/device/operations.h"

namespace rensa {

using detail::check_defined;

namespace {

// Walks the axes of an array while the entries of an index are applied to it.
class Indexer {
 public:
  explicit Indexer(const Array& array) : array_(array) {}

  void apply(const BasicIndex& index, int axes_named) {
    switch (index.kind()) {
      case BasicIndex::Kind::integer: return take(index.integer());
      case BasicIndex::Kind::slice: return slice(index.slice());
      case BasicIndex::Kind::ellipsis: return keep(array_.ndim() - axes_named);
      case BasicIndex::Kind::newaxis: shape_.push_back(1); strides_.push_back(0);
    }
  }
  Array finish() {
    keep(array_.ndim() - axis_);
    return detail::new_view(array_, offset_, shape_, strides_);
  }

 private:
  std::int64_t extent() const { return array_.shape()[axis_]; }
  std::int64_t stride() const { return array_.strides()[axis_]; }

  void take(std::int64_t i) {
    if (i < -extent() || i >= extent()) {
      throw IndexError(fmt::format("getitem: index {} is out of range for axis {} of {}", i, axis_,
                                   array_.view().describe()));
    }
    offset_ += (i < 0 ? i + extent() : i) * stride();
    ++axis_;
  }
  void slice(const Slice& s) {
    Slice::Range range = s.over(extent());
    if (range.count > 0) offset_ += range.start * stride();
    shape_.push_back(range.count);
    strides_.push_back(range.step * stride());
    ++axis_;
  }
  void keep(int count) {
    for (; count > 0; --count, ++axis_) {
      shape_.push_back(extent());
      strides_.push_back(stride());
    }
  }

  const Array& array_;
  int axis_ = 0;
  std::int64_t offset_ = 0;
  Shape shape_, strides_;
};

Array basic_index(const Array& a, const BasicIndex* begin, const BasicIndex* end) {
  check_defined("getitem", a);
  int named = 0, ellipses = 0;
  for (const BasicIndex* i = begin; i != end; ++i) {
    named += i->kind() == BasicIndex::Kind::integer || i->kind() == BasicIndex::Kind::slice;
    ellipses += i->kind() == BasicIndex::Kind::ellipsis;
  }
  if (named > a.ndim()) {
    throw IndexError(
        fmt::format("getitem: {} indices are too many for {}", named, a.view().describe()));
  }
  if (ellipses > 1) throw IndexError("getitem: an index can have only one ellipsis");
  Indexer indexer(a);
  for (const BasicIndex* i = begin; i != end; ++i) indexer.apply(*i, named);
  return indexer.finish();
}

bool is_integer(Dtype d) { return dtype_kind(d) == 'i' || dtype_kind(d) == 'u'; }

void check_row_index(const char* operation, const Array& base, const Array& index) {
  check_defined(operation, base);
  check_defined(operation, index);
  if (!is_integer(index.dtype())) {
    throw DtypeError(fmt::format("{}: {} is not an index: it has to be of an integer dtype",
                                 operation, index.view().describe()));
  }
  if (base.ndim() == 0) {
    throw IndexError(fmt::format("{}: {} has no axis to index", operation, base.view().describe()));
  }
  check_same_device(operation, base, index);
}

// index.shape + base.shape[1:]
Shape rows_shape(const Array& base, const Array& index) {
  Shape shape = index.shape();
  for (int i = 1; i < base.ndim(); ++i) shape.push_back(base.shape()[i]);
  return shape;
}

void put_rows(bool add, const Array& base, const Array& index, const Array& source) {
  const char* name = add ? "scatter_add" : "setitem";
  check_row_index(name, base, index);
  check_defined(name, source);
  detail::check_writable(name, base);
  check_same_device(name, base, source);
  detail::check_same_kind(name, source.dtype(), base);
  Shape shape = rows_shape(base, index);
  Array in = source.broadcast_to(shape).astype(base.dtype(), false).ascontiguous();
  if (in.storage() == base.storage()) in = in.copy();
  if (in.size() == 0) return;
  PutRows op(add);
  Array indices = index.ascontiguous();
  op.in = in.operand();
  op.indices = indices.operand();
  op.out = base.operand();
  launch(op);
}

// A mask of base's shape, or of its leading axes: with axes of extent 1 it broadcasts.
Array aligned_mask(const Array& base, const Array& mask) {
  check_defined("setitem", base);
  check_same_device("setitem", base, mask);
  bool fits = mask.ndim() <= base.ndim();
  for (int i = 0; i < mask.ndim() && fits; ++i) fits = mask.shape()[i] == base.shape()[i];
  if (!fits) {
    throw IndexError(fmt::format("setitem: the mask {} does not have the shape of {}",
                                 mask.view().describe(), base.view().describe()));
  }
  Shape shape = mask.shape();
  while (shape.ndim() < base.ndim()) shape.push_back(1);
  return mask.reshape(shape);
}

}  // namespace

View Array::operator[](BasicIndex index) const {
  return View(basic_index(*this, &index, &index + 1));
}

View Array::operator[](std::initializer_list<BasicIndex> index) const {
  return View(basic_index(*this, index.begin(), index.end()));
}

Selection Array::operator[](const Array& index) const { return Selection(*this, index); }

Array Selection::gather() const {
  check_defined("getitem", index_);
  if (index_.dtype() == bool_) {
    throw NotImplementedError(fmt::format(
        "getitem: reading {} through a boolean mask, whose count only the device knows; use "
        "xp::where, or assign through it",
        base_.view().describe()));
  }
  return xp::take(base_, index_);
}

void Selection::operator=(const Array& source) && {
  check_defined("setitem", index_);
  if (index_.dtype() != bool_) return put_rows(false, base_, index_, source);
  Array mask = aligned_mask(base_, index_);
  check_defined("setitem", source);
  Array value = source.size() == 1 ? source.reshape({}) : source;
  if (value.ndim() > base_.ndim() - index_.ndim()) {
    throw NotImplementedError(fmt::format(
        "setitem: {} through a mask of {} dimensions: a value for each element of the mask is not "
        "taken; use xp::where",
        source.view().describe(), index_.ndim()));
  }
  detail::elementwise("setitem", Ufunc::where, {mask, value, base_}, &base_);
}

void Selection::operator=(Scalar value) && {
  check_defined("setitem", index_);
  if (index_.dtype() == bool_) {
    detail::elementwise("setitem", Ufunc::where, {aligned_mask(base_, index_), value, base_},
                        &base_);
    return;
  }
  check_defined("setitem", base_);
  put_rows(false, base_, index_,
           xp::full({}, value, value.result_type(base_.dtype()), base_.device()));
}

namespace xp {

Array take(const Array& a, const Array& indices) {
  check_row_index("getitem", a, indices);
  Shape shape = rows_shape(a, indices);
  if (a.shape()[0] == 0 && indices.size() > 0) {
    throw IndexError(
        fmt::format("getitem: axis 0 of {} is empty, no index is in range", a.view().describe()));
  }
  Array out = rensa::detail::new_array(shape, a.dtype(), a.device());
  if (out.size() == 0) return out;
  Array index = indices.ascontiguous();
  TakeRows op;
  op.in = a.operand();
  op.indices = index.operand();
  op.out = out.operand();
  launch(op);
  return out;
}

void scatter_add(const Array& a, const Array& indices, const Array& values) {
  put_rows(true, a, indices, values);
}

}  // namespace xp

}  // namespace rensa
