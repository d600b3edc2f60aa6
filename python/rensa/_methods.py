"""Names of the engine's as Python's modules have them."""

import functools
import threading


def add_members(cls, **members):
    """Gives a class of the engine's functions and properties as its own: stubs and help() show them there."""
    for name, member in members.items():
        function = member.fget if isinstance(member, property) else member
        function.__module__, function.__name__ = cls.__module__, name
        function.__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, member)


def add_scope(cls, current):
    """Makes objects of a class of the engine's scopes: `with` uses one, and the one that `current` gave before again at
    the end. Scopes are a thread's own."""
    outer = threading.local()

    def enter(self):
        outer.stack = [*getattr(outer, "stack", []), current(self)]
        self.use()
        return self

    def leave(self, *error):
        outer.stack.pop().use()

    add_members(cls, __enter__=enter, __exit__=leave)


def _plain(function):
    @functools.wraps(function)
    def made(*args, **kwargs):
        return function(*args, **kwargs)

    return made


def names_of(module):
    """The names of a module of the engine's. What makes an object and is called like a class is a function of Python's:
    a class that derives from it is a TypeError."""
    names = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    return {name: _plain(value) if name[0].isupper() and callable(value) and not isinstance(value, type) else value
            for name, value in names.items()}
