// What lasts in safetensors files, the format in which weights are published: a header of JSON,
// then the elements. PyTorch reads and writes them with the package `safetensors`.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <string>

#include "rensa/array/array.h"
#include "rensa/links/visitor.h"
#include "rensa/serializers/naming.h"

namespace rensa::serializers {

struct SaveSafetensorsOptions {
  Naming names = {};
  std::map<std::string, std::string> metadata = {};  // texts that stand in the header
  /// Bytes of arrays in one file; 0: all. What is more is cut into files "m-00001-of-00002.x"
  /// beside `path` "m.x", and "m.x.index.json" says which has what, as published weights have it.
  std::int64_t max_shard_size = 0;
};
/// Writes all that `what` shows in its members(Visitor&), but States, by the names that `names`
/// gives: arrays as they are, a number as one of int64, float64 or bool without axes, a text as
/// uint8, its UTF-8. A file appears whole or not at all, an index after its files; a file
/// that stood in the place of an index goes, and an index in the place of a file. Waits for the
/// device. Throws SerializationError; ValueError for what has no values yet, as a parameter that
/// waits for its shape, and where something is shown twice or two members have one name; DtypeError
/// for complex numbers, which the format lacks.
void save_safetensors(const std::string& path, const Members& what,
                      const SaveSafetensorsOptions& options = {});
/// The same of arrays by their names.
void save_safetensors(const std::string& path, const std::map<std::string, Array>& arrays,
                      const std::map<std::string, std::string>& metadata = {},
                      std::int64_t max_shard_size = 0);

struct LoadSafetensorsOptions {
  /// The file's names and the model's must be the same; off: what is in both is loaded.
  bool strict = true;
  /// Names below this one are taken: "transformer" of "transformer.wte.weight".
  std::string path = {};
  Naming names = {};
};
namespace detail {
void load_safetensors(const std::string& path, const Members& what,
                      const LoadSafetensorsOptions& options);
}

/// `path` is a file's, an index's ("m.safetensors.index.json"), or that of what was cut into files.
/// As load_npz: nothing is changed unless all of the file fits, values are converted to the dtypes
/// that are there. Throws SerializationError, with the file's name and the tensor's, for a file
/// that is damaged (all sizes in it are held against the bytes that are there) or has a dtype that
/// arrays have not, and listing the names for one of another model; ShapeError.
template <class T>
requires(HasMembers<T> || std::invocable<T&, Visitor&>) void load_safetensors(
    const std::string& path, T&& what, const LoadSafetensorsOptions& options = {}) {
  detail::load_safetensors(path, Members(what), options);
}
/// All arrays of a file or of those of an index, on the CPU: the files' own pages, read when they
/// are touched. What is written to the arrays stays with this process; a file that is made shorter
/// while they live ends the program where the missing part is touched (a file that is replaced, as
/// all of the library's are, does not). Throws SerializationError.
[[nodiscard]] std::map<std::string, Array> load_safetensors(const std::string& path);

}  // namespace rensa::serializers
