// Arrays in files and buffers: NumPy's .npy and .npz, text, plain bytes. What reads puts its array
// on `device`, the current one when left out; what writes waits for the device. Files that are not
// what they should be give a SerializationError and allocate no more than they bear out.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rensa/array/routines.h"

namespace rensa {

class ZipReader;

namespace xp {

// --- .npy and .npz (array/io.cc)
// -------------------------------------------------------------------

/// Writes `a` as .npy; the file appears whole or not at all. As in NumPy, ".npy" is appended to a
/// path that does not end so. bfloat16 is written as ml_dtypes does ('<V2').
void save(const std::string& path, const Array& a);
/// Reads a .npy: any order, either byte order. For an .npz say load_npz.
Array load(const std::string& path, Placement device = {});

/// An array of an .npz, by its name.
struct NamedArray {
  std::string name;
  Array array;
};
/// Writes arrays as .npz: by their names, or as arr_0, arr_1, ... Stored, or deflated. ".npz" is
/// appended to a path that does not end so. Throws ValueError for a name that comes twice.
void savez(const std::string& path, std::span<const NamedArray> arrays);
void savez(const std::string& path, std::initializer_list<NamedArray> arrays);
void savez(const std::string& path, std::initializer_list<Array> arrays);
void savez_compressed(const std::string& path, std::span<const NamedArray> arrays);
void savez_compressed(const std::string& path, std::initializer_list<NamedArray> arrays);
void savez_compressed(const std::string& path, std::initializer_list<Array> arrays);

/// An .npz: what numpy.load gives for one. The file is read at once, an array of it when asked for.
class NpzFile {
 public:
  explicit NpzFile(const std::string& path);
  /// The names, without ".npy", sorted.
  std::vector<std::string> files() const;
  bool contains(const std::string& name) const;
  /// Throws IndexError for a name that is not there.
  Array get(const std::string& name, Placement device = {}) const;
  Array operator[](const std::string& name) const { return get(name); }

 private:
  std::string entry_of(const std::string& name) const;
  std::shared_ptr<const ZipReader> zip_;
};
NpzFile load_npz(const std::string& path);

// --- bytes (array/io.cc)
// ---------------------------------------------------------------------------

/// An array of the elements in `buffer` from byte `offset` on: `count` of them, or all (-1). A
/// copy; xp::wrap shares. Throws ValueError where they do not come out even or are not there.
Array frombuffer(std::span<const std::byte> buffer, Dtype dtype = float64, std::int64_t count = -1,
                 std::int64_t offset = 0, Placement device = {});
Array frombuffer(std::string_view buffer, Dtype dtype = float64, std::int64_t count = -1,
                 std::int64_t offset = 0, Placement device = {});
/// The elements of a file of plain bytes; fewer than `count` where it ends, bytes that are no whole
/// element are left out.
Array fromfile(const std::string& path, Dtype dtype = float64, std::int64_t count = -1,
               std::int64_t offset = 0, Placement device = {});
/// Elements in C order, as plain bytes.
void tofile(const Array& a, const std::string& path);
std::string tobytes(const Array& a);

// --- text (array/text.cc)
// --------------------------------------------------------------------------

struct LoadtxtOptions {
  Dtype dtype = float64;
  std::string comments = "#";  // from where a line is left out; nothing: no comments
  std::string delimiter = {};  // nothing: blanks
  std::int64_t skiprows = 0;   // lines, comments included
  std::vector<std::int64_t> usecols = {};
  bool unpack = false;  // transposed
  int ndmin = 0;        // axes of extent 1 beyond these are dropped
  std::int64_t max_rows = -1;
  Placement device = {};
};
/// The numbers of a text file, a row a line. Throws ValueError naming line and field where
/// something is no number of the dtype or a line has another count of fields.
Array loadtxt(const std::string& path, const LoadtxtOptions& options = {});
/// The same of text in memory.
Array parse_text(std::string_view text, const LoadtxtOptions& options = {});

struct GenfromtxtOptions {
  Dtype dtype = float64;
  std::string comments = "#";
  std::string delimiter = {};
  std::int64_t skip_header = 0, skip_footer = 0;
  std::vector<std::int64_t> usecols = {};
  double filling_value = std::numeric_limits<double>::quiet_NaN();
  bool unpack = false;
  std::int64_t max_rows = -1;
  Placement device = {};
};
/// As loadtxt, with `filling_value` where a field is empty or no number; NaN stands for -1 in
/// integers.
Array genfromtxt(const std::string& path, const GenfromtxtOptions& options = {});

struct SavetxtOptions {
  std::string fmt = "%.18e";  // one printf conversion, of e f g E F G d i u x X o
  std::string delimiter = " ";
  std::string newline = "\n";
  std::string header = {}, footer = {};
  std::string comments = "# ";  // in front of the lines of header and footer
};
/// Writes a one- or two-dimensional array, a row a line. Complex numbers are written as
/// (real+imagj). Throws ShapeError, ValueError for another fmt.
void savetxt(const std::string& path, const Array& a, const SavetxtOptions& options = {});

}  // namespace xp

}  // namespace rensa
