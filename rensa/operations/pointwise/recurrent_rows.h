// Those rows of recurrent.def that code names. pointwise_rows.h has all rows, and who includes it
// is compiled again for each new one.
#pragma once

#include "rensa/operations/pointwise/pointwise.h"

namespace rensa::pointwise {

extern const PointwiseRow lstm, lstm_time, lstm_time_grad, gru_time, gru_time_grad;
extern const PointwiseRow tanh_time, tanh_time_grad, relu_time, relu_time_grad;

}  // namespace rensa::pointwise
