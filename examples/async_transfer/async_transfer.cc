// Sending the next array to the GPU while it works on the one before. From pageable memory a copy
// waits, so nothing overlaps; from page-locked memory, on a stream of its own, it runs beside the
// kernels. With both copies on one stream it does not: waiting for the first is waiting for both.
// The three runs are recorded, drawn and measured. (With --device cpu nothing is sent: only the
// work is done.)
#include <rensa/array.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "arguments.h"

using namespace rensa;

constexpr int kMultiplications = 25;  // about as long as one copy of 80 MB

/// What is sent, and whether each copy has a stream of its own.
struct Sources {
  Array host1, host2;
  bool two_streams = true;
};

/// One round: two arrays are sent, and the first is worked on as soon as it is there.
static void send_and_compute(const Sources& from, Device device) {
  const auto& [host1, host2, two_streams] = from;
  Array array1 = xp::empty(host1.shape(), host1.dtype(), device), array2 = xp::empty_like(array1);
  cuda::Stream stream1(device, cuda::non_blocking);
  cuda::Stream stream2 = two_streams ? cuda::Stream(device, cuda::non_blocking) : stream1;
  array1.set(host1, stream1);
  array2.set(host2, stream2);
  stream1.synchronize();
  {
    cuda::StreamScope on(stream1);
    for (int i = 0; i < kMultiplications; ++i) array1 *= 2;
  }
  stream1.synchronize();
  stream2.synchronize();
}

/// The share of the shorter of the last copy and the kernels that ran beside the other, and the
/// whole round's milliseconds.
struct Overlap {
  double share, milliseconds;
};

static Overlap measure(const std::vector<timeline::Record>& records) {
  std::int64_t copy_begin = 0, copy_end = 0, both = 0, computed = 0, begin = INT64_MAX, end = 0;
  const timeline::Record* last = nullptr;
  for (const timeline::Record& r : records) {
    bool later = r.kind == timeline::Kind::copy_to_device && (!last || r.begin_ns > last->begin_ns);
    if (later) last = &r;
  }
  for (const timeline::Record& r : records) {  // the second array's copy: the pieces on its stream
    if (!last || r.kind != last->kind || r.row != last->row) continue;
    copy_begin = copy_begin == 0 ? r.begin_ns : std::min(copy_begin, r.begin_ns);
    copy_end = std::max(copy_end, r.end_ns);
  }
  for (const timeline::Record& r : records) {
    bool kernel = r.kind == timeline::Kind::kernel;
    if (!kernel && r.kind != timeline::Kind::copy_to_device) continue;
    begin = std::min(begin, r.begin_ns);
    end = std::max(end, r.end_ns);
    if (!kernel) continue;
    computed += r.end_ns - r.begin_ns;
    both +=
        std::max<std::int64_t>(0, std::min(r.end_ns, copy_end) - std::max(r.begin_ns, copy_begin));
  }
  double shorter = static_cast<double>(std::min(computed, copy_end - copy_begin));
  return {shorter > 0 ? static_cast<double>(both) / shorter : 0,
          1e-6 * static_cast<double>(end - begin)};
}

static Overlap run(const char* name, const std::string& folder, const Sources& from,
                   Device device) {
  send_and_compute(from, device);  // kernels are loaded and memory is pooled from here on
  auto recording = timeline::record(folder + "/" + name + ".json");
  send_and_compute(from, device);
  const std::vector<timeline::Record>& records = recording.stop();
  if (!recording.note().empty()) std::printf("not recorded: %s\n", recording.note().c_str());
  timeline::draw(records, folder + "/" + name + ".svg");
  Overlap overlap = measure(records);
  std::printf("%-10s %6.2f ms, overlap %3.0f %%: %s/%s.svg\n", name, overlap.milliseconds,
              100 * overlap.share, folder.c_str(), name);
  return overlap;
}

int main(int argc, char** argv) {
  std::string folder = ".";
  Device device =
      Arguments("Copies to a GPU beside kernels", 1)
          .text("folder", &folder,
                "where pageable.svg, pinned.svg, one_stream.svg and the traces are written")
          .parse(argc, argv)[0];
  Array host = xp::ones({1000, 10000}, float64, cpu());
  if (device.is_cpu()) {
    for (int i = 0; i < kMultiplications; ++i) host *= 2;
    std::printf("%d multiplications on the CPU; there is nothing to send and nothing to record\n",
                kMultiplications);
    return 0;
  }
  Array pinned1 = to_pinned_memory(host), pinned2 = to_pinned_memory(host);
  Overlap pageable = run("pageable", folder, {host, host}, device);
  Overlap pinned = run("pinned", folder, {pinned1, pinned2}, device);
  Overlap one_stream = run("one_stream", folder, {pinned1, pinned2, false}, device);
  // The last piece of a pageable copy may still be on its way when the call returns.
  bool as_told = pageable.share < 0.2 && pinned.share > 0.8 && one_stream.share == 0;
  return as_told ? 0 : 1;
}
