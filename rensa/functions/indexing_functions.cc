// Functions that choose elements: forward and backward.
#include "rensa/functions/indexing_functions.h"

#include <fmt/format.h>

#include <vector>

#include "rensa/array/along_axis.h"
#include "rensa/array/creation.h"
#include "rensa/array/indexing.h"
#include "rensa/array/indexing_routines.h"
#include "rensa/array/sorting.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/node_templates.h"

namespace rensa::functions {

namespace {

/// Which elements of a C-contiguous array a basic index selects.
struct Slab {
  Slab(const Array& a, std::span<const BasicIndex> index) {
    ArrayView view = a.view();
    view.strides = contiguous_strides(view.shape, itemsize(view.dtype));
    Array selected = Array(a.storage(), view)[index];
    offset = selected.view().data - view.data;
    shape = selected.shape();
    strides = selected.strides();
  }
  Array of(const Array& a) const { return Array(a, a.view().data + offset, shape, strides); }
  /// Where it begins along each axis of a C-contiguous array of shape `whole`, and its steps; none
  /// where an axis was dropped or is new.
  std::optional<FunctionAttributes> attributes(const Shape& whole, std::int64_t item) const {
    if (whole.ndim() != shape.ndim() || whole.total() == 0) return std::nullopt;
    Shape dense = contiguous_strides(whole, item), starts, steps;
    std::int64_t rest = offset;
    for (int i = 0; i < whole.ndim(); ++i) {
      if (shape[i] == 0 || strides[i] % dense[i] != 0) return std::nullopt;
      starts.push_back(rest / dense[i]), steps.push_back(shape[i] == 1 ? 1 : strides[i] / dense[i]);
      rest %= dense[i];
      std::int64_t last = starts[i] + (shape[i] - 1) * steps[i];
      if (last < 0 || last >= whole[i]) return std::nullopt;
    }
    return FunctionAttributes{.lists = {{"starts", starts}, {"steps", steps}}};
  }
  std::int64_t offset;
  Shape shape, strides;
};

/// x[i, t[i]] of x (n, classes).
struct SelectItem {
  static constexpr const char* name = "select_item";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& x, const KeptArray& t, std::int64_t) {
    return xp::take_along_axis(x, t.get(name, "t").reshape({-1, 1}), 1).reshape({-1});
  }
  static Variable backward(const Variable&, const Variable& gy, const KeptArray& t,
                           std::int64_t classes);
};

/// The gradient of SelectItem: gy[i] at [i, t[i]] of zeros.
struct SelectItemGrad {
  static constexpr const char* name = "select_item_grad";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& gy, const KeptArray& t, std::int64_t classes) {
    Array places = t.get(SelectItem::name, "t").reshape({-1, 1});
    Array gx = xp::zeros({gy.size(), classes}, gy.dtype(), gy.device());
    auto elements = rensa::detail::apply_along_axis(name, gx, places, 1);
    elements.distinct = true;
    rensa::detail::scatter(name, operations::ScatterMode::assign, elements, gy.reshape({-1, 1}));
    return gx;
  }
  static Variable backward(const Variable&, const Variable& ggx, const KeptArray& t,
                           std::int64_t classes) {
    return unary<SelectItem>(ggx, t, classes);
  }
};

Variable SelectItem::backward(const Variable&, const Variable& gy, const KeptArray& t,
                              std::int64_t classes) {
  return unary<SelectItemGrad>(gy, t, classes);
}

class GetItem final : public FunctionNode {
 public:
  explicit GetItem(const Slab& slab) : FunctionNode("get_item"), slab_(slab) {}
  Arrays forward(const Arrays& x) override { return {slab_.of(x[0].ascontiguous())}; }
  Variables backward(const Indexes&, const Variables& gy) override;
  std::optional<FunctionAttributes> attributes() const override {
    if (inputs().empty()) return std::nullopt;
    return slab_.attributes(inputs()[0]->shape, itemsize(inputs()[0]->dtype));
  }

 private:
  Slab slab_;
};

/// The gradient of GetItem: gy in its place, zeros around it.
class GetItemGrad final : public FunctionNode {
 public:
  GetItemGrad(const Slab& slab, const Shape& shape)
      : FunctionNode("get_item_grad"), slab_(slab), shape_(shape) {}
  Arrays forward(const Arrays& gy) override {
    Array gx = xp::zeros(shape_, gy[0].dtype(), gy[0].device());
    slab_.of(gx).assign(gy[0]);
    return {gx};
  }
  Variables backward(const Indexes&, const Variables& ggx) override {
    return rensa::apply<GetItem>(ggx, slab_);
  }

 private:
  Slab slab_;
  Shape shape_;
};

Variables GetItem::backward(const Indexes&, const Variables& gy) {
  return rensa::apply<GetItemGrad>(gy, slab_, inputs()[0]->shape);
}

/// A full index that a graph keeps, masks as the places where they are true.
class KeptIndex {
 public:
  KeptIndex(const char* operation, const Array& x, std::span<const Index> entries) {
    int given = 0, axis = 0;
    for (const Index& entry : entries) given += axes_of(entry);
    for (const Index& entry : entries) {
      if (!entry.is_array()) {
        bool rest = entry.basic().kind() == BasicIndex::Kind::ellipsis;
        entries_.push_back(entry);
        axis += rest ? x.ndim() - given : axes_of(entry);
      } else if (entry.array().dtype() != Dtype::bool_ || entry.array().ndim() == 0) {
        entries_.push_back(entry);
        axis += axes_of(entry);
      } else {
        check_mask(operation, x, entry.array(), axis);
        for (const Array& places : xp::nonzero(entry.array())) entries_.emplace_back(places);
        axis += axes_of(entry);
      }
    }
    for (const Index& entry : entries_) {
      if (entry.is_array()) kept_.emplace_back(entry.array());
    }
  }
  /// The index; throws ValueError where an array of it was written to since.
  const std::vector<Index>& get(const char* function) const {
    for (const KeptArray& array : kept_) static_cast<void>(array.get(function, "index"));
    return entries_;
  }

 private:
  static int axes_of(const Index& entry) {
    if (entry.is_array()) return entry.array().dtype() == Dtype::bool_ ? entry.array().ndim() : 1;
    auto kind = entry.basic().kind();
    return kind == BasicIndex::Kind::integer || kind == BasicIndex::Kind::slice ? 1 : 0;
  }
  static void check_mask(const char* operation, const Array& x, const Array& mask, int axis) {
    check_same_device(operation, x, mask);
    bool fits = axis >= 0 && axis + mask.ndim() <= x.ndim();
    for (int i = 0; fits && i < mask.ndim(); ++i) fits = mask.shape(i) == x.shape(axis + i);
    if (fits) return;
    throw IndexError(
        fmt::format("{}: a mask {} for {}: it has the shape of the axes that it "
                    "stands for, here from axis {} on",
                    operation, mask.view().describe(), x.view().describe(), axis));
  }

  std::vector<Index> entries_;
  std::vector<KeptArray> kept_;
};

/// a[index] += values.
void add_at(const char* operation, const Array& a, const std::vector<Index>& index,
            const Array& values) {
  rensa::detail::scatter(operation, operations::ScatterMode::add,
                         rensa::detail::apply_index(operation, a, index), values);
}

class GetItems final : public FunctionNode {
 public:
  explicit GetItems(KeptIndex index) : FunctionNode("get_item"), index_(std::move(index)) {}
  Arrays forward(const Arrays& x) override {
    return {rensa::detail::gather(name(),
                                  rensa::detail::apply_index(name(), x[0], index_.get(name())))};
  }
  Variables backward(const Indexes&, const Variables& gy) override;

 private:
  KeptIndex index_;
};

/// The gradient of GetItems: gy added up in its places of zeros.
class GetItemsGrad final : public FunctionNode {
 public:
  GetItemsGrad(KeptIndex index, const Shape& shape)
      : FunctionNode("get_item_grad"), index_(std::move(index)), shape_(shape) {}
  Arrays forward(const Arrays& gy) override {
    Array gx = xp::zeros(shape_, gy[0].dtype(), gy[0].device());
    add_at(name(), gx, index_.get("get_item"), gy[0]);
    return {gx};
  }
  Variables backward(const Indexes&, const Variables& ggx) override {
    return rensa::apply<GetItems>(ggx, index_);
  }

 private:
  KeptIndex index_;
  Shape shape_;
};

Variables GetItems::backward(const Indexes&, const Variables& gy) {
  return rensa::apply<GetItemsGrad>(gy, index_, inputs()[0]->shape);
}

class ScatterAdd final : public FunctionNode {
 public:
  explicit ScatterAdd(KeptIndex index) : FunctionNode("scatter_add"), index_(std::move(index)) {}
  Arrays forward(const Arrays& x) override {
    Array y = x[0].copy();
    add_at(name(), y, index_.get(name()), x[1]);
    return {y};
  }
  Variables backward(const Indexes& targets, const Variables& gy) override {
    Variables gx;
    for (int i : targets) {
      const VariableNode& x = *inputs()[static_cast<std::size_t>(i)];
      Variable g = i == 0 ? gy[0] : sum_to(rensa::apply<GetItems>(gy, index_)[0], x.shape);
      gx.push_back(cast(g, x.dtype));
    }
    return gx;
  }

 private:
  KeptIndex index_;
};

/// x[i, index[i, j]] of two axes, along any axis of more. `index` is no longer than x elsewhere:
/// what x has beyond it is left out.
class Gather final : public FunctionNode {
 public:
  Gather(KeptArray index, int axis)
      : FunctionNode("gather"), index_(std::move(index)), axis_(axis) {}
  Arrays forward(const Arrays& x) override {
    return {rensa::detail::gather(name(), elements_of(name(), x[0], index_, axis_))};
  }
  Variables backward(const Indexes&, const Variables& gy) override;

  static rensa::detail::IndexedElements elements_of(const char* operation, const Array& x,
                                                    const KeptArray& kept, int axis) {
    Array index = kept.get("gather", "index");
    std::vector<BasicIndex> front;
    for (int i = 0; i < x.ndim(); ++i) {
      front.push_back(i == axis ? Slice() : Slice(0, index.shape(i)));
    }
    return rensa::detail::apply_along_axis(operation, x[std::span<const BasicIndex>(front)], index,
                                           axis);
  }

 private:
  KeptArray index_;
  int axis_;
};

/// The gradient of Gather: gy added up in its places of zeros.
class GatherGrad final : public FunctionNode {
 public:
  GatherGrad(KeptArray index, int axis, const Shape& shape)
      : FunctionNode("gather_grad"), index_(std::move(index)), axis_(axis), shape_(shape) {}
  Arrays forward(const Arrays& gy) override {
    Array gx = xp::zeros(shape_, gy[0].dtype(), gy[0].device());
    rensa::detail::scatter(name(), operations::ScatterMode::add,
                           Gather::elements_of(name(), gx, index_, axis_), gy[0]);
    return {gx};
  }
  Variables backward(const Indexes&, const Variables& ggx) override {
    return rensa::apply<Gather>(ggx, index_, axis_);
  }

 private:
  KeptArray index_;
  int axis_;
  Shape shape_;
};

Variables Gather::backward(const Indexes&, const Variables& gy) {
  return rensa::apply<GatherGrad>(gy, index_, axis_, inputs()[0]->shape);
}

bool is_integer(const Array& a) {
  char kind = dtype_kind(a.dtype());
  return kind == 'i' || kind == 'u';
}

void check_integer(const char* operation, const Array& index) {
  if (is_integer(index)) return;
  throw DtypeError(fmt::format("{}: an index {}, which has to be of integers", operation,
                               index.view().describe()));
}

/// Slices of everything, and `index` at `axis`.
std::vector<Index> along(int axis, const Array& index) {
  std::vector<Index> entries(static_cast<std::size_t>(axis), Index(Slice()));
  entries.emplace_back(index);
  return entries;
}

}  // namespace

Variable get_item(const Variable& x, std::span<const BasicIndex> index) {
  return apply<GetItem>({x}, Slab(x.array(), index))[0];
}

Variable get_item(const Variable& x, std::initializer_list<BasicIndex> index) {
  return get_item(x, std::span(index.begin(), index.size()));
}

Variable get_item(const Variable& x, const Selector& index) {
  return apply<GetItems>({x}, KeptIndex("get_item", x.array(), index.entries()))[0];
}

Variable scatter_add(const Variable& a, const Selector& index, const Variable& b) {
  return apply<ScatterAdd>({a, b}, KeptIndex("scatter_add", a.array(), index.entries()))[0];
}

Variable gather(const Variable& x, int axis, const Array& index) {
  check_integer("gather", index);
  int place = normalize_axis("gather", axis, x.ndim());
  bool fits = index.ndim() == x.ndim();
  for (int i = 0; fits && i < x.ndim(); ++i) {
    fits = i == place || index.shape(i) <= x.shape(i);
  }
  if (!fits) {
    throw ShapeError(
        fmt::format("gather: an index {} for {}: it has as many axes, none longer but "
                    "axis {}",
                    index.view().describe(), x.array().view().describe(), place));
  }
  return apply<Gather>({x}, KeptArray(index), place)[0];
}

Variable index_select(const Variable& x, int axis, const Array& index) {
  check_integer("index_select", index);
  if (index.ndim() != 1) {
    throw ShapeError(fmt::format("index_select: an index {}, which has to have one axis",
                                 index.view().describe()));
  }
  return get_item(x, along(normalize_axis("index_select", axis, x.ndim()), index));
}

Variable as_strided(const Variable& x, const Shape& shape, const Shape& strides,
                    std::int64_t storage_offset) {
  constexpr const char* name = "as_strided";
  if (shape.size() != strides.size()) {
    throw ShapeError(fmt::format("{}: shape {} and strides {} differ in length", name, shape.str(),
                                 strides.str()));
  }
  std::int64_t least = storage_offset, most = storage_offset;
  bool empty = false, fits = true;
  for (int i = 0; i < shape.size() && fits; ++i) {
    if (shape[i] < 0) throw ValueError(fmt::format("{}: shape {}", name, shape.str()));
    empty = empty || shape[i] == 0;
    std::int64_t way = 0;
    fits = shape[i] == 0 ||
           (!__builtin_mul_overflow(shape[i] - 1, strides[i], &way) &&
            !__builtin_add_overflow(way < 0 ? least : most, way, way < 0 ? &least : &most));
  }
  if (!empty && (!fits || least < 0 || most >= x.size())) {
    throw ValueError(fmt::format(
        "{}: shape {}, strides {} and storage_offset {} lead out of x {}, which has {} elements",
        name, shape.str(), strides.str(), storage_offset, x.array().view().describe(), x.size()));
  }
  Array places = xp::full(shape, storage_offset, int64, x.device());
  for (int i = 0; i < shape.size() && !empty; ++i) {
    Shape along = Shape::filled(shape.size(), 1);
    along[i] = shape[i];
    places = places + (xp::arange(shape[i], int64, x.device()) * strides[i]).reshape(along);
  }
  return get_item(reshape(x, {x.size()}), places);
}

Variable select_item(const Variable& x, const Variable& t) {
  check_integer("select_item", t.array());
  if (x.ndim() != 2 || t.ndim() != 1 || x.shape(0) != t.shape(0)) {
    throw ShapeError(fmt::format("select_item: x {} and t {}: x has to be (n, classes) and t (n,)",
                                 x.array().view().describe(), t.array().view().describe()));
  }
  return unary<SelectItem>(x, KeptArray(t.array()), x.shape(1));
}

Variable permutate(const Variable& x, const Array& indices, int axis, bool inv) {
  check_integer("permutate", indices);
  int place = normalize_axis("permutate", axis, x.ndim());
  if (indices.ndim() != 1 || indices.shape(0) != x.shape(place)) {
    throw ShapeError(fmt::format("permutate: indices {} for axis {} of {}: there is one for each",
                                 indices.view().describe(), place, x.array().view().describe()));
  }
  return index_select(x, place, inv ? xp::argsort(indices) : indices);
}

std::pair<Variable, Array> topk(const Variable& x, std::int64_t k, int axis, bool largest) {
  int place = normalize_axis("topk", axis, x.ndim());
  if (k < 0 || k > x.shape(place)) {
    throw ValueError(fmt::format("topk: {} elements along axis {} of {}", k, place,
                                 x.array().view().describe()));
  }
  Array rows = rensa::detail::rows_along(x.array(), place);
  Array first = rensa::detail::first_of_rows("topk", rows, k, largest).ascontiguous();
  Array places = rensa::detail::from_rows(first, x.shape(), place);
  return {gather(x, place, places), places};
}

Variable one_hot(const Variable& t, std::int64_t classes, Dtype dtype) {
  check_integer("one_hot", t.array());
  Array places = t.array().expand_dims(-1);
  return constant((places == xp::arange(classes, int64, t.device())).astype(dtype, false));
}

}  // namespace rensa::functions

namespace rensa {

Variable Variable::operator[](BasicIndex index) const { return F::get_item(*this, {index}); }
Variable Variable::operator[](std::initializer_list<BasicIndex> index) const {
  return F::get_item(*this, index);
}
Variable Variable::operator[](const Selector& index) const { return F::get_item(*this, index); }

}  // namespace rensa
