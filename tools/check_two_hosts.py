#!/usr/bin/env python3
"""Trains on two hosts, which are network namespaces of this machine with names of their own.

    tools/check_two_hosts.py PROGRAM LAUNCHER FOLDER

PROGRAM is train_mnist_multi_process, LAUNCHER rensa-run. Two hosts with two processes each give the
model that four processes of one host give, and where what connects two is cut, both end within a
set time and name the other. Ends with 77 where namespaces may not be made.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import time

ARGUMENTS = ["--dataset", "synthetic", "--images", "200", "--batchsize", "25", "--unit", "20", "--seed", "3",
             "--device", "cpu"]
WAITS, CUT_WAITS = 60, 3  # seconds that a rank waits for another
ADDRESSES = "10.9.0.1", "10.9.0.2"


class Hosts:
    """Two, connected by a wire: the namespaces of this process, and those of a child."""

    def __init__(self):
        self.other = subprocess.Popen(["unshare", "--net", "--uts", "sleep", "infinity"])
        self.enter = ["nsenter", "--net", "--uts", "--target", str(self.other.pid)]
        own = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{self.other.pid}/ns/net") == own:
            time.sleep(0.01)
        run = lambda host, command: subprocess.run([*(self.enter if host else []), *command.split()], check=True)
        run(0, f"ip link add wire type veth peer name end netns {self.other.pid}")
        for host, end in enumerate(("wire", "end")):
            run(host, f"hostname host-{host}")
            run(host, "ip link set lo up")
            run(host, f"ip addr add {ADDRESSES[host]}/24 dev {end}")
            run(host, f"ip link set {end} up")

    def start(self, of_each, waits, program, *arguments, out):
        """The processes by rank: so many of each host, which wait for one another so many seconds."""
        ranks = []
        for rank in range(2 * of_each):
            host, local = divmod(rank, of_each)
            environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(2 * of_each), LOCAL_RANK=str(local),
                               LOCAL_WORLD_SIZE=str(of_each), MASTER_ADDR=ADDRESSES[0], MASTER_PORT="29511",
                               RENSA_COMMUNICATION_TIMEOUT=str(waits))
            command = [program, *ARGUMENTS, *arguments, "--out", f"{out}{rank}"]
            ranks.append(subprocess.Popen([*(self.enter if host else []), *command], env=environment, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        return ranks

    def cut(self):
        subprocess.run(["ip", "link", "set", "wire", "down"], check=True)


def ends_of(ranks, seconds):
    """The status of each, negative where it was killed after so many seconds, and what it said."""
    ends = []
    for rank in ranks:
        try:
            said = rank.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            rank.kill()
            said = rank.communicate()[0]
        ends.append((rank.returncode, said))
    return ends


def fail(what, ends):
    print(what, *(f"--- rank {rank} ended with {status}:\n{said}" for rank, (status, said) in enumerate(ends)),
          sep="\n")
    return 1


def give_the_same(hosts, program, folder):
    """What four processes of one host have left in folder/one."""
    ends = ends_of(hosts.start(2, WAITS, program, "--epoch", "2", out=f"{folder}/rank"), 2 * WAITS)
    if any(status for status, _ in ends):
        return fail("two hosts do not train", ends)
    models = [pathlib.Path(folder, name, "model.npz").read_bytes() for name in ("one", "rank0")]
    return 0 if models[0] == models[1] else fail("two hosts give another model than one", ends)


def end_where_they_are_cut(hosts, program, folder):
    ranks = hosts.start(1, CUT_WAITS, program, "--epoch", "1000000", out=f"{folder}/cut")
    for line in ranks[0].stdout:  # its first epoch is done
        if line.split()[:1] == ["1"]:
            break
    hosts.cut()
    ends = ends_of(ranks, 10 * CUT_WAITS)
    for host, (status, said) in enumerate(ends):
        wanted = f"nothing came for {CUT_WAITS} s from rank {1 - host} (host host-{1 - host}, process "
        if status <= 0 or wanted not in said:
            return fail(f"cut off, host {host} should have ended and said: {wanted}", ends)
    return 0


def inside(program, folder):
    hosts = Hosts()
    try:
        return give_the_same(hosts, program, folder) or end_where_they_are_cut(hosts, program, folder)
    finally:
        hosts.other.kill()


def main():
    if sys.argv[1] == "--inside":
        return inside(*sys.argv[2:])
    program, launcher, folder = sys.argv[1:]
    apart = ["unshare", "--user", "--map-root-user", "--net", "--uts"]
    if not all(map(shutil.which, ("ip", "unshare", "nsenter", "hostname"))):
        print("no ip, unshare, nsenter or hostname")
        return 77
    probe = subprocess.run([*apart, *"ip link add wire type veth peer name end".split()],
                           capture_output=True, text=True)
    if probe.returncode:
        print(f"no namespaces: {probe.stderr}")
        return 77
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([launcher, "-n", "4", program, *ARGUMENTS, "--epoch", "2", "--out", f"{folder}/one"], check=True,
                   stdout=subprocess.DEVNULL)
    return subprocess.run([*apart, sys.executable, __file__, "--inside", program, folder]).returncode


if __name__ == "__main__":
    sys.exit(main())
