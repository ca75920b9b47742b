#!/usr/bin/env python3
"""Holds `acc-opt --report=scale` against runs: two machines that are network namespaces, each of
one rank and one thread, whose links `tc` limits. What a rank computes in a second is taken from
one run on one machine (data-parallel; the rate at which the report predicts that run's step), and
from a copy of memory; a link's speed from plain TCP, both ways at once. Everything else is
predicted: other layouts, and all of them on every link.

    sudo benchmarks/scale.py [--steps 4] [--layouts dp zero3 tp] [--links 1gbit …]

Prints predicted and measured seconds of a step (the least, without the first) and their ratio."""
import argparse
import array
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import decoder_graph

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test" / "Machines"))
from machines import Machines, why_not  # noqa: E402

SIZE = decoder_graph.Decoder(layers=4, width=256, heads=4, kv_heads=4, inner=1024, vocabulary=8192,
                             sequence=128, batch=8)
STEP = ["--train", "--loss=loss", "--optimizer=adamw", "--entries=step", "--threads-per-rank=1"]
LAYOUTS = {"dp": ["--mesh", "dp=2"],
           "zero3": ["--mesh", "dp=2", "--set", "zero_stage=3", "--micro-batches", "2"],
           "tp": ["--mesh", "tp=2"]}
# What tc allows each way.
LINKS = ["1gbit", "300mbit", "100mbit", "50mbit"]
# Of 1,514 bytes of an Ethernet frame TCP leaves 1,448 for what is sent.
PAYLOAD = 1448 / 1514
UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}


def write_inputs(folder):
    """Tokens, as .npy."""
    draw = random.Random(1)
    folder.mkdir()
    for name in ("input_ids", "labels"):
        tokens = array.array("q", (draw.randrange(SIZE.vocabulary)
                                   for _ in range(SIZE.batch * SIZE.sequence)))
        head = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {(SIZE.batch, SIZE.sequence)}, }}"
        head += " " * (63 - (len(head) + 10) % 64) + "\n"
        (folder / f"{name}.npy").write_bytes(
            b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + tokens.tobytes())


class Bench:
    def __init__(self, work, tools, steps):
        self.work, self.tools, self.steps, self.memory = work, tools, steps, memory_rate()
        decoder_graph.write(SIZE, work, weights=True)
        write_inputs(work / "inputs")

    def compile(self, layout):
        for name in (f"{layout}.accx", f"{layout}.mlir"):
            until = ["--compile-to=plan"] if name.endswith("mlir") else []
            subprocess.run([self.tools / "acc-opt", self.work / "model.onnx", *STEP, *LAYOUTS[layout],
                            *until, "-o", self.work / name], check=True, stderr=subprocess.DEVNULL)

    def command(self, layout, *more):
        return [str(self.tools / "acc-run"), str(self.work / f"{layout}.accx"), "--threads", "1",
                "--steps", str(self.steps), "--inputs", str(self.work / "inputs"), "--json", *more]

    @staticmethod
    def least(stdout):
        return min(json.loads(stdout.splitlines()[-1])["times_s"][1:])

    def predict(self, layout, flops, levels):
        """Seconds of a step."""
        path = self.work / "links.json"
        path.write_text(json.dumps({
            "rank": {"flops_per_second": flops, "bytes_per_second": self.memory, "seconds_per_command": 2e-6},
            "levels": levels}))
        done = subprocess.run([self.tools / "acc-opt", self.work / f"{layout}.mlir", "--report=scale",
                               f"--links={path}", "--json"], check=True, capture_output=True, text=True)
        return json.loads(done.stdout)["programs"][0]["entries"]["step"]["seconds"]

    def rate(self, layout, seconds):
        """The arithmetic a second at which the report predicts a step on one machine."""
        low, high = 1e8, 1e13
        while high / low > 1.001:
            middle = (low * high) ** 0.5
            slower = self.predict(layout, middle, [MEMORY]) > seconds
            low, high = (middle, high) if slower else (low, middle)
        return low


MEMORY = {"name": "memory", "seconds": 2e-6, "bytes_per_second": 4e9}


def limit(machines, name, rate):
    """Both ways: what leaves each machine."""
    burst = max(16384, int(bytes_per_second(rate) * 0.002))
    subprocess.run(["ip", "netns", "exec", machines.space(name), "tc", "qdisc", "replace", "dev", "net",
                    "root", "tbf", "rate", rate, "burst", str(burst), "latency", "200ms"], check=True)


#: Sends and receives so many bytes at once, each on a connection; the first prints bytes a second.
TALK = """
import socket, sys, threading, time
first, count = sys.argv[1] == "first", int(sys.argv[2])
if first:
    door = socket.create_server(("0.0.0.0", 5001))
    print(flush=True)
    ends = [door.accept()[0] for _ in range(2)]
else:
    ends = [socket.create_connection(("10.77.0.1", 5001)) for _ in range(2)]
send, receive = ends if first else ends[::-1]
def take():
    got = 0
    while got < count:
        got += len(receive.recv(1 << 20))
begin, taking = time.monotonic(), threading.Thread(target=take)
taking.start()
send.sendall(bytes(count))
taking.join()
print(count / (time.monotonic() - begin))
"""


def measure_link(machines, rate):
    """Bytes a second that each of two machines gets from the other by plain TCP."""
    count = str(int(bytes_per_second(rate) * 4))
    command = lambda name, role: ["ip", "netns", "exec", machines.space(name), sys.executable, "-c", TALK,
                                  role, count]
    with subprocess.Popen(command("a", "first"), stdout=subprocess.PIPE, text=True) as first:
        first.stdout.readline()
        subprocess.run(command("b", "second"), check=True, stdout=subprocess.DEVNULL)
        return float(first.stdout.read())


def memory_rate():
    """Bytes a second that one core reads and writes."""
    source, target = memoryview(bytearray(1 << 28)), memoryview(bytearray(1 << 28))
    best = 0
    for _ in range(4):
        begin = time.monotonic()
        target[:] = source
        best = max(best, 2 * len(source) / (time.monotonic() - begin))
    return best


def bytes_per_second(rate):
    unit = next(unit for unit in UNITS if rate.endswith(unit))
    return float(rate[:-len(unit)]) * UNITS[unit] / 8 * PAYLOAD


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build" / "bin")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=list(LAYOUTS))
    parser.add_argument("--links", nargs="+", default=LINKS, metavar="RATE")
    parser.add_argument("--message-seconds", type=float, default=1e-4,
                        help="of a message on a link that is not limited")
    args = parser.parse_args()
    if reason := why_not():
        sys.exit(f"scale: {reason}")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(pathlib.Path(folder), args.tools.resolve(), args.steps)
        for layout in args.layouts:
            bench.compile(layout)
        if "dp" not in args.layouts:
            bench.compile("dp")
        alone = min(bench.least(subprocess.run(bench.command("dp"), check=True, capture_output=True,
                                               text=True).stdout) for _ in range(3))
        flops = bench.rate("dp", alone)
        print(f"dp on one machine: {alone:.3f} s a step, as at {flops / 1e9:.1f} GF/s and {bench.memory / 1e9:.1f} GB/s of "
              "each rank", flush=True)
        print(f"{'layout':8} {'link':>8} {'reached':>11} {'predicted':>10} {'measured':>10} {'ratio':>6}", flush=True)
        worst = 1
        for link in args.links:
            with Machines(2) as machines:
                for name in machines.names:
                    limit(machines, name, link)
                speed = measure_link(machines, link)
            network = {"name": "network", "seconds": args.message_seconds, "bytes_per_second": speed}
            for layout in args.layouts:
                predicted = bench.predict(layout, flops, [dict(MEMORY, ranks=1), network])
                with Machines(2) as machines:
                    for name in machines.names:
                        limit(machines, name, link)
                    code, out, err = machines.run({"a": 1, "b": 1}, bench.command(layout, "--comm=mpi"),
                                                  seconds=600)
                if code != 0:
                    sys.exit(f"scale: {layout} on {link}: exit status {code}\n{err}")
                measured = bench.least(out)
                ratio = predicted / measured
                worst = max(worst, ratio, 1 / ratio)
                print(f"{layout:8} {link:>8} {speed / 1e6:>6.1f} MB/s {predicted:>8.3f} s {measured:>8.3f} s "
                      f"{ratio:6.3f}", flush=True)
        print(f"within {100 * (worst - 1):.1f} %")


if __name__ == "__main__":
    sys.exit(main())
