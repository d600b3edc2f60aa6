#!/usr/bin/env python3
"""What pool_fragmentation.cc does, with the pools of CuPy and PyTorch: pool_fragmentation.py
[cupy|torch|list ...]. `list` prints how many requests there are and what they ask for, without a GPU.
"""
import json
import sys
import time

KIB, MIB = 1 << 10, 1 << 20


class Requests:
    """The rule of pool_fragmentation.cc: (number, bytes) asks, (number, -1) frees."""

    def __init__(self, pattern):
        self.state, self.next, self.list, self.alive = 1, 0, [], {}
        getattr(self, pattern)()
        for number in sorted(self.alive):
            self.free(number)

    def random(self, below):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self.state >> 33) % below

    def ask(self, nbytes):
        self.list.append((self.next, nbytes))
        self.alive[self.next] = nbytes
        self.next += 1
        return self.next - 1

    def free(self, number):
        self.list.append((number, -1))
        del self.alive[number]

    def growing(self):
        last = self.ask(MIB)
        for i in range(1, 401):
            size = MIB + i * 256 * KIB
            scratch, now = self.ask(size // 2), self.ask(size)
            self.free(scratch)
            self.free(last)
            last = now

    def mixed(self):
        places = [None] * 256
        for _ in range(20000):
            place = self.random(256)
            if places[place] is not None:
                self.free(places[place])
            big = self.random(4) == 0
            places[place] = self.ask(MIB + self.random(32 * MIB) if big
                                     else 512 + self.random(64 * KIB))

    def lifetimes(self):
        kept = []
        for _ in range(200):
            passing = []
            for i in range(40):
                number = self.ask(64 * KIB + self.random(8 * MIB))
                (kept if i % 8 == 7 else passing).append(number)
            for number in passing:
                self.free(number)
            while len(kept) > 100:
                self.free(kept.pop(0))


def most_asked_at_once(requests):
    sizes, now, most = {}, 0, 0
    for number, nbytes in requests:
        if nbytes < 0:
            now -= sizes.pop(number)
        else:
            sizes[number] = nbytes
            now += nbytes
            most = max(most, now)
    return most


class CuPy:
    def __init__(self):
        import cupy
        self.pool = cupy.cuda.MemoryPool()
        self.ask = self.pool.malloc
        self.peak = 0

    def look(self):
        self.peak = max(self.peak, self.pool.total_bytes())


class Torch:
    def __init__(self):
        import torch
        self.torch = torch
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        self.ask = lambda n: torch.empty(n, dtype=torch.uint8, device="cuda")

    def look(self):
        self.peak = self.torch.cuda.max_memory_reserved()


def replay(requests, peer, look):
    """Milliseconds; with `look`, the peak is kept up to date and the time means nothing."""
    blocks, ask = {}, peer.ask
    start = time.perf_counter()
    for number, nbytes in requests:
        if nbytes < 0:
            del blocks[number]
        else:
            blocks[number] = ask(nbytes)
            if look:
                peer.look()
    return (time.perf_counter() - start) * 1e3


def main():
    for pattern in ("growing", "mixed", "lifetimes"):
        requests = Requests(pattern).list
        asked = most_asked_at_once(requests)
        for name in sys.argv[1:] or ("cupy", "torch"):
            if name == "list":
                total = sum(n for _, n in requests if n > 0)
                print(f"{pattern}: {len(requests)} requests, {total} bytes, {asked} at once")
                continue
            try:
                peer = {"cupy": CuPy, "torch": Torch}[name]()
                peer.ask(512)
            except Exception as error:  # whatever keeps a peer from working here
                print(f"{name}: {error}", file=sys.stderr)
                continue
            replay(requests, peer, True)
            again = replay(requests, peer, False)
            print(json.dumps({"name": f"fragmentation {pattern} {name} gpu",
                              "value": round(peer.peak / asked, 4), "unit": "reserved / asked",
                              "asked_mib": asked >> 20, "reserved_mib": peer.peak >> 20,
                              "again_ms": again}), flush=True)


if __name__ == "__main__":
    main()
