// The .npy format (numpy.lib.format): a header in Python's notation, then the elements. Read with
// bounds and without evaluating anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "rensa/array/array.h"
#include "rensa/core/files.h"

namespace rensa {

struct NpyHeader {
  Dtype dtype = Dtype::float32;
  bool is_object = false;         // pickled Python objects: how Chainer stores None
  std::int64_t text_length = -1;  // of NumPy's texts, '<U5': characters of 4 bytes
  bool fortran_order = false;
  bool byte_swapped = false;  // big-endian elements
  Shape shape;
  std::size_t data_offset = 0;  // bytes before the elements
  /// Bytes of the elements.
  std::int64_t nbytes() const {
    return shape.total() * (text_length < 0 ? itemsize(dtype) : 4 * text_length);
  }
};

/// Reads the header of `file`; `name` stands in errors. Throws SerializationError for anything but
/// a .npy of a dtype that arrays have (or object, or a text), and for sizes that overflow.
NpyHeader parse_npy_header(std::span<const char> file, const std::string& name);

/// A host array of the elements of a whole .npy file, in C order; its size must be what the header
/// declares. Throws SerializationError.
[[nodiscard]] Array parse_npy(std::span<const char> file, const std::string& name);

/// The same of what stands next in `file`, which is left behind the elements. Memory is taken only
/// for what the file bears out.
[[nodiscard]] Array read_npy(FileReader& file);

/// A host array over the elements as they lie in the file, without a copy; of a file in Fortran
/// order the array is too. Throws SerializationError for a file that is no .npy, and for elements
/// that cannot be used where they lie: of the other byte order, misaligned, bools other than 0
/// and 1.
[[nodiscard]] Array map_npy(const std::string& path, FileMapping::Mode mode);

/// Writes the .npy file of a host array in C order. bfloat16, which NumPy has not, is written as
/// numpy.save does it with ml_dtypes, '<V2': in Python say a.view(ml_dtypes.bfloat16). Every void
/// of two bytes is read as bfloat16.
void write_npy(FileWriter& file, const Array& array);

/// What write_npy puts in front of the elements.
std::string npy_header(const Array& array);

/// The bytes of the elements of a host array in C order.
std::string_view bytes_of(const Array& array);

/// The .npy file of `array`, which is copied to the host.
std::string format_npy(const Array& array);

/// The .npy file that numpy.save makes of a str, given as UTF-8; what is no UTF-8 becomes U+FFFD.
std::string format_npy_text(std::string_view utf8);

/// The text of a whole .npy file that holds one, as UTF-8. Throws SerializationError.
[[nodiscard]] std::string parse_npy_text(std::span<const char> file, const std::string& name);

/// The .npy file that numpy.save makes of None.
std::string npy_of_none();

}  // namespace rensa
