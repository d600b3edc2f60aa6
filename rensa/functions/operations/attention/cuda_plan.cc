// The choice between cuDNN and the kernels here.
#include "rensa/functions/operations/attention/cuda_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <span>

#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/gpu_module.h"
#include "rensa/device/limits.h"
#include "rensa/portable/launch_plan.h"

namespace rensa::cuda {

namespace {

using operations::Attention;
using operations::AttentionGiven;
using operations::AttentionGrad;

constexpr std::size_t kMaxPlans = 512;

// --- what cuDNN may be asked for ---

/// The strides of (batch, heads, rows, width) where they are such as cuDNN takes: every row begins
/// and ends at a multiple of 16 bytes, and no two heads share one.
bool find_strides(const Operand& operand, HeadStrides* strides) {
  const ArrayView& view = operand.view;
  std::int64_t size = itemsize(view.dtype), dense = view.shape[3];
  if (!is_aligned(view.data, 16) || dense * size % 16 != 0) return false;
  for (int axis = 2; axis >= 0; --axis) {
    auto at = static_cast<std::size_t>(axis);
    std::int64_t stride = view.strides[axis];
    if (view.shape[axis] == 1) stride = dense * size;  // any will do
    if (stride <= 0 || stride % 16 != 0) return false;
    (*strides)[at] = stride / size;
    dense *= view.shape[axis];
  }
  return true;
}

/// Why cuDNN is not asked; empty where `layout` is what it is asked for.
std::string describe(const AttentionGiven& given, const Operand& out, AttentionLayout* layout) {
  const Shape &query = given.query.view.shape, &key = given.key.view.shape;
  layout->dtype = given.query.view.dtype;
  layout->causal = given.causal;
  layout->batch = query[0];
  layout->heads = query[1];
  layout->groups = key[1];
  layout->queries = query[2];
  layout->keys = key[2];
  layout->width = query[3];
  layout->value_width = given.value.view.shape[3];
  if (layout->dtype != float16 && layout->dtype != bfloat16) return "it is not of 16-bit floats";
  if (given.mask.present()) return "it has a mask";
  if (given.lengths.present()) return "it has lengths";
  if (given.slopes.present()) return "it has slopes";
  if (given.dropout_ratio > 0) return "it has a dropout";
  if (!(given.scale > 0)) return "its scale is not above 0";
  std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (layout->batch * layout->heads > most / std::max(layout->queries, layout->keys)) {
    return "it has 2^31 rows or more";
  }
  if (std::max(layout->width, layout->value_width) > 256) return "its heads are wider than 256";
  bool fits = find_strides(given.query, &layout->query) && find_strides(given.key, &layout->key) &&
              find_strides(given.value, &layout->value) && find_strides(out, &layout->out);
  return fits ? "" : "its rows are not at multiples of 16 bytes";
}

AttentionQuestion question_of(const AttentionGiven& given) {
  AttentionQuestion question;
  question.device = given.query.view.device;
  question.use_cudnn = given.use_cudnn;
  question.workspace_limit = get_max_workspace_size();
  return question;
}

std::string describe(const Attention& op, AttentionQuestion* question) {
  return describe(op.given, op.out, &question->layout);
}

std::string describe(const AttentionGrad& op, AttentionQuestion* question) {
  AttentionLayout& layout = question->layout;
  layout.gradient = true;
  layout.deterministic = op.given.deterministic;
  std::string refusal = describe(op.given, op.out, &layout);
  if (!refusal.empty()) return refusal;
  if (!op.gquery.present() || !op.gkey.present() || !op.gvalue.present()) {
    return "not all of its three gradients are asked for";
  }
  bool fits = find_strides(op.gout, &layout.gout) && find_strides(op.gquery, &layout.gquery) &&
              find_strides(op.gkey, &layout.gkey) && find_strides(op.gvalue, &layout.gvalue);
  return fits ? "" : "its gradients' rows are not at multiples of 16 bytes";
}

/// Whether cuDNN is faster, as far as is known: from Hopper on its engines use instructions that
/// the kernels here do not, and what is small takes it longer to begin. It compiles kernels for
/// each layout, in a third of a second; lengths that differ from batch to batch, which are few
/// multiples of 64, are not worth that. Heads wider than 128 have no tensor cores here.
bool is_worthwhile(const AttentionQuestion& question) {
  const AttentionLayout& l = question.layout;
  if (architecture(question.device) < 90) return false;
  if (std::max(l.width, l.value_width) > 128) return true;
  return std::min(l.queries, l.keys) >= 128 && l.queries % 64 == 0 && l.keys % 64 == 0;
}

/// What versions of cuDNN are known not to compute, or to compute wrongly (cudnn-frontend's list).
std::string known_fault(const AttentionLayout& l) {
  std::size_t version = cudnn().version();
  auto text = [&](const char* why) { return fmt::format("cuDNN {} {}", version, why); };
  if (version < 90600) return text("is older than 9.6");
  if (version == 91000 || version == 91001) return text("computes it wrongly");
  if (!l.gradient) return "";
  if (l.queries == 1 && l.keys == 1) return text("has no gradient of one score");
  if (version <= 91500 && l.keys % 128 != 0) {
    return text("needs a mask for a number of keys that is no multiple of 128");
  }
  return "";
}

/// The greatest divisor of n that is at most `most`, or 1.
std::int64_t divisor(std::int64_t n, std::int64_t most) {
  std::int64_t d = std::max<std::int64_t>(most, 1);
  while (n % d != 0) --d;
  return d;
}

/// From a piece that takes too much scratch to one that may not; false where it is one group.
bool make_smaller(std::size_t bytes, std::size_t limit, const AttentionLayout& whole,
                  AttentionLayout* piece) {
  auto times = static_cast<std::int64_t>(bytes / std::max<std::size_t>(limit, 1) + 1);
  if (piece->batch > 1) {
    piece->batch = divisor(whole.batch, piece->batch / times);
  } else if (piece->groups > 1) {
    piece->groups = divisor(whole.groups, piece->groups / times);
    piece->heads = whole.heads / whole.groups * piece->groups;
  } else {
    return false;
  }
  return true;
}

/// Why cuDNN is not looked at for a layout that it may compute; empty where it is.
std::string why_not(const AttentionQuestion& question) {
  if (question.use_cudnn == UseCudnn::never) return "config().use_cudnn is never";
  if (question.use_cudnn == UseCudnn::automatic && !is_worthwhile(question)) {
    return "the kernels here are taken to be faster";
  }
  return known_fault(question.layout);
}

/// Looks for an engine, of smaller and smaller pieces until its scratch is within the limit.
void ask_cudnn(const char* operation, AttentionPlan* plan) {
  const AttentionQuestion& question = plan->question;
  runtime::set_device(question.device);
  CudnnHandle handle(operation, question.device);
  AttentionLayout piece = question.layout;
  CudnnRefusal why;
  do {
    plan->cudnn = CudnnAttention::make(operation, piece, handle, question.workspace_limit, &why);
  } while (!plan->cudnn && why.bytes > 0 &&
           make_smaller(why.bytes, question.workspace_limit, question.layout, &piece));
  if (!plan->cudnn) plan->refusal = why.text;
  plan->batch = piece.batch;
  plan->groups = piece.groups;
}

AttentionPlan make_plan(const char* operation, const AttentionQuestion& question) {
  AttentionPlan plan;
  plan.question = question;
  try {
    plan.refusal = why_not(question);
    if (plan.refusal.empty()) ask_cudnn(operation, &plan);
  } catch (const CudaError& error) {  // no cuDNN, or one that does not know a part of the graph
    plan.refusal = error.what();
  }
  return plan;
}

/// Plans by their questions; the eldest goes where there are too many.
class PlanCache {
 public:
  std::shared_ptr<const AttentionPlan> find_or_make(const char* operation,
                                                    const AttentionQuestion& question) {
    std::lock_guard hold(mutex_);  // those that want the same one wait for it
    auto found = plans_.find(question);
    if (found != plans_.end()) return found->second.plan;
    auto plan = std::make_shared<const AttentionPlan>(make_plan(operation, question));
    if (plans_.size() >= kMaxPlans) {
      plans_.erase(std::min_element(plans_.begin(), plans_.end(), [](const auto& a, const auto& b) {
        return a.second.number < b.second.number;
      }));
    }
    plans_[question] = {plan, ++made_};
    return plan;
  }

 private:
  struct Entry {
    std::shared_ptr<const AttentionPlan> plan;
    std::int64_t number = 0;
  };
  std::mutex mutex_;
  std::map<AttentionQuestion, Entry> plans_;
  std::int64_t made_ = 0;
};

// Its end is the process's: the driver may be gone by then.
PlanCache& plan_cache() {
  static PlanCache& cache = *new PlanCache;
  return cache;
}

/// An operation keeps its plan, and with it its scratch, whatever the limit is by now.
bool is_same_work(const AttentionQuestion& a, const AttentionQuestion& b) {
  return a.device == b.device && a.use_cudnn == b.use_cudnn && a.layout == b.layout;
}

template <class Op> const AttentionPlan& plan_of(const Op& op) {
  AttentionQuestion question = question_of(op.given);
  std::string refusal = describe(op, &question);
  if (!refusal.empty()) {
    if (!op.plan || op.plan->refusal != refusal) {
      AttentionPlan none;
      none.refusal = refusal;
      op.plan = std::make_shared<const AttentionPlan>(std::move(none));
    }
  } else if (!op.plan || !is_same_work(op.plan->question, question)) {
    op.plan = plan_cache().find_or_make(op.name(), question);
  }
  if (question.use_cudnn == UseCudnn::always && !op.plan->cudnn) {
    throw NotImplementedError(
        fmt::format("{}: cuDNN does not compute it of query {}, key {} and value {}: {}. "
                    "config().use_cudnn = UseCudnn::automatic lets the library's own kernels do it",
                    op.name(), op.given.query.view.describe(), op.given.key.view.describe(),
                    op.given.value.view.describe(), op.plan->refusal));
  }
  return *op.plan;
}

}  // namespace

void AttentionPlan::run(const char* operation, const AttentionAddresses& all, double scale,
                        const LaunchContext& context) const {
  const AttentionLayout& l = question.layout;
  std::int64_t each = l.heads / l.groups, size = itemsize(l.dtype);
  for (std::int64_t b = 0; b < l.batch; b += batch) {
    for (std::int64_t group = 0; group < l.groups; group += groups) {
      auto at = [&](void* data, const HeadStrides& strides, std::int64_t head) -> void* {
        std::int64_t offset = (b * strides[0] + head * strides[1]) * size;
        return data ? static_cast<char*>(data) + offset : nullptr;
      };
      std::int64_t head = group * each, row = (b * l.heads + head) * l.queries;
      AttentionAddresses piece = {};
      piece.query = at(all.query, l.query, head);
      piece.key = at(all.key, l.key, group);
      piece.value = at(all.value, l.value, group);
      piece.out = at(all.out, l.out, head);
      piece.lse = static_cast<float*>(all.lse) + row;
      piece.gout = at(all.gout, l.gout, head);
      piece.gquery = at(all.gquery, l.gquery, head);
      piece.gkey = at(all.gkey, l.gkey, group);
      piece.gvalue = at(all.gvalue, l.gvalue, group);
      cudnn->run(operation, piece, scale, context);
    }
  }
}

const AttentionPlan& attention_plan(const Attention& op) { return plan_of(op); }
const AttentionPlan& attention_plan(const AttentionGrad& op) { return plan_of(op); }

}  // namespace rensa::cuda
