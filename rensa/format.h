// Arrays, variables, links, shapes, dtypes and devices in std::format's format strings, as they
// print to streams: std::format("{} {:>20}", a, a.shape()). Where the standard library has no
// <format>, nothing.
#pragma once

#include <version>

#ifdef __cpp_lib_format
#include <format>
#include <string_view>

#include "rensa/array/printable.h"

template <rensa::detail::Printable T> struct std::formatter<T> : std::formatter<std::string_view> {
  template <class Context> auto format(const T& value, Context& context) const {
    return std::formatter<std::string_view>::format(rensa::detail::text_of(value), context);
  }
};
#endif
