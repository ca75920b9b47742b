#!/usr/bin/env python3
"""The step of train.py on two machines of one rank each, which are network namespaces: acc-run
under mpirun, with the states whole and shared (ZeRO-3), beside PyTorch's DDP over gloo on the same
two, in turns. Needs root and Open MPI, beside what train.py needs."""
import json
import os
import pathlib
import subprocess
import sys

import harness
import train

sys.path.insert(0, str(harness.HERE.parent / "test/Machines"))
from machines import Machines, why_not  # noqa: E402


class Acc(train.Acc):
    """One rank on each machine, started as a user does."""

    machines = None

    def call(self, steps):
        command = [str(self.options.tools / "acc-run"), str(self.file), "--comm=mpi", "--inputs",
                   str(self.inputs), "--steps", str(steps), "--threads", str(self.threads), "--json"]
        code, out, err = self.machines.run({"a": 1, "b": 1}, command, seconds=600)
        if code != 0:
            raise SystemExit(f"acc-run: exit status {code}\n{err}")
        *lines, report = [json.loads(line) for line in out.splitlines()]
        return lines, report


class Peer(train.Peer):
    """The two processes of a peer, each on its machine."""

    machines = None

    def __init__(self, *arguments):
        self.second = None
        popen = subprocess.Popen

        def start(command, env, **more):
            def on(name, rank, **given):
                place = {"MASTER_ADDR": "10.77.0.1", "MASTER_PORT": "29500", "WORLD_SIZE": "2",
                         "RANK": rank, "GLOO_SOCKET_IFNAME": "net"}
                return popen(["ip", "netns", "exec", self.machines.space(name), *command],
                             env={**env, **place}, **given)
            self.second = on("b", "1", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=more["stderr"])
            return on("a", "0", **more)

        harness.subprocess.Popen = start
        try:
            super().__init__(*arguments)
        finally:
            harness.subprocess.Popen = popen

    def close(self):
        super().close()
        self.second.wait()


def main():
    options = train.parser(__doc__).parse_args()
    if reason := why_not():
        raise SystemExit(f"train_machines.py: {reason}")
    with Machines(2) as machines:
        Acc.machines = Peer.machines = machines
        train.Acc, train.Peer = Acc, Peer
        train.record(options, "train-machines", [
            {"precision": "fp32", "ranks": 2, "layouts": train.TWO_RANKS, "peers": ["DDP"],
             "beside": "each on a machine of its own"}])


if __name__ == "__main__":
    main()
