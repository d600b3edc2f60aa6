// The unit in which a report shows its amounts.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rensa {

struct Unit {
  std::string_view name;
  double size;   // of what amounts are counted in
  int decimals;  // that are shown
};

/// The unit of a report: one of `units` by its name, "auto": the largest that `largest`, the
/// greatest amount of the report, is one or more of, or "auto_foreach": the largest that each
/// amount is one or more of. `units` stand from the largest to the smallest, and outlive this.
class ReportUnit {
 public:
  /// Throws ValueError for an `asked` that is none of these.
  ReportUnit(std::span<const Unit> units, std::string_view asked, double largest);
  /// "1.50ms".
  std::string operator()(double amount) const;

 private:
  std::span<const Unit> units_;
  const Unit* chosen_ = nullptr;  // none: each by itself
};

}  // namespace rensa
