// Plans in a text file: a header with the version of cuBLASLt, whose choices mean nothing to
// another version, then a line "gpu <name>" and the plans of GPUs of that model: those of products,
// and lines of plan_texts.h, "convolution ... : ...".
#include <fmt/format.h>

#include <limits>
#include <locale>
#include <map>
#include <sstream>
#include <string_view>

#include "rensa/backend/cuda/device_class.h"
#include "rensa/backend/cuda/plan_texts.h"
#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/device/plans.h"
#include "rensa/operations/matmul/cuda_cublaslt.h"
#include "rensa/operations/matmul/cuda_plan.h"

namespace rensa::cuda {

namespace {

constexpr const char* kMagic = "rensa plans 6";
constexpr std::string_view kBetween = " : ";  // the key and the choice of a text

std::string version_line() { return fmt::format("cublaslt {}", cublaslt().version()); }

constexpr std::pair<std::string_view, UseTf32> kTf32Words[] = {
    {"full", false}, {"tf32", true}, {"tf32x3", UseTf32::x3()}};

std::string_view tf32_word(UseTf32 use) {
  for (auto [word, value] : kTf32Words) {
    if (value == use) return word;
  }
  return {};
}
bool read_tf32(std::string_view text, UseTf32& use) {
  for (auto [word, value] : kTf32Words) {
    if (word == text) return use = value, true;
  }
  return false;
}

std::string plan_line(const PlanKey& key, const PlanChoice& choice) {
  std::string line = fmt::format(
      "matmul {} {} {} {} {} {} {} {} {} {} {} {} {:d} {:d} {} {:d} {:d} {:d} {} {} {} {:d} {} "
      "{} {} {} {:d} {:d} {}",
      key.m, key.n, key.k, key.a_ld, key.b_ld, key.c_ld, key.batch, key.a_stride, key.b_stride,
      key.c_stride, key.workspace_limit, dtype_name(key.dtype), key.a_transposed, key.b_transposed,
      tf32_word(key.tf32), key.autotune, key.relu_alone, key.gate_follows,
      static_cast<int>(key.bias), key.aligned, static_cast<int>(choice.kind),
      choice.separate_epilogue, choice.workspace, choice.form.rows, choice.form.columns,
      choice.form.warps, choice.form.tensor_cores, choice.form.boxes,
      static_cast<int>(choice.turned));
  for (std::uint64_t word : choice.algo.data) line += fmt::format(" {:x}", word);
  return line;
}

/// Reads what plan_line has written, but for its first word; false where it is anything else.
bool parse_plan(std::istringstream& in, PlanKey& key, PlanChoice& choice) {
  std::string dtype, tf32;
  int bias = 0, aligned = 0, kind = 0, rows = 0, columns = 0, warps = 0, turned = 0;
  in >> key.m >> key.n >> key.k >> key.a_ld >> key.b_ld >> key.c_ld >> key.batch >> key.a_stride >>
      key.b_stride >> key.c_stride >> key.workspace_limit >> dtype >> key.a_transposed >>
      key.b_transposed >> tf32 >> key.autotune >> key.relu_alone >> key.gate_follows >> bias >>
      aligned >> kind >> choice.separate_epilogue >> choice.workspace >> rows >> columns >> warps >>
      choice.form.tensor_cores >> choice.form.boxes >> turned >> std::hex;
  for (std::uint64_t& word : choice.algo.data) in >> word;
  bool sane = !in.fail() && read_tf32(tf32, key.tf32) && key.m > 0 && key.n > 0 && key.k > 0 &&
              key.batch > 0 && bias >= 0 && bias <= 2 && aligned >= 0 && aligned < 16 &&
              kind >= 0 && kind <= static_cast<int>(PlanKind::tiles) && turned >= 0 &&
              turned <= static_cast<int>(Turned::b) && key.workspace_limit >= 0 &&
              choice.workspace <= static_cast<std::size_t>(key.workspace_limit);
  std::string rest;
  if (!sane || in >> rest) return false;
  key.dtype = parse_dtype(dtype);
  if (dtype_kind(key.dtype) != 'f' && dtype_kind(key.dtype) != 'c') return false;
  key.bias = static_cast<PlanKey::Bias>(bias);
  key.aligned = static_cast<std::uint8_t>(aligned);
  choice.kind = static_cast<PlanKind>(kind);
  choice.form.rows = static_cast<std::uint8_t>(rows);
  choice.form.columns = static_cast<std::uint8_t>(columns);
  choice.form.warps = static_cast<std::uint8_t>(warps);
  choice.turned = static_cast<Turned>(turned);
  return true;
}

}  // namespace

void save_plans(const std::string& path) {
  std::map<std::string, std::string> lines;  // by GPU
  for (const auto& [key, choice] : chosen_plans()) {
    lines[device_class_name(key.device_class)] += plan_line(key, choice) + "\n";
  }
  for (const auto& [key, choice] : plan_texts()) {
    lines[device_class_name(key.first)] += fmt::format("{}{}{}\n", key.second, kBetween, choice);
  }
  std::string text = fmt::format("{}\n{}\n", kMagic, version_line());
  for (const auto& [gpu, plans] : lines) text += fmt::format("gpu {}\n{}", gpu, plans);
  detail::write_whole_file(path, text);
}

void load_plans(const std::string& path) {
  std::istringstream file(detail::read_whole_file(path));
  std::string line;
  if (!std::getline(file, line) || line != kMagic) {
    throw SerializationError("load_plans: " + path + " is not a file of save_plans");
  }
  if (!std::getline(file, line) || line != version_line()) {
    throw SerializationError(
        fmt::format("load_plans: {} was written with {}, this is {}; save the "
                    "plans anew",
                    path, line, version_line()));
  }
  std::vector<std::pair<PlanKey, PlanChoice>> plans;
  PlanTexts texts;
  int device_class = -1;
  for (int number = 3; std::getline(file, line); ++number) {
    if (line.starts_with("gpu ")) {
      device_class = find_device_class(line.substr(4));
      continue;
    }
    if (line.starts_with("convolution ")) {
      // Whether it is of use shows when it is looked for.
      std::size_t between = line.find(kBetween);
      if (between == line.npos || device_class < 0) continue;
      texts[{device_class, line.substr(0, between)}] = line.substr(between + kBetween.size());
      continue;
    }
    std::istringstream words(line);
    words.imbue(std::locale::classic());  // the numbers' digits stand together
    std::string what;
    auto& [key, choice] = plans.emplace_back();
    key.device_class = device_class;
    bool good = words >> what && what == "matmul" && device_class >= 0;
    try {
      good = good && parse_plan(words, key, choice);
    } catch (const DtypeError&) {
      good = false;
    }
    if (!good) {
      throw SerializationError(fmt::format("load_plans: {}: line {} is no plan", path, number));
    }
  }
  use_plans(plans);
  load_plan_texts(texts);
}

}  // namespace rensa::cuda
