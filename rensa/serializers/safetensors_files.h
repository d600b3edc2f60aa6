// safetensors files as they are read: one, or several that an index names.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/core/files.h"

namespace rensa::serializers {

inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";
inline constexpr std::string_view kSafetensorsIndex = ".index.json";     // behind the files' name
inline constexpr std::uint64_t kLongestSafetensorsHeader = 100'000'000;  // the format's own bound
/// The format's names of dtypes.
inline constexpr std::array<std::pair<std::string_view, Dtype>, 13> kSafetensorsDtypes = {
    {{"BOOL", Dtype::bool_},
     {"U8", Dtype::uint8},
     {"I8", Dtype::int8},
     {"U16", Dtype::uint16},
     {"I16", Dtype::int16},
     {"U32", Dtype::uint32},
     {"I32", Dtype::int32},
     {"U64", Dtype::uint64},
     {"I64", Dtype::int64},
     {"F16", Dtype::float16},
     {"BF16", Dtype::bfloat16},
     {"F32", Dtype::float32},
     {"F64", Dtype::float64}}};

/// What a header says of a tensor.
struct StoredTensor {
  Dtype dtype = Dtype::float32;
  Shape shape;
  std::uint64_t begin = 0, end = 0;  // behind the header
};

/// A file whose header has been held against its size. All throw SerializationError.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  /// Of the file's memory, which it holds; a copy where elements do not lie as arrays' do.
  Array array(const std::string& name) const;
  [[noreturn]] void fail(const std::string& name, const std::string& what) const;

 private:
  [[noreturn]] void fail(const std::string& what) const;
  void parse(std::span<const char> text);
  void check_places() const;

  std::string path_;
  std::shared_ptr<FileMapping> mapping_;
  std::span<char> data_;
  std::map<std::string, StoredTensor> tensors_;
};

/// The tensors of a file, or of those that an index names: `path` is the index's, or that of what
/// was cut into files. All throw SerializationError.
class SafetensorsFiles {
 public:
  explicit SafetensorsFiles(const std::string& path);
  std::vector<std::string> names() const;
  Array array(const std::string& name) const { return file_of(name).array(name); }
  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    file_of(name).fail(name, what);
  }

 private:
  void read_index(const std::string& path);
  const SafetensorsFile& file_of(const std::string& name) const { return *file_of_.at(name); }

  std::map<std::string, SafetensorsFile> files_;           // by their names
  std::map<std::string, const SafetensorsFile*> file_of_;  // by a tensor's name
};

}  // namespace rensa::serializers
