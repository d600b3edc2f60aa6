"""Cases of rensa/functions/loss.h."""
import numpy as np
from make_function_cases import F, case, integers, torch, uniform, values

T = torch.nn.functional
X = uniform(-2, 2, (4, 3))
LABELS = integers(0, 3, (4,))
SOME = values([2, -1, 0, 1], np.int32)
IMAGES = uniform(-2, 2, (2, 3, 2, 2))
IMAGE_LABELS = integers(0, 3, (2, 2, 2))
WEIGHT = uniform(0.5, 2, (3,))


def softmax_cross_entropy(**options):
    return lambda x, t: F.softmax_cross_entropy(x, t, enable_double_backprop=True, **options)



def weighed(**options):
    return lambda x, t, w: F.softmax_cross_entropy(x, t, class_weight=w.array, enable_double_backprop=True,
                                                   **options)


case("softmax_cross_entropy", softmax_cross_entropy(), X, LABELS)
case("softmax_cross_entropy ignored", softmax_cross_entropy(), X, SOME)
case("softmax_cross_entropy all ignored", softmax_cross_entropy(), X, values([-1] * 4, np.int32))
case("softmax_cross_entropy ignore_label=1", softmax_cross_entropy(ignore_label=1), X, LABELS)
case("softmax_cross_entropy normalize=False", softmax_cross_entropy(normalize=False), X, SOME)
case("softmax_cross_entropy reduce=no", softmax_cross_entropy(reduce="no"), X, SOME, sizes=(1, 0))
case("softmax_cross_entropy class_weight", weighed(), X, SOME, WEIGHT, fixed=[2], batched=[0, 1], sizes=(1,))
case("softmax_cross_entropy class_weight reduce=no", weighed(reduce="no"), X, SOME, WEIGHT, fixed=[2])
case("softmax_cross_entropy class_weight normalize=False", weighed(normalize=False), X, SOME, WEIGHT, fixed=[2])
case("softmax_cross_entropy of images", softmax_cross_entropy(), IMAGES, IMAGE_LABELS)
case("softmax_cross_entropy of images normalize=False", softmax_cross_entropy(normalize=False), IMAGES, IMAGE_LABELS)
case("softmax_cross_entropy of images reduce=no", softmax_cross_entropy(reduce="no"), IMAGES, IMAGE_LABELS)
case("softmax_cross_entropy of images class_weight", weighed(), IMAGES, IMAGE_LABELS, WEIGHT, fixed=[2])
for name, options in {"": {}, " reduce=no": {"reduction": "none"}}.items():
    case("softmax_cross_entropy label_smoothing=0.1" + name,
         lambda x, t, options=options: T.cross_entropy(x, t, ignore_index=-1, label_smoothing=0.1, **options),
         X, SOME, by=torch)
case("softmax_cross_entropy label_smoothing=0.1 class_weight reduce=no",
     lambda x, t, w: T.cross_entropy(x, t, w, ignore_index=-1, label_smoothing=0.1, reduction="none"),
     X, SOME, WEIGHT, by=torch, fixed=[2])
P = values([[0.2, 0.3, 0.5], [0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [1, 0, 0]])
for loss in ("cross-entropy", "kl-divergence"):
    for reduce in ("mean", "no"):
        case(f"softmax_cross_entropy soft {loss} reduce={reduce}",
             lambda x, t, loss=loss, reduce=reduce: F.softmax_cross_entropy(
                 x, t, soft_target_loss=loss, reduce=reduce),
             X, P, orders=1, fixed=[1])

LOG_P = uniform(-3, -0.1, (4, 3))
case("nll_loss", lambda x, t: T.nll_loss(x, t, ignore_index=-1), LOG_P, SOME, by=torch, sizes=(1,))
case("nll_loss class_weight", lambda x, t, w: T.nll_loss(x, t, w, ignore_index=-1), LOG_P, SOME, WEIGHT,
     by=torch, fixed=[2])
case("nll_loss of images reduce=no", lambda x, t: T.nll_loss(x, t, reduction="none"), IMAGES, IMAGE_LABELS,
     by=torch)

case("sigmoid_cross_entropy", F.sigmoid_cross_entropy, X, integers(-1, 2, (4, 3)))
case("sigmoid_cross_entropy normalize=False", lambda x, t: F.sigmoid_cross_entropy(x, t, normalize=False),
     X, integers(-1, 2, (4, 3)), sizes=(1, 0))
case("sigmoid_cross_entropy reduce=no", lambda x, t: F.sigmoid_cross_entropy(x, t, reduce="no"),
     X, integers(-1, 2, (4, 3)), sizes=(1, 0))
SHARES = uniform(0.05, 0.95, (4, 3))
case("binary_cross_entropy", T.binary_cross_entropy, SHARES, SHARES, by=torch, fixed=[1])
case("binary_cross_entropy reduce=no", lambda x, t: T.binary_cross_entropy(x, t, reduction="none"),
     SHARES, SHARES, by=torch, fixed=[1], sizes=(1, 0))
case("binary_cross_entropy_with_logits", T.binary_cross_entropy_with_logits, X, SHARES, by=torch, fixed=[1])
case("hinge", F.hinge, X, LABELS, orders=1)
case("hinge norm=L2", lambda x, t: F.hinge(x, t, norm="L2"), X, LABELS, orders=1)
case("hinge reduce=no", lambda x, t: F.hinge(x, t, reduce="no"), X, LABELS, orders=1)
case("hinge norm=L2 reduce=no", lambda x, t: F.hinge(x, t, norm="L2", reduce="no"), X, LABELS, orders=1)

for name in ("squared_error", "squared_difference", "absolute_error", "mean_squared_error",
             "mean_absolute_error"):
    case(name, getattr(F, name), X, X, sizes=(1,) if name.startswith("mean") else (1, 0))
case("huber_loss", lambda x, t: F.huber_loss(x, t, 1), X, X)
case("huber_loss delta=0.5 reduce=no", lambda x, t: F.huber_loss(x, t, 0.5, reduce="no"), X, X)
case("huber_loss delta=0.75 of images", lambda x, t: F.huber_loss(x, t, 0.75), IMAGES, IMAGES)

for reduce in ("", " reduce=mean", " reduce=no"):
    options = {"reduce": reduce[8:]} if reduce else {}
    case("bernoulli_nll" + reduce, lambda x, y, o=options: F.bernoulli_nll(x, y, **o), SHARES, X)
    case("gaussian_nll" + reduce, lambda x, m, v, o=options: F.gaussian_nll(x, m, v, **o), X, X, X)
    case("gaussian_kl_divergence" + reduce, lambda m, v, o=options: F.gaussian_kl_divergence(m, v, **o), X, X)
for reduce in ("mean", "sum", "no", "batchmean"):
    case(f"kl_div reduce={reduce}",
         lambda x, t, r=reduce: T.kl_div(x, t, reduction={"no": "none"}.get(r, r)), LOG_P, P, by=torch, fixed=[1])

BOTH = integers(0, 2, (4,))
case("contrastive", F.contrastive, X, X, BOTH, sizes=(1,))
case("contrastive margin=3 reduce=no", lambda a, b, y: F.contrastive(a, b, y, margin=3, reduce="no"), X, X, BOTH)
case("triplet", F.triplet, X, X, X, sizes=(1,))
case("triplet margin=4 reduce=no", lambda a, p, n: F.triplet(a, p, n, margin=4, reduce="no"), X, X, X)
case("cosine_similarity", T.cosine_similarity, X, X, by=torch)
case("cosine_similarity axis=0", lambda a, b: T.cosine_similarity(a, b, dim=0), X, X, by=torch)
SIGNS = values([1, -1, -1, 1], np.int32)
case("cosine_embedding_loss", T.cosine_embedding_loss, X, X, SIGNS, by=torch, sizes=(1,))
case("cosine_embedding_loss margin=0.25 reduce=no",
     lambda a, b, y: T.cosine_embedding_loss(a, b, y, margin=0.25, reduction="none"), X, X, SIGNS, by=torch)
case("decov", F.decov, X, orders=1, sizes=(1,))
case("decov reduce=no", lambda h: F.decov(h, reduce="no"), X, orders=1)
case("cross_covariance", F.cross_covariance, X, uniform(-2, 2, (4, 2)), sizes=(1,))
case("cross_covariance reduce=no", lambda y, z: F.cross_covariance(y, z, reduce="no"), X, uniform(-2, 2, (4, 2)))

SAMPLES = integers(0, 6, (4, 4))
for reduce in ("sum", "no"):
    case(f"negative_sampling reduce={reduce}",
         lambda x, t, W, s, r=reduce: F.negative_sampling(x, t, W, lambda shape: s.array.copy(), 3, reduce=r),
         X, values([2, -1, 0, 5], np.int32), uniform(-1, 1, (6, 3)), SAMPLES, batched=[0, 1, 3], sizes=(1,))
