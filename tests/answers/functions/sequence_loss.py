"""Cases of rensa/functions/sequence_loss.h."""
import numpy as np

from make_function_cases import F, case, integers, uniform, values

# --- connectionist temporal classification ---

SIX = uniform(-2, 2, (6, 3, 5))
LABELS = values([[1, 2], [3, 3], [4, 1]], np.int32)


def ctc(blank, input_length=None, label_length=None, reduce="mean"):
    lengths = [None if n is None else np.array(n, np.int32) for n in (input_length, label_length)]
    return lambda x, t: F.connectionist_temporal_classification(
        [x[i] for i in range(x.shape[0])], t.array, blank, *lengths, reduce=reduce)


NAME = "connectionist_temporal_classification"
case(NAME, ctc(0), SIX, LABELS, orders=1, sizes=())
case(NAME + " reduce=no", ctc(0, reduce="no"), SIX, LABELS, orders=1)
case(NAME + " blank_symbol=2", ctc(2), SIX, values([[1, 0], [3, 3], [4, 1]], np.int32), orders=1)
case(NAME + " lengths", ctc(0, [6, 4, 3], [2, 2, 1]), SIX, LABELS, orders=1)
case(NAME + " lengths reduce=no", ctc(0, [5, 6, 1], [1, 0, 1], "no"), SIX, LABELS, orders=1)
# A class three times, of seven labels in twelve steps.
case(NAME + " repeated", ctc(0, reduce="no"), uniform(-1, 1, (12, 2, 4)),
     values([[1, 2, 1, 1, 3, 1, 2], [3, 3, 3, 1, 2, 2, 3]], np.int32), orders=1)
case(NAME + " one step", ctc(0, reduce="no"), uniform(-1, 1, (1, 2, 4)), values([[1], [3]], np.int32), orders=1)

# --- conditional random fields ---

COST = uniform(-1, 1, (3, 3))
STEPS = [uniform(-1, 1, (n, 3)) for n in (4, 3, 1)]
TRUTH = [integers(0, 3, (n,)) for n in (4, 3, 1)]
for reduce in ("mean", "no"):
    case(f"crf1d reduce={reduce}", lambda c, *v, r=reduce: F.crf1d(c, list(v[:3]), list(v[3:]), reduce=r),
         COST, *STEPS, *TRUTH)
case("crf1d one length", lambda c, a, b, s, t: F.crf1d(c, [a, b], [s, t]), COST, STEPS[1], STEPS[1],
     TRUTH[1], TRUTH[1])
case("crf1d one step", lambda c, a, s: F.crf1d(c, [a], [s]), COST, STEPS[0], TRUTH[0])


def argmax(c, *xs):
    score, path = F.argmax_crf1d(c, list(xs))
    return [score, *path]


case("argmax_crf1d", argmax, COST, *STEPS, sizes=())
case("argmax_crf1d one step", argmax, COST, STEPS[0])
