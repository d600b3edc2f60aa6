// Where NVIDIA's libraries are looked for.
#include "rensa/device/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "rensa/core/environment.h"
#include "rensa/core/error.h"

#ifndef RENSA_CUDA_TOOLKIT_LIBRARY_DIR  // a build without CUDA has no toolkit
#define RENSA_CUDA_TOOLKIT_LIBRARY_DIR ""
#endif

namespace rensa::cuda {

namespace {

namespace fs = std::filesystem;

/// A root as it was given, then the folders of the usual layouts below it: a toolkit's, and pip's
/// nvidia/<package>/lib.
std::vector<fs::path> folders_of(const fs::path& root) {
  std::vector<fs::path> folders{root, root / "lib", root / "lib64"};
  std::vector<fs::path> packages;
  std::error_code ignored;  // a root that is not there has no folders
  for (fs::directory_iterator it(root, ignored), end; !ignored && it != end;
       it.increment(ignored)) {
    std::error_code no_folder;
    if (fs::is_directory(it->path() / "lib", no_folder)) packages.push_back(it->path() / "lib");
  }
  std::sort(packages.begin(), packages.end());  // the file system's order is anybody's
  folders.insert(folders.end(), packages.begin(), packages.end());
  return folders;
}

std::vector<std::string> split_path(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    std::size_t colon = std::min(text.find(':'), text.size());
    if (colon > 0) parts.emplace_back(text.substr(0, colon));
    text.remove_prefix(std::min(colon + 1, text.size()));
  }
  return parts;
}

/// The search for one library, with what it has met for the error's text.
class Search {
 public:
  explicit Search(const LibrarySource& source) : source_(source) {}

  void* run() {
    for (const std::string& root :
         split_path(environment::text("RENSA_LIBRARY_PATH").value_or(""))) {
      if (void* handle = in_root(root)) return handle;
    }
    if (*source_.configured_root) {
      if (void* handle = in_root(source_.configured_root)) return handle;
    }
    places_.emplace_back("the loader's own path");
    for (const char* soname : source_.sonames) {
      if (void* handle = open(soname)) return handle;
    }
    for (const char* folder : {RENSA_CUDA_TOOLKIT_LIBRARY_DIR, "/usr/local/cuda/lib64"}) {
      if (void* handle = in_folder(folder)) return handle;
    }
    return nullptr;
  }

  std::string failure() const {
    std::string text = fmt::format("{} ({}) was not found in {}", source_.name,
                                   fmt::join(source_.sonames, " or "), fmt::join(places_, ", "));
    if (!broken_.empty()) text += "; " + broken_;
    return text + "; " + source_.advice;
  }

 private:
  void* in_root(const fs::path& root) {
    places_.push_back(root.string());
    for (const fs::path& folder : folders_of(root)) {
      if (void* handle = try_folder(folder)) return handle;
    }
    return nullptr;
  }

  void* in_folder(const fs::path& folder) {
    if (folder.empty()) return nullptr;
    places_.push_back(folder.string());
    return try_folder(folder);
  }

  void* try_folder(const fs::path& folder) {
    for (const char* soname : source_.sonames) {
      std::error_code unreadable;
      fs::path file = folder / soname;
      if (!fs::exists(file, unreadable)) continue;
      if (void* handle = open(file.c_str())) return handle;
      // Later places may do better; if none does, this is worth knowing.
      if (const char* why = dlerror()) broken_ = why;
    }
    return nullptr;
  }

  static void* open(const char* file) { return dlopen(file, RTLD_NOW | RTLD_LOCAL); }

  const LibrarySource& source_;
  std::vector<std::string> places_;
  std::string broken_;
};

}  // namespace

Library::Library(const LibrarySource& source) : name_(source.name) {
  Search search(source);
  handle_ = search.run();
  if (!handle_) throw CudaError(search.failure());
  link_map* map = nullptr;
  path_ = dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : source.sonames.front();
}

void* Library::find(const char* symbol) const { return dlsym(handle_, symbol); }

void* Library::address(const char* symbol) const {
  void* found = find(symbol);
  if (!found) {
    throw CudaError(fmt::format("{}: {} has no {}; it is too old or not what its name says", name_,
                                path_, symbol));
  }
  return found;
}

}  // namespace rensa::cuda
