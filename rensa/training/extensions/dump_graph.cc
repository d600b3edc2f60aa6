// DumpGraph.
#include "rensa/training/extensions/dump_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/core/thread_state.h"

namespace rensa::extensions {

DumpGraph::DumpGraph(std::string root_name, std::string filename,
                     computational_graph::GraphOptions options)
    : root_name_(std::move(root_name)),
      filename_(std::move(filename)),
      options_(std::move(options)) {}

void DumpGraph::initialize(training::Trainer&) {
  if (!done_) kept_before_ = std::exchange(config().keep_graph_on_report, true);
}

void DumpGraph::finalize() {
  if (kept_before_) config().keep_graph_on_report = *std::exchange(kept_before_, {});
}

void DumpGraph::operator()(training::Trainer& trainer) {
  if (done_) return;
  done_ = true;
  finalize();
  Variable root = trainer.reporter().reported_variable(root_name_);
  if (!root.defined()) {
    std::vector<std::string> reported;
    for (const auto& [key, value] : trainer.observation()) reported.push_back(key);
    throw ValueError(fmt::format(
        "DumpGraph: the first iteration reports no Variable as \"{}\"; what it reports is: {}",
        root_name_, fmt::join(reported, ", ")));
  }
  computational_graph::GraphOptions options = options_;
  for (const auto& [path, parameter] : trainer.updater().namedparams()) {
    options.names.emplace_back(path, parameter);
  }
  std::string text = computational_graph::build_computational_graph({root}, options).dump();
  try {
    rensa::detail::write_whole_file(trainer.out() + "/" + filename_, text);
  } catch (const SerializationError& error) {
    throw SerializationError(std::string("DumpGraph: ") + error.what());
  }
}

void DumpGraph::members(Visitor& v) { v.optional("_done", done_); }

}  // namespace rensa::extensions
