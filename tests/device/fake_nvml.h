// The library of fake_nvml.cc, found by the search for NVIDIA's libraries for a scope.
#pragma once

#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>
#include <string>

#include "tests/environment.h"

namespace rensa::testing {

class FakeNvml {
 public:
  /// Both GPUs say 0 everywhere.
  FakeNvml() : place_("RENSA_LIBRARY_PATH", folder()) {
    handle_ = dlopen((folder() + "/libnvidia-ml.so.1").c_str(), RTLD_NOW);
    if (!handle_) throw std::runtime_error(dlerror());
    function<void()>("fake_nvml_reset")();
  }
  ~FakeNvml() { dlclose(handle_); }
  FakeNvml(const FakeNvml&) = delete;
  FakeNvml& operator=(const FakeNvml&) = delete;

  void set(const std::string& key, double value) {
    function<void(const char*, double)>("fake_nvml_set")(key.c_str(), value);
  }

 private:
  /// Beside the program.
  static std::string folder() {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fake_nvml";
  }
  template <class F> F* function(const char* name) {
    return reinterpret_cast<F*>(dlsym(handle_, name));
  }
  EnvironmentScope place_;
  void* handle_ = nullptr;
};

}  // namespace rensa::testing
