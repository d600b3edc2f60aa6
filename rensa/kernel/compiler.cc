// Compiled kernels: by key in this process, on disk, and by the compilers.
#include "rensa/kernel/compiler.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/device/kernel_headers.h"
#include "rensa/kernel/kernel_cache.h"

extern char** environ;

namespace rensa::detail {

namespace {

namespace fs = std::filesystem;

/// What was made for a key; made by one thread while others that want something new wait.
template <class T> class Made {
 public:
  template <class F> T get(const std::vector<std::string>& key, F&& make) {
    std::lock_guard<std::mutex> hold(mutex_);
    auto it = made_.find(key);
    if (it == made_.end()) it = made_.emplace(key, make()).first;
    return it->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::vector<std::string>, T> made_;
};

// --- code as bytes -------------------------------------------------------------------------------

void put(std::string& bytes, const std::string& part) {
  bytes += std::to_string(part.size()) + ":" + part;
}

/// The reverse of put(). The cache has checked the bytes' hash, so they are ours.
std::string get(const std::string& bytes, std::size_t& at) {
  std::size_t colon = bytes.find(':', at);
  std::size_t size = std::stoull(bytes.substr(at, colon - at));
  at = colon + 1 + size;
  return bytes.substr(colon + 1, size);
}

std::string to_bytes(const cuda::GpuCode& code) {
  std::string bytes;
  put(bytes, code.image);
  for (const auto& [name, lowered] : code.names) put(bytes, name), put(bytes, lowered);
  return bytes;
}

cuda::GpuCode from_bytes(const std::string& bytes) {
  cuda::GpuCode code;
  std::size_t at = 0;
  code.image = get(bytes, at);
  while (at < bytes.size()) {
    std::string name = get(bytes, at), lowered = get(bytes, at);
    code.names.emplace_back(std::move(name), std::move(lowered));
  }
  return code;
}

// --- the machine's compiler ----------------------------------------------------------------------

/// The first of $CXX and the usual names that stands in $PATH; empty where none does.
std::string find_compiler() {
  const char *chosen = std::getenv("CXX"), *path = std::getenv("PATH");
  std::vector<std::string> names{"c++", "g++", "clang++"};
  if (chosen && *chosen) names.insert(names.begin(), chosen);
  for (const std::string& name : names) {
    if (name.find('/') != std::string::npos && access(name.c_str(), X_OK) == 0) return name;
    std::string folders = path ? path : "";
    while (!folders.empty()) {
      std::size_t colon = std::min(folders.find(':'), folders.size());
      std::string file = folders.substr(0, colon) + "/" + name;
      if (access(file.c_str(), X_OK) == 0) return file;
      folders.erase(0, std::min(colon + 1, folders.size()));
    }
  }
  return {};
}

/// Runs a program with its output going to `log`; returns its exit status.
int run(const std::vector<std::string>& command, const std::string& log) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  int error = posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return error;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

/// A folder of our own in the system's one for such things; gone with its content at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "rensa-XXXXXX").string();
    if (!mkdtemp(name.data())) {
      throw CompileError("a kernel for the CPU: no temporary folder can be made in " +
                         fs::temp_directory_path().string());
    }
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  fs::path operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

/// The processor, as far as the compiler's -march=native looks at it: a cache may be shared.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string text;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    if (line.starts_with("model") || line.starts_with("flags")) text += line + "\n";
  }
  return text;
}

const std::vector<std::string>& host_options() {
  // An expression rounds as it does in the library's own kernels.
  static const std::vector<std::string> options{
      "-std=c++20",      "-O3", "-march=native",      "-fPIC",   "-shared",
      "-fno-math-errno", "-w",  "-fno-trapping-math", "-fwrapv", "-ffp-contract=off"};
  return options;
}

/// The shared library that the compiler makes of `text`.
std::string compile_for_host(const std::string& compiler, const std::string& text,
                             const std::string& name) {
  TemporaryFolder folder;
  std::string source = (folder / "kernel.cc").string(), library = (folder / "kernel.so").string(),
              log = (folder / "log").string();
  std::ofstream(source) << text;
  for (int i = 0; i < kNumKernelHeaders; ++i) {
    fs::path header = folder / kKernelHeaders[i].name;
    fs::create_directories(header.parent_path());
    std::ofstream(header) << kKernelHeaders[i].text;
  }
  std::vector<std::string> command{compiler, "-I" + fs::path(source).parent_path().string()};
  command.insert(command.end(), host_options().begin(), host_options().end());
  command.insert(command.end(), {source, "-o", library, "-lmvec", "-lm"});
  if (run(command, log) != 0) {
    throw CompileError(
        fmt::format("{}: {} does not compile it:\n{}", name, compiler, contents(log)));
  }
  return contents(library);
}

RuntimeKernel::HostFunction load(const std::string& library, const std::string& name) {
  TemporaryFolder folder;  // the loader keeps what it has mapped
  std::string path = (folder / "kernel.so").string();
  std::ofstream(path, std::ios::binary) << library;
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* symbol = handle ? dlsym(handle, name.c_str()) : nullptr;
  if (!symbol) {
    const char* why = dlerror();
    throw CompileError(fmt::format("{}: the compiled kernel cannot be loaded: {}", name,
                                   why ? why : "its function is missing"));
  }
  return reinterpret_cast<RuntimeKernel::HostFunction>(symbol);
}

}  // namespace

std::shared_ptr<const cuda::GpuModule> gpu_module(const cuda::GpuSource& source, Device device) {
  static auto& made = *new Made<std::shared_ptr<const cuda::GpuModule>>;  // never destroyed
  int architecture = cuda::architecture(device);
  std::vector<std::string> key{"cuda", std::to_string(architecture), source.text, source.name};
  key.insert(key.end(), source.options.begin(), source.options.end());
  key.emplace_back("names");
  key.insert(key.end(), source.name_expressions.begin(), source.name_expressions.end());
  return made.get(key, [&] {
    std::vector<std::string> disk_key = key;
    disk_key.push_back(cuda::nvrtc_version());
    std::string bytes =
        cached(disk_key, [&] { return to_bytes(cuda::compile_gpu_code(source, architecture)); });
    return std::make_shared<const cuda::GpuModule>(from_bytes(bytes));
  });
}

RuntimeKernel::HostFunction host_function(const std::string& text, const std::string& name) {
  static auto& made = *new Made<RuntimeKernel::HostFunction>;
  return made.get({text, name}, [&] {
    std::string compiler = find_compiler();
    if (compiler.empty()) {
      throw NotImplementedError(
          name +
          ": a kernel for arrays on the CPU needs a C++ compiler; none of $CXX, c++, g++ and "
          "clang++ was found. Install one, or move the arrays to a GPU");
    }
    std::vector<std::string> key{"cpu", text, compiler, processor()};
    key.insert(key.end(), host_options().begin(), host_options().end());
    return load(cached(key, [&] { return compile_for_host(compiler, text, name); }), name);
  });
}

}  // namespace rensa::detail
