// Arrays, variables, links, shapes, dtypes and devices in {fmt}'s format strings, as they print to
// streams: fmt::print("{} {:>20}\n", a, a.shape()). For programs that use {fmt}, whose headers have
// to be there.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "rensa/array/printable.h"

template <rensa::detail::Printable T> struct fmt::formatter<T> : fmt::formatter<std::string_view> {
  template <class Context> auto format(const T& value, Context& context) const {
    return fmt::formatter<std::string_view>::format(rensa::detail::text_of(value), context);
  }
};
