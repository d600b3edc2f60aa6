"""Cases of rensa/functions/evaluation.h."""
import numpy as np
from make_function_cases import F, case, integers, uniform, values

Y = uniform(-2, 2, (12, 3))
T = integers(0, 3, (12,))
SOME = values([0, 1, 2, -1, 0, 1, 2, -1, 0, 1, 0, 1], np.int32)
IMAGES = uniform(-2, 2, (2, 3, 2, 2))
IMAGE_LABELS = integers(0, 3, (2, 2, 2))

case("accuracy", F.accuracy, Y, T, orders=0, sizes=(1,))
case("accuracy ignore_label=-1", lambda y, t: F.accuracy(y, t, ignore_label=-1), Y, SOME, orders=0)
case("accuracy of images", F.accuracy, IMAGES, IMAGE_LABELS, orders=0)
case("accuracy of long axes", F.accuracy, uniform(-2, 2, (5, 3, 1, 1)), integers(0, 3, (5,)), orders=0)
case("binary_accuracy", F.binary_accuracy, uniform(-2, 2, (12, 2)), integers(-1, 2, (12, 2)), orders=0)
case("classification_summary", F.classification_summary, Y, T, orders=0, sizes=(1,))
case("classification_summary label_num=5", lambda y, t: F.classification_summary(y, t, label_num=5), Y, SOME,
     orders=0, sizes=(1,))
case("classification_summary beta=2 ignore_label=1",
     lambda y, t: F.classification_summary(y, t, 3, beta=2.0, ignore_label=1), Y, T, orders=0)
case("classification_summary of images", lambda y, t: F.classification_summary(y, t, 3), IMAGES, IMAGE_LABELS,
     orders=0)
for name in ("precision", "recall", "f1_score"):
    case(name, lambda y, t, name=name: getattr(F, name)(y, t, 3), Y, SOME, orders=0, sizes=())
case("r2_score", F.r2_score, Y, Y, orders=0, sizes=(1,))
case("r2_score multioutput=raw_values", lambda y, t: F.r2_score(y, t, multioutput="raw_values"), Y, Y, orders=0)
