// posix_spawn and dlopen.
#include "rensa/kernel/host_compiler.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/core/memory_file.h"
#include "rensa/core/once_per_key.h"
#include "rensa/device/kernel_headers.h"

extern char** environ;

namespace rensa::detail {

namespace {

namespace fs = std::filesystem;

// --- programs ---

bool is_program(const std::string& path) {
  struct stat s {};
  return stat(path.c_str(), &s) == 0 && S_ISREG(s.st_mode) && access(path.c_str(), X_OK) == 0;
}

/// Where `name` stands: itself if it is a path, else in $PATH; empty if nowhere.
std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_program(name) ? name : "";
  const char* path = std::getenv("PATH");
  std::string folders = path ? path : "";
  while (!folders.empty()) {
    std::size_t colon = std::min(folders.find(':'), folders.size());
    std::string file = folders.substr(0, colon) + "/" + name;
    if (is_program(file)) return file;
    folders.erase(0, std::min(colon + 1, folders.size()));
  }
  return {};
}

/// How a program ended, and what it wrote.
struct Outcome {
  int error = 0;      // errno of a program that could not be started
  bool known = true;  // false: somebody else got the status (as where SIGCHLD is ignored)
  int status = 0;     // of waitpid
  std::string output;

  bool failed() const { return error != 0 || (known && status != 0); }
  /// "was killed by signal 9 (Killed)"
  std::string str() const {
    if (error != 0) return fmt::format("could not be started: {}", std::strerror(error));
    if (!known) return "ended, how is not known";
    if (WIFSIGNALED(status)) {
      return fmt::format("was killed by signal {} ({})", WTERMSIG(status),
                         strsignal(WTERMSIG(status)));
    }
    return fmt::format("ended with status {}", WEXITSTATUS(status));
  }
};

Outcome run(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  MemoryFile output("rensa output");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.descriptor(), 1);
  posix_spawn_file_actions_adddup2(&actions, output.descriptor(), 2);
  // A compiler waits for programs of its own and is stopped by Ctrl-C, whatever this thread
  // ignores.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigaddset(&signals, SIGCHLD);
  sigaddset(&signals, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  Outcome outcome;
  pid_t child = 0;
  outcome.error =
      posix_spawn(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (outcome.error != 0) return outcome;
  pid_t waited = 0;
  do waited = waitpid(child, &outcome.status, 0);
  while (waited < 0 && errno == EINTR);
  outcome.known = waited == child;
  outcome.output = output.contents();
  return outcome;
}

// --- files of a compilation ---

/// A folder of our own in the system's one for such things; gone with its content at the end.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& kernel) : kernel_(kernel) {
    std::error_code missing;
    fs::path parent = fs::temp_directory_path(missing);
    std::string name = (parent / "rensa-XXXXXX").string();
    if (missing || !mkdtemp(name.data())) {
      throw CompileError(fmt::format(
          "{}: no folder for the compiler's files can be made in {}: {}; let TMPDIR name a folder "
          "that can be written to",
          kernel, parent.empty() ? "$TMPDIR" : parent.string(),
          missing ? missing.message() : std::strerror(errno)));
    }
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string str() const { return path_.string(); }
  std::string operator/(const char* name) const { return (path_ / name).string(); }

  void write(const char* name, const std::string& text) const {
    fs::path path = path_ / name;
    std::error_code failed;
    fs::create_directories(path.parent_path(), failed);
    std::ofstream file(path, std::ios::binary);
    errno = 0;
    file << text;
    file.close();
    if (file) return;
    throw CompileError(fmt::format(
        "{}: {} cannot be written: {}; let TMPDIR name a folder with room for a compiler's files",
        kernel_, path.string(), std::strerror(errno)));
  }

 private:
  const std::string& kernel_;
  fs::path path_;
};

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

const std::vector<std::string>& options() {
  // An expression rounds as it does in the library's own kernels.
  static const std::vector<std::string> options{
      "-std=c++20",      "-O3", "-march=native",      "-fPIC",   "-shared",
      "-fno-math-errno", "-w",  "-fno-trapping-math", "-fwrapv", "-ffp-contract=off"};
  return options;
}

/// Whether all that the headers of a shared library promise is there: the loader trusts them.
bool is_whole_library(const std::string& bytes) {
  Elf64_Ehdr header;
  if (bytes.size() < sizeof(header)) return false;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_type != ET_DYN ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return false;
  }
  auto lies_within = [&](std::uint64_t begin, std::uint64_t size) {
    return begin <= bytes.size() && size <= bytes.size() - begin;
  };
  if (!lies_within(header.e_shoff, std::uint64_t{header.e_shnum} * header.e_shentsize) ||
      !lies_within(header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr))) {
    return false;
  }
  for (std::size_t k = 0; k < header.e_phnum; ++k) {
    Elf64_Phdr part;
    std::memcpy(&part, bytes.data() + header.e_phoff + k * sizeof(part), sizeof(part));
    if (part.p_type == PT_LOAD && !lies_within(part.p_offset, part.p_filesz)) return false;
  }
  return true;
}

/// The version of the program at `path`, asked once for each file.
std::string version_of(const std::string& path) {
  static auto& versions = make_held_over_fork<OncePerKey<std::string, std::string>>();
  struct stat s {};
  (void)stat(path.c_str(), &s);
  std::string file = fmt::format("{} {}:{} {} {}.{}", path, s.st_dev, s.st_ino, s.st_size,
                                 s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
  return versions.get(file, [&] {
    Outcome outcome = run({path, "--version"});
    // The first line does not depend on the locale; what follows does.
    std::string line = outcome.output.substr(0, outcome.output.find('\n'));
    return outcome.failed() || line.empty() ? file : line;
  });
}

}  // namespace

std::optional<HostCompiler> find_host_compiler() {
  const char* chosen = std::getenv("CXX");
  for (const char* name : {chosen ? chosen : "", "c++", "g++", "clang++"}) {
    std::string path = *name ? find_program(name) : "";
    if (!path.empty()) return HostCompiler{path, version_of(path)};
  }
  return std::nullopt;
}

std::string host_target() {
  static const std::string target = [] {
    std::string text;
    for (const std::string& option : options()) text += option + "\n";
    // The processor, as far as -march=native looks at it: a cache may be shared.
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line) && !line.empty();) {
      if (line.starts_with("model") || line.starts_with("flags")) text += line + "\n";
    }
    return text;
  }();
  return target;
}

std::string compile_for_host(const HostCompiler& compiler, const std::string& text,
                             const std::string& name) {
  TemporaryFolder folder(name);
  folder.write("kernel.cc", text);
  for (int i = 0; i < kNumKernelHeaders; ++i) {
    folder.write(kKernelHeaders[i].name, kKernelHeaders[i].text);
  }
  std::vector<std::string> command{compiler.path, "-I" + folder.str()};
  command.insert(command.end(), options().begin(), options().end());
  std::string library = folder / "kernel.so";
  command.insert(command.end(), {folder / "kernel.cc", "-o", library, "-lmvec", "-lm"});
  Outcome outcome = run(command);
  std::string made = outcome.failed() ? "" : contents(library);
  if (is_whole_library(made)) return made;
  throw CompileError(
      fmt::format("{}: {} does not compile it: it {}{}{}", name, compiler.path, outcome.str(),
                  outcome.failed() ? ""
                  : made.empty()   ? " and made no library"
                                   : " and made half a library",
                  outcome.output.empty() ? ", without a word" : ":\n" + outcome.output));
}

operations::RuntimeKernel::HostFunction load_host_function(const std::string& library,
                                                           const std::string& name) {
  if (!is_whole_library(library)) {
    throw CompileError(name + ": the compiled kernel is not a whole library");
  }
  MemoryFile file("rensa " + name, library);  // the loader keeps what it has mapped
  void* handle = dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  void* symbol = handle ? dlsym(handle, name.c_str()) : nullptr;
  if (!symbol) {
    const char* why = dlerror();
    std::string text = fmt::format("{}: the compiled kernel cannot be loaded: {}", name,
                                   why ? why : "its function is missing");
    if (handle) dlclose(handle);
    throw CompileError(text);
  }
  return reinterpret_cast<operations::RuntimeKernel::HostFunction>(symbol);
}

}  // namespace rensa::detail
