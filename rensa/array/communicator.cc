// Collectives, made of messages: each rank sends what the others need of him and adds up what
// they send in the order of their ranks.
#include "rensa/array/communicator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "rensa/array/internal.h"
#include "rensa/communication/processes.h"
#include "rensa/communication/thread_transport.h"
#include "rensa/communication/transport.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/exchange/exchange.h"

namespace rensa {

namespace {

using communication::Transport;
using operations::Exchange;

/// What goes to whom and comes from whom.
struct Message {
  int peer;
  Array array;
};

void exchange(const char* name, const std::shared_ptr<Transport>& transport, std::string subject,
              const std::vector<Message>& sent, const std::vector<Message>& received) {
  Exchange operation(name);
  operation.transport = transport;
  operation.subject = std::move(subject);
  for (const Message& m : sent) operation.sent.push_back({m.peer, m.array.operand()});
  for (const Message& m : received) operation.received.push_back({m.peer, m.array.operand()});
  launch(operation);
}

/// What another rank has to know of an array to take it.
struct Description {
  std::int64_t dtype = -1;  // -1: no array
  std::int64_t ndim = 0;
  std::int64_t extents[kMaxNdim] = {};
};

Description description_of(const Array& a) {
  Description d;
  if (!a.defined()) return d;
  d.dtype = static_cast<std::int64_t>(a.dtype());
  d.ndim = a.ndim();
  std::ranges::copy(a.shape(), d.extents);
  return d;
}

/// An array to take what was described.
Array array_of(const Description& d) {
  Shape shape{std::span<const std::int64_t>(d.extents, static_cast<std::size_t>(d.ndim))};
  return detail::new_array(shape, static_cast<Dtype>(d.dtype), cpu());
}

/// Messages whose receivers do not know their shapes: descriptions go ahead. `to[r]` goes to rank r
/// where it is defined; returns what came from those of whom `from` holds, by rank.
std::vector<Array> exchange_described(const char* name, const std::shared_ptr<Transport>& transport,
                                      const std::vector<Array>& to, const std::vector<bool>& from) {
  if (Recorder* recorder = ThreadState::current().recorder) recorder->cannot_record(name);
  auto size = static_cast<std::size_t>(transport->size());
  auto own = static_cast<std::size_t>(transport->rank());
  std::vector<Description> outgoing(size), incoming(size);
  std::vector<communication::Outgoing> sent;
  std::vector<communication::Incoming> received;
  for (std::size_t r = 0; r < size; ++r) {
    outgoing[r] = description_of(to[r]);
    if (r == own) continue;
    if (to[r].defined()) sent.push_back({static_cast<int>(r), &outgoing[r], sizeof(Description)});
    if (from[r]) received.push_back({static_cast<int>(r), &incoming[r], sizeof(Description)});
  }
  transport->exchange(communication::Label(name, "any array"), sent, received);
  std::vector<Message> arrays_sent, arrays_received;
  std::vector<Array> result(size);
  for (std::size_t r = 0; r < size; ++r) {
    if (r == own) {
      if (from[r]) result[r] = to[r].copy();
      continue;
    }
    if (to[r].defined()) arrays_sent.push_back({static_cast<int>(r), to[r]});
    if (from[r]) {
      result[r] = array_of(incoming[r]);
      arrays_received.push_back({static_cast<int>(r), result[r]});
    }
  }
  exchange(name, transport, "the array described", arrays_sent, arrays_received);
  return result;
}

/// exchange_described() where one rank alone gives something to this one: what it gives.
Array exchange_from(int source, const char* name, const std::shared_ptr<Transport>& transport,
                    const std::vector<Array>& to) {
  auto place = static_cast<std::size_t>(source);
  std::vector<bool> from(to.size());
  from[place] = true;
  return exchange_described(name, transport, to, from)[place];
}

void check_rank(const char* name, int rank, const Transport& transport) {
  if (rank < 0 || rank >= transport.size()) {
    throw IndexError(fmt::format("{}: rank {} of a group of {}", name, rank, transport.size()));
  }
}

void check_one_for_each(const char* name, std::size_t given, const Transport& transport) {
  if (given != static_cast<std::size_t>(transport.size())) {
    throw ShapeError(fmt::format("{}: {} arrays for a group of {}; give one for each rank", name,
                                 given, transport.size()));
  }
}

void check_flat(const char* name, const Array& x) {
  if (x.ndim() == 1) return;
  throw ShapeError(fmt::format("{}: x is {}, and has to have one dimension; give x.ravel()", name,
                               x.view().describe()));
}

/// In the host's memory, C-contiguous.
Array on_host(const char* name, const Array& x) {
  detail::check_defined(name, x);
  return (x.device().is_cpu() ? x : x.to(cpu())).ascontiguous();
}

Array reduced(const Array& parts, ReduceOp op, Dtype dtype) {
  switch (op) {
    case ReduceOp::sum: return xp::sum(parts, {.axis = 0, .dtype = dtype});
    case ReduceOp::mean: return xp::mean(parts, {.axis = 0});
    case ReduceOp::max: return xp::max(parts, {.axis = 0});
    default: return xp::min(parts, {.axis = 0});
  }
}

const char* name_of(ReduceOp op) {
  constexpr const char* names[] = {"sum", "mean", "max", "min"};
  return names[static_cast<int>(op)];
}

/// Each rank's part of the elements of an array in one dimension, one behind the other.
struct Parts {
  explicit Parts(const std::vector<std::int64_t>& counts) : begins{0} {
    for (std::int64_t count : counts) begins.push_back(begins.back() + count);
  }
  /// Parts of one size, or almost.
  static Parts even(std::int64_t elements, int ranks) {
    std::vector<std::int64_t> counts;
    for (int r = 0; r < ranks; ++r) {
      counts.push_back(elements * (r + 1) / ranks - elements * r / ranks);
    }
    return Parts(counts);
  }
  std::int64_t begin(int rank) const { return begins[static_cast<std::size_t>(rank)]; }
  std::int64_t size(int rank) const { return begin(rank + 1) - begin(rank); }
  Array of(const Array& flat, int rank) const { return flat[Slice(begin(rank), begin(rank + 1))]; }
  std::vector<std::int64_t> begins;  // and the end of the last one
};

/// This rank's part of the elements, over all ranks. Parts without elements are sent too: ranks
/// that do not mean the same parts hear of it.
Array reduce_part(const char* name, const std::shared_ptr<Transport>& transport,
                  const std::string& subject, const Array& flat, const Parts& parts, ReduceOp op) {
  int rank = transport->rank(), size = transport->size();
  Array own = detail::new_array({size, parts.size(rank)}, flat.dtype(), cpu());
  own[rank] = parts.of(flat, rank);
  std::vector<Message> sent, received;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    sent.push_back({peer, parts.of(flat, peer)});
    received.push_back({peer, own[peer]});
  }
  exchange(name, transport, subject, sent, received);
  return reduced(own, op, flat.dtype());
}

/// The parts of all ranks, end to end.
Array join_parts(const char* name, const std::shared_ptr<Transport>& transport,
                 const std::string& subject, const Array& own, const Parts& parts) {
  int rank = transport->rank(), size = transport->size();
  Array result = detail::new_array({parts.begins.back()}, own.dtype(), cpu());
  std::vector<Message> sent, received;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    sent.push_back({peer, own});
    received.push_back({peer, parts.of(result, peer)});
  }
  exchange(name, transport, subject, sent, received);
  parts.of(result, rank).assign(own);
  return result;
}

/// Throws ShapeError unless `counts` are the parts of `elements`.
Parts checked_parts(const char* name, const std::vector<std::int64_t>& counts,
                    std::int64_t elements, const Transport& transport) {
  bool fits = counts.size() == static_cast<std::size_t>(transport.size()) &&
              std::ranges::all_of(counts, [](std::int64_t count) { return count >= 0; });
  Parts parts(counts);
  if (fits && parts.begins.back() == elements) return parts;
  throw ShapeError(
      fmt::format("{}: counts {} for {} elements in a group of {}; give one for each rank, that "
                  "come to all elements",
                  name, fmt::join(counts, ", "), elements, transport.size()));
}

void check_reducible(const char* name, const Array& x, ReduceOp op) {
  detail::check_defined(name, x);
  char kind = dtype_kind(x.dtype());
  bool fits = op == ReduceOp::sum    ? kind != 'b'
              : op == ReduceOp::mean ? kind == 'f' || kind == 'c'
                                     : kind != 'c';
  if (!fits) {
    throw DtypeError(fmt::format("{}: there is no {} of {}; convert it with .astype(...)", name,
                                 name_of(op), x.view().describe()));
  }
}

std::string subject_of(const Array& x, ReduceOp op, std::string_view what = {}) {
  return fmt::format("{} {}, {}{}{}", dtype_name(x.dtype()), x.shape().str(), name_of(op),
                     what.empty() ? "" : ", ", what);
}

}  // namespace

Communicator::Communicator(std::shared_ptr<Transport> transport)
    : transport_(std::move(transport)) {}

int Communicator::rank() const { return transport_->rank(); }
int Communicator::size() const { return transport_->size(); }
std::string Communicator::describe(int rank) const { return transport_->describe(rank); }

Communicator Communicator::split(int color, int key) const {
  if (color < 0) throw ValueError(fmt::format("split: a color is 0 or more, not {}", color));
  return Communicator(transport_->split(color, key));
}

void Communicator::barrier() const {
  std::vector<communication::Outgoing> sent;
  std::vector<communication::Incoming> received;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    sent.push_back({peer, nullptr, 0});
    received.push_back({peer, nullptr, 0});
  }
  transport_->exchange(communication::Label("barrier", ""), sent, received);
}

Array Communicator::allreduce(const Array& x, ReduceOp op, std::string_view what) const {
  check_reducible("allreduce", x, op);
  std::string subject = subject_of(x, op, what);
  Array flat = on_host("allreduce", x).ravel();
  Parts parts = Parts::even(flat.size(), size());
  Array own = reduce_part("allreduce", transport_, subject, flat, parts, op);
  Array result = join_parts("allreduce", transport_, subject, own, parts);
  return result.reshape(x.shape()).to(x.device());
}

Array Communicator::reduce_scatter(const Array& x, const std::vector<std::int64_t>& counts,
                                   ReduceOp op, std::string_view what) const {
  check_reducible("reduce_scatter", x, op);
  check_flat("reduce_scatter", x);
  Parts parts = checked_parts("reduce_scatter", counts, x.size(), *transport_);
  return reduce_part("reduce_scatter", transport_, subject_of(x, op, what),
                     on_host("reduce_scatter", x), parts, op)
      .to(x.device());
}

Array Communicator::allgatherv(const Array& x, const std::vector<std::int64_t>& counts,
                               std::string_view what) const {
  detail::check_defined("allgatherv", x);
  check_flat("allgatherv", x);
  std::int64_t total = 0;
  for (std::int64_t count : counts) total += count;
  Parts parts = checked_parts("allgatherv", counts, total, *transport_);
  if (x.size() != parts.size(rank())) {
    throw ShapeError(fmt::format("allgatherv: x is {}, and this rank's count is {}",
                                 x.view().describe(), parts.size(rank())));
  }
  std::string subject =
      fmt::format("{} ({},){}{}", dtype_name(x.dtype()), total, what.empty() ? "" : ", ", what);
  return join_parts("allgatherv", transport_, subject, on_host("allgatherv", x), parts)
      .to(x.device());
}

Array Communicator::reduce(const Array& x, int root, ReduceOp op) const {
  check_rank("reduce", root, *transport_);
  check_reducible("reduce", x, op);
  std::string subject = fmt::format("{} to rank {}", subject_of(x, op), root);
  Array flat = on_host("reduce", x).ravel();
  Parts parts = Parts::even(flat.size(), size());
  Array own = reduce_part("reduce", transport_, subject, flat, parts, op);
  std::vector<Message> sent, received;
  Array result;
  if (rank() == root) {
    result = detail::new_array({flat.size()}, flat.dtype(), cpu());
    parts.of(result, rank()).assign(own);
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != root) received.push_back({peer, parts.of(result, peer)});
    }
  } else {
    sent.push_back({root, own});
  }
  exchange("reduce", transport_, subject, sent, received);
  return rank() == root ? result.reshape(x.shape()).to(x.device()) : Array();
}

Array Communicator::bcast(const Array& x, int root) const {
  check_rank("bcast", root, *transport_);
  auto ranks = static_cast<std::size_t>(size());
  std::vector<Array> to(ranks);
  if (rank() == root) std::ranges::fill(to, on_host("bcast", x));
  Array result = exchange_from(root, "bcast", transport_, to);
  return x.defined() ? result.to(x.device()) : result;
}

std::vector<Array> Communicator::gather(const Array& x, int root) const {
  check_rank("gather", root, *transport_);
  auto ranks = static_cast<std::size_t>(size());
  std::vector<Array> to(ranks);
  to[static_cast<std::size_t>(root)] = on_host("gather", x);
  std::vector<Array> result =
      exchange_described("gather", transport_, to, std::vector<bool>(ranks, rank() == root));
  if (rank() != root) return {};
  for (Array& a : result) a = a.to(x.device());
  return result;
}

std::vector<Array> Communicator::allgather(const Array& x) const {
  auto ranks = static_cast<std::size_t>(size());
  std::vector<Array> result = exchange_described("allgather", transport_,
                                                 std::vector<Array>(ranks, on_host("allgather", x)),
                                                 std::vector<bool>(ranks, true));
  for (Array& a : result) a = a.to(x.device());
  return result;
}

Array Communicator::scatter(const std::vector<Array>& arrays, int root) const {
  check_rank("scatter", root, *transport_);
  auto ranks = static_cast<std::size_t>(size());
  std::vector<Array> to(ranks);
  if (rank() == root) {
    check_one_for_each("scatter", arrays.size(), *transport_);
    for (std::size_t r = 0; r < ranks; ++r) to[r] = on_host("scatter", arrays[r]);
  }
  Array result = exchange_from(root, "scatter", transport_, to);
  return rank() == root ? result.to(arrays[static_cast<std::size_t>(root)].device()) : result;
}

std::vector<Array> Communicator::alltoall(const std::vector<Array>& arrays) const {
  check_one_for_each("alltoall", arrays.size(), *transport_);
  std::vector<Array> to;
  for (const Array& a : arrays) to.push_back(on_host("alltoall", a));
  std::vector<Array> result = exchange_described(
      "alltoall", transport_, to, std::vector<bool>(static_cast<std::size_t>(size()), true));
  Device device = arrays[static_cast<std::size_t>(rank())].device();
  for (Array& a : result) a = a.to(device);
  return result;
}

void Communicator::send(const Array& x, int destination) const {
  check_rank("send", destination, *transport_);
  if (destination == rank()) throw ValueError("send: a rank has what it sends itself");
  auto ranks = static_cast<std::size_t>(size());
  std::vector<Array> to(ranks);
  to[static_cast<std::size_t>(destination)] = on_host("send", x);
  exchange_described("send and recv", transport_, to, std::vector<bool>(ranks));
}

Array Communicator::recv(int source) const {
  check_rank("recv", source, *transport_);
  if (source == rank()) throw ValueError("recv: a rank has what it sends itself");
  return exchange_from(source, "send and recv", transport_,
                       std::vector<Array>(static_cast<std::size_t>(size())));
}

namespace {
Array array_of_bytes(std::string_view bytes) {
  Array a = detail::new_array({static_cast<std::int64_t>(bytes.size())}, uint8, cpu());
  if (!bytes.empty()) std::memcpy(a.view().data, bytes.data(), bytes.size());
  return a;
}
std::string bytes_of(const Array& a) {
  return std::string(a.view().data, static_cast<std::size_t>(a.size()));
}
}  // namespace

std::string Communicator::bcast_bytes(std::string_view bytes, int root) const {
  return bytes_of(bcast(rank() == root ? array_of_bytes(bytes) : Array(), root));
}

std::vector<std::string> Communicator::gather_bytes(std::string_view bytes, int root) const {
  std::vector<std::string> result;
  for (const Array& a : gather(array_of_bytes(bytes), root)) result.push_back(bytes_of(a));
  return result;
}

std::vector<std::string> Communicator::allgather_bytes(std::string_view bytes) const {
  std::vector<std::string> result;
  for (const Array& a : allgather(array_of_bytes(bytes))) result.push_back(bytes_of(a));
  return result;
}

Communicator create_communicator() {
  static const Communicator all = [] {
    auto environment =
        communication::launch_environment().value_or(communication::LaunchEnvironment());
    auto timeout = communication::communication_timeout();
    if (environment.size == 1) {
      return Communicator(communication::connect_threads(1, timeout).front());
    }
    return Communicator(communication::connect_processes(environment, timeout));
  }();
  return all;
}

std::vector<Communicator> create_thread_communicators(int size) {
  if (size < 1) throw ValueError(fmt::format("a group has one rank or more, not {}", size));
  std::vector<Communicator> result;
  for (auto& end : communication::connect_threads(size, communication::communication_timeout())) {
    result.emplace_back(std::move(end));
  }
  return result;
}

}  // namespace rensa
