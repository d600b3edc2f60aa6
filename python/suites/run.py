#!/usr/bin/env python3
"""Runs the tests that another library has of its own through Rensa's names, and prints what came of them.

    python3 python/suites/run.py SUITE SOURCE_DIR [--only PATTERN] [--out table.md] [--failures FILE]

SUITE names a module beside this file (chainer: chainer_suite.py), SOURCE_DIR is the library's source with its tests,
fetched beforehand. The module says what is special to the library:

    FOLDERS           the folders (or files) of tests below SOURCE_DIR, each a row of the table, in a process of its own
    PYTEST_ARGUMENTS  more for pytest's command line
    prepare(source)   puts Rensa under the library's name; called in the process of the tests before any is imported
    REASONS           [(pattern, reason, exists)]: why tests fail. The first pattern that is found in "test id, newline,
                      error" counts. exists=False: what the test is about is not there, or is other by a rule; it counts
                      neither as passed nor as failed
    ABSENT            [(pattern, reason)]: tests of what is not there, by their ids; they are not run

A test that crashes or stands still ends its process; the rest of the folder runs in a new one.
"""

import argparse
import collections
import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
STILL = 90  # seconds without a word from a test, after which it is ended
COLLECTION = 600
UNKNOWN = "not explained"


def suite_of(name):
    """The module of a suite."""
    spec = importlib.util.spec_from_file_location(f"{name}_suite", HERE / f"{name}_suite.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def absent_reason(suite, test):
    """Why what a test is about is not there, by its id."""
    return next((why for pattern, why in suite.ABSENT if re.search(pattern, test)), None)


# --- in the process of the tests ---


class Plugin:
    """Tells the process above what each test came to."""

    def __init__(self, suite, results, done, only):
        self.suite, self.done, self.only = suite, done, only and re.compile(only)
        self.out = open(results, "a", buffering=1)

    def tell(self, **what):
        self.out.write(json.dumps(what) + "\n")

    def pytest_configure(self, config):
        for marker in ("chainerx", "cudnn", "gpu", "ideep", "theano", "multi_gpu", "slow", "no_cuda"):
            config.addinivalue_line("markers", f"{marker}: a backend")

    def pytest_collection_modifyitems(self, session, config, items):
        left = []
        for item in items:
            absent = absent_reason(self.suite, item.nodeid)
            if item.nodeid in self.done or (self.only and not self.only.search(item.nodeid)):
                continue
            if absent:
                self.tell(test=item.nodeid, end="absent", why=absent)
            else:
                left.append(item)
        items[:] = left
        self.tell(collected=len(left))

    def pytest_deselected(self, items):
        for item in items:
            if item.nodeid not in self.done and (not self.only or self.only.search(item.nodeid)):
                self.tell(test=item.nodeid, end="skipped", why="another backend")

    def pytest_collectreport(self, report):
        if report.failed:
            self.tell(test=report.nodeid, end="failed", why=str(report.longrepr)[-3000:])

    def pytest_runtest_logstart(self, nodeid, location):
        self.tell(test=nodeid, begin=True)

    def pytest_runtest_logreport(self, report):
        if report.failed or report.skipped or report.when == "call":
            end = "skipped" if report.skipped else report.outcome
            crash = getattr(report.longrepr, "reprcrash", None)
            text = (crash.message if crash else "") + "\n" + str(report.longrepr)[-3000:]
            self.tell(test=report.nodeid, end=end, why="" if end == "passed" else text)


def run_tests(options):
    """One folder, in this process."""
    import pytest

    suite = suite_of(options.suite)
    suite.prepare(options.source)
    done = set(json.loads(pathlib.Path(options.done).read_text()))
    plugin = Plugin(suite, options.results, done, options.only)
    arguments = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:warnings",
        "-c",
        os.devnull,
        "--rootdir",
        options.source,
        "--tb=short",
        "--continue-on-collection-errors",
        *suite.PYTEST_ARGUMENTS,
        os.path.join(options.source, options.folder),
    ]
    pytest.main(arguments, plugins=[plugin])


# --- above ---


def read_results(path, outcomes):
    """({test: (end, why)} with what is new, the test that runs)"""
    running = None
    for line in path.read_text(errors="replace").splitlines():
        try:
            what = json.loads(line)
        except ValueError:
            continue
        test = what.get("test")
        if what.get("begin"):
            running = test
        elif test:
            running = None if test == running else running
            if outcomes.get(test, ("passed",))[0] != "failed":
                outcomes[test] = (what["end"], what["why"])
    return running


def watch(process, results):
    """Waits until the process ends, or nothing comes of it any more."""
    last, size = time.monotonic(), 0
    while process.poll() is None:
        time.sleep(0.2)
        now = results.stat().st_size
        if now != size:
            last, size = time.monotonic(), now
        elif time.monotonic() - last > (STILL if size else COLLECTION):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return "stands still"
    return f"ends its process with {process.returncode}" if process.returncode else ""


def run_folder(options, folder):
    """{test: (end, why)} of one folder."""
    outcomes = {}
    with tempfile.TemporaryDirectory() as scratch:
        done, results = pathlib.Path(scratch, "done"), pathlib.Path(scratch, "results")
        for _ in range(60):
            done.write_text(json.dumps(list(outcomes)))
            results.write_text("")
            command = [
                sys.executable,
                "-X",
                "faulthandler",
                __file__,
                options.suite,
                str(options.source),
                "--folder",
                folder,
                "--done",
                str(done),
                "--results",
                str(results),
            ]
            command += ["--only", options.only] if options.only else []
            log = open(pathlib.Path(scratch, "log"), "w+")
            process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, cwd=scratch, start_new_session=True
            )
            ended = watch(process, results)
            running = read_results(results, outcomes)
            if not ended:
                break
            log.seek(0)
            said = log.read()[-3000:]
            if running is None:
                outcomes[folder] = ("failed", f"the process {ended} outside of a test\n{said}")
                break
            outcomes[running] = ("failed", f"the test {ended}\n{said}")
            print(f"{running}: {ended}", file=sys.stderr, flush=True)
    return outcomes


def reason_of(suite, test, why):
    """(reason, whether what the test is about exists)"""
    absent = absent_reason(suite, test)
    if absent:
        return absent, False
    for pattern, reason, exists in suite.REASONS:
        if re.search(pattern, f"{test}\n{why}"):
            return reason, exists
    return UNKNOWN, True


def counts_of(suite, outcomes):
    """What a folder came to: (passed, skipped, {reason: failed}, {reason: not there})."""
    passed = skipped = 0
    failed, absent = collections.Counter(), collections.Counter()
    for test, (end, why) in outcomes.items():
        if end == "passed":
            passed += 1
        elif end == "skipped":
            skipped += 1
        elif end == "absent":
            absent[why] += 1
        else:
            reason, exists = reason_of(suite, test, why)
            (failed if exists else absent)[reason] += 1
    return passed, skipped, failed, absent


def percent(passed, failed):
    return f"{100 * passed / max(1, passed + failed):.1f} %"


def table_of(rows):
    """The Markdown table of [(folder, counts)], and the reasons below it."""
    lines = [
        "| Tests | Passed | Failed | Not there | Skipped | Passed of what is there |",
        "| --- | --: | --: | --: | --: | --: |",
    ]
    total = [0, 0, collections.Counter(), collections.Counter()]
    for folder, (passed, skipped, failed, absent) in rows:
        n_failed, n_absent = sum(failed.values()), sum(absent.values())
        lines.append(f"| {folder} | {passed} | {n_failed} | {n_absent} | {skipped} | {percent(passed, n_failed)} |")
        total = [total[0] + passed, total[1] + skipped, total[2] + failed, total[3] + absent]
    passed, skipped, failed, absent = total
    lines.append(
        f"| **all** | {passed} | {sum(failed.values())} | {sum(absent.values())} | {skipped} "
        f"| {percent(passed, sum(failed.values()))} |"
    )
    for title, reasons in (("Failed", failed), ("Not there, or other by a rule", absent)):
        lines += ["", f"| {title} | Tests |", "| --- | --: |"]
        lines += [f"| {reason} | {count} |" for reason, count in reasons.most_common()]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("suite")
    parser.add_argument("source", type=os.path.abspath)
    parser.add_argument("--only", help="a pattern of ids of tests")
    parser.add_argument("--folders", help="a pattern of folders of the suite")
    parser.add_argument("--out", help="a file for the table")
    parser.add_argument("--failures", help="a file for each failure: a line of JSON")
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--done", help=argparse.SUPPRESS)
    parser.add_argument("--results", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder:
        run_tests(options)
        return
    suite, rows = suite_of(options.suite), []
    failures = open(options.failures, "w") if options.failures else None
    for folder in suite.FOLDERS:
        if options.folders and not re.search(options.folders, folder):
            continue
        outcomes = run_folder(options, folder)
        rows.append((folder, counts_of(suite, outcomes)))
        print(f"{folder}: {rows[-1][1]}", file=sys.stderr, flush=True)
        for test, (end, why) in outcomes.items():
            if failures and end == "failed":
                reason, exists = reason_of(suite, test, why)
                failures.write(json.dumps({"test": test, "reason": reason, "exists": exists, "why": why}) + "\n")
        table = table_of(rows)
        if options.out:
            pathlib.Path(options.out).write_text(table)
    print(table_of(rows))


if __name__ == "__main__":
    main()
