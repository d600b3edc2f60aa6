// npz files of members.
#include "rensa/serializers/npz.h"

#include <string_view>

#include "rensa/array/npy.h"
#include "rensa/array/zip.h"
#include "rensa/core/files.h"
#include "rensa/serializers/stored_values.h"

namespace rensa::serializers {

namespace {

class StoredNpz final : public StoredValues {
 public:
  StoredNpz(const std::string& path, const LoadNpzOptions& options)
      : StoredValues(path, options.path, options.names, "/"), file_(path), archive_(file_) {
    std::vector<std::string> names;
    for (const std::string& name : archive_.names()) {
      std::string_view known = name;
      if (known.ends_with(".npy")) known.remove_suffix(4);
      names.emplace_back(known);
    }
    set_names(names);
  }

 private:
  Visitor::Value value(const std::string& name, bool is_text,
                       const std::string& where) const override {
    std::string file = archive_.read(archive_.contains(name + ".npy") ? name + ".npy" : name);
    NpyHeader header = parse_npy_header(file, where);
    if (header.is_object && header.shape.ndim() == 0) return Array();  // None: nothing else is so
    if (is_text) return parse_npy_text(file, where);
    return parse_npy(file, where);
  }

  FileReader file_;
  ZipReader archive_;
};

using Values = std::vector<std::pair<std::string, Visitor::Value>>;

void write(ZipWriter& zip, const std::string& name, const Visitor::Value& value, bool compress) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return zip.add(name, {format_npy_text(*text)}, compress);
  }
  Array host = as_array("save_npz", value);
  if (!host.defined()) return zip.add(name, {npy_of_none()}, compress);
  zip.add(name, {npy_header(host), bytes_of(host)}, compress);
}

void write(const std::string& path, const Values& values, bool compress) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name + ".npy");
  ZipWriter::check_names("save_npz", names);
  FileWriter file(path);
  ZipWriter zip(file);
  for (std::size_t i = 0; i < names.size(); ++i) {
    write(zip, names[i], values[i].second, compress);
  }
  zip.finish();
  file.finish();
}

}  // namespace

void save_npz(const std::string& path, const Members& what, const SaveNpzOptions& options) {
  write(path, values_of(what, options.names), options.compression);
}

NpzContent::NpzContent(const Members& what, const Naming& names) : values_(values_of(what, names)) {
  for (auto& [name, value] : values_) {
    if (std::holds_alternative<std::string>(value)) continue;
    Array host = as_array("save_npz", value);
    auto* array = std::get_if<Array>(&value);
    bool is_alias = array && array->defined() && host.storage() == array->storage();
    value = is_alias ? host.copy() : host;
  }
}

void NpzContent::write(const std::string& path, bool compression) const {
  serializers::write(path, values_, compression);
}

void detail::load_npz(const std::string& path, const Members& what, const LoadNpzOptions& options) {
  check_members(what);
  load(StoredNpz(path, options), what, options.strict);
}

}  // namespace rensa::serializers
