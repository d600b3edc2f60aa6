// Host memory outside of arrays (buffers of kernels, lists, texts of files), whose end is the same
// OutOfMemoryError as that of arrays.
#pragma once

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace rensa {

/// The most bytes that one array or buffer may ask for: the machine's memory, or what the process's
/// control group (a container, a batch system's job) has of it, and the swap; or what
/// limit_host_memory() was told. The system might promise more, and kill the process that writes
/// it.
std::int64_t most_host_memory();

/// The least memory that the control groups grant which `membership` (as /proc/self/cgroup) names,
/// of version 1 or 2, and those above them; `groups` is where they are mounted. The greatest number
/// where none is limited.
std::int64_t memory_of_group(const std::string& groups, const std::string& membership);

/// For tests of what is beyond. Returns the limit that was.
std::int64_t limit_host_memory(std::int64_t bytes);

/// Throws OutOfMemoryError naming `operation`.
[[noreturn]] void throw_out_of_host_memory(const char* operation);

/// What f() gives. Memory that it cannot have leaves as OutOfMemoryError naming `operation`.
template <class F> decltype(auto) with_host_memory(const char* operation, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (const std::bad_alloc&) {
    throw_out_of_host_memory(operation);
  } catch (const std::length_error&) {
    throw_out_of_host_memory(operation);
  }
}

/// A vector of `count` (not negative) zeros. Throws OutOfMemoryError naming `operation`.
template <class T> std::vector<T> host_vector(const char* operation, std::int64_t count) {
  if (count > most_host_memory() / static_cast<std::int64_t>(sizeof(T))) {
    throw_out_of_host_memory(operation);
  }
  return with_host_memory(operation,
                          [&] { return std::vector<T>(static_cast<std::size_t>(count)); });
}

/// An empty vector with room for `count` (not negative). Throws OutOfMemoryError naming
/// `operation`.
template <class T> std::vector<T> host_list(const char* operation, std::int64_t count) {
  if (count > most_host_memory() / static_cast<std::int64_t>(sizeof(T))) {
    throw_out_of_host_memory(operation);
  }
  std::vector<T> list;
  with_host_memory(operation, [&] { list.reserve(static_cast<std::size_t>(count)); });
  return list;
}

}  // namespace rensa
