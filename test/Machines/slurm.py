"""Machines (machines.py) that a Slurm of their own looks after: its controller on the
first, a daemon for nodes and one for keys (munged) on each. Nothing of it is the
system's: configuration, key, sockets and logs lie in the machines' folder, and end with it.

    with Slurm(2) as slurm:
        slurm.run(["srun", "-N", "2", "--ntasks-per-node", "2", "acc-run", ...])
"""

import os
import pathlib
import shutil
import subprocess
import time

import machines

# Debian has daemons where only root looks for them.
DAEMONS = ":/usr/sbin:/sbin"
TOOLS = ("munged", "slurmctld", "slurmd", "srun", "salloc", "scancel", "sinfo", "squeue")
# `here` is another folder on each machine.
CONFIGURATION = """\
ClusterName=acc
SlurmctldHost=a(10.77.0.1)
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={here}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={here}
SlurmdSpoolDir={here}
SlurmctldPidFile={here}/slurmctld.pid
SlurmdPidFile={here}/slurmd.pid
SlurmctldLogFile={here}/slurmctld.log
SlurmdLogFile={here}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SwitchType=switch/none
TmpFS={here}
MailProg=/bin/true
SlurmdParameters=config_overrides
PartitionName=all Nodes=ALL Default=YES
"""


def why_not():
    """Why machines of a Slurm cannot be had here, a sentence; empty: they can."""
    for tool in TOOLS:
        if not shutil.which(tool, path=os.environ["PATH"] + DAEMONS):
            return f"there is no {tool}"
    return machines.why_not()


class Slurm(machines.Machines):
    """`count` machines called a, b, …, each a node of 4 CPUs and with a /dev/shm of its own."""

    def __enter__(self):
        try:
            super().__enter__()
            self._configure()
            self.daemons = {name: self._start(name) for name in self.names}
            self._wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def file(self, name):
        return pathlib.Path(self.folder) / name

    def address(self, name):
        return f"10.77.0.{self.names.index(name) + 1}"

    def _configure(self):
        nodes = "".join(f"NodeName={name} NodeAddr={self.address(name)} CPUs=4\n"
                        for name in self.names)
        self.file("slurm.conf").write_text(
            CONFIGURATION.format(here=self.file("here")) + nodes)
        # Slurm looks for control groups even where nothing is to use them: version 1 is
        # one that it does not look at before it is used.
        self.file("cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        self.file("hosts").write_text("127.0.0.1 localhost\n" + "".join(
            f"{self.address(name)} {name}\n" for name in self.names))
        self.file("munge.key").write_bytes(os.urandom(128))
        self.file("munge.key").chmod(0o400)
        for folder in ("here", *self.names):
            self.file(folder).mkdir()

    def on(self, name, command, **popen):
        """Starts a command on a machine, as one who is logged in there would."""
        prepare = (f"hostname {name}; {machines.MEMORY}"
                   f"mount --bind {self.file(name)} {self.file('here')};"
                   f"mount --bind {self.file('hosts')} /etc/hosts;")
        return subprocess.Popen(
            ["ip", "netns", "exec", self.space(name), "unshare", "--uts", "--mount",
             "bash", "-c", prepare + 'exec "$@"', "bash", *command],
            env=dict(os.environ, PATH=os.environ["PATH"] + DAEMONS,
                     SLURM_CONF=str(self.file("slurm.conf"))),
            stdin=subprocess.DEVNULL, text=True, start_new_session=True, **popen)

    def _start(self, name):
        """Starts a machine's daemons; the one for nodes is returned."""
        munge = [f"--{option}={self.file('here')}/munge.{option}"
                 for option in ("socket", "pid-file", "seed-file", "log-file")]
        with open(self.file(name) / "said.log", "w") as log:
            say = dict(stdout=log, stderr=log)
            self.on(name, ["munged", "--foreground", "--force",
                           f"--key-file={self.file('munge.key')}", *munge], **say)
            if name == "a":
                self.on(name, ["slurmctld", "-D"], **say)
            return self.on(name, ["slurmd", "-D"], **say)

    def _wait(self):
        begin = time.monotonic()
        while self.ask("sinfo", "-h", "-o", "%D %t") != f"{len(self.names)} idle":
            if time.monotonic() - begin > 60:
                raise RuntimeError("Slurm does not start: " + "".join(
                    log.read_text()[-2000:] for log in self.file("").glob("*/said.log")))
            time.sleep(0.1)

    def ask(self, *command):
        """What a command of Slurm says on the first machine."""
        return self.on("a", command, stdout=subprocess.PIPE,
                       stderr=subprocess.DEVNULL).communicate(timeout=20)[0].strip()

    def jobs(self):
        """The numbers of those that run, wait or end."""
        return self.ask("squeue", "-h", "-o", "%i").split()

    def shared_memory(self, name):
        """The files in the /dev/shm that a machine's jobs see."""
        return os.listdir(f"/proc/{self.daemons[name].pid}/root/dev/shm")

    def start(self, command, **popen):
        """Starts a command on the first machine."""
        return self.on("a", command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **popen)

    def run(self, command, seconds=60):
        """The same to its end: exit status, stdout, stderr."""
        process = self.start(command)
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            for name in self.names:
                self.kill(name)
            out, err = process.communicate()
            return None, out, err
        return process.returncode, out, err
