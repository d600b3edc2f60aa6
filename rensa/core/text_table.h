// Columns of text side by side.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rensa {

/// A line for each row, with two spaces between columns, which are as wide as their longest cell; a
/// row may be short. The k-th letter of `alignment` is that column's: '<' puts its cells to the
/// left, '>' to the right. Without a newline at the end.
std::string text_table(const std::vector<std::vector<std::string>>& rows,
                       std::string_view alignment);

}  // namespace rensa
