// The array library alone: arrays on the CPU and on NVIDIA GPUs, and the routines of namespace xp.
#pragma once

#include "rensa/array/array.h"
#include "rensa/array/host_output.h"
#include "rensa/array/index.h"
#include "rensa/array/routines.h"
#include "rensa/core/device.h"
#include "rensa/core/dtype.h"
#include "rensa/core/error.h"
#include "rensa/core/scalar.h"
#include "rensa/core/shape.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/devices.h"
#include "rensa/device/memory_pool.h"
#include "rensa/device/stream.h"
#include "rensa/kernel/elementwise_kernel.h"
#include "rensa/kernel/raw_kernel.h"
