"""Tests that run again on a GPU."""

import sys
import unittest

import rensa


def on_gpu_too(tests):
    """A class of tests, and beside it one of the same tests with the first GPU as the current device: arrays are made
    there, and what comes from NumPy goes there."""

    class OnGpu(tests):
        def setUp(self):
            if rensa.num_gpus() == 0:
                self.skipTest("no GPU")
            scope = rensa.Device("cuda:0")
            scope.__enter__()
            self.addCleanup(scope.__exit__, None, None, None)
            super().setUp()

    OnGpu.__name__ = OnGpu.__qualname__ = tests.__name__ + "OnGpu"
    OnGpu.__module__ = tests.__module__
    vars(sys.modules[tests.__module__])[OnGpu.__name__] = OnGpu
    return tests


def two_gpus(test):
    return unittest.skipUnless(rensa.num_gpus() >= 2, "two GPUs are not there")(test)
