// A planned recording run operation by operation.
#include <cstring>

#include "rensa/graph/replay.h"

namespace rensa {

namespace {

/// Puts this run's numbers into the operations.
class SetScalars final : public OperandVisitor {
 public:
  explicit SetScalars(const std::vector<std::uint64_t>& slots) : slots_(slots) {}
  void read(Operand&) override {}
  void write(Operand&) override {}
  void scalar(HostScalar& scalar) override {
    if (scalar.slot < 0) return;
    std::memcpy(&scalar.integer, &slots_[static_cast<std::size_t>(scalar.slot)], sizeof(double));
  }

 private:
  const std::vector<std::uint64_t>& slots_;
};

class ListReplay final : public Replay {
 public:
  ListReplay(std::shared_ptr<Recording> recording, Plan plan, std::vector<Array> inputs)
      : recording_(std::move(recording)), plan_(std::move(plan)), inputs_(std::move(inputs)) {}

  void launch(const std::vector<Array>& inputs, const std::vector<std::uint64_t>& slots,
              const std::vector<Array>& results) override {
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs_[i].assign(inputs[i]);
    SetScalars set(slots);
    for (const auto& operation : recording_->operations) {
      operation->visit(set);
      rensa::launch(*operation);
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      results[i].assign(recording_->outputs[i].array);
    }
  }

 private:
  std::shared_ptr<Recording> recording_;
  Plan plan_;
  std::vector<Array> inputs_;
};

}  // namespace

std::unique_ptr<Replay> make_list_replay(std::shared_ptr<Recording> recording, Plan plan,
                                         std::vector<Array> inputs) {
  return std::make_unique<ListReplay>(std::move(recording), std::move(plan), std::move(inputs));
}

}  // namespace rensa
