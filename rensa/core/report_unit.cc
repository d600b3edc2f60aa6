// ReportUnit.
#include "rensa/core/report_unit.h"

#include <fmt/format.h>

#include <algorithm>

#include "rensa/core/error.h"

namespace rensa {

namespace {

const Unit* fitting(std::span<const Unit> units, double amount) {
  auto unit = std::ranges::find_if(units, [&](const Unit& u) { return amount >= u.size; });
  return unit == units.end() ? &units.back() : &*unit;
}

const Unit* named(std::span<const Unit> units, std::string_view name) {
  auto unit = std::ranges::find(units, name, &Unit::name);
  if (unit != units.end()) return &*unit;
  std::string known;
  for (const Unit& u : units) known += fmt::format("{}, ", u.name);
  throw ValueError(
      fmt::format("print_report: the unit \"{}\"; give {}auto or auto_foreach", name, known));
}

}  // namespace

ReportUnit::ReportUnit(std::span<const Unit> units, std::string_view asked, double largest)
    : units_(units) {
  if (asked == "auto") {
    chosen_ = fitting(units, largest);
  } else if (asked != "auto_foreach") {
    chosen_ = named(units, asked);
  }
}

std::string ReportUnit::operator()(double amount) const {
  const Unit& unit = chosen_ ? *chosen_ : *fitting(units_, amount);
  return fmt::format("{:.{}f}{}", amount / unit.size, unit.decimals, unit.name);
}

}  // namespace rensa
