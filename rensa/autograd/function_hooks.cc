// Hooks of functions: times, memory, inputs, names for profilers.
#include "rensa/autograd/function_hooks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <utility>

#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/core/report_unit.h"
#include "rensa/core/text_table.h"
#include "rensa/core/thread_state.h"

namespace rensa::function_hooks {

namespace {

std::string backward_of(const FunctionNode& function) {
  return std::string(function.name()) + ", backward";
}

/// The calling thread's current device, which is that of the function for hooks.
Device here() { return ThreadState::current().device; }

}  // namespace

// --- times ---

void TimerHook::forward_preprocess(const FunctionNode&, const Variables&) {
  times_.begin("TimerHook", here());
}
void TimerHook::forward_postprocess(const FunctionNode& function, const Variables&) {
  times_.end(function.name());
}
void TimerHook::backward_preprocess(const FunctionNode&, const Variables&) {
  times_.begin("TimerHook", here());
}
void TimerHook::backward_postprocess(const FunctionNode& function, const Variables&) {
  times_.end(backward_of(function));
}

void TimerHook::print_report(std::string_view unit) { print_report(unit, std::cout); }
void TimerHook::print_report(std::string_view unit, std::ostream& out) {
  out << str(unit) << std::flush;
}

// --- memory ---

void MemoryProfileHook::added() { listening_.emplace(*this); }
void MemoryProfileHook::deleted() { listening_.reset(); }

void MemoryProfileHook::malloc_postprocess(const MemoryEvent& event) {
  so_far_.used_bytes += event.rounded_size;
}
void MemoryProfileHook::alloc_postprocess(const MemoryEvent& event) {
  so_far_.acquired_bytes += event.rounded_size;
}
void MemoryProfileHook::heap_malloc(const void*, std::int64_t nbytes) {
  so_far_.used_bytes += nbytes;
}
void MemoryProfileHook::heap_acquired(std::int64_t nbytes) { so_far_.acquired_bytes += nbytes; }

void MemoryProfileHook::forward_preprocess(const FunctionNode&, const Variables&) {
  running_.push_back(so_far_);
}
void MemoryProfileHook::forward_postprocess(const FunctionNode& function, const Variables&) {
  end(function.name());
}
void MemoryProfileHook::backward_preprocess(const FunctionNode&, const Variables&) {
  running_.push_back(so_far_);
}
void MemoryProfileHook::backward_postprocess(const FunctionNode& function, const Variables&) {
  end(backward_of(function));
}

void MemoryProfileHook::end(std::string name) {
  MemorySummary before = running_.back();
  running_.pop_back();
  MemoryCall call{std::move(name), so_far_.used_bytes - before.used_bytes,
                  so_far_.acquired_bytes - before.acquired_bytes,
                  static_cast<int>(running_.size())};
  if (call.depth == 0) {
    total_.used_bytes += call.used_bytes;
    total_.acquired_bytes += call.acquired_bytes;
  }
  calls_.push_back(std::move(call));
}

std::map<std::string, MemorySummary> MemoryProfileHook::summary() const {
  std::map<std::string, MemorySummary> all;
  for (const MemoryCall& call : calls_) {
    MemorySummary& of_name = all[call.name];
    of_name.used_bytes += call.used_bytes;
    of_name.acquired_bytes += call.acquired_bytes;
    ++of_name.occurrence;
  }
  return all;
}

namespace {

constexpr std::array kUnits = {Unit{"GB", 1 << 30, 2}, Unit{"MB", 1 << 20, 2},
                               Unit{"KB", 1 << 10, 2}, Unit{"B", 1, 0}};

}  // namespace

std::string MemoryProfileHook::str(std::string_view unit) const {
  std::map<std::string, MemorySummary> all = summary();
  std::vector<std::pair<std::string, MemorySummary>> most_first(all.begin(), all.end());
  std::ranges::stable_sort(most_first, [](const auto& a, const auto& b) {
    return a.second.used_bytes > b.second.used_bytes;
  });
  auto bytes = [](std::int64_t n) { return static_cast<double>(n); };
  ReportUnit in(kUnits, unit, most_first.empty() ? 0 : bytes(most_first[0].second.used_bytes));
  std::vector<std::vector<std::string>> rows{
      {"FunctionName", "UsedBytes", "AcquiredBytes", "Occurrence"}};
  for (const auto& [name, of_name] : most_first) {
    rows.push_back({name, in(bytes(of_name.used_bytes)), in(bytes(of_name.acquired_bytes)),
                    std::to_string(of_name.occurrence)});
  }
  return text_table(rows, "<>>>") + "\n";
}

void MemoryProfileHook::print_report(std::string_view unit) const { print_report(unit, std::cout); }
void MemoryProfileHook::print_report(std::string_view unit, std::ostream& out) const {
  out << str(unit) << std::flush;
}

// --- inputs ---

namespace {

/// "(2, 3), float32, cpu: mean 0.5, std 0.1".
std::string description(const Array& a, bool statistics) {
  std::string text =
      fmt::format("{}, {}, {}", a.shape().str(), dtype_name(a.dtype()), a.device().str());
  if (!statistics || a.size() == 0 || dtype_kind(a.dtype()) == 'c') return text;
  // In float64, so that sums of 16 bits do not overflow.
  Array wide = a.astype(float64, false);
  return text + fmt::format(": mean {:.6g}, std {:.6g}", wide.mean().item<double>(),
                            wide.std().item<double>());
}

}  // namespace

PrintHook::PrintHook(bool statistics) : PrintHook(std::cout, statistics) {}

void PrintHook::forward_preprocess(const FunctionNode& function, const Variables& inputs) {
  *out_ << "function  " << function.name() << "\n";
  print("input", inputs);
}

void PrintHook::backward_preprocess(const FunctionNode& function, const Variables& grad_outputs) {
  *out_ << "function  " << backward_of(function) << "\n";
  print("output gradient", grad_outputs);
}

void PrintHook::print(const char* title, const Variables& variables) {
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const Variable& v = variables[i];
    *out_ << fmt::format("  {} {}  {}\n", title, i,
                         v.defined() ? description(v.array(), statistics_) : "none");
  }
  *out_ << std::flush;
}

// --- names for profilers ---

void CUDAProfileHook::forward_preprocess(const FunctionNode& function, const Variables&) {
  open_.push_back(std::make_unique<Ranges>(function.name()));
}
void CUDAProfileHook::forward_postprocess(const FunctionNode&, const Variables&) {
  open_.pop_back();
}
void CUDAProfileHook::backward_preprocess(const FunctionNode& function, const Variables&) {
  open_.push_back(std::make_unique<Ranges>(backward_of(function)));
}
void CUDAProfileHook::backward_postprocess(const FunctionNode&, const Variables&) {
  open_.pop_back();
}

std::map<std::string, CallSummary> TimerHook::summary() { return times_.summary(); }

}  // namespace rensa::function_hooks
