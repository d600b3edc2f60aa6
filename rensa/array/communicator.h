// Communicator: one rank's end of a group of processes, or of threads, that work together.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/communication/communication_error.h"

namespace rensa {

namespace communication {
class Transport;
}  // namespace communication
namespace detail {
struct RankEnd;
}  // namespace detail

/// What becomes of the ranks' elements in one place.
enum class ReduceOp { sum, mean, max, min };

/// A shared handle: copies are the same end. All ranks make the same calls, in the same order,
/// with arrays of the same dtype and, where nothing else is said, of the same shape; each call
/// waits until this rank's part is done. Where a rank does something else, has failed, has
/// ended, or keeps the others waiting for longer than RENSA_COMMUNICATION_TIMEOUT seconds (600),
/// all throw CommunicationError naming the rank, its host and the call; the group is of no use
/// afterwards. Used by one thread at a time. Arrays on GPUs go by way of the host, which waits for
/// them, or straight from GPU to GPU (on()); results are on the device of what was given. Results
/// have the same bits on all ranks. On the CPU, and on two GPUs, they are those of adding the
/// ranks' elements in the order of their ranks; on more GPUs sums of floats may be in another
/// order.
class Communicator {
 public:
  explicit Communicator(std::shared_ptr<communication::Transport> transport);

  bool operator==(const Communicator&) const = default;  // the same end of the same group
  int rank() const;                                      // this rank's place, from 0
  int size() const;                                      // how many ranks there are
  /// This rank's place among those of this group that are on its host, from 0. Of the group of all
  /// processes it is the number of the GPU that is this one's own, where each sees all of them.
  int local_rank() const;
  /// "rank 2 (host b, process 4711)".
  std::string describe(int rank) const;

  /// The same group, whose arrays on GPUs go from one to the other by NCCL: called by all ranks,
  /// each with another GPU; or, with the CPU, the group whose arrays go by way of the host. Calls
  /// with arrays on `device` are queued on the current stream and do not wait for it, and steps
  /// that are captured hold them. All ranks give arrays on their GPUs to a call, or all give
  /// others, which go by the host: ranks that differ in this wait for each other until the timeout.
  /// A thread of each rank tells the others that it is there: when one fails the others find out
  /// within a second or so. What the GPU had queued behind the call that failed is done with
  /// whatever lay in its memory, so every wait for the GPU throws CommunicationError until the last
  /// end of the group is gone, as does every call. All ranks let go of their ends at about the same
  /// time. Not for a stream that is being captured by hand (cuda::Graph), whose launches the others
  /// would not hear of. Throws DeviceError on all ranks where one has no such GPU or no NCCL, where
  /// two have the same, and where only some have one; CudaError and CommunicationError where the
  /// GPUs cannot be connected.
  Communicator on(Device device) const;
  /// That device; the CPU where on() was not called.
  Device device() const;

  /// The ranks with the same color are a group of their own, on the same devices, with ranks in the
  /// order of their keys and, where those are equal, of their ranks here. Throws ValueError for a
  /// negative color.
  Communicator split(int color, int key) const;
  /// Returns when all ranks have come here.
  void barrier() const;

  /// Over all ranks, on all of them. Sums and means of 16-bit floats are computed in float32.
  /// Throws DtypeError for the mean of integers, and for complex maxima. `what` is what x is, in a
  /// word or two: ranks that say something else are found.
  Array allreduce(const Array& x, ReduceOp op = ReduceOp::sum, std::string_view what = {}) const;
  /// Over all ranks, on `root`; an undefined array on the others.
  Array reduce(const Array& x, int root, ReduceOp op = ReduceOp::sum) const;
  /// This rank's part of what allreduce gives of an x in one dimension: counts[rank] elements
  /// behind those of the ranks before it. The counts, one for each rank, are the same on all.
  /// Throws ShapeError where they are not as many as ranks or x's elements.
  Array reduce_scatter(const Array& x, const std::vector<std::int64_t>& counts,
                       ReduceOp op = ReduceOp::sum, std::string_view what = {}) const;
  /// The reverse: each rank gives counts[rank] elements in one dimension, and all get them end to
  /// end (MPI_Allgatherv). Throws ShapeError as reduce_scatter does.
  Array allgatherv(const Array& x, const std::vector<std::int64_t>& counts,
                   std::string_view what = {}) const;
  /// What `root` gives, on all ranks: a copy on its device there, elsewhere on `x`'s or, where that
  /// is undefined, on the group's device if root's is on its, else on the CPU. Shape and dtype are
  /// root's.
  Array bcast(const Array& x, int root) const;
  /// What each rank gives, by rank, on `root`; nothing on the others. Shapes and dtypes are each
  /// rank's own.
  std::vector<Array> gather(const Array& x, int root) const;
  /// The same on all ranks.
  std::vector<Array> allgather(const Array& x) const;
  /// arrays[rank] of those that `root` gives, one for each rank; the others give none. Throws
  /// ShapeError on root for another number.
  Array scatter(const std::vector<Array>& arrays, int root) const;
  /// What each rank gives this one, by rank: each gives arrays[rank] to that rank. Throws
  /// ShapeError for another number than there are ranks.
  std::vector<Array> alltoall(const std::vector<Array>& arrays) const;
  /// The same of one array in one dimension, where all know the sizes beforehand: sent[r] of its
  /// elements, behind those for the ranks before, go to rank r, which has that number in its
  /// received[] for this one (MPI_Alltoallv). Recorded steps have this and allgatherv() in them;
  /// those above, whose shapes each rank learns when they come, stay eager. Throws ShapeError where
  /// the numbers are not as many as ranks or come to another size than x's.
  Array alltoallv(const Array& x, const std::vector<std::int64_t>& sent,
                  const std::vector<std::int64_t>& received, std::string_view what = {}) const;
  /// To another rank, which calls recv() for it at that time. Throws ValueError for this rank.
  void send(const Array& x, int destination) const;
  /// What that rank sends: on the group's device if it is on its there, else on the CPU.
  Array recv(int source) const;

  /// Bytes, as of a serialized object: what `root` gives, on all ranks.
  std::string bcast_bytes(std::string_view bytes, int root) const;
  /// What each rank gives, by rank, on `root`; nothing on the others.
  std::vector<std::string> gather_bytes(std::string_view bytes, int root) const;
  /// What each rank gives, by rank, on all of them.
  std::vector<std::string> allgather_bytes(std::string_view bytes) const;

 private:
  explicit Communicator(std::shared_ptr<const detail::RankEnd> end) : end_(std::move(end)) {}
  std::shared_ptr<const detail::RankEnd> end_;
};

/// The group of all processes of a program that was started as several of them: by `rensa-run -n N
/// program`, torchrun or SLURM (communication/launch_environment.h). Every process calls it, and
/// gets the same group each time. A program that was started as one is a group of one. Throws
/// CommunicationError where the others do not come.
Communicator create_communicator();

/// Groups of this process's own threads, by rank: `size` ends, of which each thread uses one.
/// Throws ValueError for less than one.
std::vector<Communicator> create_thread_communicators(int size);

}  // namespace rensa
