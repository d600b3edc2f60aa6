// PrintReport.
#include "rensa/training/extensions/print_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "rensa/core/error.h"

namespace rensa::extensions {

namespace {
constexpr std::size_t kLeastWidth = 10;

std::size_t width_of(const std::string& entry) { return std::max(kLeastWidth, entry.size()); }

const LogReport& log_report_of(const training::Trainer& trainer, const std::string& name) {
  const auto* log = dynamic_cast<const LogReport*>(&trainer.get_extension(name));
  if (!log) throw ValueError("PrintReport: the extension \"" + name + "\" is not a LogReport");
  return *log;
}
}  // namespace

PrintReport::PrintReport(std::vector<std::string> entries, PrintReportOptions options)
    : entries_(std::move(entries)), options_(std::move(options)) {}

void PrintReport::initialize(training::Trainer& trainer) {
  log_report_of(trainer, options_.log_report);
  std::ostream& out = options_.out ? *options_.out : std::cout;
  std::string row;
  for (const std::string& entry : entries_) row += fmt::format("{:<{}}  ", entry, width_of(entry));
  out << row << '\n' << std::flush;
}

void PrintReport::operator()(training::Trainer& trainer) {
  const std::vector<LogEntry>& log = log_report_of(trainer, options_.log_report).log();
  std::ostream& out = options_.out ? *options_.out : std::cout;
  bool terminal = !options_.out && ::isatty(STDOUT_FILENO);
  for (; printed_ < log.size(); ++printed_) {
    std::string row = terminal ? "\033[J" : "";  // over a progress bar
    for (const std::string& entry : entries_) {
      double value = 0;
      bool there = log[printed_].find(entry, &value);
      row += fmt::format("{:<{}}  ", there ? fmt::format("{:g}", value) : "", width_of(entry));
    }
    out << row << '\n' << std::flush;
    missing_.tell("PrintReport", entries_, log[printed_]);
  }
}

}  // namespace rensa::extensions
