// PrintReport: the log as a table.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "rensa/training/extensions/log_report.h"

namespace rensa::extensions {

struct PrintReportOptions {
  std::string log_report = "LogReport";  // the name of the LogReport it prints
  std::ostream* out = nullptr;           // std::cout when null
};

/// Prints a row for each new entry of the trainer's LogReport. An entry that nobody has reported is
/// left blank, and told of once on stderr with the names that there are. A run that goes on from a
/// file prints the rows of its whole log.
class PrintReport final : public training::Extension {
 public:
  explicit PrintReport(std::vector<std::string> entries, PrintReportOptions options = {});
  void operator()(training::Trainer& trainer) override;
  void initialize(training::Trainer& trainer) override;
  std::string default_name() const override { return "PrintReport"; }

 private:
  std::vector<std::string> entries_;
  PrintReportOptions options_;
  std::size_t printed_ = 0;
  MissingKeys missing_;
};

}  // namespace rensa::extensions
