"""How the peers' scripts time a call."""
import statistics
import time


def graphed(step, warm_up=5):
    """The replay of `step`, calls of PyTorch, as a CUDA graph."""
    import torch
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(warm_up):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def sorted_seconds(call, count, wait, warm_up=3):
    """Seconds per call in five timings of `count` calls each, the work of which wait() awaits; the least first."""
    for _ in range(warm_up):
        call()
    seconds = []
    for _ in range(5):
        wait()
        start = time.perf_counter()
        for _ in range(count):
            call()
        wait()
        seconds.append((time.perf_counter() - start) / count)
    return sorted(seconds)


def median_seconds(call, count, wait, warm_up=3):
    """Median seconds per call of those timings."""
    return statistics.median(sorted_seconds(call, count, wait, warm_up))
