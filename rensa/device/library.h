// NVIDIA's libraries, opened when first needed: nothing of theirs is linked, so a program starts
// without them, and what is missing is named with the way to get it.
#pragma once

#include <string>
#include <vector>

namespace rensa::cuda {

/// What to look for, and what to tell a user who lacks it.
struct LibrarySource {
  const char* name;                  // "cuBLASLt"
  std::vector<const char*> sonames;  // the wanted one first
  const char* configured_root;       // where the build was told to look, or ""
  const char* advice;                // "install the package ..."
};

/// An opened library. It stays open until the process ends: its own threads and exit handlers may
/// run until then.
class Library {
 public:
  /// Looks, in this order, in the folders of the environment variable RENSA_LIBRARY_PATH and in the
  /// configured root (for each also in its lib, lib64 and */lib), where the loader itself looks,
  /// and in the toolkit's folder. Throws CudaError that names the places and the way out.
  explicit Library(const LibrarySource& source);

  /// Sets `function` to the library's `symbol`; with decltype(&::symbol) from its header as F,
  /// calls are checked. Throws CudaError.
  template <class F> void bind(const char* symbol, F*& function) const {
    function = reinterpret_cast<F*>(address(symbol));
  }
  /// As bind; null where the library, an older one, does not have it.
  template <class F> void bind_if_there(const char* symbol, F*& function) const {
    function = reinterpret_cast<F*>(find(symbol));
  }
  /// The file it was opened from.
  const std::string& path() const { return path_; }

 private:
  void* find(const char* symbol) const;
  void* address(const char* symbol) const;

  const char* name_;
  void* handle_ = nullptr;
  std::string path_;
};

}  // namespace rensa::cuda
