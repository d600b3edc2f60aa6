// Functions by name, held to what Chainer (or PyTorch) gives: the cases recorded in
// tests/answers/functions, replayed by tests/functions/function_cases_test.cc. A file of
// tests/functions/cases has a subject's functions, one line each:
//
//   const std::vector<testing::FunctionRow> rows = {
//       {"elu", RENSA_FUNCTION(F::elu(x[0]))},
//       {"elu alpha=1.5", RENSA_FUNCTION(F::elu(x[0], 1.5))},
//   };
//   const testing::FunctionTable table("activation", rows);
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "rensa/autograd/function_node.h"

namespace rensa::testing {

struct FunctionRow {
  /// A case's name. Cases "name|1", "name|0" are replayed by it too.
  std::string name;
  std::function<Variables(const Variables&)> f;
  /// How often differences of its values are to be its derivatives: fewer than twice where there is
  /// a kink in the way.
  int derivatives = 2;
  /// Whether a recording can replay it: not where it reads values on the host.
  bool captured = true;
};

struct FunctionSubject {
  const char* name;
  std::vector<FunctionRow> rows;
};
inline void PrintTo(const FunctionSubject& subject, std::ostream* os) { *os << subject.name; }
/// All there are, of every file.
std::vector<FunctionSubject>& function_subjects();

/// Enters a subject as the program starts.
struct FunctionTable {
  FunctionTable(const char* subject, std::vector<FunctionRow> rows) {
    function_subjects().push_back({subject, std::move(rows)});
  }
};
/// A function of the variables x.
#define RENSA_FUNCTION(...) [](const Variables& x) -> Variables { return {__VA_ARGS__}; }

}  // namespace rensa::testing
