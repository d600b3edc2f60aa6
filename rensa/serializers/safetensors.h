// What lasts in safetensors files, the format in which weights are published: a header of JSON,
// then the elements. PyTorch reads and writes them with the package `safetensors`.
#pragma once

#include <concepts>
#include <map>
#include <string>

#include "rensa/array/array.h"
#include "rensa/links/visitor.h"
#include "rensa/serializers/naming.h"

namespace rensa::serializers {

struct SaveSafetensorsOptions {
  Naming names = {};
  std::map<std::string, std::string> metadata = {};  // texts that stand in the header
};
/// Writes all that `what` shows in its members(Visitor&), but States, by the names that `names`
/// gives: arrays as they are, a number as one of int64, float64 or bool without axes, a text as
/// uint8, its UTF-8. The file appears whole or not at all. Waits for the device. Throws
/// SerializationError; ValueError for what has no values yet, as a parameter that waits for its
/// shape, and where something is shown twice or two members have one name; DtypeError for complex
/// numbers, which the format lacks.
void save_safetensors(const std::string& path, const Members& what,
                      const SaveSafetensorsOptions& options = {});
/// The same of arrays by their names.
void save_safetensors(const std::string& path, const std::map<std::string, Array>& arrays,
                      const std::map<std::string, std::string>& metadata = {});

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

/// As load_npz: nothing is changed unless all of the file fits, values are converted to the dtypes
/// that are there. Throws SerializationError, with the file's name and the tensor's, for a file
/// that is damaged (all sizes in it are held against the bytes that are there) or has a dtype that
/// arrays have not, and listing the names for one of another model; ShapeError.
template <class T>
requires(HasMembers<T> || std::invocable<T&, Visitor&>) void load_safetensors(
    const std::string& path, T&& what, const LoadSafetensorsOptions& options = {}) {
  detail::load_safetensors(path, Members(what), options);
}
/// All arrays of a file, on the CPU. Throws SerializationError.
[[nodiscard]] std::map<std::string, Array> load_safetensors(const std::string& path);

}  // namespace rensa::serializers
