// Recipes for copies beside kernels: sending, waiting for what was sent, reading back, and a loop
// that sends each array while the one before is worked on. (With --device cpu there is nothing to
// send.)
#include <rensa/array.h>

#include <cstdio>
#include <vector>

#include "arguments.h"

using namespace rensa;

/// Chainer's to_gpu(array, stream): the array on `device`, sent on `stream`. Does not wait.
static Array send(const Array& host, Device device, const cuda::Stream& stream) {
  Array there = xp::empty(host.shape(), host.dtype(), device);
  there.set(to_pinned_memory(host), stream);  // the pinned copy lives until it has been read
  return there;
}

/// The sums of arrays that come one after the other from main memory.
static std::vector<float> sums_of(const std::vector<Array>& hosts, Device device) {
  constexpr std::size_t kSlots = 2;  // one is filled while the other is worked on
  struct Slot {
    Array pinned, there;
    cuda::Event arrived, used;
  };
  cuda::Stream copies(device, cuda::non_blocking), compute(device, cuda::non_blocking);
  std::vector<Slot> slots(kSlots);
  for (Slot& slot : slots) {
    slot.pinned = xp::empty_pinned(hosts[0].shape(), hosts[0].dtype());
    slot.there = xp::empty(hosts[0].shape(), hosts[0].dtype(), device);
  }
  Array sums = xp::zeros({static_cast<std::int64_t>(hosts.size())}, float32, device);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    Slot& slot = slots[i % kSlots];
    slot.arrived.synchronize();  // the host writes over what has been sent
    slot.pinned.assign(hosts[i]);
    copies.wait(slot.used);  // and the copy over what has been used
    slot.there.set(slot.pinned, copies);
    copies.record(slot.arrived);
    compute.wait(slot.arrived);
    cuda::StreamScope on(compute);
    sums[static_cast<std::int64_t>(i)] = slot.there.sum();
    compute.record(slot.used);
  }
  compute.synchronize();
  return sums.to_vector<float>();
}

int main(int argc, char** argv) {
  Device device = Arguments("Recipes for copies beside kernels", 1).parse(argc, argv)[0];
  if (device.is_cpu()) {
    std::printf("on the CPU arrays are where they are worked on: nothing is sent\n");
    return 0;
  }
  Array host = xp::ones({1000, 1000}, float64, cpu());
  cuda::Stream stream(device, cuda::non_blocking);
  bool right = true;
  auto check = [&](const char* what, bool good) {
    std::printf("%-40s %s\n", what, good ? "right" : "WRONG");
    right &= good;
  };

  // Sending, and work on the same stream: it comes after the copy, and the host waits for neither.
  Array a = send(host, device, stream);
  {
    cuda::StreamScope on(stream);
    a *= 2;
  }
  stream.synchronize();
  check("work on the copy's stream", a.sum().item<double>() == 2e6);

  // Work on another stream: that waits for an event, the host does not.
  Array b = send(host, device, stream);
  cuda::Event sent;
  stream.record(sent);
  cuda::current_stream(device).wait(sent);
  check("work on another stream", b.sum().item<double>() == 1e6);

  // Reading back into pinned memory: the host goes on, and waits before it looks.
  Array back = xp::empty_pinned(a.shape(), a.dtype());
  a.get(back, stream);
  stream.synchronize();
  check("reading back", back.sum().item<double>() == 2e6);

  std::vector<Array> hosts;
  for (int i = 0; i < 8; ++i) hosts.push_back(xp::full({1000}, i, float32, cpu()));
  std::vector<float> sums = sums_of(hosts, device);
  bool good = true;
  for (std::size_t i = 0; i < sums.size(); ++i) good &= sums[i] == 1000.f * static_cast<float>(i);
  check("a loop over two slots", good);
  return right ? 0 : 1;
}
