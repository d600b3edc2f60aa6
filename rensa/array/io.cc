// .npy and plain bytes.
#include "rensa/array/io.h"

#include <fmt/format.h>

#include <map>

#include "rensa/array/internal.h"
#include "rensa/array/npy.h"
#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/core/host_memory.h"

namespace rensa {

namespace xp {

namespace {

std::string with_ending(const std::string& path, std::string_view ending) {
  return path.ends_with(ending) ? path : path + std::string(ending);
}

}  // namespace

void save(const std::string& path, const Array& a) {
  Array host = rensa::detail::on_host("save", a);
  FileWriter file(with_ending(path, ".npy"));
  write_npy(file, host);
  file.finish();
}

void save(std::ostream& stream, const Array& a) {
  Array host = rensa::detail::on_host("save", a);
  FileWriter file(stream);
  write_npy(file, host);
  file.finish();
}

Array load(const std::string& path, Placement device) {
  FileReader file(path);
  Array a = read_npy(file);
  char beyond;
  if (file.read(&beyond, 1) != 0) {
    throw SerializationError(fmt::format("{}: it goes on after the {} bytes of {} {}", path,
                                         a.nbytes(), a.shape().str(), dtype_name(a.dtype())));
  }
  return a.to(device.device());
}

Array load(std::istream& stream, Placement device) {
  FileReader file(stream);
  return read_npy(file).to(device.device());
}

Array load(const std::string& path, const LoadOptions& options) {
  if (options.mmap_mode.empty()) return load(path, options.device);
  static const std::map<std::string_view, FileMapping::Mode> modes{
      {"r", FileMapping::Mode::read},
      {"c", FileMapping::Mode::copy},
      {"r+", FileMapping::Mode::read_write}};
  auto mode = modes.find(options.mmap_mode);
  if (mode == modes.end()) {
    throw ValueError(fmt::format("load: mmap_mode is \"{}\"; it has to be \"r\", \"r+\" or \"c\"",
                                 options.mmap_mode));
  }
  if (options.device.given() && !options.device.device().is_cpu()) {
    throw ValueError(
        fmt::format("load: a mapped file lies in host memory and not on {}; leave "
                    "mmap_mode out, or the device",
                    options.device.device().str()));
  }
  return map_npy(path, mode->second);
}

// --- bytes ---

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

namespace {

Array read_elements(FileReader& file, Dtype dtype, std::int64_t count, std::int64_t offset,
                    Placement device) {
  if (offset < 0 || file.skip(offset) < offset) {
    throw ValueError(
        fmt::format("fromfile: the offset {} lies outside of {}", offset, file.name()));
  }
  std::int64_t wanted = 0;
  bool all = count < 0 || __builtin_mul_overflow(count, itemsize(dtype), &wanted);
  std::string content = all ? file.read_rest() : file.read(static_cast<std::size_t>(wanted));
  return frombuffer(content, dtype, static_cast<std::int64_t>(content.size()) / itemsize(dtype), 0,
                    device);
}

}  // namespace

Array fromfile(const std::string& path, Dtype dtype, std::int64_t count, std::int64_t offset,
               Placement device) {
  FileReader file(path);
  return read_elements(file, dtype, count, offset, device);
}

Array fromfile(std::istream& stream, Dtype dtype, std::int64_t count, std::int64_t offset,
               Placement device) {
  FileReader file(stream);
  return read_elements(file, dtype, count, offset, device);
}

std::string tobytes(const Array& a) {
  Array host = rensa::detail::on_host("tobytes", a);
  return with_host_memory("tobytes", [&] { return std::string(bytes_of(host)); });
}

void tofile(const Array& a, const std::string& path) {
  Array host = rensa::detail::on_host("tofile", a);
  rensa::detail::write_whole_file(path, bytes_of(host));
}

void tofile(const Array& a, std::ostream& stream) {
  Array host = rensa::detail::on_host("tofile", a);
  FileWriter file(stream);
  file.write(bytes_of(host));
  file.finish();
}

}  // namespace xp

}  // namespace rensa
