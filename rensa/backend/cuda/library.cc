// Where NVIDIA's libraries are looked for.
#include "rensa/backend/cuda/library.h"

#include <cuda_runtime_api.h>
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

/// `base`.so.N of the toolkit this was compiled with, then of the others that would do.
std::vector<const char*> of_toolkit(const char* newer, const char* older) {
  if (CUDART_VERSION >= 13000) return {newer, older};
  return {older, newer};
}

}  // namespace

const LibrarySource& cublaslt_source() {
  static const LibrarySource source{
      "cuBLASLt", of_toolkit("libcublasLt.so.13", "libcublasLt.so.12"), RENSA_CUDA_LIBRARY_ROOT,
      "install it (CUDA's package libcublas-13-0, or pip's nvidia-cublas) and point "
      "RENSA_LIBRARY_PATH at its folder if it lies elsewhere"};
  return source;
}

const LibrarySource& cublas_source() {
  static const LibrarySource source{
      "cuBLAS", of_toolkit("libcublas.so.13", "libcublas.so.12"), RENSA_CUDA_LIBRARY_ROOT,
      "install it (CUDA's package libcublas-13-0, or pip's nvidia-cublas) and point "
      "RENSA_LIBRARY_PATH at its folder if it lies elsewhere"};
  return source;
}

const LibrarySource& cusolver_source() {
  static const LibrarySource source{
      "cuSOLVER", of_toolkit("libcusolver.so.12", "libcusolver.so.11"), RENSA_CUDA_LIBRARY_ROOT,
      "install it (CUDA's package libcusolver-13-0, or pip's nvidia-cusolver) and point "
      "RENSA_LIBRARY_PATH at its folder if it lies elsewhere"};
  return source;
}

const LibrarySource& cufft_source() {
  static const LibrarySource source{
      "cuFFT", of_toolkit("libcufft.so.12", "libcufft.so.11"), RENSA_CUDA_LIBRARY_ROOT,
      "install it (CUDA's package libcufft-13-0, or pip's nvidia-cufft) and point "
      "RENSA_LIBRARY_PATH at its folder if it lies elsewhere"};
  return source;
}

const LibrarySource& nccl_source() {
  static const LibrarySource source{
      "NCCL",
      {"libnccl.so.2"},
      RENSA_NCCL_ROOT,
      "install it (the package libnccl2, or pip's nvidia-nccl-cu13) and point RENSA_LIBRARY_PATH "
      "at its folder if it lies elsewhere"};
  return source;
}

const LibrarySource& nvrtc_source() {
  static const LibrarySource source{
      "NVRTC", of_toolkit("libnvrtc.so.13", "libnvrtc.so.12"), RENSA_CUDA_LIBRARY_ROOT,
      "install it (CUDA's package cuda-nvrtc-13-0, or pip's nvidia-cuda-nvrtc) and point "
      "RENSA_LIBRARY_PATH at its folder if it lies elsewhere"};
  return source;
}

const LibrarySource& cudnn_source() {
  static const LibrarySource source{
      "cuDNN",
      {"libcudnn.so.9"},
      RENSA_CUDNN_ROOT,
      "install it (the package libcudnn9-cuda-13, or pip's nvidia-cudnn-cu13) and point "
      "RENSA_LIBRARY_PATH at its folder if it lies elsewhere"};
  return source;
}

const LibrarySource& cupti_source() {
  static const LibrarySource source{
      "CUPTI", of_toolkit("libcupti.so.13", "libcupti.so.12"), RENSA_CUDA_LIBRARY_ROOT,
      "install it (CUDA's package cuda-cupti-13-0, or pip's nvidia-cuda-cupti) and point "
      "RENSA_LIBRARY_PATH at its folder (extras/CUPTI/lib64 of a toolkit) if it lies elsewhere"};
  return source;
}

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

namespace {

/// What the library says that its version is; empty where it does not.
std::string version_of(const Library& library, std::string_view name) {
  int major = 0, minor = 0, patch = 0;
  if (name == "NVRTC") {
    int (*get)(int*, int*) = nullptr;
    library.bind_if_there("nvrtcVersion", get);
    return get && get(&major, &minor) == 0 ? fmt::format("{}.{}", major, minor) : "";
  }
  if (name == "CUPTI") return "";  // without a driver, asking it overflows the stack
  if (name == "NCCL") {
    int version = 0, (*get)(int*) = nullptr;
    library.bind_if_there("ncclGetVersion", get);
    if (!get || get(&version) != 0) return "";
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  }
  // The others have a function of one kind; its first argument says which part is wanted.
  std::string symbol = name == "cuBLASLt"   ? "cublasLtGetProperty"
                       : name == "cuBLAS"   ? "cublasGetProperty"
                       : name == "cuSOLVER" ? "cusolverGetProperty"
                       : name == "cuFFT"    ? "cufftGetProperty"
                                            : "cudnnGetProperty";
  int (*get)(int, int*) = nullptr;
  library.bind_if_there(symbol.c_str(), get);
  bool known = get && get(0, &major) == 0 && get(1, &minor) == 0 && get(2, &patch) == 0;
  return known ? fmt::format("{}.{}.{}", major, minor, patch) : "";
}

}  // namespace

std::string describe_library(const LibrarySource& source) {
  try {
    Library library(source);
    std::string version = version_of(library, source.name);
    return fmt::format("{}: {}{}{}", source.name, version, version.empty() ? "" : ", ",
                       library.path());
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace rensa::cuda
