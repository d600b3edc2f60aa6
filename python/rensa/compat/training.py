"""chainer.training: the engine's, with bases of classes of one's own and triggers by Chainer's functions."""

from rensa import training
from rensa.compat import extensions
from rensa.training import triggers


class _UpdaterClass(type):
    def __instancecheck__(cls, value):
        return isinstance(value, training.Updater) or type.__instancecheck__(cls, value)


class Updater(metaclass=_UpdaterClass):
    """The base of updaters of one's own, which are all Python: a trainer calls their update() and reads `iteration`,
    `epoch`, `epoch_detail`, `is_new_epoch` and `previous_epoch_detail`."""

    def connect_trainer(self, trainer):
        """Called when a trainer gets it."""

    def finalize(self):
        """Called at the end of the run."""

    def get_optimizer(self, name):
        raise NotImplementedError

    def get_all_optimizers(self):
        raise NotImplementedError

    def update(self):
        raise NotImplementedError


def get_trigger(trigger):
    """The trigger that an argument stands for: (period, unit), or a function; None is one that never fires."""
    if trigger is None:
        return lambda trainer: False
    if isinstance(trigger, (tuple, list)):
        return triggers.IntervalTrigger(*trigger)
    if not callable(trigger):
        raise TypeError(f"get_trigger: (period, unit) or a function of the trainer is needed, not {trigger!r}")
    return trigger


def EarlyStoppingTrigger(
    check_trigger=(1, "epoch"),
    monitor="main/loss",
    patience=None,
    mode="auto",
    verbose=False,
    max_trigger=(100, "epoch"),
    **kwargs,
):
    """As the engine's, with `patients`, which Chainer called it first."""
    patience = kwargs.pop("patients", 3) if patience is None else patience
    if kwargs:
        raise TypeError(f"EarlyStoppingTrigger: no arguments {list(kwargs)}")
    return triggers.EarlyStoppingTrigger(check_trigger, monitor, patience, mode, verbose, max_trigger)


def ManualScheduleTrigger(points, unit):
    """As the engine's, of one point too."""
    return triggers.ManualScheduleTrigger(list(points) if isinstance(points, (list, tuple)) else [points], unit)


def modules():
    """{name below chainer: names}"""
    util = {"get_trigger": get_trigger}
    top = {name: getattr(training, name) for name in training.__all__}
    return {
        "training": {
            **top,
            "Updater": Updater,
            "get_trigger": get_trigger,
            "IntervalTrigger": triggers.IntervalTrigger,
        },
        "training.util": util,
        "training.trigger": {**util, "IntervalTrigger": triggers.IntervalTrigger},
        "training.updater": {
            "Updater": Updater,
            **{n: getattr(training.updaters, n) for n in training.updaters.__all__},
        },
        "training.updaters": {name: getattr(training.updaters, name) for name in training.updaters.__all__},
        "training.triggers": {
            **{name: getattr(triggers, name) for name in triggers.__all__},
            "EarlyStoppingTrigger": EarlyStoppingTrigger,
            "ManualScheduleTrigger": ManualScheduleTrigger,
        },
        "training.extensions": extensions.names(),
        "training.extension": {
            name: top[name]
            for name in ("Extension", "make_extension", "PRIORITY_WRITER", "PRIORITY_EDITOR", "PRIORITY_READER")
        },
        "training.trainer": {"Trainer": training.Trainer},
    }
