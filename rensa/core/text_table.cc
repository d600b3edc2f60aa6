// text_table().
#include "rensa/core/text_table.h"

#include <algorithm>
#include <cstddef>

namespace rensa {

std::string text_table(const std::vector<std::vector<std::string>>& rows,
                       std::string_view alignment) {
  std::vector<std::size_t> widths(alignment.size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    if (!text.empty()) text += '\n';
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) text += "  ";
      std::string space(widths[i] - row[i].size(), ' ');
      text += alignment[i] == '>' ? space + row[i] : row[i] + space;
    }
    text.erase(text.find_last_not_of(' ') + 1);
  }
  return text;
}

}  // namespace rensa
