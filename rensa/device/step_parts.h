// A step on several GPUs as parts, one for each GPU, and where these wait for each other: by marks.
// A part tells others that it has come to its first mark, its second and so on, and they await it.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "rensa/device/step_graph.h"

namespace rensa::cuda {

/// That `part` has come to its `number`-th mark; the numbers start at 1.
struct StepMark {
  std::size_t part;
  int number;

  bool operator==(const StepMark&) const = default;
};

/// What a part does: it runs a node, tells others of a mark, or awaits marks of others.
struct StepAction {
  enum class Kind : unsigned char { run, tell, await };
  Kind kind = Kind::run;
  std::size_t node = 0;           // that is run, of the step's
  std::vector<StepMark> marks;    // awaited ones: of each part the last; or the one that is told
  std::vector<std::size_t> told;  // the parts that are told
  /// The part's earlier actions that it directly follows; with none, it follows what brings the
  /// part's inputs and numbers in.
  std::vector<std::size_t> after;
};

/// The actions of one GPU.
struct StepPart {
  std::vector<StepAction> actions;
  std::vector<std::vector<std::size_t>>
      results;  // of its results in order: the actions they follow
};

/// The parts of `nodes` on `devices`. What a node has to follow on another GPU, it awaits. A node
/// between GPUs also awaits the start of the parts of those whose memory it touches, and these end
/// after it: so what a GPU's stream has before and behind a launch is before and behind all that
/// touches the GPU's memory.
///
/// Whatever order a GPU takes the actions of its part in, all come to their ends as long as it
/// heeds what they follow. For all marks stand in one order, in which each stands behind those that
/// it needs; a part tells its own along it, and awaits none before it has told those of its own
/// that stand earlier. So the earliest mark that is awaited can always be told.
std::vector<StepPart> step_parts(const std::vector<Device>& devices,
                                 const std::vector<StepNode>& nodes,
                                 const std::vector<StepPlace>& results);

/// How much room the kernels of a node take.
struct StepRoom {
  double block = 1;  // of a multiprocessor: the largest block, of its registers or shared memory
  double all = 1;    // of the GPU: all blocks; more than 1 where they take turns

  /// Whether a multiprocessor has room for one block alone.
  bool is_alone() const { return block > 0.5; }
  /// Whether it then has little for blocks of others.
  bool is_large() const { return block > 0.75; }
  /// Whether it leaves little of the GPU.
  bool fills_gpu() const { return all >= 0.75; }
};

/// Which actions of a part may come to the processors before those that they follow are done. What
/// comes early holds room while it waits, so of the nodes that are run these do:
/// - urgent ones; but no large one behind a large one that fills the GPU, if another large one that
///   is not urgent follows the same as that one: it waits already for the room that this leaves;
/// - of the others those that are not alone on a multiprocessor, behind one urgent node alone that
///   no large urgent one follows.
/// `room` is asked for no node twice, and not for those that are captured once: they count as
/// large, and as many blocks as fill the GPU.
std::vector<bool> early_actions(const StepPart& part, const std::vector<StepNode>& nodes,
                                const std::function<StepRoom(const StepNode&)>& room);

/// The most marks of a part.
int most_marks(const std::vector<StepPart>& parts);

}  // namespace rensa::cuda
