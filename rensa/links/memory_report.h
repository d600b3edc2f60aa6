// MemoryReport: who holds what at the peak of a step.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rensa/links/link.h"

namespace rensa {

/// While it lives, notes for each block of memory that this thread takes on `device` by which
/// function it was taken, in forward or in its backward, and finds out who held what when most was
/// held. Given a model, functions that take a parameter are told apart by its link, also where an
/// Autocast has cast it, and parameters that there were before are counted; of other memory that
/// was there before it knows nothing. Captured steps run eagerly meanwhile, as for every hook of
/// functions. Nothing waits.
///
///   MemoryReport report(device, model);
///   optimizer.update(model, x, t);
///   std::cout << report;
class [[nodiscard]] MemoryReport {
 public:
  [[nodiscard]] explicit MemoryReport(Device device);
  /// Throws ValueError where the model's members() names something twice.
  [[nodiscard]] MemoryReport(Device device, const Link& model);
  ~MemoryReport();
  MemoryReport(const MemoryReport&) = delete;
  MemoryReport& operator=(const MemoryReport&) = delete;

  /// Who holds memory, and how much.
  struct Holder {
    std::string function;  // "linear"; "linear, backward"; "parameter"; empty: outside of functions
    std::string link;      // "/l1"; empty for functions without parameters
    std::int64_t bytes = 0, blocks = 0;  // how much
  };
  /// At the peak so far, who holds the most first.
  std::vector<Holder> holders() const;
  /// The sum of what they hold.
  std::int64_t peak_bytes() const;
  /// A table of them.
  std::string str() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::ostream& operator<<(std::ostream& os, const MemoryReport& report);

}  // namespace rensa
