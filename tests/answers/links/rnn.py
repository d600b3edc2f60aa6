"""Layers of recurrent networks: stateful ones are called several times."""
import chainer
import chainer.links as L
from make_link_cases import case, uniform

TIMES = [[uniform(2, 3)]] * 3
case("LSTM", L.LSTM(3, 2), TIMES)
case("LSTM of any input", L.LSTM(None, 2), TIMES)
case("LSTM of sequences that end", L.LSTM(3, 2), [[uniform(n, 3)] for n in (3, 2, 2, 1)])
case("StatelessLSTM", L.StatelessLSTM(3, 2), [[uniform(4, 2), uniform(4, 2), uniform(4, 3)]])
case("StatelessLSTM at first", L.StatelessLSTM(3, 2), [[uniform(4, 3)]], lambda link, x: link(None, None, x))
case("StatefulPeepholeLSTM", L.StatefulPeepholeLSTM(3, 2), TIMES)
case("StatefulZoneoutLSTM", L.StatefulZoneoutLSTM(3, 2), TIMES)
case("GRU", L.GRU(3, 2), TIMES)
case("StatelessGRU", L.StatelessGRU(3, 2), [[uniform(4, 2), uniform(4, 3)]])
case("StatefulMGU", L.StatefulMGU(3, 2), TIMES)
case("StatelessMGU", L.StatelessMGU(3, 2), [[uniform(4, 2), uniform(4, 3)]])
U = uniform(4, 2)
case("ChildSumTreeLSTM", L.ChildSumTreeLSTM(3, 2), [[U, U, U, U, U, U, uniform(4, 3)]])
case("ChildSumTreeLSTM of a leaf", L.ChildSumTreeLSTM(3, 2), [[uniform(4, 3)]])
case("ChildSumTreeLSTM of undefined ones", L.ChildSumTreeLSTM(3, 2), [[U, U]],
     lambda link, c, h: link(c, None, None, h, None))
case("NaryTreeLSTM", L.NaryTreeLSTM(3, 2), [[U, U, U, U, uniform(4, 3)]])
case("NaryTreeLSTM of undefined ones", L.NaryTreeLSTM(3, 2, 3), [[U, uniform(4, 3)]],
     lambda link, h, x: link(None, None, None, None, h, None, x))

SEQUENCES = [uniform(n, 3) for n in (2, 4, 1, 2)]
for name in ("NStepLSTM", "NStepBiLSTM", "NStepGRU", "NStepBiGRU", "NStepRNNTanh", "NStepBiRNNTanh", "NStepRNNReLU",
             "NStepBiRNNReLU"):
    link = getattr(L, name)(2, 3, 2, 0.5)
    states = 2 if "LSTM" in name else 1
    layers = 4 if "Bi" in name else 2

    def call(link, *x, states=states):
        *ends, ys = link(*x[:states], list(x[states:]))
        return [*ends, *ys]

    case(name, link, [[uniform(layers, 4, 2)] * states + SEQUENCES], call)
    case(name + " at first", link, [SEQUENCES],
         lambda link, *x, call=call, states=states: call(link, *[None] * states, *x))
