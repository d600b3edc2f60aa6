"""chainer.training.extensions: the engine's, with Chainer's order of arguments; Evaluator is a class to derive from."""

import sys

import rensa
from rensa import serializers, training
from rensa.training import extensions


def _only(what, given, *taken):
    """Raises NotImplementedError for an argument that the engine has no counterpart of."""
    if given is not None and given not in taken:
        raise NotImplementedError(f"{what} is not there: {given!r}")


def PlotReport(
    y_keys, x_key="iteration", trigger=(1, "epoch"), postprocess=None, filename="plot.png", marker="x", grid=True
):
    """As the engine's, which draws by itself: without matplotlib, whose marks and grid are not asked for."""
    _only("PlotReport: postprocess, of a figure of matplotlib's,", postprocess)
    return extensions.PlotReport([y_keys] if isinstance(y_keys, str) else list(y_keys), x_key, trigger, filename)


def LogReport(keys=None, trigger=(1, "epoch"), postprocess=None, filename="log", log_name=None):
    """As the engine's."""
    return extensions.LogReport(list(keys or ()), trigger, filename if log_name is None else log_name, postprocess)


def PrintReport(entries, log_report="LogReport", out=sys.stdout):
    """As the engine's, to the standard output."""
    _only("PrintReport: out", out, sys.stdout, sys.__stdout__)
    return extensions.PrintReport(list(entries), log_report)


def ProgressBar(training_length=None, update_interval=100, bar_length=50, out=sys.stdout):
    """As the engine's, to the standard output, of the length that the trainer's stop trigger has."""
    _only("ProgressBar: training_length", training_length)
    _only("ProgressBar: out", out, sys.stdout, sys.__stdout__)
    return extensions.ProgressBar(update_interval, bar_length)


def _written_by_the_engine(name, savefun, condition, writer):
    _only(f"{name}: savefun", savefun, serializers.save_npz)
    _only(f"{name}: condition", condition)
    _only(f"{name}: writer", writer)


def snapshot(
    savefun=None,
    filename="snapshot_iter_{.updater.iteration}",
    *,
    target=None,
    condition=None,
    writer=None,
    snapshot_on_error=False,
    n_retains=-1,
    autoload=False,
):
    """As the engine's, of the trainer."""
    _written_by_the_engine("snapshot", savefun, condition, writer)
    if target is not None:
        return snapshot_object(target, filename, n_retains=n_retains, autoload=autoload)
    return extensions.snapshot(filename, n_retains=n_retains, autoload=autoload, snapshot_on_error=snapshot_on_error)


def snapshot_object(
    target,
    filename,
    savefun=None,
    *,
    condition=None,
    writer=None,
    snapshot_on_error=False,
    n_retains=-1,
    autoload=False,
):
    """As the engine's."""
    _written_by_the_engine("snapshot_object", savefun, condition, writer)
    _only("snapshot_object: snapshot_on_error", snapshot_on_error or None)
    return extensions.snapshot_object(target, filename, n_retains=n_retains, autoload=autoload)


def ParameterStatistics(
    links,
    statistics="default",
    report_params=True,
    report_grads=True,
    prefix=None,
    trigger=(1, "epoch"),
    skip_nan_params=False,
):
    """As the engine's, of one link."""
    _only("ParameterStatistics: statistics", statistics, "default")
    links = [links] if isinstance(links, rensa.Link) else list(links)
    if len(links) != 1:
        raise NotImplementedError("ParameterStatistics: of one link; a Chain holds several")
    return extensions.ParameterStatistics(links[0], report_params, report_grads, prefix or "", trigger, skip_nan_params)


def VariableStatisticsPlot(targets, *args, marker="x", grid=True, **kwargs):
    """As the engine's, of a link, a variable or several."""
    return extensions.VariableStatisticsPlot(
        [targets] if isinstance(targets, rensa.Variable) else targets, *args, **kwargs
    )


class Evaluator(training.Extension):
    """The means of what a model reports over the whole of an iterator. evaluate() can be overridden."""

    trigger = (1, "epoch")
    priority = training.PRIORITY_WRITER
    default_name = "validation"
    name = None

    def __init__(
        self, iterator, target, converter=None, device=None, eval_hook=None, eval_func=None, *, progress_bar=False
    ):
        self._iterators = iterator if isinstance(iterator, dict) else {"main": iterator}
        self._targets = target if isinstance(target, dict) else {"main": target}
        self.converter, self.device, self.eval_hook, self.eval_func = converter, device, eval_hook, eval_func
        self._own = None

    def get_iterator(self, name):
        return self._iterators[name]

    def get_all_iterators(self):
        return dict(self._iterators)

    def get_target(self, name):
        return self._targets[name]

    def get_all_targets(self):
        return dict(self._targets)

    def evaluate(self):
        """The means by name: "main/loss"."""
        if self.eval_hook:
            self.eval_hook(self)
        if not self._targets:
            raise ValueError("Evaluator: a target is needed, whose reports are gathered")
        if self._own is None:
            self._own = extensions.Evaluator(
                self._iterators["main"],
                next(iter(self._targets.values())),
                self.converter,
                self.device,
                self.eval_func or self._targets["main"],
            )
        prefix = f"{self.name}/" if self.name else ""
        return {prefix + name: value for name, value in self._own.evaluate().items()}

    def __call__(self, trainer=None):
        result = self.evaluate()
        rensa.report(result)
        return result

    def finalize(self):
        for iterator in self._iterators.values():
            iterator.finalize()


def names():
    """Those of chainer.training.extensions."""
    own = {
        function.__name__: function
        for function in (
            PlotReport,
            LogReport,
            PrintReport,
            ProgressBar,
            snapshot,
            snapshot_object,
            ParameterStatistics,
            VariableStatisticsPlot,
            Evaluator,
        )
    }
    return {**{name: getattr(extensions, name) for name in extensions.__all__}, **own}
