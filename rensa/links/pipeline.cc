// L::Pipeline: the messages of micro-batches, in one order forward and in the reverse backward.
#include "rensa/links/pipeline.h"

#include <fmt/format.h>

#include "rensa/array/agreement.h"
#include "rensa/core/error.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/communication_functions.h"
#include "rensa/functions/joining_functions.h"

namespace rensa::links {

Pipeline::Pipeline(const Communicator& communicator, AnyLink own, int micro_batches)
    : stage(std::move(own)), communicator_(communicator), micro_batches_(micro_batches) {
  check_agreement(communicator, "Pipeline", fmt::format("{} micro-batches", micro_batches),
                  "give all ranks the same number");
  if (micro_batches < 1) {
    throw ValueError(
        fmt::format("Pipeline: {} micro-batches; there is one or more", micro_batches));
  }
}

Variable Pipeline::operator()(const Variable& x) const {
  if (x.defined() != is_first()) {
    throw ValueError(fmt::format("Pipeline: rank 0 gives x, and no other; rank {} gives {}",
                                 communicator_.rank(),
                                 x.defined() ? x.array().view().describe() : "none"));
  }
  std::vector<ParameterRef> parameters = stage->params();
  Device home = parameters.empty() ? cpu() : parameters[0].device();
  Variables parts, outputs;
  if (is_first()) {
    if (x.ndim() == 0 || x.shape(0) % micro_batches_ != 0) {
      throw ShapeError(fmt::format("Pipeline: axis 0 of {} is not cut in {} equal micro-batches",
                                   x.array().view().describe(), micro_batches_));
    }
    parts = F::split_axis(x, micro_batches_, 0);
  }
  // What this rank has done last: what comes next is joined to it, so that backward goes the same
  // way back.
  Variable last;
  for (int k = 0; k < micro_batches_; ++k) {
    Variable in = is_first() ? parts[static_cast<std::size_t>(k)]
                             : F::recv(communicator_, communicator_.rank() - 1, last);
    Variable y = stage(is_first() ? in : in.to(home));
    if (is_last()) {
      outputs.push_back(y);
      last = y;
    } else {
      if (is_first() && last.defined()) y = F::pseudo_connect(last, y);
      last = F::send(communicator_, y, communicator_.rank() + 1);
    }
  }
  return is_last() ? F::concat(outputs, 0) : last;
}

}  // namespace rensa::links

namespace rensa {
template class Chain<links::Pipeline>;
}  // namespace rensa
