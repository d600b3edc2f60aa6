// Which values of a trace are computed together, and which stand in memory in between.
#include "rensa/kernel/fused_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "rensa/core/reductions.h"
#include "rensa/core/ufunc_info.h"
#include "rensa/kernel/fused_source.h"
#include "rensa/portable/compute_types.h"

namespace rensa::detail {

namespace {

constexpr const char* kIncludes =
    "#include \"rensa/portable/fused_functors.h\"\n#include \"rensa/core/reduction_functors.h\"\n"
    "#include \"rensa/core/ufunc_functors.h\"\n";
constexpr const char* kPointwiseInclude =
    "#include \"rensa/operations/pointwise/pointwise_functors.h\"\n";
constexpr std::size_t kMostInlined = 16;  // operations of a CPU's kernel that is one function

KernelOperand operand_of(const FusedInput& input, const std::vector<TracedValue>& values,
                         const std::vector<Operand>& places) {
  KernelOperand operand;
  operand.kind = input.kind;
  operand.dtype = input.dtype;
  if (input.value >= 0) {
    operand.array = places[static_cast<std::size_t>(input.value)];
    operand.array.view.data += input.offset;
  } else {
    const TracedInput& read = values[static_cast<std::size_t>(input.from)].in[input.input];
    operand.number = read.number;
    operand.array = read.array;
  }
  if (input.kind == ArgumentKind::number) {
    Dtype compute = values[static_cast<std::size_t>(input.from)].compute;
    if (compute == bool_) operand.number = Scalar(operand.number.as<bool>());
    return operand;
  }
  operand.array.view.shape = input.shape;
  operand.array.view.strides = input.strides;
  return operand;
}

class Planner {
 public:
  Planner(const std::vector<TracedValue>& values, FusedPrograms& programs)
      : values_(values),
        programs_(programs),
        first_readers_(values),
        last_reader_(values.size(), -1),
        in_memory_(values.size(), false),
        needed_whole_(values.size(), false),
        scheduled_(values.size(), false),
        readers_(values.size(), 0) {}

  std::vector<FusedStep> run(const std::vector<int>& outputs) {
    std::vector<int> needed = find_needed(outputs);
    for (std::size_t begin = 0, end = 0; begin < needed.size(); begin = end) {
      end = part_end(needed, begin);
      std::vector<int> results;
      for (std::size_t k = begin; k < end; ++k) {
        if (last_reader_[index(needed[k])] > needed[end - 1]) results.push_back(needed[k]);
      }
      preamble_ = end - begin > kMostInlined ? std::string("#define RENSA_LONG_KERNEL\n") : "";
      preamble_ += kIncludes;
      if (std::any_of(needed.begin() + static_cast<std::ptrdiff_t>(begin),
                      needed.begin() + static_cast<std::ptrdiff_t>(end),
                      [&](int v) { return value(v).row != nullptr; })) {
        preamble_ += kPointwiseInclude;
      }
      plan_part(results);
    }
    note_last_reads(outputs);
    return std::move(steps_);
  }

 private:
  static std::size_t index(int v) { return static_cast<std::size_t>(v); }
  const TracedValue& value(int v) const { return values_[index(v)]; }

  /// The values that `outputs` are made of, in their order; notes who reads each last.
  std::vector<int> find_needed(const std::vector<int>& outputs) {
    for (int output : outputs) last_reader_[index(output)] = static_cast<int>(values_.size());
    std::vector<int> needed;
    for (int v = static_cast<int>(values_.size()); v-- > 0;) {
      if (last_reader_[index(v)] < 0) continue;
      needed.push_back(v);
      for (int k = 0; k < value(v).num_inputs; ++k) {
        const TracedInput& in = value(v).in[k];
        if (in.kind != TracedInput::Kind::value) continue;
        int& last = last_reader_[index(in.value)];
        last = std::max(last, v);
      }
    }
    std::reverse(needed.begin(), needed.end());
    return needed;
  }

  static std::size_t argument_bytes(const Shape& shape) {
    return 2 * sizeof(std::int64_t) + static_cast<std::size_t>(shape.ndim()) * sizeof(std::int64_t);
  }

  /// Where the part that begins with needed[begin] ends: as many operations as one kernel may have,
  /// with as many arguments.
  std::size_t part_end(const std::vector<int>& needed, std::size_t begin) const {
    std::set<std::pair<int, int>> read;  // values before the part (with -1), readers of arrays
    std::size_t reads = 0, best = begin + 1;
    std::size_t limit = std::min(needed.size(), begin + kMostFusedOperations);
    for (std::size_t end = begin; end < limit; ++end) {
      const TracedValue& next = value(needed[end]);
      for (int k = 0; k < next.num_inputs; ++k) {
        const TracedInput& in = next.in[k];
        if (in.kind == TracedInput::Kind::number) {
          reads += argument_bytes({});
        } else if (in.kind == TracedInput::Kind::array) {
          if (read.insert(first_readers_.of(in.array)).second) reads += argument_bytes(next.shape);
        } else if (in.value < needed[begin]) {
          if (read.insert({in.value, -1}).second) reads += argument_bytes(next.shape);
        }
      }
      std::size_t written = 0;
      for (std::size_t k = begin; k <= end; ++k) {
        if (last_reader_[index(needed[k])] > needed[end]) {
          written += argument_bytes(value(needed[k]).shape);
        }
      }
      if (reads > kMostArgumentBytes) break;
      if (reads + written <= kMostArgumentBytes) best = end + 1;
    }
    return best;
  }

  /// Plans the kernels for values of one part. What they are made of besides is of the part, or
  /// stands in memory by then.
  void plan_part(const std::vector<int>& outputs) {
    std::vector<bool> seen(values_.size(), false);
    for (int output : outputs) {
      in_memory_[index(output)] = true;
      mark(output, seen);
    }
    std::vector<int> left;
    for (int output : outputs) {
      if (scheduled_[index(output)]) continue;
      bool alone = needed_whole_[index(output)] || value(output).reduction;
      if (alone || finished_reduction(output)) schedule(output);
      else left.push_back(output);
    }
    while (!left.empty()) {  // those of one shape together
      Shape shape = value(left.front()).shape;
      std::vector<int> group, others;
      for (int output : left) {
        if (scheduled_[index(output)]) continue;
        (value(output).shape == shape ? group : others).push_back(output);
      }
      if (!group.empty()) schedule_elementwise(group);
      left = others;
    }
  }

  /// Tells each step which values nobody reads after it.
  void note_last_reads(const std::vector<int>& outputs) {
    std::vector<bool> kept(values_.size(), false);
    for (int output : outputs) kept[index(output)] = true;
    for (std::size_t k = steps_.size(); k-- > 0;) {
      auto ends = [&](int v) {
        if (!kept[index(v)]) steps_[k].finished.push_back(v);
        kept[index(v)] = true;
      };
      for (const FusedInput& input : steps_[k].inputs) {
        if (input.value >= 0) ends(input.value);
      }
      for (int output : steps_[k].outputs) ends(output);
    }
  }

  /// Counts readers of all that `v` needs, and finds what has to stand in memory.
  void mark(int v, std::vector<bool>& seen) {
    if (seen[index(v)] || scheduled_[index(v)]) return;
    seen[index(v)] = true;
    for (int k = 0; k < value(v).num_inputs; ++k) {
      const TracedInput& in = value(v).in[k];
      if (in.kind != TracedInput::Kind::value) continue;
      ++readers_[index(in.value)];
      AxisMap axes;
      if (!find_axes(in, value(in.value), &axes)) {
        in_memory_[index(in.value)] = needed_whole_[index(in.value)] = true;
      }
      mark(in.value, seen);
    }
  }

  /// The values in front of `v` that its kernel does not compute itself: of memory, and reductions.
  void find_borders(int v, std::vector<int>& borders, std::vector<bool>& seen) const {
    for (int k = 0; k < value(v).num_inputs; ++k) {
      const TracedInput& in = value(v).in[k];
      if (in.kind != TracedInput::Kind::value || seen[index(in.value)]) continue;
      seen[index(in.value)] = true;
      if (in_memory_[index(in.value)] || value(in.value).reduction) borders.push_back(in.value);
      else find_borders(in.value, borders, seen);
    }
  }

  std::vector<int> borders_of(int v) const {
    std::vector<int> borders;
    std::vector<bool> seen(values_.size(), false);
    find_borders(v, borders, seen);
    return borders;
  }

  /// How the axes of `v` walk those of `r`, which it comes from by elementwise operations. Sets
  /// `unlike` where there are two ways, and counts how often r is read.
  void find_way(int v, int r, const AxisMap& axes, std::optional<AxisMap>& way, bool& unlike,
                std::set<std::pair<int, AxisMap>>& seen, int& reads) const {
    if (!seen.insert({v, axes}).second) return;
    for (int k = 0; k < value(v).num_inputs; ++k) {
      const TracedInput& in = value(v).in[k];
      AxisMap inner;
      if (in.kind != TracedInput::Kind::value || !find_axes(in, value(in.value), &inner)) continue;
      AxisMap joined = join_axes(axes, inner);
      if (in.value == r) {
        ++reads;
        unlike |= way && *way != joined;
        way = joined;
      } else if (!in_memory_[index(in.value)]) {
        find_way(in.value, r, joined, way, unlike, seen, reads);
      }
    }
  }

  /// A reduction that `v` finishes: elementwise work on its result alone, element by element.
  struct Finished {
    int reduction;
    AxisMap axes;  // of v, by the reduction's
  };
  std::optional<Finished> finished_reduction(int v) const {
    if (value(v).reduction) return std::nullopt;
    int r = -1;
    for (int border : borders_of(v)) {
      if (in_memory_[index(border)]) continue;
      if (r >= 0) return std::nullopt;
      r = border;
    }
    if (r < 0 || value(r).shape.total() != value(v).shape.total()) return std::nullopt;
    std::optional<AxisMap> way;
    bool unlike = false;
    int reads = 0;
    std::set<std::pair<int, AxisMap>> seen;
    find_way(v, r, walk_axes(value(v).shape), way, unlike, seen, reads);
    if (!way || unlike || reads != readers_[index(r)]) return std::nullopt;
    Finished finished{r, {}};
    finished.axes.fill(-1);
    for (int t = 0; t < value(v).shape.ndim(); ++t) {
      int own = (*way)[index(t)];
      if (own >= 0) finished.axes[index(own)] = t;
    }
    return finished;
  }

  void schedule(int v) {
    if (scheduled_[index(v)]) return;
    if (value(v).reduction) return schedule_reduction(v, v, walk_axes(value(v).shape));
    if (auto finished = finished_reduction(v)) {
      return schedule_reduction(finished->reduction, v, finished->axes);
    }
    schedule_elementwise({v});
  }

  /// Everything that the kernel of `v` reads from memory, but for `apart`.
  void schedule_borders(int v, const std::vector<int>& apart) {
    for (int border : borders_of(v)) {
      if (std::find(apart.begin(), apart.end(), border) != apart.end()) continue;
      in_memory_[index(border)] = true;
      schedule(border);
    }
  }

  void schedule_elementwise(const std::vector<int>& group) {
    for (int v : group) schedule_borders(v, group);
    FusedStep step;
    step.shape = value(group.front()).shape;
    for (int v : group) in_memory_[index(v)] = false;  // one may be made of another
    FusedSource source(values_, first_readers_, in_memory_, ArgumentKind::element, step.shape,
                       step.inputs);
    for (int v : group) {
      std::string made = source.compute(v, walk_axes(step.shape));
      source.assign(output_name(step.outputs.size()), made);
      step.outputs.push_back(v);
      scheduled_[index(v)] = true;
    }
    for (int v : group) in_memory_[index(v)] = true;
    ElementwiseText text;
    text.signature = signature(step);
    text.preamble = preamble_;
    text.operation = source.statements();
    text.blocks = source.blocks();
    std::string key = key_of(text.signature) + text.preamble + text.operation;
    step.program = program(key, [&](FusedProgram& p) { p.elementwise = std::move(text); });
    steps_.push_back(std::move(step));
  }

  /// The reduction `r` with what leads to it, and what makes `v` of it; `axes` are v's by r's.
  void schedule_reduction(int r, int v, const AxisMap& axes) {
    schedule_borders(r, {});
    if (v != r) schedule_borders(v, {r});
    FusedStep step;
    step.reduction = true;
    step.axes = value(r).axes;
    step.shape = value(r).in[0].array.view.shape;
    step.outputs = {v};
    Shape strides = contiguous_strides(value(v).shape, itemsize(value(v).dtype));
    for (int axis = 0; axis < step.shape.ndim(); ++axis) {
      int own = axes[index(axis)];
      step.kept_strides.push_back(own < 0 ? 0 : strides[own]);
    }
    FusedSource map(values_, first_readers_, in_memory_, ArgumentKind::element, step.shape,
                    step.inputs);
    const char* row = value(r).name();
    std::string mapped = fmt::format("rensa::red::{}::map({})", row, map.reduced_input(r));
    ReductionText text;
    text.map_statements = map.statements();
    text.map = FusedSource::spell(mapped, false);
    map.assign("rensa_mapped", mapped);
    text.map_blocks = map.blocks();
    in_memory_[index(v)] = false;
    FusedSource post(values_, first_readers_, in_memory_, ArgumentKind::kept, value(r).shape,
                     step.inputs);
    post.start_from(r);
    post.assign(output_name(0), post.value(v, axes));
    in_memory_[index(v)] = true;
    text.post = post.statements();
    text.post_blocks = post.blocks();
    std::string native(dtype_name(value_dtype(compute_type(value(r).compute))));
    text.reduce_type = native;
    text.reduce = fmt::format("rensa::red::{}::reduce(a, b)", row);
    text.identity = fmt::format("rensa::red::{}::identity<{}>()", row, native);
    text.preamble = preamble_;
    text.signature = signature(step);
    // The vectors that the library's own reduction of floats would have: the same order of sums.
    Dtype reduced = value(r).in[0].array.view.dtype;
    if (dtype_kind(reduced) == 'f') text.width = static_cast<int>(16 / itemsize(reduced));
    std::string key = key_of(text.signature) + text.preamble + row + text.map_blocks + text.post;
    step.program = program(key, [&](FusedProgram& p) { p.reduction = std::move(text); });
    scheduled_[index(v)] = true;
    steps_.push_back(std::move(step));
  }

  static std::string output_name(std::size_t k) { return fmt::format("y{}", k); }

  KernelSignature signature(const FusedStep& step) const {
    KernelSignature s;
    for (std::size_t k = 0; k < step.inputs.size(); ++k) {
      Dtype dtype = step.inputs[k].dtype;
      s.inputs.push_back({std::string(dtype_name(dtype)), dtype, input_name(k), false});
    }
    for (std::size_t k = 0; k < step.outputs.size(); ++k) {
      Dtype dtype = value(step.outputs[k]).dtype;
      s.outputs.push_back({std::string(dtype_name(dtype)), dtype, output_name(k), false});
    }
    s.name = "fused";  // and the first operations, for timelines
    for (std::size_t v = 0; v < values_.size() && s.name.size() < 40; ++v) {
      const TracedValue& made = values_[v];
      s.name += "_";
      s.name += made.name();
    }
    return s;
  }

  static std::string key_of(const KernelSignature& s) {
    std::string key = s.name;
    for (std::size_t k = 0; k < s.size(); ++k) key += " " + s.parameter(k).type;
    return key + "\n";
  }

  template <class Fill> std::shared_ptr<FusedProgram> program(const std::string& key, Fill&& fill) {
    std::shared_ptr<FusedProgram>& program = programs_[key];
    if (!program) {
      program = std::make_shared<FusedProgram>();
      fill(*program);
      const std::string& name = program->elementwise.signature.name;
      program->name =
          operations::keep_name(name.empty() ? program->reduction.signature.name : name);
    }
    return program;
  }

  const std::vector<TracedValue>& values_;
  FusedPrograms& programs_;
  FirstReaders first_readers_;
  std::string preamble_;          // of the part's kernels
  std::vector<int> last_reader_;  // values_.size(): the caller; -1: nobody
  std::vector<bool> in_memory_, needed_whole_, scheduled_;
  std::vector<int> readers_;
  std::vector<FusedStep> steps_;
};

}  // namespace

std::vector<FusedStep> plan_fusion(const std::vector<TracedValue>& values,
                                   const std::vector<int>& outputs, FusedPrograms& programs) {
  return Planner(values, programs).run(outputs);
}

std::vector<KernelOperand> operands_of(const FusedStep& step,
                                       const std::vector<TracedValue>& values,
                                       const std::vector<Operand>& places) {
  std::vector<KernelOperand> operands;
  operands.reserve(step.inputs.size() + step.outputs.size());
  for (const FusedInput& input : step.inputs) operands.push_back(operand_of(input, values, places));
  for (int output : step.outputs) {
    KernelOperand operand;
    operand.dtype = values[static_cast<std::size_t>(output)].dtype;
    operand.written = true;
    operand.loaded = false;
    operand.array = places[static_cast<std::size_t>(output)];
    if (step.reduction) {  // as the reduction leaves it, whatever shape the result has
      operand.kind = ArgumentKind::kept;
      ArrayView& view = operand.array.view;
      view.shape = step.shape;
      for (int axis = 0; axis < step.shape.ndim(); ++axis) {
        if (step.axes >> axis & 1) view.shape[axis] = 1;
      }
      view.strides = step.kept_strides;
    }
    operands.push_back(operand);
  }
  return operands;
}

}  // namespace rensa::detail
