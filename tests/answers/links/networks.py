"""Published networks: Chainer's own, torchvision's and GPT-2 of the package transformers.

    pip install torch==2.2.2 torchvision==0.17.2 transformers==4.40.2 safetensors    (beside Chainer)

What they hold is not recorded but made of names and places, here and in the test (`drawn`), so that whole networks
can be held to their own. In the file are, behind "name|", the extents "shape/<name in files>" of all that files
have; of an input of the extents "x" the results "y,<stage>"; and of the gradients of these, weighted by drawn
numbers, "g/<name in files>": the scalar product with drawn numbers, and the norm. Where "x" is missing only names
and extents were asked for. `python3 tests/answers/make_link_cases.py networks` writes beside it

- ../chainer_resnet.npz: "model/..." as Chainer saves a narrow ResNet, and "y", its fc6 of drawn images
- ../torchvision_resnet.safetensors: the state_dict of a narrow ResNet of torchvision
- ../gpt2.safetensors: what transformers saves of a narrow GPT-2
"""
import pathlib
import tempfile
import zlib

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import safetensors.torch
import torch
import torchvision
import transformers
from chainer.links.model.vision import googlenet, resnet, vgg
from make_link_cases import FOLDER, records


def drawn(name, shape):
    """Numbers of [0, 1), of the name and the place: MurmurHash3's mix of their sum."""
    k = np.arange(np.prod(shape, dtype=int), dtype=np.uint32) + np.uint32(zlib.crc32(name.encode()))
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        k = (k ^ (k >> np.uint32(shift))) * np.uint32(factor)
    k ^= k >> np.uint32(16)
    return ((k >> np.uint32(8)) * 2.0 ** -24).reshape(shape)


def value(name, shape):
    """What a network has under a name; numbers stay as they are."""
    u, leaf = drawn(name, shape), name.replace(".", "/").rpartition("/")[2]
    if leaf in ("W", "weight") and len(shape) > 1:
        u = (2 * u - 1) * np.sqrt(6 / np.prod(shape[1:]))
    elif leaf in ("W", "weight", "gamma", "avg_var", "running_var"):
        u = u + 0.5
    else:
        u = (u - 0.5) * 0.2
    return u.astype(np.float32)


def record(case, arrays, inputs=None, outputs=None, gradients=None):
    """arrays: {name: shape}; `gradients` gives those of {stage: weights} by names."""
    for name, shape in arrays.items():
        records[f"{case}|shape/{name}"] = np.array(shape, np.int32)
    if inputs is None:
        return
    records[f"{case}|x"] = np.array(inputs, np.int32)
    for stage, y in outputs.items():
        records[f"{case}|y,{stage}"] = y
    for name, g in gradients({s: drawn("gy," + s, y.shape).astype(np.float32) for s, y in outputs.items()}).items():
        g = g.astype(np.float64)
        records[f"{case}|g/{name}"] = np.array([(g * (drawn(name, g.shape) - 0.5)).sum(), np.sqrt((g * g).sum())])


def image(shape):
    return (2 * drawn("x", shape) - 1).astype(np.float32)


# --- Chainer's ---

class Names(chainer.Serializer):
    """Collects what files have of a link; with `fill`, fills it."""

    def __init__(self, prefix="", found=None, fill=False):
        self.prefix, self.found, self.fill = prefix, {} if found is None else found, fill

    def __getitem__(self, child):
        return Names(f"{self.prefix}{child}/", self.found, self.fill)

    def __call__(self, key, array):
        name = self.prefix + key
        self.found[name] = np.shape(array)
        if self.fill and np.ndim(array):
            array[...] = value(name, array.shape)
        return array


def of_chainer(case, link, shape=None, layers=None):
    if shape is not None and any(p.array is None for p in link.params()):
        link(image(shape), layers=layers)  # made by a first call
    names = Names(fill=shape is not None)
    link.serialize(names)
    if shape is None:
        return record(case, names.found)
    with chainer.using_config("train", False):
        ys = link(image(shape), layers=layers)

    def gradients(weights):
        link.cleargrads()
        sum(F.sum(ys[s] * w) for s, w in weights.items()).backward()
        return {path[1:]: np.zeros_like(p.array) if p.grad is None else p.grad for path, p in link.namedparams()}
    record(case, names.found, shape, {s: ys[s].array for s in layers}, gradients)


class NarrowResNet(resnet.ResNetLayers):
    def __init__(self, width, blocks, classes, downsample_fb):
        chainer.Chain.__init__(self)
        with self.init_scope():
            self.conv1 = L.Convolution2D(3, width, 7, 2, 3)
            self.bn1 = L.BatchNormalization(width)
            for i, n in enumerate(blocks):
                mid = width << i
                setattr(self, f"res{i + 2}", resnet.BuildingBlock(
                    n, width if i == 0 else 2 * mid, mid, 4 * mid, 1 if i == 0 else 2, downsample_fb=downsample_fb))
            self.fc6 = L.Linear(width * 32, classes)


class NarrowVGG(vgg.VGGLayers):
    def __init__(self, n_layers):
        chainer.Chain.__init__(self)
        self.n_layers = n_layers
        last = 3 if n_layers == 16 else 4
        with self.init_scope():
            n = 3
            for part, (out, layers) in enumerate([(8, 2), (16, 2), (32, last), (64, last), (64, last)], 1):
                for i in range(1, layers + 1):
                    setattr(self, f"conv{part}_{i}", L.Convolution2D(n, out, 3, 1, 1))
                    n = out
            self.fc6, self.fc7, self.fc8 = L.Linear(64 * 4, 20), L.Linear(20, 30), L.Linear(30, 10)

    @property
    def functions(self):
        return (vgg.VGG16Layers if self.n_layers == 16 else vgg.VGG19Layers).functions.fget(self)


class Staged(chainer.Chain):
    """Chainer's examples of ImageNet, by stages."""

    def __call__(self, x, layers):
        return {layers[0]: self.forward(chainer.as_variable(x))}


class NarrowAlexNet(Staged):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv1 = L.Convolution2D(None, 24, 11, stride=4)
            self.conv2 = L.Convolution2D(None, 64, 5, pad=2)
            self.conv3 = L.Convolution2D(None, 96, 3, pad=1)
            self.conv4 = L.Convolution2D(None, 96, 3, pad=1)
            self.conv5 = L.Convolution2D(None, 64, 3, pad=1)
            self.fc6, self.fc7, self.fc8 = L.Linear(None, 20), L.Linear(None, 20), L.Linear(None, 10)

    def forward(self, x):
        h = F.max_pooling_2d(F.local_response_normalization(F.relu(self.conv1(x))), 3, stride=2)
        h = F.max_pooling_2d(F.local_response_normalization(F.relu(self.conv2(h))), 3, stride=2)
        h = F.relu(self.conv4(F.relu(self.conv3(h))))
        h = F.max_pooling_2d(F.relu(self.conv5(h)), 3, stride=2)
        h = F.dropout(F.relu(self.fc7(F.dropout(F.relu(self.fc6(h))))))
        return self.fc8(h)


class NIN(Staged):
    def __init__(self):
        super().__init__()
        init = chainer.initializers.HeNormal()
        with self.init_scope():
            self.mlpconv1 = L.MLPConvolution2D(None, (96, 96, 96), 11, stride=4, conv_init=init)
            self.mlpconv2 = L.MLPConvolution2D(None, (256, 256, 256), 5, pad=2, conv_init=init)
            self.mlpconv3 = L.MLPConvolution2D(None, (384, 384, 384), 3, pad=1, conv_init=init)
            self.mlpconv4 = L.MLPConvolution2D(None, (1024, 1024, 1000), 3, pad=1, conv_init=init)

    def forward(self, x):
        h = F.max_pooling_2d(F.relu(self.mlpconv1(x)), 3, stride=2)
        h = F.max_pooling_2d(F.relu(self.mlpconv2(h)), 3, stride=2)
        h = F.max_pooling_2d(F.relu(self.mlpconv3(h)), 3, stride=2)
        h = self.mlpconv4(F.dropout(h))
        return F.reshape(F.average_pooling_2d(h, h.shape[2]), (len(x), 1000))


of_chainer("ResNet50Layers", resnet.ResNet50Layers(None), (1, 3, 64, 64), ["pool5", "fc6"])
of_chainer("ResNet50Layers downsample_fb", resnet.ResNet50Layers(None, True), (1, 3, 64, 64), ["prob"])
of_chainer("ResNet101Layers", resnet.ResNet101Layers(None))
of_chainer("ResNet152Layers", resnet.ResNet152Layers(None))
of_chainer("VGG16Layers", vgg.VGG16Layers(None))
of_chainer("VGG19Layers", vgg.VGG19Layers(None))
of_chainer("VGG16Layers narrow", NarrowVGG(16), (2, 3, 64, 64), ["pool4", "fc8"])
of_chainer("VGG19Layers narrow", NarrowVGG(19), (2, 3, 64, 64), ["fc8"])
of_chainer("GoogLeNet", googlenet.GoogLeNet(None), (1, 3, 224, 224), ["loss3_fc", "loss1_fc2", "loss2_fc2"])
of_chainer("AlexNet narrow", NarrowAlexNet(), (1, 3, 227, 227), ["fc8"])
of_chainer("NIN", NIN(), (1, 3, 227, 227), ["pool4"])

narrow = NarrowResNet(2, [2, 1, 1, 1], 10, False)
narrow.serialize(Names(fill=True))
saved = chainer.serializers.DictionarySerializer()
saved["model"].save(narrow)
x = image((2, 3, 40, 40))
with chainer.using_config("train", False):
    np.savez_compressed(FOLDER.parent / "chainer_resnet.npz", **saved.target,
                        y=narrow(x, layers=["fc6"])["fc6"].array)


# --- torchvision's ---

def of_torch(case, model, stage=None, x=None):
    state = model.state_dict()
    arrays = {name: tuple(a.shape) for name, a in state.items()}
    if x is None:
        return record(case, arrays)
    for name, a in state.items():
        if a.ndim:
            a.copy_(torch.tensor(value(name, a.shape)))
    y = model.eval()(torch.tensor(x))
    y = y.logits if hasattr(y, "logits") else y

    def gradients(weights):
        (y * torch.tensor(weights[stage])).sum().backward()
        return {name: p.grad.numpy() for name, p in model.named_parameters()}
    record(case, arrays, x.shape, {stage: y.detach().numpy()}, gradients)


class NarrowTorchResNet(torchvision.models.ResNet):
    def __init__(self):
        torch.nn.Module.__init__(self)
        self._norm_layer, self.inplanes, self.dilation, self.groups, self.base_width = torch.nn.BatchNorm2d, 2, 1, 1, 64
        self.conv1 = torch.nn.Conv2d(3, 2, 7, 2, 3, bias=False)
        self.bn1, self.relu, self.maxpool = torch.nn.BatchNorm2d(2), torch.nn.ReLU(), torch.nn.MaxPool2d(3, 2, 1)
        for i, n in enumerate([2, 1, 1, 1]):
            setattr(self, f"layer{i + 1}", self._make_layer(torchvision.models.resnet.Bottleneck, 2 << i, n, 1 + (i > 0)))
        self.avgpool, self.fc = torch.nn.AdaptiveAvgPool2d(1), torch.nn.Linear(64, 10)


models = torchvision.models
of_torch("ResNet18Layers", models.resnet18(), "fc6", image((1, 3, 64, 64)))
of_torch("ResNet50Layers of torchvision", models.resnet50(), "fc6", image((1, 3, 64, 64)))
small = models.resnet18(num_classes=10)
small.conv1, small.maxpool = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False), torch.nn.Identity()
of_torch("ResNet18Layers cifar", small, "fc6", image((1, 3, 32, 32)))
narrow = NarrowTorchResNet()
of_torch("ResNetLayers narrow", narrow, "fc6", image((2, 3, 40, 40)))
safetensors.torch.save_file(narrow.state_dict(), FOLDER.parent / "torchvision_resnet.safetensors")
cifar = models.vgg16_bn(num_classes=10)
cifar.avgpool = torch.nn.Identity()
cifar.classifier = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Dropout(),
                                       torch.nn.Linear(512, 10))
of_torch("VGG16Layers cifar", cifar, "fc7", image((2, 3, 32, 32)))
with torch.device("meta"):
    of_torch("ResNet34Layers", models.resnet34())
    of_torch("ResNet101Layers of torchvision", models.resnet101())
    of_torch("ResNet152Layers of torchvision", models.resnet152())
    of_torch("VGG16Layers of torchvision", models.vgg16())
    of_torch("VGG19Layers of torchvision", models.vgg19())
    of_torch("VGG16Layers batch_norm", models.vgg16_bn())
    of_torch("VGG19Layers batch_norm", models.vgg19_bn())

# --- GPT-2 ---

gpt2 = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=11, n_positions=7, n_embd=8, n_layer=2, n_head=2))
tokens = (drawn("x", (2, 5)) * 11).astype(np.int64)
for name, a in gpt2.transformer.state_dict().items():
    a.copy_(torch.tensor(value(name, a.shape)))
y = gpt2.eval()(torch.tensor(tokens)).logits


def gradients(weights):
    (y * torch.tensor(weights["scores"])).sum().backward()
    return {name: p.grad.numpy() for name, p in gpt2.transformer.named_parameters()}


record("GPT2 narrow", {name: a.shape for name, a in gpt2.transformer.state_dict().items()}, tokens.shape,
       {"scores": y.detach().numpy()}, gradients)
with tempfile.TemporaryDirectory() as folder:
    gpt2.save_pretrained(folder)
    (FOLDER.parent / "gpt2.safetensors").write_bytes((pathlib.Path(folder) / "model.safetensors").read_bytes())
