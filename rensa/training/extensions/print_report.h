// PrintReport: the log as a table.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "rensa/training/trainer.h"

namespace rensa::extensions {

struct PrintReportOptions {
  std::string log_report = "LogReport";  // the name of the LogReport it prints
  std::ostream* out = nullptr;           // std::cout when null
};

/// Prints a row for each new entry of the trainer's LogReport.
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
};

}  // namespace rensa::extensions
