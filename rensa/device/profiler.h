// What a program tells NVIDIA's profilers (Nsight Systems, Nsight Compute). Without one listening
// the calls do nothing; the library's own account is a timeline (timeline.h).
#pragma once

#include <cstdint>
#include <string>

namespace rensa::cuda {

namespace profiler {

/// cupy.cuda.profiler.start and stop: with `nsys profile -c cudaProfilerApi` or `ncu
/// --profile-from-start off`, only what lies in between is recorded. Throw CudaError.
void start();
void stop();

}  // namespace profiler

/// cupyx.profiler.profile: start() and stop() around a scope.
class [[nodiscard]] Profile {
 public:
  Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;
};

/// cupyx.profiler.time_range: a scope as a range of NVTX on this thread. Scopes nest. The colour is
/// 0xAARRGGBB; 0: the profiler's choice.
class [[nodiscard]] TimeRange {
 public:
  explicit TimeRange(const std::string& message, std::uint32_t argb_color = 0);
  ~TimeRange();
  TimeRange(const TimeRange&) = delete;
  TimeRange& operator=(const TimeRange&) = delete;
};

namespace nvtx {

/// cupy.cuda.nvtx.Mark: a moment.
void mark(const std::string& message);
/// RangePush and RangePop: a TimeRange whose ends stand in different scopes.
void range_push(const std::string& message, std::uint32_t argb_color = 0);
void range_pop();

}  // namespace nvtx

}  // namespace rensa::cuda
