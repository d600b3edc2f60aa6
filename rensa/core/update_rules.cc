// The rows of update_rules.def as they are read by programs.
#include "rensa/core/update_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "rensa/core/error.h"

namespace rensa {

namespace {

std::string_view trimmed(std::string_view text) {
  std::size_t first = text.find_first_not_of(" \t\n"), last = text.find_last_not_of(" \t\n");
  return first == text.npos ? std::string_view() : text.substr(first, last - first + 1);
}

bool is_name(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  if (text.empty() || kDigits.find(text[0]) != kDigits.npos) return false;
  for (char c : text) {
    if (kDigits.find(c) == kDigits.npos && kLetters.find(c) == kLetters.npos) return false;
  }
  return true;
}

UpdateState parse_state(std::string_view text) {
  std::size_t equals = text.find('=');
  std::string_view name = trimmed(text.substr(0, equals));
  UpdateState state{std::string(name), 0};
  bool good = is_name(name);
  if (equals != text.npos) {
    std::string_view number = trimmed(text.substr(equals + 1));
    auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), state.initial);
    good = good && error == std::errc() && end == number.data() + number.size();
  }
  if (!good) {
    throw ValueError(fmt::format("\"{}\" is no name, nor a name and a number such as \"mem = 1\"",
                                 trimmed(text)));
  }
  return state;
}

#define RENSA_TEXT(...) #__VA_ARGS__

UpdateRuleRow make_row(const char* name, UpdateChanges changes, const char* states,
                       const char* numbers) {
  UpdateRuleRow row{name, changes, parse_update_states(states), {}};
  for (UpdateState& number : parse_update_states(numbers)) {
    row.hyperparameters.push_back(std::move(number.name));
  }
  return row;
}

}  // namespace

std::vector<UpdateState> parse_update_states(const std::string& text) {
  std::vector<UpdateState> states;
  if (trimmed(text).empty()) return states;
  for (std::size_t begin = 0; begin <= text.size();) {
    std::size_t end = std::min(text.find(',', begin), text.size());
    states.push_back(parse_state(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
  return states;
}

const UpdateRuleRow& row_of(UpdateRuleId rule) {
  static const std::vector<UpdateRuleRow> rows = {
#define RENSA_UPDATE_RULE(name, changes, states, numbers, ...) \
  make_row(#name, UpdateChanges::changes, RENSA_TEXT states, RENSA_TEXT numbers),
#include "rensa/core/update_rules.def"
#undef RENSA_UPDATE_RULE
  };
  return rows[static_cast<std::size_t>(rule)];
}

}  // namespace rensa
