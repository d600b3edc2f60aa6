// .npz: a zip of .npy files.
#include "rensa/array/io_npz.h"

#include <fmt/format.h>

#include "rensa/array/internal.h"
#include "rensa/array/npy.h"
#include "rensa/array/zip.h"
#include "rensa/core/error.h"

namespace rensa {

namespace {

constexpr std::string_view kEnding = ".npy";

std::string entry_name(const std::string& name) { return name + std::string(kEnding); }

}  // namespace

void detail::check_npz_names(const char* operation, std::span<const xp::NamedArray> arrays) {
  std::vector<std::string> names;
  for (const xp::NamedArray& named : arrays) names.push_back(entry_name(named.name));
  ZipWriter::check_names(operation, names);
}

void detail::write_npz(FileWriter& file, std::span<const xp::NamedArray> arrays, bool compress) {
  ZipWriter zip(file);
  for (const auto& [name, array] : arrays) {
    if (array.defined()) {
      Array host = rensa::detail::on_host("savez", array);
      zip.add(entry_name(name), {npy_header(host), bytes_of(host)}, compress);
    } else {
      zip.add(entry_name(name), {npy_of_none()}, compress);
    }
  }
  zip.finish();
  file.finish();
}

namespace xp {

namespace {

// `target` is a path or a stream.
template <class Target>
void write_checked(Target& target, std::span<const NamedArray> arrays, bool compress) {
  for (const NamedArray& named : arrays) rensa::detail::check_defined("savez", named.array);
  rensa::detail::check_npz_names("savez", arrays);
  FileWriter file(target);
  rensa::detail::write_npz(file, arrays, compress);
}

void write(const std::string& path, std::span<const NamedArray> arrays, bool compress) {
  std::string whole = path.ends_with(".npz") ? path : path + ".npz";
  write_checked(whole, arrays, compress);
}

void write(std::ostream& stream, std::span<const NamedArray> arrays, bool compress) {
  write_checked(stream, arrays, compress);
}

std::vector<NamedArray> numbered(std::initializer_list<Array> arrays) {
  std::vector<NamedArray> named;
  for (const Array& array : arrays) {
    named.push_back({fmt::format("arr_{}", named.size()), array});
  }
  return named;
}

}  // namespace

void savez(const std::string& path, std::span<const NamedArray> arrays) {
  write(path, arrays, false);
}
void savez(const std::string& path, std::initializer_list<NamedArray> arrays) {
  write(path, {arrays.begin(), arrays.size()}, false);
}
void savez(const std::string& path, std::initializer_list<Array> arrays) {
  write(path, numbered(arrays), false);
}
void savez(std::ostream& stream, std::span<const NamedArray> arrays) {
  write(stream, arrays, false);
}
void savez(std::ostream& stream, std::initializer_list<NamedArray> arrays) {
  write(stream, {arrays.begin(), arrays.size()}, false);
}
void savez(std::ostream& stream, std::initializer_list<Array> arrays) {
  write(stream, numbered(arrays), false);
}
void savez_compressed(const std::string& path, std::span<const NamedArray> arrays) {
  write(path, arrays, true);
}
void savez_compressed(const std::string& path, std::initializer_list<NamedArray> arrays) {
  write(path, {arrays.begin(), arrays.size()}, true);
}
void savez_compressed(const std::string& path, std::initializer_list<Array> arrays) {
  write(path, numbered(arrays), true);
}
void savez_compressed(std::ostream& stream, std::span<const NamedArray> arrays) {
  write(stream, arrays, true);
}
void savez_compressed(std::ostream& stream, std::initializer_list<NamedArray> arrays) {
  write(stream, {arrays.begin(), arrays.size()}, true);
}
void savez_compressed(std::ostream& stream, std::initializer_list<Array> arrays) {
  write(stream, numbered(arrays), true);
}

namespace {

std::shared_ptr<const ZipReader> opened(FileReader&& file) {
  return std::make_shared<const ZipReader>(file);
}

}  // namespace

NpzFile::NpzFile(const std::string& path) : zip_(opened(FileReader(path))) {}
NpzFile::NpzFile(std::istream& stream) : zip_(opened(FileReader(stream))) {}

std::vector<std::string> NpzFile::files() const {
  std::vector<std::string> names = zip_->names();
  for (std::string& name : names) {
    if (name.ends_with(kEnding)) name.resize(name.size() - kEnding.size());
  }
  return names;
}

std::string NpzFile::entry_of(const std::string& name) const {
  if (zip_->contains(entry_name(name))) return entry_name(name);
  return zip_->contains(name) ? name : std::string();
}

bool NpzFile::contains(const std::string& name) const { return !entry_of(name).empty(); }

Array NpzFile::get(const std::string& name, Placement device) const {
  std::string entry = entry_of(name);
  if (entry.empty()) {
    throw IndexError(fmt::format("{}: it has no array '{}'", zip_->path(), name));
  }
  return parse_npy(zip_->read(entry), zip_->path() + ": " + name).to(device.device());
}

NpzFile load_npz(const std::string& path) { return NpzFile(path); }
NpzFile load_npz(std::istream& stream) { return NpzFile(stream); }

}  // namespace xp

}  // namespace rensa
