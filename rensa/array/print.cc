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
#include <utility>

#include "rensa/array/internal.h"
#include "rensa/array/print.h"
#include "rensa/core/error.h"

namespace rensa {

namespace {

// --- one number ---
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
  constexpr double kLargest = sizeof(T) == 2 ? 1e3 : sizeof(T) == 4 ? 1e6 : 1e16;
  bool point = size == 0 || (size >= 1e-4 && size < kLargest);
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

// --- the numbers of an array ---
// What a text is made by: the thread's options and the separator of a call.
struct Style : xp::PrintOptions {
  std::string separator = " ";
};

// How the real numbers of one array are written, so that their points stand below one another.
template <class T> class FloatFormat {
 public:
  FloatFormat(const std::vector<double>& values, char sign, const Style& style)
      : style_(style), sign_(sign), precision_(style.precision) {
    if (style.floatmode == "unique") precision_ = kMaxPrecision;
    bool negative_infinity = false, negative = false;
    std::vector<double> finite;
    for (double v : values) {
      if (std::isfinite(v)) finite.push_back(v);
      negative_infinity |= std::isinf(v) && v < 0;
      negative |= std::isfinite(v) && std::signbit(v);
    }
    choose_notation(finite);
    for (double v : finite) measure(parts(v));
    if (sign == ' ' && !negative) ++left_;
    right_ = scientific_ ? exponent_ + 1 + fraction_ : fraction_;
    if (finite.size() == values.size()) return;
    // "nan" and "inf" take the room of a whole number, its point included.
    auto widen = [&](std::size_t width) {
      if (width > right_ + 1) left_ = std::max(left_, width - right_ - 1);
    };
    widen(style.nanstr.size());
    widen(style.infstr.size() + (negative_infinity || sign != '-'));
  }

  std::string operator()(double v) const {
    if (!std::isfinite(v)) {
      std::string text = std::isnan(v) ? style_.nanstr : style_.infstr;
      if (std::isinf(v) && v < 0) text.insert(text.begin(), '-');
      else if (sign_ == '+') text.insert(text.begin(), '+');
      return left_padded(text, left_ + right_ + 1);
    }
    if (!scientific_) {
      Parts p = parts(v);
      p.fraction.resize(fraction_, is_equal() ? '0' : ' ');
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
  bool is_fixed() const { return style_.floatmode == "fixed"; }
  bool is_equal() const { return is_fixed() || style_.floatmode == "maxprec_equal"; }

  void choose_notation(const std::vector<double>& finite) {
    double greatest = 0, least = std::numeric_limits<double>::infinity();
    for (double v : finite) {
      if (v == 0) continue;
      greatest = std::max(greatest, std::abs(v));
      least = std::min(least, std::abs(v));
    }
    // NumPy divides in the array's own type.
    scientific_ =
        greatest > 0 && (greatest >= kLargest ||
                         (!style_.suppress && (least < 1e-4 || ratio(greatest, least) > 1e3)));
  }
  static double ratio(double a, double b) {
    return static_cast<double>(T(static_cast<float>(a / b)));
  }
  Parts parts(double v) const {
    if (is_fixed()) {
      std::string text = scientific_ ? fmt::format("{:.{}e}", v, precision_)
                                     : fmt::format("{:.{}f}", v, precision_);
      return signed_parts(split(text, false), v);
    }
    return signed_parts(scientific_ ? scientific<T>(v, precision_) : positional<T>(v, precision_),
                        v);
  }
  Parts signed_parts(Parts p, double v) const {
    if (sign_ == '+' && !std::signbit(v)) p.integer.insert(p.integer.begin(), '+');
    return p;
  }
  void measure(const Parts& p) {
    left_ = std::max(left_, p.integer.size());
    fraction_ = std::max(fraction_, p.fraction.size());
    exponent_ = std::max(exponent_, p.exponent.size());
  }

  // 10 to the decimal digits of the type, at most 1e8.
  static constexpr double kLargest = sizeof(T) == 2 ? 1e3 : sizeof(T) == 4 ? 1e6 : 1e8;
  static constexpr int kMaxPrecision = 400;  // more than the longest unique text has

  const Style& style_;
  char sign_;
  int precision_;
  bool scientific_ = false;
  std::size_t left_ = 0, fraction_ = 0, exponent_ = 0, right_ = 0;
};

template <> double FloatFormat<double>::ratio(double a, double b) { return a / b; }

template <class T>
std::vector<std::string> format_floats(const T* data, std::size_t count, const Style& style) {
  std::vector<double> values(data, data + count);
  FloatFormat<T> format(values, style.sign, style);
  std::vector<std::string> texts;
  for (double v : values) texts.push_back(format(v));
  return texts;
}

template <class T>
std::vector<std::string> format_complex(const std::complex<T>* data, std::size_t count,
                                        const Style& style) {
  std::vector<double> real, imag;
  for (std::size_t i = 0; i < count; ++i) {
    real.push_back(static_cast<double>(data[i].real()));
    imag.push_back(static_cast<double>(data[i].imag()));
  }
  FloatFormat<T> format_real(real, style.sign, style), format_imag(imag, '+', style);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) {
    std::string j = format_imag(imag[i]);
    j.insert(j.find_last_not_of(' ') + 1, 1, 'j');  // before the blanks that align
    texts.push_back(format_real(real[i]) + j);
  }
  return texts;
}

template <class T>
std::vector<std::string> format_integers(const T* data, std::size_t count, const Style& style) {
  std::vector<std::string> texts;
  std::size_t width = 0;
  auto is_negative = [](T value) { return std::cmp_less(value, 0); };
  // A blank is the place of a minus where there is none.
  bool marked =
      style.sign == '+' || (style.sign == ' ' && std::none_of(data, data + count, is_negative));
  for (std::size_t i = 0; i < count; ++i) {
    texts.push_back(fmt::format("{}", data[i]));
    if (marked && !is_negative(data[i])) texts.back().insert(0, 1, style.sign);
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
std::vector<std::string> format_elements(const Array& host, const Style& style) {
  return visit_dtype(host.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* data = host.view().as<T>();
    auto count = static_cast<std::size_t>(host.size());
    if constexpr (std::same_as<T, bool>) return format_bools(data, count, host.ndim() > 0);
    else if constexpr (std::integral<T>) return format_integers(data, count, style);
    else if constexpr (requires { typename T::value_type; })
      return format_complex(data, count, style);
    else return format_floats(data, count, style);
  });
}

// --- the brackets around them ---
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
std::string body_of(const Array& a, const Style& style, std::size_t indent, int width) {
  if (a.size() == 0) return "[]";
  bool summarized = a.size() > style.threshold;
  Array host = rensa::detail::on_host("array2string", summarized ? edges(a, style.edgeitems) : a);
  return Layout(format_elements(host, style), host.shape(), a.shape(), style.edgeitems,
                style.separator)
      .write(std::string(indent + 1, ' '), width);
}

// Of a 0-d array.
std::string number_text(const Array& a) {
  return visit_dtype(a.dtype(), [&](auto zero) -> std::string {
    using T = decltype(zero);
    T value = a.item<T>();
    if constexpr (std::same_as<T, bool>) return value ? "True" : "False";
    else if constexpr (std::integral<T>) return fmt::format("{}", value);
    else if constexpr (requires { typename T::value_type; }) return written(value);
    else return written<T>(static_cast<double>(value), false);
  });
}

// --- the thread's options ---
xp::PrintOptions& current_options() {
  static thread_local xp::PrintOptions options;
  return options;
}

void check_options(const char* operation, const xp::PrintOptions& o) {
  if (o.precision < 0 || o.precision > 100 || o.edgeitems < 1 || o.linewidth < 1) {
    throw ValueError(fmt::format("{}: a precision of {}, {} edgeitems and lines of {} characters",
                                 operation, o.precision, o.edgeitems, o.linewidth));
  }
  if (o.sign != '-' && o.sign != '+' && o.sign != ' ') {
    throw ValueError(
        fmt::format("{}: the sign is '{}'; it has to be '-', '+' or ' '", operation, o.sign));
  }
  for (const char* mode : {"fixed", "unique", "maxprec", "maxprec_equal"}) {
    if (o.floatmode == mode) return;
  }
  throw ValueError(
      fmt::format("{}: floatmode is \"{}\"; it has to be \"fixed\", \"unique\", "
                  "\"maxprec\" or \"maxprec_equal\"",
                  operation, o.floatmode));
}

template <class T, class U> void change_to(T* value, const std::optional<U>& given) {
  if (given) *value = *given;
}

}  // namespace

namespace xp {

PrintOptions get_printoptions() { return current_options(); }

void set_printoptions(const PrintOptionsChange& change) {
  PrintOptions options = current_options();
  change_to(&options.precision, change.precision);
  change_to(&options.threshold, change.threshold);
  change_to(&options.edgeitems, change.edgeitems);
  change_to(&options.linewidth, change.linewidth);
  change_to(&options.suppress, change.suppress);
  change_to(&options.nanstr, change.nanstr);
  change_to(&options.infstr, change.infstr);
  change_to(&options.sign, change.sign);
  change_to(&options.floatmode, change.floatmode);
  check_options("set_printoptions", options);
  current_options() = std::move(options);
}

printoptions::~printoptions() { current_options() = std::move(before_); }

std::string array2string(const Array& a, const Array2StringOptions& options) {
  rensa::detail::check_defined("array2string", a);
  Style style{current_options(), options.separator};
  change_to(&style.linewidth, options.max_line_width);
  change_to(&style.precision, options.precision);
  change_to(&style.suppress, options.suppress_small);
  change_to(&style.threshold, options.threshold);
  change_to(&style.edgeitems, options.edgeitems);
  change_to(&style.sign, options.sign);
  change_to(&style.floatmode, options.floatmode);
  check_options("array2string", style);
  return body_of(a, style, options.prefix.size(), style.linewidth);
}

std::string array_str(const Array& a) {
  rensa::detail::check_defined("array_str", a);
  return a.ndim() == 0 ? number_text(a) : array2string(a);
}

std::string array_repr(const Array& a) {
  rensa::detail::check_defined("array_repr", a);
  static const std::string kPrefix = "array(";
  Style style{current_options(), ", "};
  std::string text = kPrefix + body_of(a, style, kPrefix.size(), style.linewidth - 1) + ",";
  std::string suffix;
  // Where the brackets do not tell the shape.
  if (a.size() > style.threshold || (a.size() == 0 && a.ndim() != 1)) {
    suffix = "shape=" + a.shape().str() + ", ";
  }
  suffix += fmt::format("dtype={}, device='{}')", dtype_name(a.dtype()), a.device().str());
  std::size_t last_line = text.size() - (text.rfind('\n') + 1);
  bool fits = last_line + suffix.size() + 1 <= static_cast<std::size_t>(style.linewidth);
  return text + (fits ? " " : "\n" + std::string(kPrefix.size(), ' ')) + suffix;
}

}  // namespace xp

std::ostream& operator<<(std::ostream& os, const Array& a) { return os << a.str(); }

}  // namespace rensa
