// Models and arrays in safetensors files (safetensors_files.cc reads them).
#include "rensa/serializers/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/array/npy.h"
#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/serializers/safetensors_files.h"
#include "rensa/serializers/stored_values.h"

namespace rensa::serializers {

namespace {

static_assert(std::endian::native == std::endian::little, "elements lie in the file as in memory");

// --- Reading ---

class StoredTensors final : public StoredValues {
 public:
  StoredTensors(const std::string& path, const LoadSafetensorsOptions& options)
      : StoredValues(path, options.path, options.names, "./"), files_(path) {
    set_names(files_.names());
  }

 private:
  Visitor::Value value(const std::string& name, bool is_text, const std::string&) const override {
    Array array = files_.array(name);
    if (!is_text) return array;
    if (array.dtype() != uint8 || array.ndim() != 1) files_.fail(name, "it is no text");
    return std::string(bytes_of(array));
  }

  SafetensorsFiles files_;
};

// --- Writing ---

struct Written {
  std::string name;
  Array host;
  std::string_view dtype;
};

Written written(const std::string& name, const Array& host) {
  if (!host.defined()) {
    throw ValueError(fmt::format(
        "save_safetensors: \"{}\" has no values yet, and the format has no way to say so; call the "
        "model once before",
        name));
  }
  if (name == kSafetensorsMetadata) {
    throw ValueError(fmt::format("save_safetensors: the format keeps the name \"{}\" for itself",
                                 kSafetensorsMetadata));
  }
  auto known = std::ranges::find(kSafetensorsDtypes, host.dtype(),
                                 [](const auto& pair) { return pair.second; });
  if (known == kSafetensorsDtypes.end()) {
    throw DtypeError(fmt::format("save_safetensors: \"{}\" is {}, which the format has not", name,
                                 dtype_name(host.dtype())));
  }
  return {name, host, known->first};
}

std::string text_of(const nlohmann::ordered_json& header, const std::string& path) {
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::ordered_json::exception& error) {
    throw ValueError(fmt::format("save_safetensors: {}: names are UTF-8 in this format ({})", path,
                                 error.what()));
  }
  if (text.size() > kLongestSafetensorsHeader) {
    throw ValueError(fmt::format(
        "save_safetensors: {}: names and shapes of {} bytes, of which the format has {} at most",
        path, text.size(), kLongestSafetensorsHeader));
  }
  return text;
}

std::size_t size_of(const Written& tensor) { return bytes_of(tensor.host).size(); }

void write_file(const std::string& path, std::vector<Written> tensors,
                const std::map<std::string, std::string>& metadata) {
  // Those of large elements go first: each lies at a multiple of its element.
  std::ranges::stable_sort(tensors, std::ranges::greater(),
                           [](const Written& t) { return itemsize(t.host.dtype()); });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[std::string(kSafetensorsMetadata)] = metadata;
  std::size_t at = 0;
  for (const Written& tensor : tensors) {
    std::size_t end = at + size_of(tensor);
    std::vector<std::int64_t> shape(tensor.host.shape().begin(), tensor.host.shape().end());
    header[tensor.name] = {{"dtype", tensor.dtype}, {"shape", shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = text_of(header, path);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::uint64_t length = text.size();
  FileWriter file(path);
  file.write({reinterpret_cast<const char*>(&length), sizeof length});
  file.write(text);
  for (const Written& tensor : tensors) file.write(bytes_of(tensor.host));
  file.finish();
}

/// In order, as many in each as `most` bytes have room for.
std::vector<std::vector<Written>> cut(std::vector<Written> tensors, std::int64_t most) {
  if (most < 0) {
    throw ValueError(fmt::format(
        "save_safetensors: a max_shard_size of {}; give bytes, or 0 for one file", most));
  }
  std::vector<std::vector<Written>> files(1);
  std::size_t bytes = 0;
  for (Written& tensor : tensors) {
    std::size_t more = size_of(tensor);
    if (most > 0 && !files.back().empty() && bytes + more > static_cast<std::size_t>(most)) {
      files.emplace_back();
      bytes = 0;
    }
    bytes += more;
    files.back().push_back(std::move(tensor));
  }
  return files;
}

void remove_file(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
  if (error) {
    throw SerializationError(
        fmt::format("save_safetensors: {} is in the way: {}", path.string(), error.message()));
  }
}

void write(const std::string& path, std::vector<Written> tensors,
           const std::map<std::string, std::string>& metadata, std::int64_t max_shard_size) {
  std::vector<std::vector<Written>> files = cut(std::move(tensors), max_shard_size);
  std::filesystem::path whole(path), index = path + std::string(kSafetensorsIndex);
  if (files.size() == 1) {
    write_file(path, std::move(files[0]), metadata);
    return remove_file(index);
  }
  // While there is no index, nothing reads some files of this time and some of an earlier one.
  remove_file(index);
  nlohmann::ordered_json places = nlohmann::ordered_json::object();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::string name = fmt::format("{}-{:05}-of-{:05}{}", whole.stem().string(), i + 1,
                                   files.size(), whole.extension().string());
    for (const Written& tensor : files[i]) {
      places[tensor.name] = name;
      bytes += size_of(tensor);
    }
    write_file(whole.parent_path() / name, std::move(files[i]), metadata);
  }
  nlohmann::ordered_json content = {{"metadata", {{"total_size", bytes}}}, {"weight_map", places}};
  rensa::detail::write_whole_file(index, content.dump(2) + "\n");
  remove_file(whole);  // it would be read in place of the index
}

}  // namespace

void save_safetensors(const std::string& path, const Members& what,
                      const SaveSafetensorsOptions& options) {
  std::vector<Written> tensors;
  for (const auto& [name, value] : values_of(what, options.names)) {
    if (const auto* text = std::get_if<std::string>(&value)) {
      Array bytes = xp::empty({text->size()}, uint8, cpu());
      if (!text->empty()) std::memcpy(bytes.data(), text->data(), text->size());
      tensors.push_back(written(name, bytes));
    } else {
      tensors.push_back(written(name, as_array("save_safetensors", value)));
    }
  }
  write(path, std::move(tensors), options.metadata, options.max_shard_size);
}

void save_safetensors(const std::string& path, const std::map<std::string, Array>& arrays,
                      const std::map<std::string, std::string>& metadata,
                      std::int64_t max_shard_size) {
  std::vector<Written> tensors;
  for (const auto& [name, array] : arrays) {
    tensors.push_back(written(name, as_array("save_safetensors", array)));
  }
  write(path, std::move(tensors), metadata, max_shard_size);
}

void detail::load_safetensors(const std::string& path, const Members& what,
                              const LoadSafetensorsOptions& options) {
  check_members(what);
  load(StoredTensors(path, options), what, options.strict);
}

std::map<std::string, Array> load_safetensors(const std::string& path) {
  SafetensorsFiles files(path);
  std::map<std::string, Array> arrays;
  for (const std::string& name : files.names()) arrays.emplace(name, files.array(name));
  return arrays;
}

}  // namespace rensa::serializers
