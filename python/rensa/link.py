"""Link, Chain, ChainList and Sequential: models, their own classes in Python.

A class derives from Chain, makes its parts within `with self.init_scope():` and computes in `forward`. To the engine
it is a link like its own: names, devices, copies, files, updaters and captured steps know it.
"""

import contextlib
import copy

from rensa import _engine
from rensa._engine.link_hooks import Hook
from rensa._engine.networks import Link, Parameter, Variable
from rensa._methods import add_members

@contextlib.contextmanager
def init_scope(self):
    """Links and parameters that are assigned within it are members."""
    outer = self.__dict__.get("_within_init_scope", False)
    self.__dict__["_within_init_scope"] = True
    try:
        yield
    finally:
        self.__dict__["_within_init_scope"] = outer


def _give_name(member, name):
    if isinstance(member, Link):
        member.__dict__["name"] = name
    else:
        member.name = name


def _setattr(self, name, value):
    own = self.__dict__.get("_members")
    if own is None:  # of the engine's: its members are set, whatever else is an attribute
        plain = name.startswith("_") or not _engine.networks._is_ready(self)
        if plain or not self._set_member(name, value):
            if self.__dict__.get("_within_init_scope") and isinstance(value, (Link, Parameter)):
                raise TypeError(f"{type(self).__name__}: members of a link of the engine's are the engine's; "
                                "derive from Chain")
            object.__setattr__(self, name, value)
        return
    if self._has_persistent(name):
        self._set_persistent(name, value)
        return
    if self._within_init_scope and isinstance(value, (Link, Parameter)):
        if name not in own:
            own.append(name)
        if isinstance(value, Link) or value.name is None:
            _give_name(value, name)
    elif name in own and value is not None and not isinstance(value, (Link, Parameter, bool, int, float, str)):
        if isinstance(self.__dict__.get(name), (Link, Parameter)):
            own.remove(name)
    object.__setattr__(self, name, value)


def _delattr(self, name):
    own = self.__dict__.get("_members", [])
    if name in own:
        own.remove(name)
    object.__delattr__(self, name)


def add_param(self, name, shape=None, dtype=None, initializer=None):
    """Chainer's way before init_scope(); `shape` may be a pair of it and a dtype."""
    _check_new(self, name)
    if isinstance(shape, tuple) and len(shape) == 2 and (shape[0] is None or isinstance(shape[0], tuple)):
        shape, dtype = shape
    with _engine_dtype(dtype), self.init_scope():
        setattr(self, name, Parameter(initializer, shape))


def _engine_dtype(dtype):
    """The scope in which parameters are of a dtype."""
    from rensa import configuration

    return contextlib.nullcontext() if dtype is None else configuration.using_config("dtype", dtype)


def add_link(self, name, link):
    """Chainer's way before init_scope()."""
    _check_new(self, name)
    with self.init_scope():
        setattr(self, name, link)


def add_persistent(self, name, value):
    """An array, a number or a text that files have with the link; an array moves with it."""
    _check_new(self, name)
    self._members.append(name)
    if isinstance(value, (bool, int, float, str)):
        self.__dict__[name] = value
    else:
        self._set_persistent(name, value)


def register_persistent(self, name):
    """The attribute becomes one that files have with the link."""
    value = self.__dict__.pop(name)
    add_persistent(self, name, value)


def _check_new(self, name):
    if name in self.__dict__ or self._has_persistent(name):
        raise AttributeError(f"cannot add {name!r}: the link has an attribute of that name")


def _call(self, *args, **kwargs):
    if not hasattr(self, "forward"):
        raise TypeError(f"{type(self).__name__} has no forward: it computes nothing")
    own = self.__dict__
    if "_members" in own and (own.get("_link_hooks") or _engine.link_hooks._is_open()):  # the engine's links see to theirs
        return self._call_hooked(self.forward, args, kwargs)
    return self.forward(*args, **kwargs)


def add_hook(self, hook, name=None):
    """From now on the hook is told of this link's calls; `name` tells it from the link's others."""
    name = name or hook.name
    engine_hook = hook if isinstance(hook, Hook) else Hook(hook, name)
    if engine_hook.name != name:
        raise ValueError(f"add_hook: this hook's name is {engine_hook.name!r}: give it another one as you make it")
    self._add_hook(engine_hook)
    self.__dict__["_link_hooks"] = {**self.local_link_hooks, name: hook}
    return self


def delete_hook(self, name):
    """The hook of that name is told no more."""
    self._delete_hook(name)
    kept = self.local_link_hooks
    del kept[name]
    self.__dict__["_link_hooks"] = kept


def _local_link_hooks(self):
    """{name: hook}"""
    return dict(self.__dict__.get("_link_hooks", {}))


def _bare_copy(self):
    made = type(self).__new__(type(self))
    Link.__init__(made)
    made.__dict__.update(self.__dict__)
    made.__dict__["_members"] = list(self._members)
    return made


def _copy_attributes(self, original):
    """Of a deep copy: what lists and the like hold, with members in them as the copy has them."""
    memo = {id(original.__dict__[name]): self.__dict__[name] for name in self._members if name in self.__dict__}
    for name, value in list(self.__dict__.items()):
        if name not in self._members and not name.startswith("_") and isinstance(value, (list, dict, set, tuple)):
            self.__dict__[name] = copy.deepcopy(value, memo)


def _repeat(self, n_repeat, mode="init"):
    """A Sequential of n_repeat copies, one after the other."""
    return Sequential(self).repeat(n_repeat, mode)


def _children(self):
    """The links right below this one."""
    return iter([link for path, link in self.namedlinks(skipself=True) if path.count("/") == 1])


def _xp(self):
    from rensa import xp

    return xp


def _device(self):
    """Where the first parameter is, or will be."""
    for parameter in self.params():
        return parameter.device
    return _engine.Device("cpu")


def _within(self):
    return self.__dict__.get("_within_init_scope", False)


def _update_enabled(self):
    """Whether an optimizer updates one of the parameters."""
    return any(parameter.update_enabled for parameter in self.params())


# --- pickles ---


def _parameter_of(values, name, update_enabled):
    made = Parameter(values, name=name)
    made.update_enabled = update_enabled
    return made


def _reduce_parameter(self):
    if not self.is_initialized:
        raise TypeError("a parameter without an array yet cannot be pickled: call the model once")
    return _parameter_of, (self.array, self.name, self.update_enabled)


def _variable_of(array, name, requires_grad, grad):
    return Variable(array, name=name, requires_grad=requires_grad, grad=grad)


def _reduce_variable(self):
    """The values and the gradient, without the graph."""
    return _variable_of, (self.array, self.name, self.requires_grad, self.grad)


def _link_of(cls):
    made = cls.__new__(cls)
    Link.__init__(made)
    return made


def _reduce_link(self, protocol):
    """Of a class of Python's: its attributes, its members among them, and its arrays."""
    if "_members" not in self.__dict__:
        raise TypeError(f"cannot pickle {type(self).__name__!r}: serializers.save_npz writes its parameters")
    arrays = {name: getattr(self, name) for name in self._members if self._has_persistent(name)}
    return _link_of, (type(self),), (dict(self.__dict__), arrays)


def _set_state(self, state):
    attributes, arrays = state
    hooks = attributes.pop("_link_hooks", {})
    self.__dict__.update(attributes)
    for name, hook in hooks.items():
        self.add_hook(hook, name)
    for name, array in arrays.items():
        self._set_persistent(name, array)


Link.name = None  # until it is a member of another one
add_members(Parameter, __reduce__=_reduce_parameter)
add_members(Variable, __reduce__=_reduce_variable)
add_members(Link, __reduce_ex__=_reduce_link, __setstate__=_set_state)
add_members(Link, __setattr__=_setattr, __delattr__=_delattr, __call__=_call, init_scope=init_scope, add_param=add_param,
            add_link=add_link, add_persistent=add_persistent, register_persistent=register_persistent, children=_children, _copy_attributes=_copy_attributes, repeat=_repeat,
            _bare_copy=_bare_copy, add_hook=add_hook, delete_hook=delete_hook, local_link_hooks=property(_local_link_hooks),
            within_init_scope=property(_within), xp=property(_xp), device=property(_device),
            update_enabled=property(_update_enabled))


class Chain(Link):
    """A model of named parts."""

    def __getitem__(self, name):
        if name not in self._members or not isinstance(self.__dict__.get(name), Link):
            raise KeyError(name)
        return self.__dict__[name]


class ChainList(Link):
    """Links in a list, named by their numbers: "0", "1"."""

    def __init__(self, *links):
        super().__init__()
        for link in links:
            self.add_link(link)

    def _links(self):
        return [self.__dict__[name] for name in self._members if name.isdigit()]

    def add_link(self, link):
        self.insert(len(self), link)

    append = add_link

    def _put(self, links):
        """These are its links, named by their numbers; other members stay what they are."""
        for name in [name for name in self._members if name.isdigit()]:
            self._members.remove(name)
            self.__dict__.pop(name, None)
        for number, link in enumerate(links):
            self._members.append(str(number))
            self.__dict__[str(number)] = link
            _give_name(link, str(number))

    def insert(self, i, link):
        links = self._links()
        links.insert(i, link)
        self._put(links)

    def extend(self, links):
        self._put([*self._links(), *links])

    def pop(self, i=-1):
        links = self._links()
        link = links.pop(i)
        self._put(links)
        return link

    def __setitem__(self, i, link):
        links = self._links()
        links[i] = link
        self._put(links)

    def __delitem__(self, i):
        links = self._links()
        del links[i]
        self._put(links)

    def __iadd__(self, links):
        self.extend(links)
        return self

    def __getitem__(self, i):
        return self._links()[i]

    def __iter__(self):
        return iter(self._links())

    def __len__(self):
        return len(self._links())

    def children(self):
        return iter(self._links())


def _kind(layer):
    return type(layer).__name__ if isinstance(layer, Link) else getattr(layer, "__name__", type(layer).__name__)


class Sequential(Link):
    """Links and functions, each called with what the one before gave."""

    def __init__(self, *layers):
        super().__init__()
        self._layers = []
        for layer in layers:
            self.append(layer)

    def _name_members(self):
        """Links are named by their numbers among the links, as in Chainer; other members stay what they are."""
        for name in [name for name in self._members if name.isdigit()]:
            self._members.remove(name)
            self.__dict__.pop(name, None)
        for number, layer in enumerate(layer for layer in self._layers if isinstance(layer, Link)):
            self._members.append(str(number))
            self.__dict__[str(number)] = layer
            _give_name(layer, str(number))

    def _bare_copy(self):
        made = _bare_copy(self)
        made.__dict__["_layers"] = None  # by what is copied, once it is asked for
        made.__dict__["_pattern"] = [None if isinstance(layer, Link) else layer for layer in self._all()]
        return made

    def _all(self):
        if self.__dict__["_layers"] is None:
            links = iter([self.__dict__[name] for name in self._members if name.isdigit()])
            self.__dict__["_layers"] = [next(links) if layer is None else layer for layer in self._pattern]
        return self.__dict__["_layers"]

    def append(self, layer):
        self.insert(len(self._all()), layer)

    def _check(self, layer):
        if not callable(layer):
            raise ValueError(f"Sequential: a layer is a link or a function, not {type(layer).__name__}")
        return layer

    def insert(self, i, layer):
        if not -len(self) <= i <= len(self):
            raise IndexError(f"Sequential: there is no place {i} among {len(self)} layers")
        self._all().insert(i, self._check(layer))
        self._name_members()

    def extend(self, sequential):
        for layer in sequential:
            self.append(layer)

    def pop(self, i=-1):
        layer = self._all().pop(i)
        self._name_members()
        return layer

    def __setitem__(self, i, layer):
        self._all()[i] = [self._check(one) for one in layer] if isinstance(i, slice) else self._check(layer)
        self._name_members()

    def __delitem__(self, i):
        del self._all()[i]
        self._name_members()

    def clear(self):
        del self[:]

    def remove(self, layer):
        """Takes the first that is this layer away."""
        del self[self.index(layer)]

    def remove_by_layer_type(self, type_name):
        """Takes all layers away that are of a class, or a function, of that name."""
        self[:] = [layer for layer in self if _kind(layer) != type_name]

    def index(self, layer, start=0, end=None):
        return self._all().index(layer, start, len(self) if end is None else end)

    def count(self, layer):
        return self._all().count(layer)

    def count_by_layer_type(self, type_name):
        """How many layers are of a class, or a function, of that name."""
        return sum(_kind(layer) == type_name for layer in self)

    def __add__(self, other):
        if not isinstance(other, Sequential):
            return NotImplemented
        return Sequential(*self, *other)

    def __iadd__(self, other):
        if not isinstance(other, Sequential):
            return NotImplemented
        self.extend(other)
        return self

    def __reversed__(self):
        return reversed(self._all())

    def __getitem__(self, i):
        if isinstance(i, slice):
            return Sequential(*self._all()[i])
        return self._all()[i]

    def __iter__(self):
        return iter(self._all())

    def __len__(self):
        return len(self._all())

    def flatten(self):
        """With the layers of Sequentials among the layers in place of these."""
        flat = []
        for layer in self._all():
            flat += list(layer.flatten()) if isinstance(layer, Sequential) else [layer]
        return Sequential(*flat)

    def repeat(self, n_repeat, mode="init"):
        """n_repeat copies of these layers, one after the other."""
        copies = []
        for _ in range(n_repeat):
            copies += [layer.copy(mode) if isinstance(layer, Link) else layer for layer in self._all()]
        return Sequential(*copies)

    def forward(self, *x):
        if not self._all():
            raise RuntimeError("Sequential: there are no layers to call")
        for layer in self._all():
            x = layer(*x)
            x = x if isinstance(x, tuple) else (x,)
        return x[0] if len(x) == 1 else x
