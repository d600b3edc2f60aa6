"""Cases of rensa/functions/rnn.h."""
from make_function_cases import F, case, uniform


def u(*shape):
    return uniform(-1, 1, shape)


case("lstm", F.lstm, u(3, 2), u(3, 8))
case("lstm of sequences that have ended", F.lstm, u(3, 2), u(2, 8))
case("lstm of images", F.lstm, u(2, 2, 3), u(2, 8, 3))
case("slstm", F.slstm, u(3, 2), u(3, 2), u(3, 8), u(3, 8))
for n in (1, 2, 3):
    case(f"tree_lstm of {n}", F.tree_lstm, *[u(3, 2)] * n, u(3, 2 * (3 + n)), orders=1)

BATCHES = (3, 2, 2, 1)
UNITS, IN = 2, 3


def network(function, weights, layers, directions, cell, batches=BATCHES, rest=0, **options):
    """Inputs: hx, cx for a cell, the weights of each layer, its biases, the times."""
    states = 2 if cell else 1
    rows = batches[0] + rest
    inputs = [u(layers * directions, rows, UNITS)] * states
    for layer in range(layers):
        for _ in range(directions):
            below = IN if layer == 0 else UNITS * directions
            inputs += [u(UNITS, below if j < weights // 2 else UNITS) for j in range(weights)]
            inputs += [u(UNITS)] * weights
    inputs += [u(b, IN) for b in batches]

    def call(*x):
        x = list(x)
        given, x = x[:states], x[states:]
        ws, bs = [], []
        for _ in range(layers * directions):
            ws.append(x[:weights])
            bs.append(x[weights:2 * weights])
            x = x[2 * weights:]
        *ends, ys = function(layers, 0.0, *given, ws, bs, x, **options)
        return [*ends, *ys]

    return call, inputs


def sequences(name, *arguments, **options):
    call, inputs = network(*arguments, **options)
    case(name, call, *inputs)


sequences("n_step_lstm layers=1", F.n_step_lstm, 8, 1, 1, True)
sequences("n_step_lstm layers=2", F.n_step_lstm, 8, 2, 1, True, batches=(2, 1))
sequences("n_step_lstm hx of more", F.n_step_lstm, 8, 1, 1, True, batches=(2, 2), rest=1)
sequences("n_step_lstm one time", F.n_step_lstm, 8, 1, 1, True, batches=(1,))
sequences("n_step_bilstm layers=1", F.n_step_bilstm, 8, 1, 2, True)
sequences("n_step_bilstm layers=2", F.n_step_bilstm, 8, 2, 2, True, batches=(2, 1))
sequences("n_step_bilstm hx of more", F.n_step_bilstm, 8, 1, 2, True, batches=(2, 1), rest=1)
sequences("n_step_gru layers=1", F.n_step_gru, 6, 1, 1, False)
sequences("n_step_gru layers=2", F.n_step_gru, 6, 2, 1, False, batches=(2, 1))
sequences("n_step_bigru layers=1", F.n_step_bigru, 6, 1, 2, False)
sequences("n_step_bigru layers=2", F.n_step_bigru, 6, 2, 2, False, batches=(2, 1))
for activation in ("tanh", "relu"):
    sequences(f"n_step_rnn {activation} layers=2", F.n_step_rnn, 2, 2, 1, False, activation=activation)
    sequences(f"n_step_birnn {activation} layers=2", F.n_step_birnn, 2, 2, 2, False, activation=activation)
