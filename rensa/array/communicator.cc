// Collectives, made of messages: each rank sends what the others need of him and adds up what
// they send in the order of their ranks.
#include "rensa/array/communicator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "rensa/array/internal.h"
#include "rensa/communication/processes.h"
#include "rensa/communication/thread_transport.h"
#include "rensa/communication/transport.h"
#include "rensa/device/devices.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/exchange/exchange.h"
#include "rensa/operations/exchange/gpu_links.h"

namespace rensa {

/// How this rank reaches the others.
struct detail::RankEnd {
  std::shared_ptr<communication::Transport> transport;
  Device device = cpu();
  std::shared_ptr<cuda::GpuLinks> links = {};  // of `device`, where other ranks have GPUs
  // What all exchanges by the host or on `device` write to, of this group and of what is split off
  // it: they stay in one order in recordings, though one of them may have nothing to do here.
  Array host_order, gpu_order = {};

  int rank() const { return transport->rank(); }
  int size() const { return transport->size(); }
  /// Where what goes to others is taken from, and what comes from them is put.
  Device reaches(Device given) const { return size() == 1 || given == device ? given : cpu(); }
};

namespace {

using detail::RankEnd;
using operations::Exchange;

/// What goes to whom and comes from whom.
struct Message {
  int peer;
  Array array;
};

/// All of it is on one device, this rank's or the CPU; the others' is, too.
void exchange(const char* name, const RankEnd& end, std::string subject,
              const std::vector<Message>& sent, const std::vector<Message>& received) {
  if (sent.empty() && received.empty()) return;  // alone, or nothing to do with the others
  Exchange operation(name);
  operation.transport = end.transport;
  operation.subject = std::move(subject);
  for (const Message& m : sent) operation.sent.push_back({m.peer, m.array.operand()});
  for (const Message& m : received) operation.received.push_back({m.peer, m.array.operand()});
  operation.order = end.host_order.operand();
  const std::vector<Message>& any = sent.empty() ? received : sent;
  if (!any.empty() && any[0].array.device().is_cuda()) {
    operation.links = end.links;
    operation.order = end.gpu_order.operand();
    host_effect([links = end.links, label = operation.label(), out = operation.outgoing(),
                 in = operation.incoming()] { links->note(label, out, in); });
  }
  launch(operation);
}

/// What another rank has to know of an array to take it.
struct Description {
  std::int64_t dtype = -1;     // -1: no array
  std::int64_t is_on_gpu = 0;  // its rank's
  std::int64_t ndim = 0;
  std::int64_t extents[kMaxNdim] = {};
};

Description description_of(const Array& a) {
  Description d;
  if (!a.defined()) return d;
  d.dtype = static_cast<std::int64_t>(a.dtype());
  d.is_on_gpu = a.device().is_cuda();
  d.ndim = a.ndim();
  std::ranges::copy(a.shape(), d.extents);
  return d;
}

/// An array to take what was described.
Array array_of(const Description& d, Device gpu) {
  Shape shape{std::span<const std::int64_t>(d.extents, static_cast<std::size_t>(d.ndim))};
  return detail::new_array(shape, static_cast<Dtype>(d.dtype), d.is_on_gpu ? gpu : cpu());
}

/// Messages whose receivers do not know their shapes: descriptions go ahead. `to[r]` goes to rank r
/// where it is defined; returns what came from those of whom `from` holds, by rank.
std::vector<Array> exchange_described(const char* name, const RankEnd& end,
                                      const std::vector<Array>& to, const std::vector<bool>& from) {
  if (Recorder* recorder = ThreadState::current().recorder) recorder->cannot_record(name);
  auto size = static_cast<std::size_t>(end.size()), own = static_cast<std::size_t>(end.rank());
  std::vector<Description> outgoing(size), incoming(size);
  std::vector<communication::Outgoing> sent;
  std::vector<communication::Incoming> received;
  for (std::size_t r = 0; r < size; ++r) {
    outgoing[r] = description_of(to[r]);
    if (r == own) continue;
    if (to[r].defined()) sent.push_back({static_cast<int>(r), &outgoing[r], sizeof(Description)});
    if (from[r]) received.push_back({static_cast<int>(r), &incoming[r], sizeof(Description)});
  }
  end.transport->exchange(communication::Label(name, "any array"), sent, received);
  struct Messages {
    std::vector<Message> sent, received;
  };
  Messages on_host, on_gpu;
  auto of = [&](const Array& a) -> Messages& { return a.device().is_cpu() ? on_host : on_gpu; };
  std::vector<Array> result(size);
  for (std::size_t r = 0; r < size; ++r) {
    if (r == own) {
      if (from[r]) result[r] = to[r].copy();
      continue;
    }
    if (to[r].defined()) of(to[r]).sent.push_back({static_cast<int>(r), to[r]});
    if (from[r]) {
      result[r] = array_of(incoming[r], end.device);
      of(result[r]).received.push_back({static_cast<int>(r), result[r]});
    }
  }
  for (const Messages& messages : {on_host, on_gpu}) {
    exchange(name, end, "the array described", messages.sent, messages.received);
  }
  return result;
}

/// exchange_described() where one rank alone gives something to this one: what it gives.
Array exchange_from(int source, const char* name, const RankEnd& end,
                    const std::vector<Array>& to) {
  auto place = static_cast<std::size_t>(source);
  std::vector<bool> from(to.size());
  from[place] = true;
  return exchange_described(name, end, to, from)[place];
}

void check_rank(const char* name, int rank, const RankEnd& end) {
  if (rank < 0 || rank >= end.size()) {
    throw IndexError(fmt::format("{}: rank {} of a group of {}", name, rank, end.size()));
  }
}

void check_one_for_each(const char* name, std::size_t given, const RankEnd& end) {
  if (given != static_cast<std::size_t>(end.size())) {
    throw ShapeError(fmt::format("{}: {} arrays for a group of {}; give one for each rank", name,
                                 given, end.size()));
  }
}

void check_flat(const char* name, const Array& x) {
  if (x.ndim() == 1) return;
  throw ShapeError(fmt::format("{}: x is {}, and has to have one dimension; give x.ravel()", name,
                               x.view().describe()));
}

/// Where the others reach it, C-contiguous.
Array reachable(const char* name, const RankEnd& end, const Array& x) {
  detail::check_defined(name, x);
  return x.to(end.reaches(x.device())).ascontiguous();
}

void reduce_to(const Array& out, const Array& parts, ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: xp::sum(parts, {.axis = 0, .dtype = out.dtype(), .out = out}); break;
    case ReduceOp::mean: xp::mean(parts, {.axis = 0, .out = out}); break;
    case ReduceOp::max: xp::max(parts, {.axis = 0, .out = out}); break;
    default: xp::min(parts, {.axis = 0, .out = out});
  }
}

const char* name_of(ReduceOp op) {
  constexpr const char* names[] = {"sum", "mean", "max", "min"};
  return names[static_cast<int>(op)];
}

std::int64_t sum_of(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

/// Each rank's part of the elements of an array in one dimension, one behind the other.
struct Parts {
  explicit Parts(const std::vector<std::int64_t>& counts) : begins{0} {
    for (std::int64_t count : counts) begins.push_back(begins.back() + count);
  }
  /// Parts of about one size, which begin where memory is moved fast from.
  static Parts even(std::int64_t elements, int ranks) {
    auto end_of = [&](int r) { return r == ranks ? elements : elements * r / ranks / 128 * 128; };
    std::vector<std::int64_t> counts;
    for (int r = 0; r < ranks; ++r) counts.push_back(end_of(r + 1) - end_of(r));
    return Parts(counts);
  }
  std::int64_t begin(int rank) const { return begins[static_cast<std::size_t>(rank)]; }
  std::int64_t size(int rank) const { return begin(rank + 1) - begin(rank); }
  Array of(const Array& flat, int rank) const { return flat[Slice(begin(rank), begin(rank + 1))]; }
  std::vector<std::int64_t> begins;  // and the end of the last one
};

/// sent(r) goes to each other rank r, and received(r) comes from it.
template <class Sent, class Received>
void exchange_with_all(const char* name, const RankEnd& end, const std::string& subject,
                       const Sent& sent, const Received& received) {
  std::vector<Message> out, in;
  for (int peer = 0; peer < end.size(); ++peer) {
    if (peer == end.rank()) continue;
    out.push_back({peer, sent(peer)});
    in.push_back({peer, received(peer)});
  }
  exchange(name, end, subject, out, in);
}

/// Writes this rank's part of the elements, over all ranks, to `out`. Parts without elements are
/// sent too: ranks that do not mean the same parts hear of it.
void reduce_part(const char* name, const RankEnd& end, const std::string& subject,
                 const Array& flat, const Parts& parts, ReduceOp op, const Array& out) {
  int rank = end.rank(), size = end.size();
  Array own = detail::new_array({size, parts.size(rank)}, flat.dtype(), flat.device());
  own[rank] = parts.of(flat, rank);
  exchange_with_all(
      name, end, subject, [&](int peer) { return parts.of(flat, peer); },
      [&](int peer) -> Array { return own[peer]; });
  reduce_to(out, own, op);
}

/// Fills in the parts of the others; this rank's is there.
void join_parts(const char* name, const RankEnd& end, const std::string& subject,
                const Array& result, const Parts& parts) {
  exchange_with_all(
      name, end, subject, [&](int) { return parts.of(result, end.rank()); },
      [&](int peer) { return parts.of(result, peer); });
}

/// An array of so many elements, where `like` is.
Array flat_array(std::int64_t size, const Array& like) {
  return detail::new_array({size}, like.dtype(), like.device());
}

/// Throws ShapeError unless `counts` are the parts of `elements`.
Parts checked_parts(const char* name, const std::vector<std::int64_t>& counts,
                    std::int64_t elements, const RankEnd& end) {
  bool fits = counts.size() == static_cast<std::size_t>(end.size()) &&
              std::ranges::all_of(counts, [](std::int64_t count) { return count >= 0; });
  Parts parts(counts);
  if (fits && parts.begins.back() == elements) return parts;
  throw ShapeError(
      fmt::format("{}: counts {} for {} elements in a group of {}; give one for each rank, that "
                  "come to all elements",
                  name, fmt::join(counts, ", "), elements, end.size()));
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

Communicator::Communicator(std::shared_ptr<communication::Transport> transport)
    : end_(std::make_shared<RankEnd>(RankEnd{.transport = std::move(transport),
                                             .host_order = detail::new_array({1}, uint8, cpu())})) {
}

int Communicator::rank() const { return end_->rank(); }
int Communicator::size() const { return end_->size(); }
std::string Communicator::describe(int rank) const { return end_->transport->describe(rank); }
Device Communicator::device() const { return end_->device; }

int Communicator::local_rank() const {
  const communication::Transport& all = *end_->transport;
  int before = 0;
  for (int r = 0; r < rank(); ++r) before += all.host(r) == all.host(rank());
  return before;
}

namespace {
using Greeting = cuda::GpuLinks::Greeting;

/// Throws the same on all ranks.
void check_greetings(const std::vector<Greeting>& greetings, const Communicator& ranks) {
  std::map<std::string, int> owners;
  for (std::size_t r = 0; r < greetings.size(); ++r) {
    int rank = static_cast<int>(r);
    if (greetings[r].refusal[0]) {
      throw DeviceError(fmt::format("on: {}: {}", ranks.describe(rank), greetings[r].refusal));
    }
    std::string gpu = greetings[r].gpu;
    auto [owner, is_new] = owners.emplace(gpu, rank);
    if (is_new || gpu.empty()) continue;
    throw DeviceError(
        fmt::format("on: {} and {} have the same GPU; each rank needs another one, "
                    "gpu(comm.local_rank())",
                    ranks.describe(owner->second), ranks.describe(rank)));
  }
  if (owners.size() == 1 || owners.begin()->first != "") return;
  throw DeviceError(
      fmt::format("on: {} has a GPU and {} the CPU; all ranks need the one or the "
                  "other",
                  ranks.describe(owners.rbegin()->second), ranks.describe(owners.begin()->second)));
}
}  // namespace

Communicator Communicator::on(Device device) const {
  RankEnd end = *end_;
  bool is_same = device == end.device && end.gpu_order.defined();
  end.device = device, end.links = nullptr;
  if (device.is_cuda() && size() == 1) check_device(device);
  if (size() > 1) {
    std::vector<Greeting> greetings(static_cast<std::size_t>(size()));
    if (device.is_cuda()) {
      greetings[static_cast<std::size_t>(rank())] = cuda::GpuLinks::greeting(device, rank() == 0);
    }
    communication::tell_all(*end.transport, communication::Label("on", "devices"), greetings);
    check_greetings(greetings, *this);
    if (device.is_cuda()) {
      end.links =
          std::make_shared<cuda::GpuLinks>(end.transport->split(0, rank()), device, greetings[0]);
      if (!is_same) end.gpu_order = detail::new_array({1}, uint8, device);
    }
  }
  return Communicator(std::make_shared<const RankEnd>(std::move(end)));
}

Communicator Communicator::split(int color, int key) const {
  if (color < 0) throw ValueError(fmt::format("split: a color is 0 or more, not {}", color));
  RankEnd end = *end_;
  end.transport = end.transport->split(color, key);
  Communicator part(std::make_shared<const RankEnd>(std::move(end)));
  return device().is_cuda() ? part.on(device()) : part;
}

void Communicator::barrier() const {
  communication::tell_all(*end_->transport, communication::Label("barrier", ""), nullptr, 0);
}

Array Communicator::allreduce(const Array& x, ReduceOp op, std::string_view what) const {
  check_reducible("allreduce", x, op);
  std::string subject = subject_of(x, op, what);
  Array flat = reachable("allreduce", *end_, x).ravel();
  Parts parts = Parts::even(flat.size(), size());
  Array result = flat_array(flat.size(), flat);
  reduce_part("allreduce", *end_, subject, flat, parts, op, parts.of(result, rank()));
  join_parts("allreduce", *end_, subject, result, parts);
  return result.reshape(x.shape()).to(x.device());
}

Array Communicator::reduce_scatter(const Array& x, const std::vector<std::int64_t>& counts,
                                   ReduceOp op, std::string_view what) const {
  check_reducible("reduce_scatter", x, op);
  check_flat("reduce_scatter", x);
  Parts parts = checked_parts("reduce_scatter", counts, x.size(), *end_);
  Array flat = reachable("reduce_scatter", *end_, x);
  Array own = flat_array(parts.size(rank()), flat);
  reduce_part("reduce_scatter", *end_, subject_of(x, op, what), flat, parts, op, own);
  return own.to(x.device());
}

Array Communicator::allgatherv(const Array& x, const std::vector<std::int64_t>& counts,
                               std::string_view what) const {
  detail::check_defined("allgatherv", x);
  check_flat("allgatherv", x);
  std::int64_t total = sum_of(counts);
  Parts parts = checked_parts("allgatherv", counts, total, *end_);
  if (x.size() != parts.size(rank())) {
    throw ShapeError(fmt::format("allgatherv: x is {}, and this rank's count is {}",
                                 x.view().describe(), parts.size(rank())));
  }
  std::string subject =
      fmt::format("{} ({},){}{}", dtype_name(x.dtype()), total, what.empty() ? "" : ", ", what);
  Array own = reachable("allgatherv", *end_, x), result = flat_array(total, own);
  parts.of(result, rank()).assign(own);
  join_parts("allgatherv", *end_, subject, result, parts);
  return result.to(x.device());
}

Array Communicator::reduce(const Array& x, int root, ReduceOp op) const {
  check_rank("reduce", root, *end_);
  check_reducible("reduce", x, op);
  std::string subject = fmt::format("{} to rank {}", subject_of(x, op), root);
  Array flat = reachable("reduce", *end_, x).ravel();
  Parts parts = Parts::even(flat.size(), size());
  Array own = flat_array(parts.size(rank()), flat), result;
  std::vector<Message> sent, received;
  if (rank() == root) {
    result = flat_array(flat.size(), flat);
    own = parts.of(result, rank());
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != root) received.push_back({peer, parts.of(result, peer)});
    }
  } else {
    sent.push_back({root, own});
  }
  reduce_part("reduce", *end_, subject, flat, parts, op, own);
  exchange("reduce", *end_, subject, sent, received);
  return rank() == root ? result.reshape(x.shape()).to(x.device()) : Array();
}

Array Communicator::bcast(const Array& x, int root) const {
  check_rank("bcast", root, *end_);
  auto ranks = static_cast<std::size_t>(size());
  std::vector<Array> to(ranks);
  if (rank() == root) std::ranges::fill(to, reachable("bcast", *end_, x));
  Array result = exchange_from(root, "bcast", *end_, to);
  return x.defined() ? result.to(x.device()) : result;
}

std::vector<Array> Communicator::gather(const Array& x, int root) const {
  check_rank("gather", root, *end_);
  auto ranks = static_cast<std::size_t>(size());
  std::vector<Array> to(ranks);
  to[static_cast<std::size_t>(root)] = reachable("gather", *end_, x);
  std::vector<Array> result =
      exchange_described("gather", *end_, to, std::vector<bool>(ranks, rank() == root));
  if (rank() != root) return {};
  for (Array& a : result) a = a.to(x.device());
  return result;
}

std::vector<Array> Communicator::allgather(const Array& x) const {
  auto ranks = static_cast<std::size_t>(size());
  std::vector<Array> result = exchange_described(
      "allgather", *end_, std::vector<Array>(ranks, reachable("allgather", *end_, x)),
      std::vector<bool>(ranks, true));
  for (Array& a : result) a = a.to(x.device());
  return result;
}

Array Communicator::scatter(const std::vector<Array>& arrays, int root) const {
  check_rank("scatter", root, *end_);
  auto ranks = static_cast<std::size_t>(size());
  std::vector<Array> to(ranks);
  if (rank() == root) {
    check_one_for_each("scatter", arrays.size(), *end_);
    for (std::size_t r = 0; r < ranks; ++r) to[r] = reachable("scatter", *end_, arrays[r]);
  }
  Array result = exchange_from(root, "scatter", *end_, to);
  return rank() == root ? result.to(arrays[static_cast<std::size_t>(root)].device()) : result;
}

std::vector<Array> Communicator::alltoall(const std::vector<Array>& arrays) const {
  check_one_for_each("alltoall", arrays.size(), *end_);
  std::vector<Array> to;
  for (const Array& a : arrays) to.push_back(reachable("alltoall", *end_, a));
  std::vector<Array> result = exchange_described(
      "alltoall", *end_, to, std::vector<bool>(static_cast<std::size_t>(size()), true));
  Device device = arrays[static_cast<std::size_t>(rank())].device();
  for (Array& a : result) a = a.to(device);
  return result;
}

Array Communicator::alltoallv(const Array& x, const std::vector<std::int64_t>& sent,
                              const std::vector<std::int64_t>& received,
                              std::string_view what) const {
  detail::check_defined("alltoallv", x);
  check_flat("alltoallv", x);
  Parts to = checked_parts("alltoallv", sent, x.size(), *end_);
  std::int64_t total = sum_of(received);
  Parts from = checked_parts("alltoallv", received, total, *end_);
  if (to.size(rank()) != from.size(rank())) {
    throw ShapeError(fmt::format("alltoallv: this rank sends itself {} elements and receives {}",
                                 to.size(rank()), from.size(rank())));
  }
  Array own = reachable("alltoallv", *end_, x), result = flat_array(total, own);
  from.of(result, rank()).assign(to.of(own, rank()));
  std::string subject =
      fmt::format("{}{}{}", dtype_name(x.dtype()), what.empty() ? "" : ", ", what);
  exchange_with_all(
      "alltoallv", *end_, subject, [&](int peer) { return to.of(own, peer); },
      [&](int peer) { return from.of(result, peer); });
  return result.to(x.device());
}

void Communicator::send(const Array& x, int destination) const {
  check_rank("send", destination, *end_);
  if (destination == rank()) throw ValueError("send: a rank has what it sends itself");
  auto ranks = static_cast<std::size_t>(size());
  std::vector<Array> to(ranks);
  to[static_cast<std::size_t>(destination)] = reachable("send", *end_, x);
  exchange_described("send and recv", *end_, to, std::vector<bool>(ranks));
}

Array Communicator::recv(int source) const {
  check_rank("recv", source, *end_);
  if (source == rank()) throw ValueError("recv: a rank has what it sends itself");
  return exchange_from(source, "send and recv", *end_,
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
