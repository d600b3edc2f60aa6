// The update rules as values: rows of update_rules.def.
#pragma once

#include <string>
#include <vector>

namespace rensa {

/// A row; core/update_rule_ids.h names them, for the files that have to know.
enum class UpdateRuleId : unsigned char;

/// What the statements of a rule write to: a parameter and its states, its gradient, or (where a
/// parameter stands otherwise) an array that is none.
enum class UpdateChanges : unsigned char { parameter, gradient, result };

/// A state of a rule: an array like the parameter, and what it starts from.
struct UpdateState {
  std::string name;    // what files and statements call it
  double initial = 0;  // of every element
};

/// A row, as far as it is no arithmetic.
struct UpdateRuleRow {
  const char* name;                          // the optimizer's or hook's
  UpdateChanges changes;                     // what its statements write to
  std::vector<UpdateState> states;           // in the order of the statements' arguments
  std::vector<std::string> hyperparameters;  // names, in the order of the statements' arguments
};
const UpdateRuleRow& row_of(UpdateRuleId rule);  // the row of that number

/// "mem = 1, g = 0" as the states that it names. Throws ValueError for what is no list of names,
/// each perhaps with a number.
std::vector<UpdateState> parse_update_states(const std::string& text);

}  // namespace rensa
