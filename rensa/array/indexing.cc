// Indexing: views by basic indexes, selections by index arrays and masks.
#include "rensa/array/indexing.h"

#include <fmt/format.h>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"

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

// The mask with axes of extent 1 for the others of `base`, over which it broadcasts.
Array aligned_mask(const Array& base, const Array& mask) {
  bool fits = mask.ndim() <= base.ndim();
  for (int i = 0; i < mask.ndim() && fits; ++i) fits = mask.shape()[i] == base.shape()[i];
  if (!fits) {
    throw IndexError(fmt::format("setitem: the mask {} does not have the shape of {}",
                                 mask.view().describe(), base.view().describe()));
  }
  check_same_device("setitem", base, mask);
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

Selection Array::operator[](const Array& index) const { return Selection(*this, {Index(index)}); }

Index::Index(const Selection& selection) : is_array_(true), array_(selection.gather()) {}

Array Selection::gather() const {
  check_defined("getitem", base_);
  // One mask over all elements: nobody needs to know their positions.
  if (index_.size() == 1 && index_[0].is_array() && index_[0].array().defined()) {
    const Array& mask = index_[0].array();
    if (mask.dtype() == bool_ && mask.ndim() > 0 && mask.shape() == base_.shape()) {
      check_same_device("getitem", base_, mask);
      return detail::true_elements("getitem", base_, mask);
    }
  }
  return detail::gather("getitem", detail::apply_index("getitem", base_, index_));
}

// One mask over the first axes: what is the same for all elements is written without counting them.
bool Selection::is_leading_mask() const {
  check_defined("setitem", base_);
  return index_.size() == 1 && index_[0].is_array() && index_[0].array().defined() &&
         index_[0].array().dtype() == bool_;
}

void Selection::operator=(const Array& source) && {
  check_defined("setitem", source);
  if (is_leading_mask()) {
    Array value = source.size() == 1 ? source.reshape({}) : source;
    if (value.ndim() <= base_.ndim() - index_[0].array().ndim()) {
      Array mask = aligned_mask(base_, index_[0].array());
      detail::elementwise("setitem", Ufunc::where, {mask, value, base_}, &base_);
      return;
    }
  }
  detail::scatter("setitem", ScatterMode::assign, detail::apply_index("setitem", base_, index_),
                  source);
}

void Selection::operator=(Scalar value) && {
  if (is_leading_mask()) {
    Array mask = aligned_mask(base_, index_[0].array());
    detail::check_in_range("setitem", value, base_.dtype());
    detail::elementwise("setitem", Ufunc::where, {mask, value, base_}, &base_);
    return;
  }
  check_defined("setitem", base_);
  detail::scatter("setitem", ScatterMode::assign, detail::apply_index("setitem", base_, index_),
                  detail::filled_scalar(value, base_.dtype(), base_.device()));
}

template <class B, class F> void Selection::update(const B& b, F in_place) {
  if constexpr (std::same_as<B, Scalar>) {
    if (is_leading_mask()) {
      Array mask = aligned_mask(base_, index_[0].array()), changed = base_.copy();
      in_place(changed, b);
      detail::elementwise("setitem", Ufunc::where, {mask, changed, base_}, &base_);
      return;
    }
  }
  detail::IndexedElements elements = detail::apply_index("setitem", base_, index_);
  Array changed = detail::gather("getitem", elements);
  in_place(changed, b);
  detail::scatter("setitem", ScatterMode::assign, elements, changed);
}

#define RENSA_SELECTION_INPLACE(symbol)                            \
  void Selection::operator symbol(const Array& b)&& {              \
    update(b, [](const Array& x, const Array& y) { x symbol y; }); \
  }                                                                \
  void Selection::operator symbol(Scalar b)&& {                    \
    update(b, [](const Array& x, Scalar y) { x symbol y; });       \
  }
RENSA_SELECTION_INPLACE(+=)
RENSA_SELECTION_INPLACE(-=)
RENSA_SELECTION_INPLACE(*=)
RENSA_SELECTION_INPLACE(/=)
RENSA_SELECTION_INPLACE(%=)
RENSA_SELECTION_INPLACE(&=)
RENSA_SELECTION_INPLACE(|=)
RENSA_SELECTION_INPLACE(^=)
#undef RENSA_SELECTION_INPLACE

}  // namespace rensa
