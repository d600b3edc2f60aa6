// Indexing: views by basic indexes, selections by index arrays and masks.
#include "rensa/array/indexing.h"

#include <fmt/format.h>

#include <exception>

#include "rensa/array/internal.h"
#include "rensa/core/checked.h"
#include "rensa/core/error.h"

namespace rensa {

using detail::check_defined;

namespace {

using operations::ScatterMode;

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
  View finish() {
    keep(array_.ndim() - axis_);
    return View(array_, array_.view().data + offset_, shape_, strides_);
  }

 private:
  std::int64_t extent() const { return array_.shape()[axis_]; }
  std::int64_t stride() const { return array_.strides()[axis_]; }

  void take(std::int64_t i) {
    offset_ += detail::normalize_index("getitem", i, array_, axis_) * stride();
    ++axis_;
  }
  void slice(const Slice& s) {
    Slice::Range range = s.over(extent());
    if (range.count > 0) offset_ += range.start * stride();
    shape_.push_back(range.count);
    strides_.push_back(wrapping_multiply(range.step, stride()));
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

View basic_index(const Array& a, const BasicIndex* begin, const BasicIndex* end) {
  check_defined("getitem", a);
  int named = 0, ellipses = 0;
  for (const BasicIndex* i = begin; i != end; ++i) {
    named += i->kind() == BasicIndex::Kind::integer || i->kind() == BasicIndex::Kind::slice;
    ellipses += i->kind() == BasicIndex::Kind::ellipsis;
  }
  detail::check_index_count("getitem", a, named, ellipses);
  Indexer indexer(a);
  for (const BasicIndex* i = begin; i != end; ++i) indexer.apply(*i, named);
  return indexer.finish();
}

Array basic_view(const Array& a, std::span<const Index> index) {
  std::vector<BasicIndex> entries;
  for (const Index& entry : index) entries.push_back(entry.basic());
  return basic_index(a, entries.data(), entries.data() + entries.size());
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

View Array::operator[](const BasicIndex& index) const {
  return basic_index(*this, &index, &index + 1);
}

View Array::operator[](std::initializer_list<BasicIndex> index) const {
  return basic_index(*this, index.begin(), index.end());
}

View Array::operator[](std::span<const BasicIndex> index) const {
  return basic_index(*this, index.data(), index.data() + index.size());
}

Selection Array::operator[](const Selector& index) const { return Selection(*this, index); }

// --- selections: read ---
// A Selector is an argument of operator[], so it lives until the end of the whole expression,
// longer than a Selection that is a temporary in it. One that is still there was given a name.
Selection::Selection(const Array& base, const Selector& selector)
    : array_(base), selector_(&selector) {
  selector.begin_expression(this);
}

void Selector::begin_expression(const Selection* selection) const {
  selection_ = selection;
  exceptions_ = std::uncaught_exceptions();
}

void Selector::end_expression() {
  // Where the expression ends by an exception, the selection goes with it.
  if (std::uncaught_exceptions() > exceptions_) selection_->selector_ = nullptr;
  else selection_->gather();
}

void Selection::gather() const {
  std::span<const Index> index = selector_->entries();
  Array base = std::move(array_);
  array_ = Array();
  selector_->selection_ = nullptr;
  selector_ = nullptr;
  check_defined("getitem", base);
  bool basic = true;
  for (const Index& entry : index) basic &= !entry.is_array();
  if (basic) {
    array_ = basic_view(base, index);
    return;
  }
  // One mask over all elements: nobody needs to know their positions.
  if (index.size() == 1 && index[0].array().defined()) {
    const Array& mask = index[0].array();
    if (mask.dtype() == bool_ && mask.ndim() > 0 && mask.shape() == base.shape()) {
      check_same_device("getitem", base, mask);
      array_ = detail::true_elements("getitem", base, mask);
      return;
    }
  }
  array_ = detail::gather("getitem", detail::apply_index("getitem", base, index));
}

Array Selection::operator[](const BasicIndex& index) const { return self()[index]; }
Array Selection::operator[](std::initializer_list<BasicIndex> index) const {
  return self()[std::span<const BasicIndex>(index.begin(), index.size())];
}
Array Selection::operator[](std::span<const BasicIndex> index) const { return self()[index]; }
Array Selection::operator[](const Selector& index) const { return self()[index]; }

// --- selections: written ---
const Array& Selection::base() const {
  if (!selector_) {
    throw ValueError(
        "setitem: this selection has been read, so that it is a copy; assign to a[index] itself");
  }
  check_defined("setitem", array_);
  return array_;
}

// One mask over the first axes: what is the same for all elements is written without counting them.
bool Selection::is_leading_mask() const {
  std::span<const Index> index = selector_->entries();
  return index.size() == 1 && index[0].is_array() && index[0].array().defined() &&
         index[0].array().dtype() == bool_;
}

void Selection::operator=(const Array& source) && {
  const Array& target = base();
  check_defined("setitem", source);
  std::span<const Index> index = selector_->entries();
  if (is_leading_mask()) {
    Array value = source.size() == 1 ? source.reshape({}) : source;
    if (value.ndim() <= target.ndim() - index[0].array().ndim()) {
      Array mask = aligned_mask(target, index[0].array());
      detail::elementwise("setitem", ufunc::where, {mask, value, target}, &target);
      return;
    }
  }
  detail::scatter("setitem", ScatterMode::assign, detail::apply_index("setitem", target, index),
                  source);
}

void Selection::operator=(Scalar value) && {
  const Array& target = base();
  std::span<const Index> index = selector_->entries();
  if (is_leading_mask()) {
    Array mask = aligned_mask(target, index[0].array());
    detail::check_in_range("setitem", value, target.dtype());
    detail::elementwise("setitem", ufunc::where, {mask, value, target}, &target);
    return;
  }
  detail::scatter("setitem", ScatterMode::assign, detail::apply_index("setitem", target, index),
                  detail::filled_scalar(value, target.dtype(), target.device()));
}

template <class B, class F> void Selection::update(const B& b, F in_place) {
  const Array& target = base();
  std::span<const Index> index = selector_->entries();
  if constexpr (std::same_as<B, Scalar>) {
    if (is_leading_mask()) {
      Array mask = aligned_mask(target, index[0].array()), changed = target.copy();
      in_place(changed, b);
      detail::elementwise("setitem", ufunc::where, {mask, changed, target}, &target);
      return;
    }
  }
  detail::IndexedElements elements = detail::apply_index("setitem", target, index);
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
