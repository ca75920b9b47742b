"""Machines that are network namespaces of this one: each has an address on a
bridge of its own kind, and a host's name. Needs root, ip, and mpirun.

    with Machines(2) as machines:
        machines.run({"a": 2, "b": 2}, ["acc-run", ...])
"""

import os
import shutil
import signal
import subprocess
import tempfile
import textwrap

NAMES = "abcdefgh"
# So that mpirun, too, notices that a machine is gone (docs/Machines.md).
KEEPALIVE = ["--mca", "oob_tcp_keepalive_time", "1", "--mca", "oob_tcp_keepalive_intvl", "1",
             "--mca", "oob_tcp_keepalive_probes", "3"]

# A machine's own /dev/shm: where all processes are killed MPI's files stay in it, and
# are to go with the machine.
MEMORY = "mount -t tmpfs none /dev/shm;"


def why_not():
    """Why machines cannot be had here, a sentence; empty: they can."""
    for tool in ("ip", "mpirun", "unshare", "tc"):
        if not shutil.which(tool):
            return f"there is no {tool}"
    if os.geteuid() != 0:
        return "network namespaces need root"
    name = f"acc-try-{os.getpid()}"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if tried.returncode:
        return "network namespaces are not to be had: " + tried.stderr.strip()
    subprocess.run(["ip", "netns", "del", name], check=True)
    return ""


class Machines:
    """`count` machines called a, b, …; of the folder `own` each but a has one of its own."""

    def __init__(self, count, own=None):
        self.names = NAMES[:count]
        self.own = own
        self.tag = f"acc{os.getpid()}"
        self.folder = tempfile.mkdtemp(prefix="acc-machines-")

    def space(self, name):
        return f"{self.tag}{name}"

    def _ip(self, *words, check=True):
        subprocess.run(["ip", *words], check=check, capture_output=not check)

    def _connect(self, name, number):
        """Makes a machine: a namespace whose cable goes to the bridge."""
        space, bridge = self.space(name), self.space("x")
        self._ip("netns", "add", space)
        self._ip("-n", space, "link", "set", "lo", "up")
        self._ip("-n", space, "link", "add", "net", "type", "veth",
                 "peer", "name", f"to-{name}", "netns", bridge)
        self._ip("-n", bridge, "link", "set", f"to-{name}", "master", "hub", "up")
        self._ip("-n", space, "addr", "add", f"10.77.0.{number}/24", "dev", "net")
        self._ip("-n", space, "link", "set", "net", "up")

    def __enter__(self):
        bridge = self.space("x")
        self._ip("netns", "add", bridge)
        self._ip("-n", bridge, "link", "add", "hub", "type", "bridge")
        self._ip("-n", bridge, "link", "set", "hub", "up")
        for number, name in enumerate(self.names):
            self._connect(name, number + 1)
        self.agent = os.path.join(self.folder, "agent")
        with open(self.agent, "w") as file:
            file.write(textwrap.dedent(f"""\
                #!/bin/bash
                # agent NAME COMMAND: what ssh would do
                name=$1; shift
                exec ip netns exec {self.tag}$name unshare --uts --mount bash -c \\
                  "hostname $name; {MEMORY} {self.mounts()} exec $*"
                """))
        os.chmod(self.agent, 0o755)
        return self

    def __exit__(self, *_):
        for name in self.names + "x":
            for process in self.processes(name):
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self._ip("netns", "del", self.space(name), check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def mounts(self):
        return f"mount -t tmpfs none {self.own};" if self.own else ""

    def processes(self, name):
        """The processes that live on a machine."""
        found = subprocess.run(["ip", "netns", "pids", self.space(name)],
                               capture_output=True, text=True)
        return [int(word) for word in found.stdout.split()]

    def kill(self, name):
        """As where the power goes: all processes at once."""
        for process in self.processes(name):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def cut(self, name):
        """Takes the cable out."""
        self._ip("-n", self.space(name), "link", "set", "net", "down")

    def add_stranger(self):
        """A machine 's' of the same network that is none of the run's."""
        self.names += "s"
        self._connect("s", 99)

    def inside(self, name, command, **popen):
        """Starts what is no part of a run on a machine."""
        return subprocess.Popen(["ip", "netns", "exec", self.space(name), *command], text=True, **popen)

    def slow(self, name, rate):
        """Lets no more than `rate` ('20mbit') leave a machine."""
        subprocess.run(["ip", "netns", "exec", self.space(name), "tc", "qdisc", "replace",
                        "dev", "net", "root", "tbf", "rate", rate, "burst", "64kb",
                        "latency", "200ms"], check=True)

    def bytes(self):
        """How many have left each machine, and come to it, since it is there."""
        return [int(subprocess.run(
            ["ip", "netns", "exec", self.space(name), "cat", f"/sys/class/net/net/statistics/{way}_bytes"],
            check=True, text=True, capture_output=True).stdout)
            for name in self.names for way in ("tx", "rx")]

    def start(self, ranks, command, options=(), **popen):
        """Starts mpirun on the first machine, with so many ranks on each."""
        hosts = ",".join(f"{name}:{count}" for name, count in ranks.items())
        first = next(iter(ranks))
        line = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
                "--mca", "plm_rsh_agent", self.agent, "--mca", "btl_tcp_if_include", "net",
                "--mca", "oob_tcp_if_include", "net", *KEEPALIVE, *options,
                "-n", str(sum(ranks.values())), "--host", hosts, *command]
        environment = dict(os.environ, TMPDIR=self.folder)
        return subprocess.Popen(
            ["ip", "netns", "exec", self.space(first), "unshare", "--uts", "--mount",
             "bash", "-c", f'hostname {first}; {MEMORY} exec "$@"', "bash", *line],
            env=environment, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **popen)

    def run(self, ranks, command, options=(), seconds=120, **popen):
        """The same to its end: exit status, stdout, stderr."""
        process = self.start(ranks, command, options, **popen)
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            for name in self.names:
                self.kill(name)
            out, err = process.communicate()
            return None, out, err
        return process.returncode, out, err
