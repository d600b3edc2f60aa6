// A full index taken apart by NumPy's rules, and the gathers and scatters made of it.
#include <fmt/format.h>

#include "rensa/array/indexing.h"
#include "rensa/array/internal.h"
#include "rensa/core/checked.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/nonzero/nonzero.h"

namespace rensa::detail {

namespace {

bool is_mask(const Index& entry) { return entry.is_array() && entry.array().dtype() == bool_; }

// Axes of the array that an entry names; an ellipsis takes what is left.
int axes_named(const Index& entry) {
  if (is_mask(entry)) return entry.array().ndim();
  if (entry.is_array()) return 1;
  BasicIndex::Kind kind = entry.basic().kind();
  return kind == BasicIndex::Kind::integer || kind == BasicIndex::Kind::slice;
}

[[noreturn]] void throw_empty(const char* operation, int axis) {
  throw IndexError(fmt::format("{}: axis {} is empty, no index is in range", operation, axis));
}

// Walks the axes of an array while the entries of an index are applied to it.
class FullIndexer {
 public:
  FullIndexer(const char* operation, const Array& array) : operation_(operation), array_(array) {}

  void apply(std::span<const Index> index) {
    int named = 0, ellipses = 0;
    for (const Index& entry : index) {
      if (entry.is_array()) check_array(entry.array());
      named += axes_named(entry);
      ellipses += !entry.is_array() && entry.basic().kind() == BasicIndex::Kind::ellipsis;
    }
    check_index_count(operation_, array_, named, ellipses);
    for (const Index& entry : index) {
      if (entry.is_array()) steer(entry.array());
      else apply_basic(entry.basic(), array_.ndim() - named);
    }
    keep(array_.ndim() - axis_);
    one_mask_ = masks_ == 1 && arrays_ == 1;
  }

  IndexedElements finish() {
    IndexedElements result;
    broadcast_lists(&result);
    Shape shape = steered_shape_, strides = steered_strides_;
    for (int i = 0; i < free_shape_.ndim(); ++i) {
      shape.push_back(free_shape_[i]);
      strides.push_back(free_strides_[i]);
    }
    result.base = new_view(array_, offset_, shape, strides);
    result.axes = axes_;
    result.position = position_;
    result.distinct = one_mask_;
    return result;
  }

 private:
  std::int64_t extent() const { return array_.shape()[axis_]; }
  std::int64_t stride() const { return array_.strides()[axis_]; }

  void check_array(const Array& entry) const {
    check_defined(operation_, entry);
    check_same_device(operation_, array_, entry);
    if (entry.dtype() != bool_) check_integer(operation_, entry);
  }

  void apply_basic(const BasicIndex& entry, int left) {
    switch (entry.kind()) {
      case BasicIndex::Kind::integer: return take(entry.integer());
      case BasicIndex::Kind::slice: {
        Slice::Range range = entry.slice().over(extent());
        if (range.count > 0) offset_ += range.start * stride();
        push_free(range.count, wrapping_multiply(range.step, stride()));
        ++axis_;
        return;
      }
      case BasicIndex::Kind::ellipsis: separate(); return keep(left);
      case BasicIndex::Kind::newaxis: push_free(1, 0);
    }
  }

  // An integer beside index arrays is one of them as to where the result's axes go.
  void take(std::int64_t i) {
    note_steered();
    offset_ += normalize_index(operation_, i, array_, axis_) * stride();
    ++axis_;
  }

  void steer(const Array& entry) {
    note_steered();
    ++arrays_;
    if (entry.dtype() != bool_) {
      if (entry.ndim() == 0 && extent() == 0) throw_empty(operation_, axis_);
      lists_.push_back(entry);
      push_steered(extent(), stride());
      ++axis_;
      return;
    }
    ++masks_;
    if (entry.ndim() == 0) {  // true: an axis of extent 1, false: one of extent 0
      lists_.push_back(new_array({entry.item<bool>() ? 1 : 0}, int64, array_.device()));
      stretchers_.push_back(static_cast<int>(lists_.size()) - 1);
      return;
    }
    steer_by_mask(entry);
  }

  void steer_by_mask(const Array& mask) {
    bool fits = true, merges = true;
    for (int i = 0; i < mask.ndim(); ++i) {
      int axis = axis_ + i;
      fits &= mask.shape()[i] == array_.shape()[axis];
      if (i > 0) {
        merges &= array_.strides()[axis - 1] == array_.strides()[axis] * array_.shape()[axis];
      }
    }
    if (!fits) {
      throw IndexError(fmt::format("{}: the mask {} does not have the extents of {} from axis {}",
                                   operation_, mask.view().describe(), array_.view().describe(),
                                   axis_));
    }
    // Axes that lie behind one another are indexed as one.
    Array coordinates = true_coordinates(operation_, mask, merges);
    if (merges) {
      lists_.push_back(coordinates[0]);
      push_steered(mask.size(), array_.strides()[axis_ + mask.ndim() - 1]);
      axis_ += mask.ndim();
      return;
    }
    for (int i = 0; i < mask.ndim(); ++i, ++axis_) {
      lists_.push_back(coordinates[i]);
      push_steered(extent(), stride());
    }
  }

  void keep(int count) {
    for (; count > 0; --count, ++axis_) push_free(extent(), stride());
  }
  void push_free(std::int64_t n, std::int64_t stride) {
    separate();
    free_shape_.push_back(n);
    free_strides_.push_back(stride);
  }
  void push_steered(std::int64_t n, std::int64_t stride) {
    axes_.push_back(axis_);
    steered_shape_.push_back(n);
    steered_strides_.push_back(stride);
  }

  // Where the list's axes go: to where the index arrays stand if these stand side by side, else to
  // the front.
  void separate() {
    if (side_ == Side::within) side_ = Side::behind;
  }
  void note_steered() {
    if (side_ == Side::before) position_ = free_shape_.ndim();
    if (side_ == Side::behind) position_ = 0;
    side_ = side_ == Side::before || side_ == Side::within ? Side::within : Side::scattered;
  }

  void broadcast_lists(IndexedElements* result) const {
    for (const Array& list : lists_) {
      try {
        result->list_shape = broadcast_shapes(operation_, result->list_shape, list.shape());
      } catch (const ShapeError&) {
        throw IndexError(fmt::format("{}: the index arrays of shapes {} and {} do not broadcast",
                                     operation_, result->list_shape.str(), list.shape().str()));
      }
    }
    std::size_t stretcher = 0;
    for (std::size_t i = 0; i < lists_.size(); ++i) {
      if (stretcher < stretchers_.size() && stretchers_[stretcher] == static_cast<int>(i)) {
        ++stretcher;
        continue;
      }
      result->indices.push_back(lists_[i].broadcast_to(result->list_shape));
    }
  }

  const char* operation_;
  const Array& array_;
  int axis_ = 0;
  std::int64_t offset_ = 0;
  Shape free_shape_, free_strides_, steered_shape_, steered_strides_;
  std::vector<Array> lists_;
  std::vector<int> stretchers_;  // those of lists_ that steer no axis: 0-d masks
  std::vector<int> axes_;
  int arrays_ = 0, masks_ = 0;
  bool one_mask_ = false;
  enum class Side { before, within, behind, scattered } side_ = Side::before;
  int position_ = 0;
};

// The axes of what is listed with the list's in front.
Array list_first(const Array& listed, const IndexedElements& elements) {
  if (elements.position == 0) return listed;
  int lists = elements.list_shape.ndim();
  Shape axes;
  for (int i = 0; i < lists; ++i) axes.push_back(elements.position + i);
  for (int i = 0; i < listed.ndim(); ++i) {
    if (i < elements.position || i >= elements.position + lists) axes.push_back(i);
  }
  return listed.transpose(axes);
}

void check_extents(const char* operation, const IndexedElements& elements) {
  if (elements.list_shape.total() == 0) return;
  for (std::size_t i = 0; i < elements.indices.size(); ++i) {
    if (elements.base.shape()[static_cast<int>(i)] > 0) continue;
    throw_empty(operation, elements.axes[i]);
  }
}

void set_indices(const IndexedElements& elements, operations::IndexedBy* by) {
  by->count = static_cast<int>(elements.indices.size());
  for (int i = 0; i < by->count; ++i) {
    by->indices[i] = elements.indices[static_cast<std::size_t>(i)].operand();
    by->axes[i] = elements.axes[static_cast<std::size_t>(i)];
  }
  by->list_shape = elements.list_shape;
  by->along = elements.along;
  by->mode = elements.mode;
}

// `source` as an array of `shape`, of leading axes of extent 1 as many as NumPy lets fall away.
Array fitted(const char* operation, const Array& source, const Shape& shape) {
  Array in = source;
  while (in.ndim() > shape.ndim() && in.shape()[0] == 1) in = in.squeeze(0);
  int added = shape.ndim() - in.ndim();
  bool fits = added >= 0;
  for (int i = 0; i < in.ndim() && fits; ++i) {
    fits = in.shape()[i] == shape[added + i] || in.shape()[i] == 1;
  }
  if (fits) return in.broadcast_to(shape);
  throw ShapeError(fmt::format("{}: {} does not broadcast to the shape {} of the indexed elements",
                               operation, source.view().describe(), shape.str()));
}

}  // namespace

Shape IndexedElements::result_shape() const {
  if (along >= 0) return list_shape;
  Shape shape;
  for (int i = static_cast<int>(indices.size()); i < base.ndim(); ++i) {
    shape.push_back(base.shape()[i]);
  }
  for (int i = 0; i < list_shape.ndim(); ++i) shape.insert(position + i, list_shape[i]);
  return shape;
}

void check_integer(const char* operation, const Array& index) {
  check_defined(operation, index);
  char kind = dtype_kind(index.dtype());
  if (kind == 'i' || kind == 'u') return;
  throw DtypeError(fmt::format("{}: {} is not an index: it has to be of an integer dtype",
                               operation, index.view().describe()));
}

std::int64_t normalize_index(const char* operation, std::int64_t i, const Array& a, int axis) {
  std::int64_t extent = a.shape()[axis];
  if (i < -extent || i >= extent) {
    throw IndexError(fmt::format("{}: index {} is out of bounds for axis {} with size {}: {}",
                                 operation, i, axis, extent, a.view().describe()));
  }
  return i < 0 ? i + extent : i;
}

void check_index_count(const char* operation, const Array& a, int count, int ellipses) {
  if (count > a.ndim()) {
    throw IndexError(
        fmt::format("{}: too many indices: the array is {}-dimensional, but {} were indexed: {}",
                    operation, a.ndim(), count, a.view().describe()));
  }
  if (ellipses > 1) {
    throw IndexError(fmt::format("{}: an index can have only one ellipsis", operation));
  }
}

IndexedElements apply_index(const char* operation, const Array& a, std::span<const Index> index) {
  check_defined(operation, a);
  FullIndexer indexer(operation, a);
  indexer.apply(index);
  return indexer.finish();
}

IndexedElements apply_take(const char* operation, const Array& a, const Array& indices, int axis,
                           IndexMode mode) {
  check_defined(operation, a);
  check_integer(operation, indices);
  check_same_device(operation, a, indices);
  if (a.ndim() == 0) {
    throw IndexError(fmt::format("{}: {} has no axis to index", operation, a.view().describe()));
  }
  axis = normalize_axis(operation, axis, a.ndim());
  Shape order = {axis};
  for (int i = 0; i < a.ndim(); ++i) {
    if (i != axis) order.push_back(i);
  }
  IndexedElements result;
  result.base = axis == 0 ? a : a.transpose(order);
  result.indices = {indices};
  result.axes = {axis};
  result.list_shape = indices.shape();
  result.position = axis;
  result.mode = mode;
  return result;
}

IndexedElements apply_along_axis(const char* operation, const Array& a, const Array& indices,
                                 int axis) {
  check_defined(operation, a);
  check_integer(operation, indices);
  check_same_device(operation, a, indices);
  axis = normalize_axis(operation, axis, a.ndim());
  if (indices.ndim() != a.ndim()) {
    throw ShapeError(fmt::format("{}: {} and the indices {} differ in their number of axes",
                                 operation, a.view().describe(), indices.view().describe()));
  }
  Shape others = a.shape(), list = indices.shape();
  others[axis] = list[axis] = 1;
  Shape shape = broadcast_shapes(operation, others, list);
  Shape stretched = shape;
  stretched[axis] = a.shape()[axis];
  shape[axis] = indices.shape()[axis];
  Shape order = {axis};
  for (int i = 0; i < a.ndim(); ++i) {
    if (i != axis) order.push_back(i);
  }
  IndexedElements result;
  result.base = a.broadcast_to(stretched).transpose(order);
  result.indices = {indices.broadcast_to(shape)};
  result.axes = {axis};
  result.list_shape = shape;
  result.along = axis;
  return result;
}

Array gather(const char* operation, const IndexedElements& elements) {
  check_extents(operation, elements);
  Array out = new_array(elements.result_shape(), elements.base.dtype(), elements.base.device());
  if (elements.list_shape.total() == 0) return out;
  Array listed = list_first(out, elements);
  operations::Gather op(operation);
  set_indices(elements, &op.by);
  op.in = elements.base.operand();
  op.out = listed.operand();
  launch(op);
  return out;
}

void scatter(const char* operation, operations::ScatterMode mode, const IndexedElements& elements,
             const Array& source) {
  check_defined(operation, source);
  // With `along`, what stands at several places does so by the broadcast with the indices.
  if (elements.along < 0) check_writable(operation, elements.base);
  check_same_device(operation, elements.base, source);
  check_same_kind(operation, source.dtype(), elements.base);
  check_extents(operation, elements);
  const StoragePtr& storage = elements.base.storage();
  Array in =
      source.dtype() == elements.base.dtype() ? source : source.astype(elements.base.dtype());
  if (in.storage() == storage) in = in.copy();
  in = fitted(operation, in, elements.result_shape());
  if (elements.list_shape.total() == 0) return;
  IndexedElements apart = elements;
  for (Array& index : apart.indices) {
    if (index.storage() == storage) index = index.copy();
  }
  Array listed = list_first(in, apart);
  operations::Scatter op(operation, mode);
  set_indices(apart, &op.by);
  op.distinct = apart.distinct;
  op.in = listed.operand();
  op.out = apart.base.operand();
  launch(op);
}

Array filled_scalar(Scalar value, Dtype dtype, Device device) {
  Array number = new_array({}, dtype, device);
  number.fill(value);
  return number;
}

namespace {

// The counts before each tile of `a`, and in `number` that of all.
Array count_true(const char* operation, const Array& a, std::int64_t* number) {
  *number = 0;
  if (a.size() == 0) return {};
  Array offsets = new_array({(a.size() - 1) / operations::kTrueTile + 2}, int64, a.device());
  operations::CountTrue count(operation);
  count.in = a.operand();
  count.offsets = offsets.operand();
  launch(count);
  *number = offsets[-1].item<std::int64_t>();
  return offsets;
}

}  // namespace

Array true_elements(const char* operation, const Array& a, const Array& mask) {
  std::int64_t number;
  Array offsets = count_true(operation, mask, &number);
  Array out = new_array({number}, a.dtype(), a.device());
  if (number == 0) return out;
  Array from = a.ascontiguous();
  operations::FindTrue find(operation);
  find.in = mask.operand();
  find.offsets = offsets.operand();
  find.from = from.operand();
  find.out = out.operand();
  launch(find);
  return out;
}

Array true_coordinates(const char* operation, const Array& a, bool flat, bool by_row) {
  std::int64_t columns = flat ? 1 : a.ndim(), number;
  Array offsets = count_true(operation, a, &number);
  Array out = by_row ? new_array({number, columns}, int64, a.device())
                     : new_array({columns, number}, int64, a.device()).transpose();
  if (out.size() > 0) {
    operations::FindTrue find(operation);
    find.in = a.operand();
    find.offsets = offsets.operand();
    find.out = out.operand();
    launch(find);
  }
  return out.transpose();
}

}  // namespace rensa::detail
