// .npy, .npz and plain bytes.
#include "rensa/array/io.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>

#include "rensa/array/files.h"
#include "rensa/array/internal.h"
#include "rensa/array/npy.h"
#include "rensa/array/zip.h"
#include "rensa/core/error.h"

namespace rensa {

namespace detail {

std::string read_whole_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) {
    throw SerializationError(fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  }
  auto fail = [&](const char* what) {
    throw SerializationError(fmt::format("cannot read {}: {}", path, what));
  };
  auto length = static_cast<std::streamoff>(file.tellg());
  if (length < 0) fail("is it a file?");
  file.seekg(0);
  std::string content;
  try {
    content.resize(static_cast<std::size_t>(length));
  } catch (const std::exception&) {
    fail("it is too large");
  }
  if (!file.read(content.data(), length)) fail("is it a file?");
  return content;
}

void write_whole_file(const std::string& path, std::string_view content) {
  std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (!file) {
    throw SerializationError(fmt::format("cannot write {}: {}", temporary, std::strerror(errno)));
  }
  bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  written &= std::fclose(file) == 0;
  if (written && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  int error = errno;
  std::remove(temporary.c_str());
  throw SerializationError(fmt::format("cannot write {}: {}", path, std::strerror(error)));
}

}  // namespace detail

namespace xp {

namespace {

std::string with_ending(const std::string& path, std::string_view ending) {
  return path.ends_with(ending) ? path : path + std::string(ending);
}

void write_npz(const std::string& path, std::span<const NamedArray> arrays, bool compress) {
  std::set<std::string> names;
  for (const NamedArray& named : arrays) {
    rensa::detail::check_defined("savez", named.array);
    if (!names.insert(named.name).second) {
      throw ValueError(fmt::format("savez: two arrays are named '{}'", named.name));
    }
  }
  ZipWriter zip(with_ending(path, ".npz"));
  for (const NamedArray& named : arrays) {
    zip.add(named.name + ".npy", format_npy(named.array), compress);
  }
  zip.finish();
}

std::vector<NamedArray> numbered(std::initializer_list<Array> arrays) {
  std::vector<NamedArray> named;
  for (const Array& array : arrays) {
    named.push_back({fmt::format("arr_{}", named.size()), array});
  }
  return named;
}

}  // namespace

void save(const std::string& path, const Array& a) {
  rensa::detail::check_defined("save", a);
  rensa::detail::write_whole_file(with_ending(path, ".npy"), format_npy(a));
}

Array load(const std::string& path, Placement device) {
  std::string content = rensa::detail::read_whole_file(path);
  if (content.starts_with("PK")) {
    throw SerializationError(fmt::format("{}: an .npz of several arrays: say load_npz", path));
  }
  return parse_npy(content, path).to(device.device());
}

void savez(const std::string& path, std::span<const NamedArray> arrays) {
  write_npz(path, arrays, false);
}
void savez(const std::string& path, std::initializer_list<NamedArray> arrays) {
  write_npz(path, {arrays.begin(), arrays.size()}, false);
}
void savez(const std::string& path, std::initializer_list<Array> arrays) {
  write_npz(path, numbered(arrays), false);
}
void savez_compressed(const std::string& path, std::span<const NamedArray> arrays) {
  write_npz(path, arrays, true);
}
void savez_compressed(const std::string& path, std::initializer_list<NamedArray> arrays) {
  write_npz(path, {arrays.begin(), arrays.size()}, true);
}
void savez_compressed(const std::string& path, std::initializer_list<Array> arrays) {
  write_npz(path, numbered(arrays), true);
}

NpzFile::NpzFile(const std::string& path) : zip_(std::make_shared<ZipReader>(path)) {}

std::vector<std::string> NpzFile::files() const {
  std::vector<std::string> names = zip_->names();
  for (std::string& name : names) {
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
  }
  return names;
}

std::string NpzFile::entry_of(const std::string& name) const {
  if (zip_->contains(name + ".npy")) return name + ".npy";
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

// --- bytes
// -----------------------------------------------------------------------------------------

Array frombuffer(std::span<const std::byte> buffer, Dtype dtype, std::int64_t count,
                 std::int64_t offset, Placement device) {
  auto size = static_cast<std::int64_t>(buffer.size());
  if (offset < 0 || offset > size) {
    throw ValueError(
        fmt::format("frombuffer: the offset {} lies outside of {} bytes", offset, size));
  }
  std::int64_t there = (size - offset) / itemsize(dtype);
  if (count < 0) {
    if ((size - offset) % itemsize(dtype) != 0) {
      throw ValueError(fmt::format("frombuffer: {} bytes are no whole number of {} elements",
                                   size - offset, dtype_name(dtype)));
    }
    count = there;
  } else if (count > there) {
    throw ValueError(fmt::format("frombuffer: {} {} elements are wanted, but {} bytes are there",
                                 count, dtype_name(dtype), size - offset));
  }
  if (dtype == bool_) {  // any other byte would not be a C++ bool
    return from_host(buffer.data() + offset, {count}, uint8, device).astype(bool_);
  }
  return from_host(buffer.data() + offset, {count}, dtype, device);
}

Array frombuffer(std::string_view buffer, Dtype dtype, std::int64_t count, std::int64_t offset,
                 Placement device) {
  return frombuffer(std::as_bytes(std::span(buffer.data(), buffer.size())), dtype, count, offset,
                    device);
}

Array fromfile(const std::string& path, Dtype dtype, std::int64_t count, std::int64_t offset,
               Placement device) {
  std::string content = rensa::detail::read_whole_file(path);
  auto size = static_cast<std::int64_t>(content.size());
  if (offset < 0 || offset > size) {
    throw ValueError(fmt::format("fromfile: the offset {} lies outside of the {} bytes of {}",
                                 offset, size, path));
  }
  std::int64_t there = (size - offset) / itemsize(dtype);
  if (count < 0 || count > there) count = there;
  return frombuffer(content, dtype, count, offset, device);
}

std::string tobytes(const Array& a) {
  rensa::detail::check_defined("tobytes", a);
  Array host = to_cpu(a).ascontiguous();
  return std::string(static_cast<const char*>(host.data()),
                     static_cast<std::size_t>(host.nbytes()));
}

void tofile(const Array& a, const std::string& path) {
  rensa::detail::check_defined("tofile", a);
  rensa::detail::write_whole_file(path, tobytes(a));
}

}  // namespace xp

}  // namespace rensa
