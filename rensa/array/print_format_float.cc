// Numbers as text.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "rensa/array/print.h"
#include "rensa/core/error.h"

namespace rensa::xp {

namespace {

// The digits of a finite number of no sign: `precision` of them behind the point, or the fewest
// that tell it apart (-1).
std::string digits_of(double x, std::chars_format format, int precision) {
  char text[1200];  // the longest double has 309 digits before the point and 1074 behind it
  auto [end, error] = precision < 0 ? std::to_chars(text, text + sizeof text, x, format)
                                    : std::to_chars(text, text + sizeof text, x, format, precision);
  if (error != std::errc()) throw ValueError(fmt::format("format_float: {} digits", precision));
  return std::string(text, end);
}

// The digits before and behind the point, which NumPy always writes, and the exponent.
struct Parts {
  std::string whole, fraction, exponent;
};

Parts parts_of(double x, bool scientific, const FormatFloatOptions& options) {
  std::chars_format format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
  std::string text = digits_of(x, format, -1);
  auto behind = [](const std::string& number) {
    std::size_t point = number.find('.'), e = std::min(number.find('e'), number.size());
    return point == number.npos ? 0 : static_cast<int>(e - point - 1);
  };
  if (!options.unique) text = digits_of(x, format, options.precision.value_or(17));
  else if (options.precision && behind(text) > *options.precision) {
    text = digits_of(x, format, *options.precision);
  }
  Parts parts;
  std::size_t e = text.find('e');
  if (e != text.npos) {
    parts.exponent = text.substr(e + 2);
    parts.exponent.erase(0, std::min(parts.exponent.find_first_not_of('0'), parts.exponent.size()));
    auto width = static_cast<std::size_t>(std::max(options.exp_digits, 1));
    if (parts.exponent.size() < width) {
      parts.exponent.insert(0, width - parts.exponent.size(), '0');
    }
    parts.exponent = std::string("e") + text[e + 1] + parts.exponent;
    text.resize(e);
  }
  std::size_t point = std::min(text.find('.'), text.size());
  parts.whole = text.substr(0, point);
  parts.fraction = point < text.size() ? text.substr(point + 1) : "";
  return parts;
}

std::string format_float(double x, bool scientific, const FormatFloatOptions& options) {
  if (options.trim != 'k' && options.trim != '.' && options.trim != '0' && options.trim != '-') {
    throw ValueError(
        fmt::format("format_float: trim is '{}'; it has to be 'k', '.', '0' or '-'", options.trim));
  }
  std::string sign = std::signbit(x) && !std::isnan(x) ? "-" : options.sign ? "+" : "", text;
  if (!std::isfinite(x)) {
    text = sign + (std::isnan(x) ? "nan" : "inf");
  } else {
    Parts parts = parts_of(std::abs(x), scientific, options);
    std::string& fraction = parts.fraction;
    auto least = static_cast<std::size_t>(std::max(options.min_digits, 0));
    if (options.trim != 'k') {
      while (fraction.size() > least && fraction.back() == '0') fraction.pop_back();
    }
    if (fraction.size() < least) fraction.append(least - fraction.size(), '0');
    if (fraction.empty() && options.trim == '0') fraction = "0";
    text = sign + parts.whole;
    if (!fraction.empty() || options.trim != '-') text += "." + fraction;
    auto behind = static_cast<int>(fraction.size());
    text += parts.exponent;
    if (options.pad_right > behind) {
      text.append(static_cast<std::size_t>(options.pad_right - behind), ' ');
    }
  }
  auto before = static_cast<int>(std::min(text.find('.'), text.size()));
  if (options.pad_left > before) {
    text.insert(0, static_cast<std::size_t>(options.pad_left - before), ' ');
  }
  return text;
}

}  // namespace

std::string format_float_positional(double x, const FormatFloatOptions& options) {
  return format_float(x, false, options);
}

std::string format_float_scientific(double x, const FormatFloatOptions& options) {
  return format_float(x, true, options);
}

std::string base_repr(std::int64_t number, int base, int padding) {
  if (base < 2 || base > 36) {
    throw ValueError(fmt::format("base_repr: the base {} is not one of 2 to 36", base));
  }
  std::string digits;
  std::uint64_t left =
      number < 0 ? -static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
  for (auto b = static_cast<std::uint64_t>(base); left != 0; left /= b) {
    digits += "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[left % b];
  }
  if (padding > 0) digits.append(static_cast<std::size_t>(padding), '0');
  if (digits.empty()) digits = "0";
  if (number < 0) digits += '-';
  return std::string(digits.rbegin(), digits.rend());
}

}  // namespace rensa::xp
