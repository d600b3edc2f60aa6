// What tests/answers/links/networks.py fills networks with: numbers made of names and places.
#pragma once

#include <zlib.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "rensa/array/creation.h"

namespace rensa::testing {

/// Numbers of [0, 1) as float64, on the CPU.
inline Array drawn(const std::string& name, const Shape& shape) {
  Array array = xp::empty(shape, float64, cpu());
  auto* values = static_cast<double*>(array.data());
  auto begin = static_cast<std::uint32_t>(::crc32(
      0, reinterpret_cast<const unsigned char*>(name.data()), static_cast<unsigned>(name.size())));
  for (std::int64_t i = 0; i < array.size(); ++i) {
    std::uint32_t k = begin + static_cast<std::uint32_t>(i);
    k = (k ^ k >> 16) * 0x85EBCA6Bu;
    k = (k ^ k >> 13) * 0xC2B2AE35u;
    values[i] = ((k ^ k >> 16) >> 8) * 0x1p-24;
  }
  return array;
}

/// What a network has under that name in files, as float32.
inline Array drawn_value(const std::string& name, const Shape& shape) {
  Array u = drawn(name, shape);
  std::string_view leaf = std::string_view(name).substr(name.find_last_of("./") + 1);
  bool is_weight = leaf == "W" || leaf == "weight";
  if (is_weight && shape.ndim() > 1) {
    auto fan = static_cast<double>(shape.total() / shape[0]);
    u = (u * 2.0 - 1.0) * std::sqrt(6 / fan);
  } else if (is_weight || leaf == "gamma" || leaf == "avg_var" || leaf == "running_var") {
    u = u + 0.5;
  } else {
    u = (u - 0.5) * 0.2;
  }
  return u.astype(float32);
}

}  // namespace rensa::testing
