// The RENSA_* variables of the environment: one strict reader for all of them. docs/environment.md
// lists them. A variable that is set to nothing counts as not set.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace rensa::environment {

/// The variable's text: a path, say.
std::optional<std::string> text(const char* name);

/// Whether the variable is set to nothing, which for a folder may mean none.
bool is_empty(const char* name);

/// A number in [least, most]. Throws ValueError naming the variable for anything else.
std::optional<std::uint64_t> number(const char* name, std::uint64_t least, std::uint64_t most);

/// "1" or "0". Throws ValueError naming the variable for anything else.
std::optional<bool> flag(const char* name);

/// The place of its text among `words`. Throws ValueError naming the variable for anything else.
std::optional<int> word(const char* name, std::initializer_list<std::string_view> words);

/// Throws the ValueError for a variable of this text: `takes` says what would have been read.
[[noreturn]] void refuse(const char* name, std::string_view text, std::string_view takes);

}  // namespace rensa::environment
