// Arrays as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rensa/array/array.h"

namespace rensa::xp {

/// How the calling thread's arrays are written: numpy.get_printoptions.
struct PrintOptions {
  int precision = 8;              // digits after the point, see floatmode
  std::int64_t threshold = 1000;  // more elements are shown by the edges
  int edgeitems = 3;              // elements at each end of an axis that is cut short
  int linewidth = 75;             // characters of a line, at the most
  bool suppress = false;          // small numbers never in scientific notation
  std::string nanstr = "nan";     // how NaN is written
  std::string infstr = "inf";     // how infinity is written
  char sign = '-';                // '+': in front of positive numbers too; ' ': a blank there
  /// "fixed": all with `precision` digits; "unique": as many as tell a number from its neighbours;
  /// "maxprec": these, `precision` at most; "maxprec_equal": that, as many for all.
  std::string floatmode = "maxprec";
};
PrintOptions get_printoptions();  // the calling thread's options

/// What set_printoptions changes: set_printoptions({.precision = 3}).
struct PrintOptionsChange {
  std::optional<int> precision = {};
  /// These stay as they are when left out, as all of PrintOptions' fields do.
  std::optional<std::int64_t> threshold = {};
  std::optional<int> edgeitems = {};          // as of PrintOptions
  std::optional<int> linewidth = {};          // as of PrintOptions
  std::optional<bool> suppress = {};          // as of PrintOptions
  std::optional<std::string> nanstr = {};     // as of PrintOptions
  std::optional<std::string> infstr = {};     // as of PrintOptions
  std::optional<char> sign = {};              // as of PrintOptions
  std::optional<std::string> floatmode = {};  // as of PrintOptions
};
/// For the calling thread. Throws ValueError, and changes nothing then.
void set_printoptions(const PrintOptionsChange& change);

/// numpy.printoptions: the options in a scope.
///     xp::printoptions scope({.precision = 3});
class [[nodiscard]] printoptions {
 public:
  explicit printoptions(const PrintOptionsChange& change) : before_(get_printoptions()) {
    set_printoptions(change);
  }
  ~printoptions();
  printoptions(const printoptions&) = delete;
  printoptions& operator=(const printoptions&) = delete;

 private:
  PrintOptions before_;
};

/// numpy.array2string's arguments; what is left out is as in get_printoptions().
struct Array2StringOptions {
  std::optional<int> max_line_width = {};   // in place of linewidth
  std::optional<int> precision = {};        // digits behind the point
  std::optional<bool> suppress_small = {};  // in place of `suppress`
  std::string separator = " ";              // between the elements
  std::string prefix = {};  // what the caller writes in front: later lines are indented by it
  std::optional<std::int64_t> threshold = {};  // as of PrintOptions
  std::optional<int> edgeitems = {};           // as of PrintOptions
  std::optional<char> sign = {};               // as of PrintOptions
  std::optional<std::string> floatmode = {};   // as of PrintOptions
};

/// The elements in brackets. Waits for the device, as the others. Throws ValueError.
std::string array2string(const Array& a, const Array2StringOptions& options = {});
/// What array2string makes of it, "[0 1 2]"; a 0-d array is its number, as Python writes it: "2.0".
std::string array_str(const Array& a);
/// With the dtype and the device: "array([0, 1, 2], dtype=int64, device='cpu')".
std::string array_repr(const Array& a);

/// NumPy's keywords of format_float_positional and format_float_scientific.
struct FormatFloatOptions {
  /// Digits after the point; as many as there are when left out, which without `unique` is 17.
  std::optional<int> precision = {};
  bool unique =
      true;  // the fewest digits that tell the number apart, else those of its exact value
  /// Of trailing zeros: 'k' keeps them and the point, '.' drops them, '0' leaves one, '-' drops the
  /// point too.
  char trim = 'k';
  bool sign = false;   // a plus before what is positive
  int pad_left = 0;    // blanks until there are so many characters up to the point
  int pad_right = 0;   // likewise behind it
  int min_digits = 0;  // at least so many after the point
  int exp_digits = 2;  // of the exponent
};
/// A number without an exponent, and with one. Throws ValueError for another `trim`.
std::string format_float_positional(double x, const FormatFloatOptions& options = {});
std::string format_float_scientific(double x, const FormatFloatOptions& options = {});
/// A number in a base of 2 to 36, with `padding` zeros in front.
std::string base_repr(std::int64_t number, int base = 2, int padding = 0);
/// The system, the library's version, compiler and BLAS library, the CPU, the GPUs, and NVIDIA's
/// libraries with their versions and places: a line for each.
std::string show_config();

}  // namespace rensa::xp
