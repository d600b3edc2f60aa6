// DumpGraph: the graph of a run's first iteration, as a file.
#pragma once

#include <optional>
#include <string>

#include "rensa/autograd/computational_graph.h"
#include "rensa/training/trainer.h"

namespace rensa::extensions {

/// Writes the graph of the variable that the first iteration reports under `root_name`, such as
/// "main/loss", to `filename` in the trainer's folder, in Graphviz's language: `dot -Tsvg cg.dot -o
/// cg.svg` draws it. Parameters have their paths in the model as names. A run that goes on from a
/// file does not write it again. That iteration runs eagerly, and its activations stay in memory to
/// its end. Throws ValueError where no variable was reported so, SerializationError where the file
/// cannot be written.
class DumpGraph final : public training::Extension {
 public:
  explicit DumpGraph(std::string root_name, std::string filename = "cg.dot",
                     computational_graph::GraphOptions options = {});
  void initialize(training::Trainer& trainer) override;
  void operator()(training::Trainer& trainer) override;
  void finalize() override;
  void members(Visitor& v) override;
  std::string default_name() const override { return "DumpGraph"; }

 private:
  std::string root_name_, filename_;
  computational_graph::GraphOptions options_;
  std::optional<bool> kept_before_;  // config().keep_graph_on_report, while this has set it
  bool done_ = false;
};
using dump_graph = DumpGraph;  // Chainer's name of it

}  // namespace rensa::extensions
