// npz files of members.
#include "rensa/serializers/npz.h"

#include <map>
#include <memory>
#include <sstream>
#include <string_view>

#include "rensa/array/npy.h"
#include "rensa/array/zip.h"
#include "rensa/core/files.h"
#include "rensa/serializers/stored_values.h"

namespace rensa::serializers {

namespace {

/// The name of an archive's entry without its ".npy".
std::string member_of(std::string_view entry) {
  if (entry.ends_with(".npy")) entry.remove_suffix(4);
  return std::string(entry);
}

Visitor::Value value_of(const std::string& npy, bool is_text, const std::string& where) {
  NpyHeader header = parse_npy_header(npy, where);
  if (header.is_object && header.shape.ndim() == 0) return Array();  // None: nothing else is so
  if (is_text) return parse_npy_text(npy, where);
  return parse_npy(npy, where);
}

class StoredNpz final : public StoredValues {
 public:
  StoredNpz(const std::string& path, const LoadNpzOptions& options)
      : StoredValues(path, options.path, options.names, "/"), file_(path), archive_(file_) {
    std::vector<std::string> names;
    for (const std::string& entry : archive_.names()) names.push_back(member_of(entry));
    set_names(names);
  }

 private:
  Visitor::Value value(const std::string& name, bool is_text,
                       const std::string& where) const override {
    std::string npy = archive_.read(archive_.contains(name + ".npy") ? name + ".npy" : name);
    return value_of(npy, is_text, where);
  }

  FileReader file_;
  ZipReader archive_;
};

/// The same in memory.
class StoredContent final : public StoredValues {
 public:
  /// `content` has to live as long.
  StoredContent(const std::string& file, const NpzContent& content, const LoadNpzOptions& options)
      : StoredValues(file, options.path, options.names, "/") {
    std::vector<std::string> names;
    for (const auto& [name, npy] : content.entries) {
      names.push_back(name);
      entries_[name] = &npy;
    }
    set_names(names);
  }

 private:
  Visitor::Value value(const std::string& name, bool is_text,
                       const std::string& where) const override {
    return value_of(*entries_.at(name), is_text, where);
  }

  std::map<std::string, const std::string*> entries_;
};

/// Writes an archive to what `open` gives once the names are known to fit; `add` adds a value.
template <class Value, class Open, class Add>
void write_archive(const std::vector<std::pair<std::string, Value>>& values, Open open, Add add) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name + ".npy");
  ZipWriter::check_names("save_npz", names);
  std::unique_ptr<FileWriter> file = open();
  ZipWriter zip(*file);
  for (std::size_t i = 0; i < names.size(); ++i) add(zip, names[i], values[i].second);
  zip.finish();
  file->finish();
}

void add_value(ZipWriter& zip, const std::string& name, const Visitor::Value& value,
               bool compress) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return zip.add(name, {format_npy_text(*text)}, compress);
  }
  Array host = as_array("save_npz", value);
  if (!host.defined()) return zip.add(name, {npy_of_none()}, compress);
  zip.add(name, {npy_header(host), bytes_of(host)}, compress);
}

std::string npy_of(const Visitor::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return format_npy_text(*text);
  Array host = as_array("save_npz", value);
  return host.defined() ? format_npy(host) : npy_of_none();
}

}  // namespace

void save_npz(const std::string& path, const Members& what, const SaveNpzOptions& options) {
  write_archive(
      values_of(what, options.names), [&] { return std::make_unique<FileWriter>(path); },
      [&](ZipWriter& zip, const std::string& name, const Visitor::Value& value) {
        add_value(zip, name, value, options.compression);
      });
}

NpzContent::NpzContent(const Members& what, const Naming& names) {
  for (const auto& [name, value] : values_of(what, names))
    entries.emplace_back(name, npy_of(value));
}

NpzContent NpzContent::parse(const std::string& file, std::string bytes) {
  ZipReader archive(file, std::move(bytes));
  std::vector<Entry> entries;
  for (const std::string& name : archive.names()) {
    entries.emplace_back(member_of(name), archive.read(name));
  }
  return NpzContent(std::move(entries));
}

void NpzContent::write(const std::string& path, bool compression) const {
  write_archive(
      entries, [&] { return std::make_unique<FileWriter>(path); },
      [&](ZipWriter& zip, const std::string& name, const std::string& npy) {
        zip.add(name, {npy}, compression);
      });
}

std::string NpzContent::bytes() const {
  std::ostringstream out;
  write_archive(
      entries, [&] { return std::make_unique<FileWriter>(out); },
      [](ZipWriter& zip, const std::string& name, const std::string& npy) {
        zip.add(name, {npy}, false);
      });
  return std::move(out).str();
}

void detail::load_npz(const std::string& path, const Members& what, const LoadNpzOptions& options) {
  check_members(what);
  load(StoredNpz(path, options), what, options.strict);
}

void detail::load_npz(const std::string& file, const NpzContent& content, const Members& what,
                      const LoadNpzOptions& options) {
  check_members(what);
  load(StoredContent(file, content, options), what, options.strict);
}

}  // namespace rensa::serializers
