// Training: updaters, the Trainer and its extensions.
#pragma once

#include "rensa/training/extensions/allreduce_persistent.h"
#include "rensa/training/extensions/dump_graph.h"
#include "rensa/training/extensions/evaluator.h"
#include "rensa/training/extensions/fail_on_non_number.h"
#include "rensa/training/extensions/gpu_monitor.h"
#include "rensa/training/extensions/log_report.h"
#include "rensa/training/extensions/multi_node_evaluator.h"
#include "rensa/training/extensions/multi_node_snapshot.h"
#include "rensa/training/extensions/observation_aggregator.h"
#include "rensa/training/extensions/observe.h"
#include "rensa/training/extensions/parameter_statistics.h"
#include "rensa/training/extensions/plot_report.h"
#include "rensa/training/extensions/print_report.h"
#include "rensa/training/extensions/progress_bar.h"
#include "rensa/training/extensions/shift.h"
#include "rensa/training/extensions/snapshot.h"
#include "rensa/training/extensions/tensorboard_report.h"
#include "rensa/training/extensions/variable_statistics_plot.h"
#include "rensa/training/parallel_updater.h"
#include "rensa/training/summary_writer.h"
#include "rensa/training/trainer.h"
#include "rensa/training/triggers/multi_node_triggers.h"
#include "rensa/training/triggers/triggers.h"
#include "rensa/training/updater.h"

namespace rensa::training {
namespace extensions = rensa::extensions;
namespace triggers = rensa::triggers;
}  // namespace rensa::training
