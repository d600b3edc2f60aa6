"""The training loop: Trainer, and in modules of it updaters, triggers and extensions."""

from rensa._engine.training import Trainer
from rensa._engine.training.extensions import PRIORITY_EDITOR, PRIORITY_READER, PRIORITY_WRITER
from rensa._engine.training.updaters import ParallelUpdater, StandardUpdater, Updater
from rensa.training import extensions, triggers, updaters
from rensa.training.extensions import Extension, make_extension

__all__ = ["Extension", "ParallelUpdater", "PRIORITY_EDITOR", "PRIORITY_READER", "PRIORITY_WRITER", "StandardUpdater",
           "Trainer", "Updater", "extensions", "make_extension", "triggers", "updaters"]
