// LogReport's log, as a run that goes on takes it from its file: what was read is written and read
// again.
#include <cstdlib>
#include <functional>

#include "fuzz/files.h"
#include "rensa/training/extensions/log_report.h"

namespace {

using namespace rensa;

/// Calls a function with the log's text.
class LogVisitor : public Visitor {
 public:
  explicit LogVisitor(std::function<void(const Access&)> use) : use_(std::move(use)) {}
  void value(std::string_view name, const Access& access) override {
    if (name == "_log") use_(access);
  }

 private:
  std::function<void(const Access&)> use_;
};

void set_log(extensions::LogReport& report, const std::string& text) {
  LogVisitor walk([&](const Visitor::Access& access) { access.set(text); });
  report.members(walk);
}

std::string log_of(extensions::LogReport& report) {
  std::string text;
  LogVisitor walk(
      [&](const Visitor::Access& access) { text = std::get<std::string>(access.get()); });
  report.members(walk);
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  extensions::LogReport report;
  try {
    set_log(report, std::string(fuzz::text(data, size)));
  } catch (const SerializationError&) {
    if (!report.log().empty()) std::abort();
    return 0;
  }
  std::string text = log_of(report);
  set_log(report, text);
  if (log_of(report) != text) std::abort();
  return 0;
}
