// Means of gradients over the ranks of a group.
#include "rensa/optimizers/multi_node_optimizer.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <set>

#include "rensa/array/manipulation.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"

namespace rensa {

namespace {

/// Throws on all ranks where they do not say the same of what they have: a line for each part.
void check_agreement(const char* what, const Communicator& communicator, const std::string& own) {
  std::vector<std::string> all = communicator.allgather_bytes(own);
  for (int rank = 1; rank < communicator.size(); ++rank) {
    const std::string &first = all[0], &other = all[static_cast<std::size_t>(rank)];
    if (first == other) continue;
    // The first line that differs.
    std::size_t begin = 0;
    auto line = [&](const std::string& text) {
      return begin < text.size() ? text.substr(begin, text.find('\n', begin) - begin) : "nothing";
    };
    while (begin < first.size() && begin < other.size() && line(first) == line(other)) {
      begin = first.find('\n', begin) + 1;
    }
    throw ValueError(fmt::format(
        "{}: {} has {} where {} has {}; all ranks have to make the same model", what,
        communicator.describe(0), line(first), communicator.describe(rank), line(other)));
  }
}

std::string line_of(const std::string& path, const Array& a) {
  return a.defined() ? fmt::format("{} {} {}\n", path, dtype_name(a.dtype()), a.shape().str())
                     : fmt::format("{} (waits for its shape)\n", path);
}

/// Replaces arrays by one array for each dtype that `make` gives for them, all in one dimension.
template <class Make> void in_packs(const std::vector<Array>& arrays, Make&& make) {
  std::map<Dtype, std::vector<Array>> packs;
  for (const Array& a : arrays) packs[a.dtype()].push_back(a);
  for (const auto& [dtype, pack] : packs) {
    std::vector<Array> flat;
    for (const Array& a : pack) flat.push_back(a.ravel());
    Array made = make(xp::concatenate(flat));
    std::int64_t at = 0;
    for (const Array& a : pack) {
      a.assign(made[Slice(at, at + a.size())].reshape(a.shape()));
      at += a.size();
    }
  }
}

/// Of an optimizer's parameters, once for all that lie on one device.
class MeanOverRanks final : public OptimizerHook {
 public:
  explicit MeanOverRanks(Communicator communicator) : communicator_(std::move(communicator)) {}
  const char* name() const override { return "MeanOverRanks"; }

  void operator()(const UpdateCall& call) override {
    if (call.enabled.defined()) {
      throw NotImplementedError(
          "create_multi_node_optimizer: with a dynamic loss scale each rank would leave out the "
          "updates that overflow on itself, and the models would go apart; give loss_scaling a "
          "scale that stays: {.scale = 1024}");
    }
    std::vector<Array> gradients, fresh;
    std::string described;
    for (const UpdatedParameter& p : call.parameters) {
      if (known_.count(p.rule)) {
        gradients.push_back(p.grad);
      } else {
        fresh.push_back(p.array), fresh.push_back(p.grad);
        described += line_of("a parameter", p.array);
        know(p.rule);
      }
    }
    if (!fresh.empty()) {
      check_agreement("the first update of parameters", communicator_, described);
      in_packs(fresh, [&](const Array& pack) { return communicator_.bcast(pack, 0); });
    }
    in_packs(gradients,
             [&](const Array& pack) { return communicator_.allreduce(pack, ReduceOp::mean); });
  }

  void know(const std::shared_ptr<UpdateRule>& rule) { known_.insert(rule); }

 private:
  Communicator communicator_;
  /// Of parameters that are equal on all ranks. Held by no address: another rule may have that of
  /// one that is gone.
  std::set<std::weak_ptr<UpdateRule>, std::owner_less<>> known_;
};

}  // namespace

void bcast_data(const Communicator& communicator, Link& model) {
  std::vector<Array> arrays;
  std::string described;
  for (const NamedParameter& p : model.namedparams()) {
    bool initialized = p.parameter.is_initialized();
    described += line_of(p.path, initialized ? p.parameter.array() : Array());
    if (initialized) arrays.push_back(p.parameter.array());
  }
  check_agreement("bcast_data", communicator, described);
  in_packs(arrays, [&](const Array& pack) { return communicator.bcast(pack, 0); });
}

Optimizer create_multi_node_optimizer(Optimizer optimizer, const Communicator& communicator) {
  auto hook = std::make_shared<MeanOverRanks>(communicator);
  if (optimizer.state()->target) {
    bcast_data(communicator, optimizer.target());
    for (const ParameterRef& p : optimizer.target().params()) {
      if (p.is_initialized()) hook->know(optimizer.state()->rule_of(p));
    }
  }
  optimizer.add_hook(hook);
  return optimizer;
}

}  // namespace rensa
