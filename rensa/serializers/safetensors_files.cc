// Reading safetensors: 8 bytes say how long the header is; the header, JSON, says of each tensor
// its dtype, its shape and where its bytes begin and end behind the header; the bytes fill the rest
// of the file. An index, JSON too, says of each tensor which file it is in.
#include "rensa/serializers/safetensors_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "rensa/array/creation.h"
#include "rensa/array/internal.h"
#include "rensa/core/error.h"

namespace rensa::serializers {

namespace {

using Json = nlohmann::json;

/// JSON whose outermost object has no name twice: `twice(name)` throws for one.
template <class F> Json parse_json(std::span<const char> text, F&& twice) {
  std::set<std::string> names;
  return Json::parse(text.begin(), text.end(),
                     [&](int depth, Json::parse_event_t event, const Json& parsed) {
                       if (depth != 1 || event != Json::parse_event_t::key) return true;
                       auto [name, first] = names.insert(parsed.get<std::string>());
                       if (!first) twice(*name);
                       return true;
                     });
}

/// An entry of the header; `refuse(what)` throws.
class Entry {
 public:
  using Refuse = std::function<void(const std::string& what)>;
  Entry(const Json& entry, std::uint64_t bytes, const Refuse& refuse)
      : entry_(entry), bytes_(bytes), refuse_(refuse) {}

  StoredTensor tensor() const {
    StoredTensor tensor;
    std::string dtype = member("dtype").is_string() ? member("dtype").get<std::string>() : "none";
    auto known =
        std::ranges::find(kSafetensorsDtypes, dtype, [](const auto& pair) { return pair.first; });
    if (known == kSafetensorsDtypes.end()) refuse_(fmt::format("arrays have no dtype {}", dtype));
    tensor.dtype = known->second;
    auto bytes = static_cast<std::int64_t>(itemsize(tensor.dtype));
    std::vector<std::uint64_t> shape = numbers("shape");
    if (shape.size() > kMaxNdim) {
      refuse_(fmt::format("{} axes; arrays have at most {}", shape.size(), kMaxNdim));
    }
    bool is_empty = std::ranges::find(shape, 0u) != shape.end();
    for (std::uint64_t extent : shape) {
      if (__builtin_mul_overflow(bytes, std::max<std::uint64_t>(extent, 1), &bytes)) {
        refuse_("the shape's size overflows");
      }
      tensor.shape.push_back(static_cast<std::int64_t>(extent));
    }
    std::vector<std::uint64_t> place = numbers("data_offsets");
    if (place.size() != 2) refuse_("\"data_offsets\" is not a begin and an end");
    tensor.begin = place[0], tensor.end = place[1];
    if (tensor.begin > tensor.end || tensor.end > bytes_) {
      refuse_(fmt::format("it lies from {} to {}, of {} bytes", place[0], place[1], bytes_));
    }
    std::uint64_t wanted = is_empty ? 0 : static_cast<std::uint64_t>(bytes);
    if (tensor.end - tensor.begin != wanted) {
      refuse_(fmt::format("{} {} has {} bytes, not {}", dtype, tensor.shape.str(), wanted,
                          tensor.end - tensor.begin));
    }
    return tensor;
  }

 private:
  const Json& member(const char* key) const {
    if (!entry_.is_object() || !entry_.contains(key)) refuse_(fmt::format("it has no \"{}\"", key));
    return entry_[key];
  }
  std::vector<std::uint64_t> numbers(const char* key) const {
    const Json& list = member(key);
    std::vector<std::uint64_t> all;
    if (!list.is_array()) refuse_(fmt::format("\"{}\" is no list", key));
    for (const Json& number : list) {
      if (!number.is_number_unsigned()) {
        refuse_(fmt::format("\"{}\" has what is no whole number of 0 or more", key));
      }
      all.push_back(number.get<std::uint64_t>());
    }
    return all;
  }

  const Json& entry_;
  std::uint64_t bytes_;  // behind the header
  const Refuse& refuse_;
};

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path)
    : path_(path), mapping_(std::make_shared<FileMapping>(path, FileMapping::Mode::copy)) {
  std::span<char> bytes(mapping_->data(), mapping_->size());
  std::uint64_t length = 0;
  if (bytes.size() < sizeof length) fail("it is shorter than the 8 bytes in front of the header");
  std::memcpy(&length, bytes.data(), sizeof length);
  bytes = bytes.subspan(sizeof length);
  if (length > kLongestSafetensorsHeader || length > bytes.size()) {
    fail(fmt::format("its header is to have {} bytes and {} are there", length, bytes.size()));
  }
  data_ = bytes.subspan(length);
  parse(bytes.first(length));
  check_places();
}

Array SafetensorsFile::array(const std::string& name) const {
  const StoredTensor& tensor = tensors_.at(name);
  std::span<char> bytes = data_.subspan(tensor.begin, tensor.end - tensor.begin);
  if (tensor.dtype == bool_ && std::ranges::any_of(bytes, [](char c) { return c & ~1; })) {
    fail(name, "a BOOL is neither 0 nor 1");
  }
  auto place = reinterpret_cast<std::uintptr_t>(bytes.data());
  bool fits = place % static_cast<std::uintptr_t>(itemsize(tensor.dtype)) == 0;
  if (fits && !bytes.empty()) {
    return rensa::detail::wrap(bytes.data(), tensor.shape, tensor.dtype, cpu(), mapping_, false);
  }
  Array array = xp::empty(tensor.shape, tensor.dtype, cpu());
  if (!bytes.empty()) std::memcpy(array.data(), bytes.data(), bytes.size());
  return array;
}

void SafetensorsFile::fail(const std::string& name, const std::string& what) const {
  fail(fmt::format("tensor \"{}\": {}", name, what));
}

void SafetensorsFile::fail(const std::string& what) const {
  throw SerializationError(fmt::format("{}: {}; is it a safetensors file?", path_, what));
}

void SafetensorsFile::parse(std::span<const char> text) {
  try {
    Json header =
        parse_json(text, [&](const std::string& name) { fail(name, "it is there twice"); });
    if (!header.is_object()) fail("its header is no JSON object");
    for (const auto& [key, entry] : header.items()) {
      if (key == kSafetensorsMetadata) continue;
      Entry::Refuse refuse = [&, &name = key](const std::string& what) { fail(name, what); };
      tensors_[key] = Entry(entry, data_.size(), refuse).tensor();
    }
  } catch (const Json::exception& error) {
    fail(fmt::format("its header is not JSON ({})", error.what()));
  }
}

/// Tensors lie side by side and fill the file.
void SafetensorsFile::check_places() const {
  std::vector<std::pair<const std::string*, const StoredTensor*>> sorted;
  for (const auto& [name, tensor] : tensors_) sorted.emplace_back(&name, &tensor);
  std::ranges::sort(
      sorted, {}, [](const auto& pair) { return std::pair(pair.second->begin, pair.second->end); });
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

SafetensorsFiles::SafetensorsFiles(const std::string& path) {
  std::string index = path + std::string(kSafetensorsIndex);
  std::error_code error;  // what cannot be told is told by opening the file
  if (path.ends_with(kSafetensorsIndex)) {
    read_index(path);
    return;
  }
  if (!std::filesystem::exists(path, error) && std::filesystem::exists(index, error)) {
    read_index(index);
    return;
  }
  const SafetensorsFile& file = files_.try_emplace("", path).first->second;
  for (const auto& [name, tensor] : file.tensors()) file_of_.emplace(name, &file);
}

std::vector<std::string> SafetensorsFiles::names() const {
  std::vector<std::string> names;
  for (const auto& [name, file] : file_of_) names.push_back(name);
  return names;
}

void SafetensorsFiles::read_index(const std::string& path) {
  auto fail = [&](const std::string& what) {
    throw SerializationError(fmt::format("{}: {}; is it a safetensors index?", path, what));
  };
  std::string text = rensa::detail::read_whole_file(path);
  Json index;
  try {
    index = parse_json(
        text, [&](const std::string& name) { fail(fmt::format("\"{}\" is there twice", name)); });
  } catch (const Json::exception& error) {
    fail(fmt::format("it is not JSON ({})", error.what()));
  }
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    fail("it has no object \"weight_map\"");
  }
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (const auto& [name, file] : index["weight_map"].items()) {
    std::string file_name = file.is_string() ? file.get<std::string>() : "";
    bool beside = !file_name.empty() && file_name.find('/') == std::string::npos &&
                  file_name.find('\0') == std::string::npos && file_name != "..";
    if (!beside) fail(fmt::format("tensor \"{}\" is in no file beside the index", name));
    auto found = files_.find(file_name);
    if (found == files_.end()) found = files_.try_emplace(file_name, folder / file_name).first;
    if (!found->second.tensors().contains(name)) {
      fail(fmt::format("tensor \"{}\" is not in {}", name, file_name));
    }
    file_of_.emplace(name, &found->second);
  }
  for (const auto& [file_name, file] : files_) {
    for (const auto& [name, tensor] : file.tensors()) {
      auto found = file_of_.find(name);
      if (found == file_of_.end() || found->second != &file) {
        fail(fmt::format("it does not say that tensor \"{}\" is in {}", name, file_name));
      }
    }
  }
}

}  // namespace rensa::serializers
