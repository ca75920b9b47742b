"""What the benchmarks share: the environment and the machine they run on, peers as
processes that answer on a pipe, and where results go."""
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Variables that steer the libraries: not inherited, so that what is measured is
# what a user gets. (OPENBLAS_CORETYPE would pin NumPy's kernels to an old CPU.)
STEERING = ("OPENBLAS_", "OMP_", "GOMP_", "KMP_", "MKL_", "NVPL_", "BLIS_", "XLA_", "ONEDNN_",
            "DNNL_", "TORCHINDUCTOR_")


def environment(**added):
    return {**{k: v for k, v in os.environ.items() if not k.startswith(STEERING)}, **added}


class Process:
    """A peer in a process of its own: a line of JSON when it has made its first
    call, and one for every line that it is sent."""

    def __init__(self, name, command, log, variables):
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, *map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=open(log, "a"), text=True, env=environment(**variables))
        self.log = log

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"'{self.name}' ended with code {self.process.wait()}:\n"
                             + pathlib.Path(self.log).read_text()[-4000:])
        return json.loads(line)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def acc_version():
    commit = subprocess.run(["git", "-C", str(HERE), "describe", "--always", "--dirty"],
                            capture_output=True, text=True)
    return commit.stdout.strip() or "unknown"


def machine(cpus):
    info = pathlib.Path("/proc/cpuinfo").read_text()
    model = next((l.split(":", 1)[1].strip() for l in info.splitlines() if l.startswith("model name")), "?")
    flags = set(next((l.split(":", 1)[1] for l in info.splitlines() if l.startswith("flags")), "").split())
    return {"cpu": model, "features": [f for f in ("avx2", "fma", "avx512f", "avx512_bf16", "avx512_fp16",
                                                   "amx_bf16", "amx_int8") if f in flags],
            "processors_used": sorted(cpus), "processors": os.cpu_count(),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "system": platform.platform(), "python": platform.python_version(),
            "load_before": os.getloadavg()[0],
            "steering_variables_dropped": sorted(k for k in os.environ if k.startswith(STEERING)),
            "OPENBLAS_CORETYPE": "unset"}


def describe(date, host):
    """The machine, as the tables say it."""
    return (f"{date}, {host['cpu']} ({', '.join(host['features'])}), processors "
            f"{host['processors_used']} of {host['processors']}, {host['system']}, Python {host['python']}, "
            f"OPENBLAS_CORETYPE unset, load before {host['load_before']:.2f}.")


def warn_if_busy(host):
    if host["load_before"] > 0.5:
        print(f"the machine is busy (load {host['load_before']:.2f}): "
              "times will not be comparable", file=sys.stderr)


def write(folder, name, result, table):
    """Writes DATE-name.json and .md, and prints the table."""
    print(table)
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / f"{datetime.date.today().isoformat()}-{name}"
    stem.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    stem.with_suffix(".md").write_text(table)
    print(f"written to {stem}.json and .md")
