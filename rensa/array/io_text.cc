// Arrays as lines of numbers, whatever the program's locale.
#include <fmt/format.h>
#include <locale.h>  // NOLINT(modernize-deprecated-headers): newlocale, uselocale

#include <algorithm>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>

#include "rensa/array/internal.h"
#include "rensa/array/io.h"
#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/core/host_memory.h"

namespace rensa::xp {

namespace {

// printf and strtod take the C locale's point while this stands, on this thread alone.
class PlainNumbers {
 public:
  PlainNumbers() : before_(uselocale(plain())) {}
  ~PlainNumbers() { uselocale(before_); }
  PlainNumbers(const PlainNumbers&) = delete;
  PlainNumbers& operator=(const PlainNumbers&) = delete;

 private:
  static locale_t plain() {
    static const locale_t locale = newlocale(LC_ALL_MASK, "C", nullptr);
    return locale;
  }
  locale_t before_;
};

// --- one field ---

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// A real number at the front of `text`, which is left with what follows it.
bool take_real(std::string_view* text, double* value) {
  bool plus = !text->empty() && text->front() == '+';
  if (plus) text->remove_prefix(1);
  if (plus && !text->empty() && text->front() == '-') return false;
  const char *begin = text->data(), *end = begin + text->size();
  auto [rest, error] = std::from_chars(begin, end, *value);
  if (error == std::errc::result_out_of_range) {
    // Infinity or nearly nothing, which strtod tells apart.
    PlainNumbers plain;
    *value = std::strtod(std::string(begin, rest).c_str(), nullptr);
  } else if (error != std::errc()) {
    return false;
  }
  text->remove_prefix(static_cast<std::size_t>(rest - begin));
  return true;
}

bool parse(std::string_view text, double* value) { return take_real(&text, value) && text.empty(); }

// 1, 2j, 1+2j or these in parentheses, as Python and savetxt write them.
bool parse(std::string_view text, std::complex<double>* value) {
  if (text.size() >= 2 && text.front() == '(' && text.back() == ')') {
    text = trimmed(text.substr(1, text.size() - 2));
  }
  double real = 0, imaginary = 0;
  if (!take_real(&text, &real)) return false;
  if (text == "j") {
    *value = {0, real};
    return true;
  }
  if (!text.empty()) {
    if (text.front() != '+' && text.front() != '-') return false;
    if (!take_real(&text, &imaginary) || text != "j") return false;
  }
  *value = {real, imaginary};
  return true;
}

template <std::integral T> bool parse(std::string_view text, T* value) {
  if constexpr (std::same_as<T, bool>) {
    if (text == "True" || text == "False") {
      *value = text == "True";
      return true;
    }
    std::int64_t number = 0;
    if (!parse(text, &number)) return false;
    *value = number != 0;
    return true;
  } else {
    if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
    auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
    return error == std::errc() && rest == text.data() + text.size();
  }
}

// Appends the element that `text` stands for; false where it stands for none.
template <class T> bool append(std::string_view text, std::vector<char>* bytes) {
  T element;
  if constexpr (std::integral<T>) {
    if (!parse(text, &element)) return false;
  } else if constexpr (requires { typename T::value_type; }) {
    std::complex<double> value;
    if (!parse(text, &value)) return false;
    element = T(static_cast<typename T::value_type>(value.real()),
                static_cast<typename T::value_type>(value.imag()));
  } else {
    double value;
    if (!parse(text, &value)) return false;
    if constexpr (std::floating_point<T>) element = static_cast<T>(value);
    else element = T(static_cast<float>(value));
  }
  const char* first = reinterpret_cast<const char*>(&element);
  bytes->insert(bytes->end(), first, first + sizeof(T));
  return true;
}

// Appends the number that stands for what is missing; false where T has no such number.
template <class T> bool append_filling(Scalar filling, std::vector<char>* bytes) {
  if constexpr (std::integral<T> && !std::same_as<T, bool>) {
    double real = filling.real();
    bool fits = filling.is_integral()
                    ? !rensa::detail::is_out_of_range(filling, dtype_of<T>)
                    : std::trunc(real) >= static_cast<double>(std::numeric_limits<T>::min()) &&
                          real < std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (!fits) return false;
    if (!filling.is_integral()) {
      auto element = static_cast<T>(real);
      const char* first = reinterpret_cast<const char*>(&element);
      bytes->insert(bytes->end(), first, first + sizeof(T));
      return true;
    }
  }
  T element = filling.as<T>();
  const char* first = reinterpret_cast<const char*>(&element);
  bytes->insert(bytes->end(), first, first + sizeof(T));
  return true;
}

// --- lines ---

struct TableOptions {
  const char* operation;
  Dtype dtype;
  std::string_view comments, delimiter;
  const std::vector<std::int64_t>& usecols;
  std::int64_t max_rows;
  std::optional<Scalar> filling;  // for what is no number
};

class TableReader {
 public:
  explicit TableReader(const TableOptions& options) : options_(options) {
    for (std::int64_t column : options_.usecols) {
      if (column < -(std::int64_t{1} << 40) || column > std::int64_t{1} << 40) {
        throw ValueError(fmt::format("{}: there is no column {}", options_.operation, column));
      }
    }
  }

  void read(const std::vector<std::string_view>& lines, std::int64_t first_line) {
    line_ = first_line;
    for (std::string_view line : lines) {
      ++line_;
      if (options_.max_rows >= 0 && rows_ >= options_.max_rows) return;
      if (!options_.comments.empty()) line = line.substr(0, line.find(options_.comments));
      if (trimmed(line).empty()) continue;
      split(line);
      read_row();
    }
  }

  Array array(Placement device) const {
    Shape shape{rows_, rows_ ? columns_ : 0};
    return from_host(bytes_.data(), shape, options_.dtype, device);
  }
  std::int64_t rows() const { return rows_; }

 private:
  void split(std::string_view line) {
    fields_.clear();
    if (!options_.delimiter.empty()) {
      for (;;) {
        std::size_t end = line.find(options_.delimiter);
        fields_.push_back(trimmed(line.substr(0, end)));
        if (end == line.npos) return;
        line.remove_prefix(end + options_.delimiter.size());
      }
    }
    for (line = trimmed(line); !line.empty(); line = trimmed(line)) {
      std::size_t end = 0;
      while (end < line.size() && !is_blank(line[end])) ++end;
      fields_.push_back(line.substr(0, end));
      line.remove_prefix(end);
    }
  }

  void read_row() {
    auto there = static_cast<std::int64_t>(fields_.size());
    if (rows_ == 0) {
      columns_ =
          options_.usecols.empty() ? there : static_cast<std::int64_t>(options_.usecols.size());
      all_columns_ = there;
    }
    if (options_.usecols.empty() || options_.filling) {
      if (there != all_columns_) {
        throw ValueError(fmt::format("{}: line {} has {} fields, the lines before it {}",
                                     options_.operation, line_, there, all_columns_));
      }
    }
    ++rows_;
    if (options_.usecols.empty()) {
      for (std::int64_t i = 0; i < there; ++i) read_field(i);
      return;
    }
    for (std::int64_t column : options_.usecols) {
      std::int64_t i = column < 0 ? column + there : column;
      if (i < 0 || i >= there) {
        throw ValueError(fmt::format("{}: line {} has {} fields, there is no column {}",
                                     options_.operation, line_, there, column));
      }
      read_field(i);
    }
  }

  void read_field(std::int64_t i) {
    std::string_view field = fields_[static_cast<std::size_t>(i)];
    visit_dtype(options_.dtype, [&](auto zero) {
      using T = decltype(zero);
      if (append<T>(field, &bytes_)) return;
      if (options_.filling) {
        if (append_filling<T>(*options_.filling, &bytes_)) return;
        throw ValueError(fmt::format(
            "{}: line {}, field {} is missing, and the filling_value {} is no {}; give another one",
            options_.operation, line_, i + 1, options_.filling->real(),
            dtype_name(options_.dtype)));
      }
      throw ValueError(fmt::format("{}: line {}, field {}: '{}' is no {}", options_.operation,
                                   line_, i + 1, field.substr(0, 40), dtype_name(options_.dtype)));
    });
  }

  TableOptions options_;
  std::vector<std::string_view> fields_;
  std::vector<char> bytes_;
  std::int64_t line_ = 0, rows_ = 0, columns_ = 0, all_columns_ = 0;
};

// The lines of a text, which end in \n, \r or both.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    std::size_t end = text.find_first_of("\r\n");
    lines.push_back(text.substr(0, end));
    if (end == text.npos) break;
    bool both = text[end] == '\r' && end + 1 < text.size() && text[end + 1] == '\n';
    text.remove_prefix(end + (both ? 2 : 1));
  }
  return lines;
}

std::vector<std::string_view> without_ends(std::vector<std::string_view> lines, std::int64_t head,
                                           std::int64_t foot) {
  auto count = static_cast<std::int64_t>(lines.size());
  head = std::clamp<std::int64_t>(head, 0, count);
  foot = std::clamp<std::int64_t>(foot, 0, count - head);
  lines.erase(lines.end() - foot, lines.end());
  lines.erase(lines.begin(), lines.begin() + head);
  return lines;
}

// Without axes of extent 1, but with `ndmin` axes, as loadtxt has it.
Array squeezed(Array a, int ndmin, bool unpack, bool empty) {
  if (empty) {
    if (ndmin < 2) a = a.reshape({0});
  } else {
    bool one_column = a.shape(1) == 1;
    if (a.ndim() > ndmin) a = a.squeeze();
    while (a.ndim() < ndmin) a = a.expand_dims(one_column && a.ndim() == 1 ? 1 : 0);
  }
  return unpack ? a.transpose() : a;
}

}  // namespace

Array fromstring(std::string_view text, Dtype dtype, std::int64_t count, std::string_view sep,
                 Placement device) {
  std::string delimiter;
  for (char c : sep) {
    if (c != ' ' && c != '\t' && c != '\n') delimiter += c;
  }
  std::string line(text);
  for (char& c : line) c = c == '\n' || c == '\r' ? ' ' : c;
  Array all = parse_text(
      line, {.dtype = dtype, .comments = {}, .delimiter = delimiter, .ndmin = 1, .device = device});
  if (count < 0) return all;
  if (all.size() < count) {
    throw ValueError(fmt::format("fromstring: the text has {} numbers, not {}", all.size(), count));
  }
  return all[Slice(count)].copy();
}

Array parse_text(std::string_view text, const LoadtxtOptions& options) {
  if (options.ndmin < 0 || options.ndmin > 2) {
    throw ValueError(fmt::format("loadtxt: ndmin is {}, not 0, 1 or 2", options.ndmin));
  }
  TableReader reader({"loadtxt", options.dtype, options.comments, options.delimiter,
                      options.usecols, options.max_rows, std::nullopt});
  with_host_memory("loadtxt", [&] {
    reader.read(without_ends(lines_of(text), options.skiprows, 0), options.skiprows);
  });
  return squeezed(reader.array(options.device), options.ndmin, options.unpack, reader.rows() == 0);
}

Array loadtxt(const std::string& path, const LoadtxtOptions& options) {
  return parse_text(rensa::detail::read_whole_file(path), options);
}

Array loadtxt(std::istream& stream, const LoadtxtOptions& options) {
  return parse_text(FileReader(stream).read_rest(), options);
}

namespace {

// What stands for a field that is missing unless the caller says: NumPy's choice.
Scalar default_filling(Dtype dtype) {
  switch (dtype_kind(dtype)) {
    case 'b': return false;
    case 'i':
    case 'u': return -1;
    default: return std::numeric_limits<double>::quiet_NaN();
  }
}

Array table_of(FileReader&& file, const GenfromtxtOptions& options) {
  std::string text = file.read_rest();
  TableReader reader({"genfromtxt", options.dtype, options.comments, options.delimiter,
                      options.usecols, options.max_rows,
                      options.filling_value.value_or(default_filling(options.dtype))});
  with_host_memory("genfromtxt", [&] {
    reader.read(without_ends(lines_of(text), options.skip_header, options.skip_footer),
                options.skip_header);
  });
  return squeezed(reader.array(options.device), 0, options.unpack, reader.rows() == 0);
}

}  // namespace

Array genfromtxt(const std::string& path, const GenfromtxtOptions& options) {
  return table_of(FileReader(path), options);
}

Array genfromtxt(std::istream& stream, const GenfromtxtOptions& options) {
  return table_of(FileReader(stream), options);
}

// --- writing ---

namespace {

// The one conversion of a printf format, to which the arguments' types are fitted.
class NumberFormat {
 public:
  explicit NumberFormat(const std::string& fmt) {
    auto fail = [&](const char* what) {
      throw ValueError(fmt::format("savetxt: the format '{}' {}", fmt, what));
    };
    std::size_t i = 0;
    auto literal = [&](std::string* text) {
      for (; i < fmt.size(); ++i) {
        if (fmt[i] == '%' && !(i + 1 < fmt.size() && fmt[i + 1] == '%')) return;
        i += fmt[i] == '%';
        *text += fmt[i];
      }
    };
    auto digits = [&] {
      std::size_t start = i;
      while (i < fmt.size() && fmt[i] >= '0' && fmt[i] <= '9') ++i;
      if (i - start > 3) fail("asks for too many places");
    };
    literal(&before_);
    std::size_t start = i++;
    while (i < fmt.size() && std::strchr("-+ #0", fmt[i])) ++i;
    digits();
    if (i < fmt.size() && fmt[i] == '.') ++i, digits();
    if (i >= fmt.size() || !std::strchr("efgEFGdiuxXo", fmt[i])) {
      fail("has no conversion of the kinds e, f, g, E, F, G, d, i, u, x, X and o");
    }
    conversion_ = fmt.substr(start, i - start);
    large_ = conversion_.substr(0, conversion_.find('.')) + ".0f";
    kind_ = fmt[i++];
    literal(&after_);
    if (i < fmt.size()) fail("has more than one conversion");
    is_float_ = std::strchr("efgEFG", kind_) != nullptr;
    conversion_ += is_float_ ? "" : "ll";
    conversion_ += kind_;
  }

  std::string operator()(double value) const {
    if (is_float_) return print(value);
    double whole = std::trunc(value);
    bool is_signed = kind_ == 'd' || kind_ == 'i';
    if (whole >= -0x1p63 && whole < 0x1p63) return print(static_cast<long long>(whole));
    if (is_signed && std::isfinite(whole)) return print(large_, whole);  // exact, as in Python
    throw ValueError(
        fmt::format("savetxt: {} is no integer that the format '{}' could write", value, kind_));
  }
  std::string operator()(std::int64_t value) const {
    return is_float_ ? print(static_cast<double>(value)) : print(static_cast<long long>(value));
  }
  std::string operator()(std::uint64_t value) const {
    if (value >> 63 && (kind_ == 'd' || kind_ == 'i')) {
      return print(conversion_.substr(0, conversion_.size() - 1) + 'u', value);
    }
    return is_float_ ? print(static_cast<double>(value)) : print(static_cast<long long>(value));
  }

 private:
  template <class T> std::string print(T value) const { return print(conversion_, value); }
  template <class T> std::string print(const std::string& conversion, T value) const {
    char buffer[2048];  // 309 digits and 999 places fit
    int size = std::snprintf(buffer, sizeof(buffer), conversion.c_str(), value);
    return before_ + std::string(buffer, static_cast<std::size_t>(std::max(size, 0))) + after_;
  }

  std::string before_, conversion_, after_;
  std::string large_;  // for whole numbers beyond 64 bits
  char kind_ = 'e';
  bool is_float_ = true;
};

template <class T> std::string format_element(const NumberFormat& format, const T& value) {
  if constexpr (requires { typename T::value_type; }) {
    std::string imaginary = format(static_cast<double>(value.imag()));
    if (imaginary.find('-') != 0 && imaginary.find('+') != 0) imaginary.insert(0, 1, '+');
    return fmt::format(" ({}{}j)", format(static_cast<double>(value.real())), imaginary);
  } else if constexpr (std::same_as<T, std::uint64_t>) {
    return format(value);
  } else if constexpr (std::integral<T>) {
    return format(static_cast<std::int64_t>(value));
  } else {
    return format(static_cast<double>(static_cast<float>(value)));
  }
}
template <> std::string format_element(const NumberFormat& format, const double& value) {
  return format(value);
}

void write_lines(std::string_view text, const SavetxtOptions& options, FileWriter* file) {
  if (text.empty()) return;
  for (;;) {
    std::size_t end = text.find('\n');
    file->write(options.comments);
    file->write(text.substr(0, end));
    file->write(options.newline);
    if (end == text.npos) return;
    text.remove_prefix(end + 1);
  }
}

// `target` is a path or a stream.
template <class Target>
void write_table(Target& target, const Array& a, const SavetxtOptions& options) {
  rensa::detail::check_defined("savetxt", a);
  if (a.ndim() != 1 && a.ndim() != 2) {
    throw ShapeError(
        fmt::format("savetxt: {} is neither one- nor two-dimensional", a.view().describe()));
  }
  NumberFormat format(options.fmt);
  Array host = rensa::detail::on_host("savetxt", a);
  std::int64_t columns = a.ndim() == 2 ? a.shape(1) : 1;
  FileWriter file(target);
  write_lines(options.header, options, &file);
  PlainNumbers plain;
  visit_dtype(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* data = host.view().template as<T>();
    for (std::int64_t i = 0; i < a.shape(0); ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        if (j > 0) file.write(options.delimiter);
        file.write(format_element(format, data[i * columns + j]));
      }
      file.write(options.newline);
    }
  });
  write_lines(options.footer, options, &file);
  file.finish();
}

}  // namespace

void savetxt(const std::string& path, const Array& a, const SavetxtOptions& options) {
  write_table(path, a, options);
}

void savetxt(std::ostream& stream, const Array& a, const SavetxtOptions& options) {
  write_table(stream, a, options);
}

}  // namespace rensa::xp
