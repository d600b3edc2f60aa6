"""Methods of the engine's classes that are written in Python."""


def add_members(cls, **members):
    """Gives a class of the engine's functions and properties as its own: stubs and help() show them there."""
    for name, member in members.items():
        function = member.fget if isinstance(member, property) else member
        function.__module__, function.__name__ = cls.__module__, name
        function.__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, member)
