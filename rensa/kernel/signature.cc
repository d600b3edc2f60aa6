// Parameter strings read, and arguments checked.
#include "rensa/kernel/signature.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"

namespace rensa::detail {

namespace {

bool is_identifier(const std::string& text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  for (char c : text) {
    if (c != '_' && !std::isalnum(static_cast<unsigned char>(c))) return false;
  }
  return true;
}

bool is_type(const std::string& name) {
  bool found = false;
  for (int d = 0; d < kNumDtypes; ++d) found |= dtype_name(static_cast<Dtype>(d)) == name;
  return found;
}

/// What each letter stands for.
class Letters {
 public:
  /// The dtype of `p`, which becomes `dtype` where nothing is known of it.
  Dtype resolve(const KernelParameter& p, Dtype dtype) {
    if (p.dtype) return *p.dtype;
    std::optional<Dtype>& known = of(p);
    if (!known) known = dtype;
    return *known;
  }
  std::optional<Dtype> find(const KernelParameter& p) { return p.dtype ? p.dtype : of(p); }

 private:
  std::optional<Dtype>& of(const KernelParameter& p) {
    return known_[static_cast<unsigned char>(p.type[0]) % known_.size()];
  }
  std::array<std::optional<Dtype>, 128> known_;
};

}  // namespace

std::optional<Dtype> dtype_of_type(const std::string& kernel, const std::string& type) {
  if (type.size() == 1 && std::isalpha(static_cast<unsigned char>(type[0]))) return std::nullopt;
  if (type == "float") return float32;
  if (type == "double") return float64;
  if (type == "int") return int32;
  try {
    if (type.size() > 1) return parse_dtype(type);
  } catch (const DtypeError&) {}
  throw ValueError(fmt::format(
      "{}: \"{}\" is no type; give a NumPy name (float32) or a letter that stands for a dtype (T)",
      kernel, type));
}

std::vector<KernelParameter> parse_parameters(const std::string& kernel, const std::string& text) {
  std::vector<KernelParameter> parameters;
  std::istringstream list(text);
  for (std::string item; std::getline(list, item, ',');) {
    std::istringstream words(item);
    KernelParameter p;
    std::string rest;
    words >> p.type;
    if (p.type == "raw") p.raw = true, p.type.clear(), words >> p.type;
    words >> p.name;
    if (words >> rest || !is_identifier(p.name)) {
      throw ValueError(
          fmt::format("{}: \"{}\" is no parameter; write a type and a name, \"T x\" or \"raw T x\"",
                      kernel, item));
    }
    p.dtype = dtype_of_type(kernel, p.type);
    parameters.push_back(std::move(p));
  }
  return parameters;
}

void KernelSignature::check(std::initializer_list<std::string_view> reserved) const {
  if (outputs.empty()) throw ValueError(name + ": a kernel needs an output parameter");
  for (std::size_t k = 0; k < size(); ++k) {
    const std::string& own = parameter(k).name;
    bool taken = own.starts_with("rensa_") || is_type(own) ||
                 std::find(reserved.begin(), reserved.end(), own) != reserved.end();
    for (std::size_t other = 0; other < size(); ++other) taken |= parameter(other).type == own;
    if (taken) {
      throw ValueError(fmt::format(
          "{}: a parameter cannot be called {}, for the kernel has that name for something else; "
          "reserved are {}, the types' names and what begins with rensa_",
          name, own, fmt::join(reserved, ", ")));
    }
    for (std::size_t other = 0; other < k; ++other) {
      if (parameter(k).name != parameter(other).name) continue;
      throw ValueError(fmt::format("{}: two parameters are called {}", name, parameter(k).name));
    }
  }
}

void KernelSignature::fail_dtype(std::size_t k, Dtype wanted, Dtype got) const {
  throw DtypeError(fmt::format("{}: {} is {}, the parameter \"{} {}\" wants {}", name,
                               parameter(k).name, dtype_name(got), parameter(k).type,
                               parameter(k).name, dtype_name(wanted)));
}

Device KernelSignature::find_device(const KernelArguments& a) const {
  const Array* first = nullptr;
  for (const Array& array : a.arrays) {
    if (!array.defined()) continue;
    if (first) check_same_device(name.c_str(), *first, array);
    first = &array;
  }
  return first ? first->device() : ThreadState::current().device;
}

void KernelSignature::find_dtypes(KernelArguments& a) const {
  Letters letters;
  for (std::size_t k = 0; k < size(); ++k) {
    if (!a.arrays[k].defined()) continue;
    Dtype dtype = a.arrays[k].dtype(), wanted = letters.resolve(parameter(k), dtype);
    if (dtype != wanted) fail_dtype(k, wanted, dtype);
  }
  for (std::size_t k = 0; k < inputs.size(); ++k) {  // numbers decide where no array does
    if (!a.arrays[k].defined()) letters.resolve(inputs[k], a.numbers[k].default_dtype());
  }
  for (std::size_t k = 0; k < size(); ++k) {
    const KernelParameter& p = parameter(k);
    std::optional<Dtype> dtype = letters.find(p);
    if (!dtype) {
      throw DtypeError(
          fmt::format("{}: nothing says what {} of the output \"{} {}\" is; give the output array",
                      name, p.type, p.type, p.name));
    }
    a.dtypes.push_back(*dtype);
  }
}

KernelArguments KernelSignature::bind(const std::vector<KernelInput>& given) const {
  if (given.size() != inputs.size() && given.size() != size()) {
    throw ValueError(fmt::format("{}: takes {} arguments, or {} with the outputs, got {}", name,
                                 inputs.size(), size(), given.size()));
  }
  KernelArguments a;
  a.arrays.resize(size());
  a.numbers.resize(size());
  a.dtypes.reserve(size());
  for (std::size_t k = 0; k < given.size(); ++k) {
    bool only_array = !is_input(k) || parameter(k).raw;
    if (given[k].is_array()) {
      check_defined(name.c_str(), given[k].array());
      a.arrays[k] = given[k].array();
    } else if (only_array || !given[k].is_number()) {
      throw ValueError(fmt::format("{}: {} has to be an array{}", name, parameter(k).name,
                                   only_array ? "" : " or a number"));
    }
    a.numbers[k] = given[k].scalar();
  }
  a.device = find_device(a);
  find_dtypes(a);
  return a;
}

void KernelSignature::check_output(std::size_t k, const Array& out, Dtype dtype) const {
  check_writable(name.c_str(), out);
  if (out.dtype() != dtype) fail_dtype(k, dtype, out.dtype());
}

}  // namespace rensa::detail
