// A variable of the environment, set for a scope.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace rensa::testing {

class EnvironmentScope {
 public:
  /// Without a value the variable is unset.
  EnvironmentScope(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~EnvironmentScope() { set(before_); }
  EnvironmentScope(const EnvironmentScope&) = delete;
  EnvironmentScope& operator=(const EnvironmentScope&) = delete;

 private:
  void set(const std::optional<std::string>& value) const {
    if (value) setenv(name_, value->c_str(), 1);
    else unsetenv(name_);
  }
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace rensa::testing
