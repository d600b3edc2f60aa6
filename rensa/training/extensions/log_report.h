// LogReport: the means of what was observed, as a JSON file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rensa/training/trainer.h"

namespace rensa::extensions {

/// One entry of a log: means by key, and when it was made.
struct LogEntry {
  std::map<std::string, double> values;   // the means, by the names they were reported under
  std::int64_t epoch = 0, iteration = 0;  // when it was written
  double elapsed_time = 0;                // seconds since the run began
  /// `values`, or one of "epoch", "iteration", "elapsed_time"; false where there is none of `key`.
  bool find(const std::string& key, double* value) const;
};

/// Tells on stderr, once for each key, what was asked for and is not in a log.
class MissingKeys {
 public:
  /// Says once, to the standard error, which of the names `wanted` an entry lacks.
  void tell(const char* extension, const std::vector<std::string>& wanted, const LogEntry& entry);

 private:
  std::set<std::string> told_;
};

struct LogReportOptions {
  std::vector<std::string> keys = {};  // all when empty; one that nobody reports is told of
  training::Trigger trigger = {1, "epoch"};
  std::string filename = "log";  // in the trainer's folder; empty: no file
  /// Called with the means of each entry before anyone sees them, to add what follows from them:
  /// a perplexity is exp of a mean, not the mean of one.
  std::function<void(std::map<std::string, double>&)> postprocess = {};
};

/// Adds up what each iteration observes, on the device; when its trigger fires it takes the means
/// (that waits for the device), appends them to the log and writes the file anew.
class LogReport final : public training::Extension {
 public:
  explicit LogReport(LogReportOptions options = {});
  const std::vector<LogEntry>& log() const { return log_; }  // all entries so far
  void operator()(training::Trainer& trainer) override;
  /// The log, and the sums of the entry that is coming.
  void members(Visitor& v) override;
  std::string default_name() const override { return "LogReport"; }

 private:
  void write(const std::string& folder) const;
  LogReportOptions options_;
  DictSummary summary_;
  MissingKeys missing_;
  std::vector<LogEntry> log_;
};

}  // namespace rensa::extensions
