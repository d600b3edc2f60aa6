// Attention's graphs for cuDNN. Its engines know attention by the parts that these are made of and
// by their order: those of NVIDIA's cudnn-frontend.
#include "rensa/functions/operations/attention/cuda_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace rensa::cuda {

namespace {

using Numbers = std::vector<std::int64_t>;

// The tensors' names in the graph. Those that are in no memory follow.
enum Name : std::int64_t {
  kQuery = 1,
  kKey,
  kValue,
  kOut,
  kLse,
  kGout,
  kGquery,
  kGkey,
  kGvalue,
  kScale,  // numbers on the host
  kNoScore,
  kOne,
  kSums,     // of out * gout
  kAddedUp,  // the query's gradient in float32, before it is rounded
  kFirstUnnamed,
};

/// Of a C-contiguous tensor.
Numbers dense(const Numbers& shape) {
  Numbers strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0; step *= shape[i]) strides[i] = step;
  return strides;
}

/// The parts of a graph. Values between them are of float32, unless they are said to be another.
class Builder {
 public:
  struct Value {
    CudnnDescriptor* tensor;
    Numbers shape, strides;
  };

  Builder(const char* operation, const AttentionLayout& layout)
      : operation_(operation), layout_(layout), type_(cudnn_type(layout.dtype)) {}

  cudnnDataType_t type() const { return type_; }
  const std::vector<cudnnBackendDescriptor_t>& operations() const { return operations_; }
  /// All that the operations are made of, with them; nothing is left here.
  std::vector<std::unique_ptr<CudnnDescriptor>> take_parts() { return std::move(parts_); }

  // --- values ---

  /// (batch, heads, rows, width) in memory.
  Value rows(Name name, std::int64_t heads, std::int64_t n, std::int64_t width,
             const HeadStrides& s) {
    return tensor({name, type_, {layout_.batch, heads, n, width}, {s[0], s[1], s[2], 1}});
  }
  /// The same with the last two axes in the other order.
  Value columns(Name name, std::int64_t heads, std::int64_t n, std::int64_t width,
                const HeadStrides& s) {
    return tensor({name, type_, {layout_.batch, heads, width, n}, {s[0], s[1], 1, s[2]}});
  }
  /// float32 in memory, C-contiguous.
  Value floats(Name name, const Numbers& shape) {
    return tensor({name, CUDNN_DATA_FLOAT, shape, dense(shape)});
  }
  Value number(Name name) {
    Numbers ones(4, 1);
    return tensor({name, CUDNN_DATA_FLOAT, ones, ones, CudnnMemory::host});
  }
  Value between(cudnnDataType_t type, const Numbers& shape, const Numbers& strides) {
    return tensor({next_++, type, shape, strides, CudnnMemory::none});
  }
  Value between(const Numbers& shape, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return between(type, shape, dense(shape));
  }
  Numbers of_scores() const {
    return {layout_.batch, layout_.heads, layout_.queries, layout_.keys};
  }
  Numbers of_queries() const { return {layout_.batch, layout_.heads, layout_.queries, 1}; }

  // --- parts ---

  void multiply(const Value& a, const Value& b, const Value& c) {
    CudnnDescriptor& how = add("product", CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    how.finalize();
    CudnnDescriptor& part = add("product", CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    part.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, *a.tensor);
    part.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, *b.tensor);
    part.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, *c.tensor);
    part.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    finish(part);
  }

  struct Pointwise {
    cudnnPointwiseMode_t mode;
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    std::int64_t axis = -1;  // of an index
  };
  /// y = mode(x, second, third); second and third may be null.
  void pointwise(const Pointwise& how, const Value& x, const Value* second, const Value* third,
                 const Value& y) {
    CudnnDescriptor& mode = add("pointwise", CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    mode.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &how.mode);
    mode.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &how.compute);
    if (how.axis >= 0) mode.set(CUDNN_ATTR_POINTWISE_AXIS, how.axis);
    mode.finalize();
    CudnnDescriptor& part =
        add("pointwise operation", CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    float one = 1;
    part.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode);
    part.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *x.tensor);
    part.set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_TYPE_FLOAT, 1, &one);
    part.set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, CUDNN_TYPE_FLOAT, 1, &one);
    if (second) part.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *second->tensor);
    if (third) part.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *third->tensor);
    part.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *y.tensor);
    finish(part);
  }
  /// The same of values between parts: gives a new one of x's shape.
  Value unary(cudnnPointwiseMode_t mode, const Value& x) {
    Value y = between(x.shape);
    pointwise({mode}, x, nullptr, nullptr, y);
    return y;
  }
  Value binary(cudnnPointwiseMode_t mode, const Value& x, const Value& second) {
    Value y = between(x.shape);
    pointwise({mode}, x, &second, nullptr, y);
    return y;
  }

  void reduce(cudnnReduceTensorOp_t mode, const Value& x, const Value& y) {
    CudnnDescriptor& how = add("reduction", CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    how.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode);
    how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    how.finalize();
    CudnnDescriptor& part =
        add("reduction operation", CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    part.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, *x.tensor);
    part.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, *y.tensor);
    part.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
    finish(part);
  }

  /// x with its last two axes in the other order, of `type`.
  Value transpose(const Value& x, cudnnDataType_t type) {
    Numbers shape = x.shape, strides = x.strides;
    std::swap(shape[2], shape[3]);
    std::swap(strides[2], strides[3]);
    Value y = between(type, shape, strides);
    CudnnDescriptor& part = add("reshape", CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    part.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, *x.tensor);
    part.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, *y.tensor);
    finish(part);
    return y;
  }

  // --- what both directions have ---

  /// Scores of later keys become those of keys that take no part.
  Value masked(const Value& scores) {
    if (!layout_.causal) return scores;
    Value row = between(scores.shape, CUDNN_DATA_INT32),
          column = between(scores.shape, CUDNN_DATA_INT32);
    pointwise({CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, 2}, scores, nullptr, nullptr, row);
    pointwise({CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, 3}, scores, nullptr, nullptr, column);
    Value seen = between(scores.shape, CUDNN_DATA_BOOLEAN);
    pointwise({CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN}, row, &column, nullptr, seen);
    Value none = number(kNoScore), result = between(scores.shape);
    pointwise({CUDNN_POINTWISE_BINARY_SELECT}, scores, &none, &seen, result);
    return result;
  }
  /// The scores of query and key, (batch, heads, L, S).
  Value scores(const Value& query, const Value& key_columns, const Value& scale) {
    Value products = between(of_scores());
    multiply(query, key_columns, products);
    return binary(CUDNN_POINTWISE_MUL, products, scale);
  }

 private:
  Value tensor(const CudnnTensor& of) {
    parts_.push_back(std::make_unique<CudnnDescriptor>(make_cudnn_tensor(operation_, of)));
    return {parts_.back().get(), of.shape, of.strides};
  }
  CudnnDescriptor& add(const char* what, cudnnBackendDescriptorType_t type) {
    return *parts_.emplace_back(std::make_unique<CudnnDescriptor>(operation_, what, type));
  }
  void finish(CudnnDescriptor& part) {
    part.finalize();
    operations_.push_back(part.raw());
  }

  const char* operation_;
  const AttentionLayout& layout_;
  cudnnDataType_t type_;
  std::int64_t next_ = kFirstUnnamed;
  std::vector<std::unique_ptr<CudnnDescriptor>> parts_;
  std::vector<cudnnBackendDescriptor_t> operations_;
};

using Value = Builder::Value;

void build_forward(Builder& graph, const AttentionLayout& l) {
  Value query = graph.rows(kQuery, l.heads, l.queries, l.width, l.query);
  Value key = graph.columns(kKey, l.groups, l.keys, l.width, l.key);
  Value value = graph.rows(kValue, l.groups, l.keys, l.value_width, l.value);
  Value out = graph.rows(kOut, l.heads, l.queries, l.value_width, l.out);
  Value lse = graph.floats(kLse, graph.of_queries());
  Value scores = graph.masked(graph.scores(query, key, graph.number(kScale)));
  Value greatest = graph.between(graph.of_queries()), sum = graph.between(graph.of_queries());
  graph.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, greatest);
  Value weights =
      graph.unary(CUDNN_POINTWISE_EXP, graph.binary(CUDNN_POINTWISE_SUB, scores, greatest));
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, weights, sum);
  Value log = graph.unary(CUDNN_POINTWISE_LOG, sum);
  graph.pointwise({CUDNN_POINTWISE_ADD}, greatest, &log, nullptr, lse);
  Value rounded = graph.between(graph.of_scores(), graph.type());
  graph.pointwise({CUDNN_POINTWISE_DIV}, weights, &sum, nullptr, rounded);
  graph.multiply(rounded, value, out);
}

/// The product of `left` and `right`, (batch, heads, S, width), added up over the heads of a group.
void multiply_for_keys(Builder& graph, const AttentionLayout& l, const Value& left,
                       const Value& right, const Value& gradient) {
  if (l.groups == l.heads) return graph.multiply(left, right, gradient);
  Value of_heads = graph.between({l.batch, l.heads, l.keys, gradient.shape[3]}, graph.type());
  graph.multiply(left, right, of_heads);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, of_heads, gradient);
}

void build_gradient(Builder& graph, const AttentionLayout& l) {
  Value query = graph.rows(kQuery, l.heads, l.queries, l.width, l.query);
  Value key = graph.columns(kKey, l.groups, l.keys, l.width, l.key);
  Value value = graph.columns(kValue, l.groups, l.keys, l.value_width, l.value);
  Value out = graph.rows(kOut, l.heads, l.queries, l.value_width, l.out);
  Value gout = graph.rows(kGout, l.heads, l.queries, l.value_width, l.gout);
  Value gquery = graph.rows(kGquery, l.heads, l.queries, l.width, l.gquery);
  Value gkey = graph.rows(kGkey, l.groups, l.keys, l.width, l.gkey);
  Value gvalue = graph.rows(kGvalue, l.groups, l.keys, l.value_width, l.gvalue);
  Value lse = graph.floats(kLse, graph.of_queries()), sums = graph.floats(kSums, lse.shape);
  Value scale = graph.number(kScale), one = graph.number(kOne);

  Value sum = graph.between(lse.shape);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, graph.binary(CUDNN_POINTWISE_MUL, gout, out), sum);
  graph.pointwise({CUDNN_POINTWISE_MUL}, sum, &one, nullptr, sums);

  Value scores = graph.binary(CUDNN_POINTWISE_SUB, graph.scores(query, key, scale), lse);
  Value weights = graph.unary(CUDNN_POINTWISE_EXP, graph.masked(scores));
  multiply_for_keys(graph, l, graph.transpose(weights, graph.type()), gout, gvalue);

  Value gweights = graph.between(graph.of_scores());
  graph.multiply(gout, value, gweights);
  Value gscores =
      graph.binary(CUDNN_POINTWISE_MUL, graph.binary(CUDNN_POINTWISE_SUB, gweights, sums), weights);
  gscores = graph.binary(CUDNN_POINTWISE_MUL, gscores, scale);
  multiply_for_keys(graph, l, graph.transpose(gscores, graph.type()), query, gkey);

  Value key_rows = graph.transpose(key, CUDNN_DATA_FLOAT);
  if (l.deterministic) {
    graph.multiply(gscores, key_rows, gquery);
  } else {  // blocks of keys add theirs to it, in any order
    Value added = graph.floats(kAddedUp, gquery.shape);
    graph.multiply(gscores, key_rows, added);
    graph.pointwise({CUDNN_POINTWISE_IDENTITY}, added, nullptr, nullptr, gquery);
  }
}

/// cuDNN notes nothing of engines that add to kAddedUp in any order: it is the graph without that
/// whose bits are the same every time.
bool keeps_promises(const char* operation, const AttentionLayout& layout,
                    const CudnnDescriptor& config) {
  std::vector<cudnnBackendNumericalNote_t> noted = numerical_notes(operation, config);
  return std::none_of(noted.begin(), noted.end(), [&](cudnnBackendNumericalNote_t note) {
    return note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
           (note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC && layout.deterministic);
  });
}

/// Of `count` floats in a scratch, to a multiple of what addresses in it are aligned to.
std::size_t padded(std::int64_t count) {
  return (static_cast<std::size_t>(count) * sizeof(float) + 255) / 256 * 256;
}
std::size_t sums_bytes(const AttentionLayout& l) {
  return l.gradient ? padded(l.batch * l.heads * l.queries) : 0;
}
std::size_t gquery_bytes(const AttentionLayout& l) {
  return l.gradient && !l.deterministic ? padded(l.batch * l.heads * l.queries * l.width) : 0;
}

}  // namespace

CudnnAttention::CudnnAttention(Parts parts, CudnnExecution execution, const AttentionLayout& l)
    : parts_(std::move(parts)),
      plan_(std::move(execution.plan)),
      causal_(l.causal),
      gradient_(l.gradient) {
  sums_bytes_ = sums_bytes(l);
  gquery_bytes_ = gquery_bytes(l);
  workspace_bytes_ = sums_bytes_ + gquery_bytes_ + execution.workspace_bytes;
}

std::shared_ptr<const CudnnAttention> CudnnAttention::make(const char* operation,
                                                           const AttentionLayout& layout,
                                                           const CudnnHandle& handle,
                                                           std::size_t limit,
                                                           CudnnRefusal* refusal) {
  Builder builder(operation, layout);
  if (layout.gradient) build_gradient(builder, layout);
  else build_forward(builder, layout);
  std::optional<CudnnDescriptor> graph = make_cudnn_graph(operation, builder.operations(), handle);
  *refusal = {CudnnDescriptor::refusal()};
  if (!graph) return nullptr;
  *refusal = {"its heuristics propose no engine: " + CudnnDescriptor::refusal()};
  for (CudnnDescriptor& config : proposed_engines(operation, *graph)) {
    if (!keeps_promises(operation, layout, config)) {
      *refusal = {"the engines that it proposes give other bits each time"};
      continue;
    }
    auto execution = make_cudnn_execution(operation, config);
    if (!execution) {
      *refusal = {CudnnDescriptor::refusal()};
      continue;
    }
    std::size_t bytes = sums_bytes(layout) + gquery_bytes(layout) + execution->workspace_bytes;
    if (bytes > limit) {
      auto text = fmt::format("it takes {} bytes of workspace, of {} allowed", bytes, limit);
      *refusal = {text, bytes};
      break;  // others take as much
    }
    Parts parts = builder.take_parts();
    parts.push_back(std::make_unique<CudnnDescriptor>(std::move(*graph)));
    parts.push_back(std::make_unique<CudnnDescriptor>(std::move(config)));
    return std::shared_ptr<const CudnnAttention>(
        new CudnnAttention(std::move(parts), std::move(*execution), layout));
  }
  return nullptr;
}

void CudnnAttention::run(const char* operation, const AttentionAddresses& of, double scale,
                         const LaunchContext& context) const {
  // Before 9.10 the least number was taken to be what takes no part.
  float factor = static_cast<float>(scale), one = 1;
  float none = cudnn().version() < 91000 ? std::numeric_limits<float>::lowest()
                                         : -std::numeric_limits<float>::infinity();
  char* scratch = static_cast<char*>(context.workspace);
  void *sums = scratch, *added = scratch + sums_bytes_;
  std::vector<void*> addresses;
  std::vector<std::int64_t> names;
  auto give = [&](Name name, void* address) {
    names.push_back(name);
    addresses.push_back(address);
  };
  give(kQuery, of.query), give(kKey, of.key), give(kValue, of.value), give(kOut, of.out);
  give(kLse, of.lse), give(kScale, &factor);
  if (causal_) give(kNoScore, &none);
  if (gradient_) {
    give(kGout, of.gout), give(kGquery, of.gquery), give(kGkey, of.gkey);
    give(kGvalue, of.gvalue), give(kOne, &one), give(kSums, sums);
    if (gquery_bytes_ > 0) give(kAddedUp, added);
  }
  check_cudnn(operation, "cudnnBackendExecute", "plan",
              run_cudnn(operation, plan_, context, addresses, names,
                        scratch + sums_bytes_ + gquery_bytes_));
}

}  // namespace rensa::cuda
