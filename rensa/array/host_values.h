// What xp::array and xp::asarray take besides arrays: numbers in lists, containers and C arrays.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <vector>

#include "rensa/array/array.h"

namespace rensa {

namespace detail {

/// int gives int64, as in NumPy; other types their own dtype.
template <class T> struct ElementOf { using type = T; };
template <> struct ElementOf<int> { using type = std::int64_t; };
template <class T> using element_of = typename ElementOf<std::remove_cv_t<T>>::type;

template <class T>
concept Element = requires {
  DtypeOf<std::remove_cv_t<T>>::value;
};

template <class T>
concept ArrayLike = std::derived_from<T, Array> || std::same_as<T, Array::Selection>;

template <class L>
using item_of =
    typename std::iterator_traits<decltype(std::begin(std::declval<const L&>()))>::value_type;

template <class L>
concept List = !ArrayLike<L> && !Element<L> && requires(const L& l) {
  std::begin(l) != std::end(l);
};

/// How deep a container of containers of numbers is; 0 for a number, -1 for anything else.
template <class L> constexpr int list_depth() {
  if constexpr (Element<L> && !ArrayLike<L>) {
    return 0;
  } else if constexpr (List<L>) {
    using Item = std::remove_cv_t<item_of<L>>;
    if constexpr (!std::same_as<Item, L>) {
      if (list_depth<Item>() >= 0) return list_depth<Item>() + 1;
    }
  }
  return -1;
}

template <class L> struct LeafOf {
  using type = typename LeafOf<std::remove_cv_t<item_of<L>>>::type;
};
template <Element T> struct LeafOf<T> { using type = T; };
template <class L> using leaf_of = typename LeafOf<L>::type;

template <class L> std::int64_t length_of(const L& list) {
  return static_cast<std::int64_t>(std::distance(std::begin(list), std::end(list)));
}

/// Appends the extents of a list, told by the first of each level.
template <class L> void append_extents(const L& list, Shape* shape) {
  std::int64_t n = length_of(list);
  shape->push_back(n);
  if constexpr (list_depth<L>() > 1) {
    if (n > 0) append_extents(*std::begin(list), shape);
    else
      for (int i = 1; i < list_depth<L>(); ++i) shape->push_back(0);
  }
}

[[noreturn]] void throw_ragged(const Shape& shape, int axis, std::int64_t got);

/// Writes the numbers of a list one after the other. Throws ValueError unless all lists of a level
/// are of one length.
template <class L, class E> E* write_items(const L& list, const Shape& shape, int axis, E* out) {
  if (std::int64_t n = length_of(list); n != shape[axis]) throw_ragged(shape, axis, n);
  for (const auto& item : list) {
    if constexpr (list_depth<L>() > 1) out = write_items(item, shape, axis + 1, out);
    else *out++ = static_cast<E>(item);
  }
  return out;
}

/// An uninitialized array in host memory, also while a function is traced.
[[nodiscard]] Array new_host_array(const Shape& shape, Dtype dtype);

/// A number or a list in a list that is written out.
class NestedNumber {
 public:
  template <Element T>
  NestedNumber(T value) : scalar_(value), dtype_(dtype_of<element_of<T>>), is_list_(false) {}
  NestedNumber(std::initializer_list<NestedNumber> list) : list_(list) {}
  bool is_list() const { return is_list_; }
  const std::initializer_list<NestedNumber>& list() const { return list_; }
  const Scalar& scalar() const { return scalar_; }
  Dtype dtype() const { return dtype_; }

 private:
  std::initializer_list<NestedNumber> list_;
  Scalar scalar_;
  Dtype dtype_ = Dtype::bool_;
  bool is_list_ = true;
};

}  // namespace detail

/// Numbers of the host with a shape: one number; lists written out, of any depth, {{1, 2.5}, {3,
/// 4}}, whose dtype is what all of them meet in; containers and C arrays, of containers too
/// (std::vector, of bool as well, std::array, std::span, std::list, ...). It refers to them, for
/// the length of the call. The constructors throw ValueError for ragged lists.
class HostValues {
 public:
  HostValues() : shape_{0} {}  // {}, of float64
  template <detail::Element T> HostValues(const T& value) {
    owned_ = detail::new_host_array({}, dtype_of<detail::element_of<T>>);
    *static_cast<detail::element_of<T>*>(owned_.data()) = value;
  }
  template <detail::Element T> HostValues(std::initializer_list<T> list) { take(list); }
  template <detail::Element T> HostValues(std::initializer_list<std::initializer_list<T>> list) {
    take(list);
  }
  HostValues(std::initializer_list<detail::NestedNumber> list);
  template <detail::ArrayLike A> HostValues(std::initializer_list<A>) {
    static_assert(detail::kWrong<A>, "arrays in a list: write xp::stack({a, b})");
  }
  template <class L>
  requires(detail::list_depth<L>() > 0) HostValues(const L& list) { take(list); }

  /// The values in an array of their own. Throws ValueError for integers that `dtype` cannot hold.
  [[nodiscard]] Array copy_to(Device device) const;
  [[nodiscard]] Array copy_to(Dtype dtype, Device device) const;

 private:
  template <class L> void take(const L& list) {
    using T = detail::leaf_of<L>;
    using E = detail::element_of<T>;
    if constexpr (std::same_as<T, E> && requires {
                    { std::data(list) } -> std::convertible_to<const T*>;
                  }) {
      data_ = std::data(list);
      dtype_ = dtype_of<T>;
      shape_ = Shape{detail::length_of(list)};
    } else {
      Shape shape;
      detail::append_extents(list, &shape);
      owned_ = detail::new_host_array(shape, dtype_of<E>);
      detail::write_items(list, shape, 0, static_cast<E*>(owned_.data()));
    }
  }

  Array owned_;  // the values where they had to be converted or joined, else ...
  const void* data_ = nullptr;
  Dtype dtype_ = Dtype::float64;
  Shape shape_;
};

}  // namespace rensa
