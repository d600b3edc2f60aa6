"""chainer.reporter."""

import contextlib

import rensa
from rensa._engine import networks


class Reporter(networks.Reporter):
    """Knows the names of links that report; `with reporter:` what they report comes to its `observation`."""

    @contextlib.contextmanager
    def scope(self, observation):
        """What is reported within comes to that dictionary."""
        self._open(observation)
        try:
            yield
        finally:
            self._close()

    def report(self, values, observer=None):
        """As chainer.report, to this reporter."""
        with self:
            rensa.report(values, observer)


def get_current_reporter():
    """The innermost of the calling thread; IndexError without one."""
    found = networks._current_reporter()
    if found is None:
        raise IndexError("there is no current reporter")
    return found


@contextlib.contextmanager
def report_scope(observation):
    """What is reported within comes to that dictionary, by the current reporter."""
    with get_current_reporter().scope(observation):
        yield


def names():
    """Those of chainer.reporter."""
    return {
        "Reporter": Reporter,
        "report": rensa.report,
        "report_scope": report_scope,
        "get_current_reporter": get_current_reporter,
        "Summary": networks.Summary,
        "DictSummary": networks.DictSummary,
    }
