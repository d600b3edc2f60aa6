#!/usr/bin/env python3
"""Prints which kernels the last steps of a trace spent their time in.

    RENSA_TIMELINE=trace.json BUILD/benchmarks/networks resnet50 --precision bf16 --no-eager --steps 3
    kernels_of_trace.py trace.json --steps 3 --step-us 18417
Kernels that run side by side count each, so that the shares may add up to more than the time in which any ran.
"""
import argparse
import collections
import json


def kernels(path):
    """What ran on the GPU, in order."""
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    found = [event for event in events if event.get("ph") == "X" and event.get("cat") in ("kernel", "memset")]
    return sorted(found, key=lambda event: event["ts"])


def busy(events, start):
    """Microseconds in which any of them ran."""
    total, until = 0.0, start
    for event in events:
        begin, end = max(event["ts"], until), event["ts"] + event["dur"]
        if end > begin:
            total, until = total + end - begin, end
    return total


def idle_between(events, about):
    """Microseconds in which nothing ran between the last two steps, of about as many kernels each; None if they do
    not run the same kernels."""
    names = [event["name"] for event in events]
    for size in sorted(range(2, len(names) // 2 + 1), key=lambda size: abs(size - about)):
        if collections.Counter(names[-size:]) == collections.Counter(names[-2 * size:-size]):
            return events[-size]["ts"] - max(event["ts"] + event["dur"] for event in events[:-size])
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("--steps", type=int, default=3, help="how many of the last steps")
    parser.add_argument("--step-us", type=float, required=True, help="what a step takes, as the program printed it")
    parser.add_argument("--most", type=int, default=40, help="lines")
    options = parser.parse_args()
    events = kernels(options.trace)
    if not events:
        parser.error(f"{options.trace} has no kernels")
    start = max(event["ts"] + event["dur"] for event in events) - options.steps * options.step_us
    events = [event for event in events if event["ts"] >= start]
    time, count = collections.Counter(), collections.Counter()
    for event in events:
        name = event["name"][:120]
        time[name] += event["dur"] / options.steps
        count[name] += 1 / options.steps
    any_ran = busy(events, start) / options.steps
    print(f"a step: {options.step_us:.0f} us, kernels ran in {any_ran:.0f}, {sum(time.values()):.0f} us of kernels, "
          f"{sum(count.values()):.1f} of them")
    idle = idle_between(events, len(events) / options.steps)
    if idle is not None:
        print(f"between two steps: {idle:.1f} us of nothing, {100 * idle / options.step_us:.2f} %")
    for name, us in time.most_common(options.most):
        print(f"{us:10.1f} us {100 * us / any_ran:5.1f} % {count[name]:7.1f} x  {name}")


if __name__ == "__main__":
    main()
