// safetensors: 8 bytes say how long the header is; the header, JSON, says of each tensor its dtype,
// its shape and where its bytes begin and end behind the header; the bytes fill the rest of the
// file.
#include "rensa/serializers/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/array/npy.h"
#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/serializers/stored_values.h"

namespace rensa::serializers {

namespace {

static_assert(std::endian::native == std::endian::little, "elements lie in the file as in memory");

using Json = nlohmann::json;

constexpr std::string_view kMetadata = "__metadata__";
constexpr std::uint64_t kLongestHeader = 100'000'000;  // as the format's own library has it

constexpr std::array<std::pair<std::string_view, Dtype>, 13> kDtypes = {{{"BOOL", Dtype::bool_},
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

// --- Reading ---

struct Tensor {
  Dtype dtype = Dtype::float32;
  Shape shape;
  std::uint64_t begin = 0, end = 0;  // behind the header
};

/// A file whose header has been held against its size.
class TensorFile {
 public:
  explicit TensorFile(const std::string& path)
      : path_(path), mapping_(path, FileMapping::Mode::read) {
    std::span<const char> bytes(mapping_.data(), mapping_.size());
    std::uint64_t length = 0;
    if (bytes.size() < sizeof length) fail("it is shorter than the 8 bytes in front of the header");
    std::memcpy(&length, bytes.data(), sizeof length);
    bytes = bytes.subspan(sizeof length);
    if (length > kLongestHeader || length > bytes.size()) {
      fail(fmt::format("its header is to have {} bytes and {} are there", length, bytes.size()));
    }
    data_ = bytes.subspan(length);
    parse(bytes.first(length));
    check_places();
  }

  const std::map<std::string, Tensor>& tensors() const { return tensors_; }

  Array array(const std::string& name) const {
    const Tensor& tensor = tensors_.at(name);
    std::span<const char> bytes = data_.subspan(tensor.begin, tensor.end - tensor.begin);
    if (tensor.dtype == bool_ && std::ranges::any_of(bytes, [](char c) { return c & ~1; })) {
      fail(name, "a BOOL is neither 0 nor 1");
    }
    Array array = xp::empty(tensor.shape, tensor.dtype, cpu());
    if (!bytes.empty()) std::memcpy(array.data(), bytes.data(), bytes.size());
    return array;
  }

  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    fail(fmt::format("tensor \"{}\": {}", name, what));
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw SerializationError(fmt::format("{}: {}; is it a safetensors file?", path_, what));
  }

  void parse(std::span<const char> text) {
    std::set<std::string> names;
    auto check_twice = [&](int depth, Json::parse_event_t event, const Json& parsed) {
      if (depth != 1 || event != Json::parse_event_t::key) return true;
      auto [name, first] = names.insert(parsed.get<std::string>());
      if (!first) fail(*name, "it is there twice");
      return true;
    };
    try {
      Json header = Json::parse(text.begin(), text.end(), check_twice);
      if (!header.is_object()) fail("its header is no JSON object");
      for (const auto& [name, entry] : header.items()) {
        if (name != kMetadata) tensors_[name] = tensor_of(name, entry);
      }
    } catch (const Json::exception& error) {
      fail(fmt::format("its header is not JSON ({})", error.what()));
    }
  }

  Tensor tensor_of(const std::string& name, const Json& entry) const {
    Tensor tensor;
    auto member = [&](const char* key) -> const Json& {
      if (!entry.is_object() || !entry.contains(key)) {
        fail(name, fmt::format("it has no \"{}\"", key));
      }
      return entry[key];
    };
    std::string dtype = member("dtype").is_string() ? member("dtype").get<std::string>() : "none";
    auto known = std::ranges::find(kDtypes, dtype, [](const auto& pair) { return pair.first; });
    if (known == kDtypes.end()) fail(name, fmt::format("arrays have no dtype {}", dtype));
    tensor.dtype = known->second;
    auto bytes = static_cast<std::int64_t>(itemsize(tensor.dtype));
    std::vector<std::uint64_t> shape = numbers(name, member("shape"), "shape");
    if (shape.size() > kMaxNdim) {
      fail(name, fmt::format("{} axes; arrays have at most {}", shape.size(), kMaxNdim));
    }
    bool is_empty = std::ranges::find(shape, 0u) != shape.end();
    for (std::uint64_t extent : shape) {
      if (__builtin_mul_overflow(bytes, std::max<std::uint64_t>(extent, 1), &bytes)) {
        fail(name, "the shape's size overflows");
      }
      tensor.shape.push_back(static_cast<std::int64_t>(extent));
    }
    std::vector<std::uint64_t> place = numbers(name, member("data_offsets"), "data_offsets");
    if (place.size() != 2) fail(name, "\"data_offsets\" is not a begin and an end");
    tensor.begin = place[0], tensor.end = place[1];
    if (tensor.begin > tensor.end || tensor.end > data_.size()) {
      fail(name,
           fmt::format("it lies from {} to {}, of {} bytes", place[0], place[1], data_.size()));
    }
    std::uint64_t wanted = is_empty ? 0 : static_cast<std::uint64_t>(bytes);
    if (tensor.end - tensor.begin != wanted) {
      fail(name, fmt::format("{} {} has {} bytes, not {}", dtype, tensor.shape.str(), wanted,
                             tensor.end - tensor.begin));
    }
    return tensor;
  }

  std::vector<std::uint64_t> numbers(const std::string& name, const Json& list,
                                     const char* key) const {
    std::vector<std::uint64_t> all;
    if (!list.is_array()) fail(name, fmt::format("\"{}\" is no list", key));
    for (const Json& number : list) {
      if (!number.is_number_unsigned()) {
        fail(name, fmt::format("\"{}\" has what is no whole number of 0 or more", key));
      }
      all.push_back(number.get<std::uint64_t>());
    }
    return all;
  }

  /// Tensors lie side by side and fill the file.
  void check_places() const {
    std::vector<std::pair<const std::string*, const Tensor*>> sorted;
    for (const auto& [name, tensor] : tensors_) sorted.emplace_back(&name, &tensor);
    std::ranges::sort(sorted, {}, [](const auto& pair) {
      return std::pair(pair.second->begin, pair.second->end);
    });
    std::uint64_t at = 0;
    for (const auto& [name, tensor] : sorted) {
      if (tensor->begin != at) {
        fail(*name,
             fmt::format("it begins at byte {}, the one before it ends at {}", tensor->begin, at));
      }
      at = tensor->end;
    }
    if (at != data_.size()) {
      fail(fmt::format("its tensors have {} bytes and {} are there", at, data_.size()));
    }
  }

  std::string path_;
  FileMapping mapping_;
  std::span<const char> data_;
  std::map<std::string, Tensor> tensors_;
};

class StoredTensors final : public StoredValues {
 public:
  StoredTensors(const std::string& path, const LoadSafetensorsOptions& options)
      : StoredValues(path, options.path, options.names, "./"), file_(path) {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : file_.tensors()) names.push_back(name);
    set_names(names);
  }

 private:
  Visitor::Value value(const std::string& name, bool is_text, const std::string&) const override {
    Array array = file_.array(name);
    if (!is_text) return array;
    if (array.dtype() != uint8 || array.ndim() != 1) file_.fail(name, "it is no text");
    return std::string(bytes_of(array));
  }

  TensorFile file_;
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
  if (name == kMetadata) {
    throw ValueError(
        fmt::format("save_safetensors: the format keeps the name \"{}\" for itself", kMetadata));
  }
  auto known =
      std::ranges::find(kDtypes, host.dtype(), [](const auto& pair) { return pair.second; });
  if (known == kDtypes.end()) {
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
  if (text.size() > kLongestHeader) {
    throw ValueError(fmt::format(
        "save_safetensors: {}: names and shapes of {} bytes, of which the format has {} at most",
        path, text.size(), kLongestHeader));
  }
  return text;
}

void write(const std::string& path, std::vector<Written> tensors,
           const std::map<std::string, std::string>& metadata) {
  // Those of large elements go first: each lies at a multiple of its element.
  std::ranges::stable_sort(tensors, std::ranges::greater(),
                           [](const Written& t) { return itemsize(t.host.dtype()); });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[std::string(kMetadata)] = metadata;
  std::size_t at = 0;
  for (const Written& tensor : tensors) {
    std::size_t end = at + bytes_of(tensor.host).size();
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
  write(path, std::move(tensors), options.metadata);
}

void save_safetensors(const std::string& path, const std::map<std::string, Array>& arrays,
                      const std::map<std::string, std::string>& metadata) {
  std::vector<Written> tensors;
  for (const auto& [name, array] : arrays) {
    tensors.push_back(written(name, as_array("save_safetensors", array)));
  }
  write(path, std::move(tensors), metadata);
}

void detail::load_safetensors(const std::string& path, const Members& what,
                              const LoadSafetensorsOptions& options) {
  check_members(what);
  load(StoredTensors(path, options), what, options.strict);
}

std::map<std::string, Array> load_safetensors(const std::string& path) {
  TensorFile file(path);
  std::map<std::string, Array> arrays;
  for (const auto& [name, tensor] : file.tensors()) arrays.emplace(name, file.array(name));
  return arrays;
}

}  // namespace rensa::serializers
