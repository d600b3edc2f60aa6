// The texts that rensa/fmt.h and rensa/format.h put into format strings.
#pragma once

#include <concepts>
#include <string>

#include "rensa/array/array.h"

namespace rensa {

class Variable;  // rensa/autograd/variable.h
class Link;      // rensa/links/link.h

namespace detail {

template <class T>
concept Printable = std::derived_from<T, Array> || std::derived_from<T, Link> ||
    std::same_as<T, Array::Selection> || std::same_as<T, Shape> || std::derived_from<T, Variable> ||
    std::same_as<T, Device> || std::same_as<T, Dtype>;

template <Printable T> std::string text_of(const T& value) {
  if constexpr (std::same_as<T, Dtype>) return std::string(dtype_name(value));
  else return value.str();
}

}  // namespace detail

}  // namespace rensa
