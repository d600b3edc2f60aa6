// Arrays as text, as numpy.array_repr writes them (numpy/_core/arrayprint.py): floats with the
// fewest digits that tell them apart and at most eight after the point, columns aligned, long
// arrays by their edges, lines of 75 characters.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <ostream>

#include "rensa/array/internal.h"
#include "rensa/array/print.h"
#include "rensa/core/error.h"
#include "rensa/device/tracer.h"

namespace rensa {

namespace {

constexpr int kLineWidth = 75;

// --- one number ---------------------------------------------------------------------------------
// The fewest decimal digits that give `value` back in its dtype: 0.d1d2d3... * 10^exponent.
struct Decimal {
  std::string digits;
  int exponent;
};

template <class T> std::string shortest_scientific(double value) {
  char buffer[64];
  if constexpr (std::same_as<T, float> || std::same_as<T, double>) {
    auto end = std::to_chars(buffer, buffer + sizeof(buffer), static_cast<T>(value),
                             std::chars_format::scientific);
    return {buffer, end.ptr};
  } else {
    std::string text;
    for (int digits = 0; digits <= 8; ++digits) {
      text = fmt::format("{:.{}e}", value, digits);
      float read = 0;  // not by strtof, which takes the point from the locale
      std::from_chars(text.data(), text.data() + text.size(), read);
      if (static_cast<float>(T(read)) == value) break;
    }
    return text;
  }
}

template <class T> Decimal decimal(double value) {
  std::string text = shortest_scientific<T>(std::abs(value));
  std::size_t e = text.find('e');
  Decimal d{text.substr(0, e), std::stoi(text.substr(e + 1)) + 1};
  if (d.digits.size() > 1) d.digits.erase(1, 1);
  while (d.digits.size() > 1 && d.digits.back() == '0') d.digits.pop_back();
  return d;
}

void trim_zeros(std::string* fraction) {
  while (!fraction->empty() && fraction->back() == '0') fraction->pop_back();
}

// A formatted number in the parts that are aligned: sign and integer part, fraction, exponent.
struct Parts {
  std::string integer, fraction, exponent;
};

Parts split(const std::string& text, bool trim = true) {
  Parts parts;
  std::size_t e = text.find('e'), point = text.find('.');
  if (e != text.npos) parts.exponent = text.substr(e + 1);
  parts.integer = text.substr(0, std::min(point, e));
  if (point != text.npos) {
    std::size_t end = std::min(e, text.size());
    parts.fraction = text.substr(point + 1, end - point - 1);
  }
  if (trim) trim_zeros(&parts.fraction);
  return parts;
}

std::string signed_digits(double value, std::string digits) {
  if (std::signbit(value)) digits.insert(digits.begin(), '-');
  return digits;
}

template <class T> Parts positional(double value, int precision) {
  Decimal d = decimal<T>(value);
  int point = value == 0 ? 1 : d.exponent;
  int fraction_digits = static_cast<int>(d.digits.size()) - point;
  if (fraction_digits > precision) return split(fmt::format("{:.{}f}", value, precision));
  Parts parts;
  std::string digits = d.digits;
  if (point <= 0) {
    digits.insert(0, static_cast<std::size_t>(1 - point), '0');
    point = 1;
  }
  if (static_cast<int>(digits.size()) < point) digits.resize(static_cast<std::size_t>(point), '0');
  parts.integer = signed_digits(value, digits.substr(0, static_cast<std::size_t>(point)));
  parts.fraction = digits.substr(static_cast<std::size_t>(point));
  trim_zeros(&parts.fraction);
  return parts;
}

template <class T> Parts scientific(double value, int precision) {
  Decimal d = decimal<T>(value);
  if (static_cast<int>(d.digits.size()) - 1 > precision) {
    return split(fmt::format("{:.{}e}", value, precision));
  }
  int exponent = value == 0 ? 0 : d.exponent - 1;
  Parts parts;
  parts.integer = signed_digits(value, d.digits.substr(0, 1));
  parts.fraction = d.digits.substr(1);
  parts.exponent = fmt::format("{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  trim_zeros(&parts.fraction);
  return parts;
}

// A number by itself, as Python writes it: with all its digits, one that is `whole` without ".0".
template <class T> std::string written(double value, bool whole) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  constexpr int kAllDigits = 400;
  double size = std::abs(value);
  bool point = size == 0 || (size >= 1e-4 && size < 1e16);
  Parts parts = point ? positional<T>(value, kAllDigits) : scientific<T>(value, kAllDigits);
  std::string text = parts.integer;
  if (!parts.fraction.empty()) text += "." + parts.fraction;
  else if (point && !whole) text += ".0";
  return point ? text : text + "e" + parts.exponent;
}

template <class T> std::string written(std::complex<T> value) {
  auto real = static_cast<double>(value.real()), imag = static_cast<double>(value.imag());
  std::string text = written<T>(imag, true) + "j";
  if (real == 0 && !std::signbit(real)) return text;
  if (text[0] != '-') text.insert(0, "+");
  return fmt::format("({}{})", written<T>(real, true), text);
}

std::string left_padded(std::string text, std::size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}

// --- the numbers of an array --------------------------------------------------------------------
// How the real numbers of one array are written, so that their points stand below one another.
template <class T> class FloatFormat {
 public:
  FloatFormat(const std::vector<double>& values, bool plus, const xp::PrintOptions& options)
      : precision_(options.precision), plus_(plus) {
    bool negative_infinity = false, all_finite = true;
    std::vector<double> finite;
    for (double v : values) {
      if (std::isfinite(v)) finite.push_back(v);
      else all_finite = false;
      negative_infinity |= std::isinf(v) && v < 0;
    }
    choose_notation(finite, options.suppress_small);
    for (double v : finite) measure(parts(v));
    if (scientific_) right_ = exponent_ + 1 + fraction_;
    else right_ = fraction_;
    if (all_finite) return;
    // "nan" and "inf" take the room of a whole number, its point included.
    auto widen = [&](std::size_t width) {
      if (width > right_ + 1) left_ = std::max(left_, width - right_ - 1);
    };
    widen(3);
    widen(3 + (negative_infinity || plus_));
  }

  std::string operator()(double v) const {
    if (!std::isfinite(v)) {
      std::string text = std::isnan(v) ? "nan" : "inf";
      if (std::isinf(v) && v < 0) text = "-inf";
      else if (plus_) text.insert(text.begin(), '+');
      return left_padded(text, left_ + right_ + 1);
    }
    if (!scientific_) {
      Parts p = parts(v);
      p.fraction.resize(fraction_, ' ');
      return left_padded(p.integer, left_) + "." + p.fraction;
    }
    // All with as many digits as the longest, exact ones where fewer would do.
    Parts p = signed_parts(split(fmt::format("{:.{}e}", v, fraction_), false), v);
    std::string digits = p.exponent.substr(1);
    digits.insert(0, exponent_ - 1 - digits.size(), '0');
    return fmt::format("{}.{}e{}{}", left_padded(p.integer, left_), p.fraction, p.exponent[0],
                       digits);
  }

 private:
  void choose_notation(const std::vector<double>& finite, bool suppress_small) {
    double greatest = 0, least = std::numeric_limits<double>::infinity();
    for (double v : finite) {
      if (v == 0) continue;
      greatest = std::max(greatest, std::abs(v));
      least = std::min(least, std::abs(v));
    }
    // NumPy divides in the array's own type.
    scientific_ =
        greatest > 0 && (greatest >= kLargest ||
                         (!suppress_small && (least < 1e-4 || ratio(greatest, least) > 1e3)));
  }
  static double ratio(double a, double b) {
    return static_cast<double>(T(static_cast<float>(a / b)));
  }
  Parts parts(double v) const {
    return signed_parts(scientific_ ? scientific<T>(v, precision_) : positional<T>(v, precision_),
                        v);
  }
  Parts signed_parts(Parts p, double v) const {
    if (plus_ && !std::signbit(v)) p.integer.insert(p.integer.begin(), '+');
    return p;
  }
  void measure(const Parts& p) {
    left_ = std::max(left_, p.integer.size());
    fraction_ = std::max(fraction_, p.fraction.size());
    exponent_ = std::max(exponent_, p.exponent.size());
  }

  // 10 to the decimal digits of the type, at most 1e8.
  static constexpr double kLargest = sizeof(T) == 2 ? 1e3 : sizeof(T) == 4 ? 1e6 : 1e8;

  int precision_;
  bool plus_, scientific_ = false;
  std::size_t left_ = 0, fraction_ = 0, exponent_ = 0, right_ = 0;
};

template <> double FloatFormat<double>::ratio(double a, double b) { return a / b; }

template <class T>
std::vector<std::string> format_floats(const T* data, std::size_t count,
                                       const xp::PrintOptions& options) {
  std::vector<double> values(data, data + count);
  FloatFormat<T> format(values, false, options);
  std::vector<std::string> texts;
  for (double v : values) texts.push_back(format(v));
  return texts;
}

template <class T>
std::vector<std::string> format_complex(const std::complex<T>* data, std::size_t count,
                                        const xp::PrintOptions& options) {
  std::vector<double> real, imag;
  for (std::size_t i = 0; i < count; ++i) {
    real.push_back(static_cast<double>(data[i].real()));
    imag.push_back(static_cast<double>(data[i].imag()));
  }
  FloatFormat<T> format_real(real, false, options), format_imag(imag, true, options);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) {
    std::string j = format_imag(imag[i]);
    j.insert(j.find_last_not_of(' ') + 1, 1, 'j');  // before the blanks that align
    texts.push_back(format_real(real[i]) + j);
  }
  return texts;
}

template <class T> std::vector<std::string> format_integers(const T* data, std::size_t count) {
  std::vector<std::string> texts;
  std::size_t width = 0;
  for (std::size_t i = 0; i < count; ++i) {
    texts.push_back(fmt::format("{}", data[i]));
    width = std::max(width, texts.back().size());
  }
  for (std::string& text : texts) text = left_padded(text, width);
  return texts;
}

std::vector<std::string> format_bools(const bool* data, std::size_t count, bool align) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) {
    texts.push_back(data[i] ? (align ? " True" : "True") : "False");
  }
  return texts;
}

// All elements of a contiguous host array.
std::vector<std::string> format_elements(const Array& host, const xp::PrintOptions& options) {
  return visit_dtype(host.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* data = host.view().as<T>();
    auto count = static_cast<std::size_t>(host.size());
    if constexpr (std::same_as<T, bool>) return format_bools(data, count, host.ndim() > 0);
    else if constexpr (std::integral<T>) return format_integers(data, count);
    else if constexpr (requires { typename T::value_type; })
      return format_complex(data, count, options);
    else return format_floats(data, count, options);
  });
}

// --- the brackets around them -------------------------------------------------------------------
class Layout {
 public:
  /// `shown` are the extents of what is written, `whole` those of the array.
  Layout(std::vector<std::string> texts, const Shape& shown, const Shape& whole, int edge,
         const std::string& separator)
      : texts_(std::move(texts)), shown_(shown), whole_(whole), edge_(edge), separator_(separator) {
    line_end_ = separator.substr(0, separator.find_last_not_of(' ') + 1);
  }

  std::string write(const std::string& indent, int width) {
    if (shown_.ndim() == 0) return texts_[0];
    return write_axis(0, indent, width);
  }

 private:
  std::string write_axis(int axis, const std::string& indent, int width) {
    bool last = axis + 1 == shown_.ndim();
    std::string text = last ? write_row(indent, width) : write_block(axis, indent, width);
    return fmt::format("[{}]", text.substr(indent.size()));
  }

  std::string write_row(const std::string& indent, int width) {
    std::string text, line = indent;
    auto extend = [&](const std::string& word) {
      bool full = static_cast<int>(line.size() + word.size()) >
                  width - std::max(static_cast<int>(line_end_.size()), 1);
      if (full && line.size() > indent.size()) {
        text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
        line = indent;
      }
      line += word;
    };
    int axis = shown_.ndim() - 1;
    for (std::int64_t i = 0; i < shown_[axis]; ++i) {
      if (i > 0) line += separator_;
      if (gap_before(axis, i)) {
        extend("...");
        line += separator_;
      }
      extend(texts_[next_++]);
    }
    return text + line;
  }

  std::string write_block(int axis, const std::string& indent, int width) {
    std::string text;
    std::string separator =
        line_end_ + std::string(static_cast<std::size_t>(shown_.ndim() - axis - 1), '\n');
    for (std::int64_t i = 0; i < shown_[axis]; ++i) {
      if (i > 0) text += separator;
      if (gap_before(axis, i)) text += indent + "..." + separator;
      text += indent + write_axis(axis + 1, indent + " ", width - 1);
    }
    return text;
  }

  bool gap_before(int axis, std::int64_t i) const {
    return whole_[axis] != shown_[axis] && i == edge_;
  }

  std::vector<std::string> texts_;
  Shape shown_, whole_;
  int edge_;
  std::string separator_, line_end_;
  std::size_t next_ = 0;
};

// The first and last `edge` of each axis.
Array edges(const Array& a, int edge) {
  Array result = a;
  for (int axis = 0; axis < a.ndim(); ++axis) {
    if (result.shape(axis) <= 2 * edge) continue;
    Array front = result.swapaxes(0, axis);
    result = xp::concatenate(
                 {Array(front[Slice(edge)]), Array(front[Slice(front.shape(0) - edge, none)])})
                 .swapaxes(0, axis);
  }
  return result;
}

// The brackets and what is in them, lines indented by `indent` blanks and of `width` characters.
std::string body_of(const Array& a, const xp::PrintOptions& options, std::size_t indent,
                    int width) {
  if (a.size() == 0) return "[]";
  bool summarized = a.size() > options.threshold;
  Array host = (summarized ? edges(a, options.edgeitems) : a).to(cpu()).ascontiguous();
  return Layout(format_elements(host, options), host.shape(), a.shape(), options.edgeitems,
                options.separator)
      .write(std::string(indent + 1, ' '), width);
}

}  // namespace

std::string Array::str() const {
  refuse_in_trace("str");
  if (!defined()) return "array(undefined)";
  return xp::array_repr(*this);
}

namespace xp {

std::string array2string(const Array& a, const PrintOptions& options) {
  rensa::detail::check_defined("array2string", a);
  if (options.precision < 0 || options.precision > 100 || options.edgeitems < 1) {
    throw ValueError(fmt::format("array2string: a precision of {} and {} edgeitems",
                                 options.precision, options.edgeitems));
  }
  return body_of(a, options, options.prefix.size(), options.max_line_width);
}

std::string array_str(const Array& a) {
  rensa::detail::check_defined("array_str", a);
  if (a.ndim() > 0) return array2string(a);
  Array host = a.to(cpu());
  return visit_dtype(host.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T value = *host.view().as<T>();
    if constexpr (std::same_as<T, bool>) return std::string(value ? "True" : "False");
    else if constexpr (std::integral<T>) return fmt::format("{}", value);
    else if constexpr (requires { typename T::value_type; }) return written(value);
    else return written<T>(static_cast<double>(value), false);
  });
}

std::string array_repr(const Array& a) {
  rensa::detail::check_defined("array_repr", a);
  static const std::string kPrefix = "array(";
  PrintOptions options;
  options.separator = ", ";
  std::string text = kPrefix + body_of(a, options, kPrefix.size(), kLineWidth - 1) + ",";
  std::string suffix;
  // Where the brackets do not tell the shape.
  if (a.size() > options.threshold || (a.size() == 0 && a.ndim() != 1)) {
    suffix = "shape=" + a.shape().str() + ", ";
  }
  suffix += fmt::format("dtype={}, device='{}')", dtype_name(a.dtype()), a.device().str());
  std::size_t last_line = text.size() - (text.rfind('\n') + 1);
  bool fits = last_line + suffix.size() + 1 <= static_cast<std::size_t>(kLineWidth);
  return text + (fits ? " " : "\n" + std::string(kPrefix.size(), ' ')) + suffix;
}

}  // namespace xp

std::ostream& operator<<(std::ostream& os, const Array& a) { return os << a.str(); }

}  // namespace rensa
