// Arrays in files, streams and buffers: NumPy's .npy and .npz, text, plain bytes. What reads puts
// its array on `device`, the current one when left out; what writes waits for the device.
//
// A file is written beside its path and then takes the place of what stood there, with its mode: it
// appears whole or not at all. Devices and pipes are written to, symbolic links are followed, and
// what may not be opened for writing is left alone. Streams are read from and written to where they
// stand, in binary mode. Files that are not what they should be give a SerializationError;
// memory is asked for only as far as their bytes go.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rensa/array/routines.h"

namespace rensa {

class ZipReader;

namespace xp {

// --- .npy and .npz ---

/// Writes `a` as .npy. As in NumPy, ".npy" is appended to a path that does not end so. bfloat16 is
/// written as ml_dtypes does ('<V2').
void save(const std::string& path, const Array& a);
void save(std::ostream& stream, const Array& a);
/// Reads a .npy: any order, either byte order. For an .npz say load_npz. A stream is left behind
/// the array, so that several may follow one another.
[[nodiscard]] Array load(const std::string& path, Placement device = {});
[[nodiscard]] Array load(std::istream& stream, Placement device = {});

struct LoadOptions {
  /// "r", "c", "r+": the elements stay in the file, which is mapped into host memory and read as
  /// they are touched. Operations that write them throw ValueError, change this process's memory
  /// alone, or change the file. Nothing: they are read now.
  std::string mmap_mode = {};
  Placement device = {};  // with mmap_mode the CPU
};
/// A file that is made shorter while it is mapped ends the program where the missing part is
/// touched.
[[nodiscard]] Array load(const std::string& path, const LoadOptions& options);

/// An array of an .npz, by its name.
struct NamedArray {
  std::string name;
  Array array;
};
/// Writes arrays as .npz: by their names, or as arr_0, arr_1, ... Stored, or deflated. ".npz" is
/// appended to a path that does not end so. Throws ValueError, before the file is touched, for
/// names that the format cannot hold: one that comes twice, is no UTF-8, has a NUL or more than
/// 65,531 bytes.
void savez(const std::string& path, std::span<const NamedArray> arrays);
void savez(const std::string& path, std::initializer_list<NamedArray> arrays);
void savez(const std::string& path, std::initializer_list<Array> arrays);
void savez(std::ostream& stream, std::span<const NamedArray> arrays);
void savez(std::ostream& stream, std::initializer_list<NamedArray> arrays);
void savez(std::ostream& stream, std::initializer_list<Array> arrays);
void savez_compressed(const std::string& path, std::span<const NamedArray> arrays);
void savez_compressed(const std::string& path, std::initializer_list<NamedArray> arrays);
void savez_compressed(const std::string& path, std::initializer_list<Array> arrays);
void savez_compressed(std::ostream& stream, std::span<const NamedArray> arrays);
void savez_compressed(std::ostream& stream, std::initializer_list<NamedArray> arrays);
void savez_compressed(std::ostream& stream, std::initializer_list<Array> arrays);

/// An .npz: what numpy.load gives for one. The file is read at once, an array of it when asked for.
class NpzFile {
 public:
  explicit NpzFile(const std::string& path);
  explicit NpzFile(std::istream& stream);  // all of it
  /// The names, without ".npy", sorted.
  std::vector<std::string> files() const;
  bool contains(const std::string& name) const;  // whether there is an array of that name
  /// Throws IndexError for a name that is not there.
  [[nodiscard]] Array get(const std::string& name, Placement device = {}) const;
  [[nodiscard]] Array operator[](const std::string& name) const { return get(name); }  // as get()

 private:
  std::string entry_of(const std::string& name) const;
  std::shared_ptr<const ZipReader> zip_;
};
/// NpzFile(path), NpzFile(stream).
NpzFile load_npz(const std::string& path);
NpzFile load_npz(std::istream& stream);

// --- bytes ---

/// An array of the elements in `buffer` from byte `offset` on: `count` of them, or all (-1). A
/// copy; xp::wrap shares. Throws ValueError where they do not come out even or are not there.
[[nodiscard]] Array frombuffer(std::span<const std::byte> buffer, Dtype dtype = float64,
                               std::int64_t count = -1, std::int64_t offset = 0,
                               Placement device = {});
[[nodiscard]] Array frombuffer(std::string_view buffer, Dtype dtype = float64,
                               std::int64_t count = -1, std::int64_t offset = 0,
                               Placement device = {});
/// The elements of a file of plain bytes from byte `offset` on; fewer than `count` where it ends,
/// bytes that are no whole element are left out.
[[nodiscard]] Array fromfile(const std::string& path, Dtype dtype = float64,
                             std::int64_t count = -1, std::int64_t offset = 0,
                             Placement device = {});
[[nodiscard]] Array fromfile(std::istream& stream, Dtype dtype = float64, std::int64_t count = -1,
                             std::int64_t offset = 0, Placement device = {});
/// Elements in C order, as plain bytes.
void tofile(const Array& a, const std::string& path);
void tofile(const Array& a, std::ostream& stream);
std::string tobytes(const Array& a);  // its elements in C order, as plain bytes. Waits.

// --- text ---

struct LoadtxtOptions {
  Dtype dtype = float64;
  std::string comments = "#";              // from where a line is left out; nothing: no comments
  std::string delimiter = {};              // nothing: blanks
  std::int64_t skiprows = 0;               // lines, comments included
  std::vector<std::int64_t> usecols = {};  // which fields of a line, all when left out
  bool unpack = false;                     // transposed
  int ndmin = 0;                           // axes of extent 1 beyond these are dropped
  std::int64_t max_rows = -1;              // at the most; -1: all
  Placement device = {};                   // the current device when left out
};
/// The numbers of a text file, one row per line. Throws ValueError naming line and field where
/// something is no number of the dtype or a line has another count of fields.
[[nodiscard]] Array loadtxt(const std::string& path, const LoadtxtOptions& options = {});
[[nodiscard]] Array loadtxt(std::istream& stream, const LoadtxtOptions& options = {});
/// The same of text in memory.
[[nodiscard]] Array parse_text(std::string_view text, const LoadtxtOptions& options = {});

/// numpy.fromstring's text mode: the numbers of a text, `sep` between them (blanks where it is
/// blank), all or the first `count`. 1-d. Throws ValueError for what is no number, and where there
/// are fewer than `count`.
[[nodiscard]] Array fromstring(std::string_view text, Dtype dtype = float64,
                               std::int64_t count = -1, std::string_view sep = " ",
                               Placement device = {});

struct GenfromtxtOptions {
  Dtype dtype = float64;
  std::string comments = "#";  // from where a line is left out
  std::string delimiter = {};  // nothing: blanks
  /// Lines at the start and at the end that are left out.
  std::int64_t skip_header = 0, skip_footer = 0;
  std::vector<std::int64_t> usecols = {};    // which fields of a line, all when left out
  std::optional<Scalar> filling_value = {};  // nothing: NaN, -1 of integers, False of bools
  bool unpack = false;                       // transposed
  std::int64_t max_rows = -1;                // at the most; -1: all
  Placement device = {};                     // the current device when left out
};
/// As loadtxt, with `filling_value` where a field is empty or no number. Throws ValueError where
/// the dtype has no such number.
[[nodiscard]] Array genfromtxt(const std::string& path, const GenfromtxtOptions& options = {});
[[nodiscard]] Array genfromtxt(std::istream& stream, const GenfromtxtOptions& options = {});

struct SavetxtOptions {
  std::string fmt = "%.18e";             // one printf conversion, of e f g E F G d i u x X o
  std::string delimiter = " ";           // between the numbers of a line
  std::string newline = "\n";            // behind a line
  std::string header = {}, footer = {};  // in front of all lines, and behind them
  std::string comments = "# ";           // in front of the lines of header and footer
};
/// Writes a one- or two-dimensional array, one row per line. Complex numbers are written as
/// (real+imagj). Throws ShapeError, ValueError for another fmt and for a NaN or an infinity that is
/// to be written as an integer.
void savetxt(const std::string& path, const Array& a, const SavetxtOptions& options = {});
void savetxt(std::ostream& stream, const Array& a, const SavetxtOptions& options = {});

}  // namespace xp

}  // namespace rensa
