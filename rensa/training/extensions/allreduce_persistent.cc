// Means of persistents over ranks.
#include "rensa/training/extensions/allreduce_persistent.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "rensa/array/agreement.h"
#include "rensa/array/dtype_info.h"
#include "rensa/core/error.h"

namespace rensa::extensions {

namespace {

/// The floating persistents that have been made, and what they are.
struct FloatingPersistents final : PathVisitor {
  void persistent(std::string_view name, Persistent& p) override {
    if (!p.defined() || dtype_kind(p.dtype()) != 'f') return;
    arrays.push_back(p);
    described += fmt::format("{} {} {}\n", path(name), dtype_name(p.dtype()), p.shape().str());
  }
  std::vector<Array> arrays;
  std::string described;
};

}  // namespace

AllreducePersistent::AllreducePersistent(const Link& model, Communicator communicator)
    : model_(model.anchor()), communicator_(std::move(communicator)) {}

void AllreducePersistent::operator()(training::Trainer&) {
  if (!model_->link) throw ValueError("AllreducePersistent: its model has been destroyed");
  FloatingPersistents persistents;
  Members(*model_->link).show(persistents);
  check_agreement(communicator_, "AllreducePersistent", persistents.described,
                  "all ranks have to make the same model, and call it before");
  for (const Array& a : persistents.arrays) {
    a.assign(communicator_.allreduce(a, ReduceOp::mean));
  }
}

}  // namespace rensa::extensions
