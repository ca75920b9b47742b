"""limited.py RESOURCE=VALUE,... COMMAND...: runs it under limits of setrlimit (the
names in lower case). as=sweep: under limits on memory from too little to load the
libraries to enough, and says whether any run ended otherwise than well or with an
error that names memory; as=coarse: under few of them."""
import resource
import subprocess
import sys

given = dict(pair.split("=") for pair in sys.argv[1].split(","))
command = sys.argv[2:]


def run_limited(limits, **more):
    def limit():
        for name, value in limits.items():
            kind = getattr(resource, "RLIMIT_" + name.upper())
            resource.setrlimit(kind, (int(value), int(value)))
    return subprocess.run(command, preexec_fn=limit, timeout=60, **more)


def run(limit, **more):
    return run_limited({"as": limit}, **more)


if given.get("as") not in ("sweep", "coarse"):
    sys.exit(run_limited(given).returncode)
grain = 1 if given["as"] == "sweep" else 32


def smallest(status_is_good):
    """The least limit, to 64 KiB, from which on a run ends like that."""
    low, high = 1 << 20, 4 << 30
    while high - low > 1 << 16:
        middle = (low + high) // 2
        if status_is_good(run(middle, capture_output=True).returncode):
            high = middle
        else:
            low = middle
    return high


# Where the libraries begin to fit each allocation fails once, and so it does
# where the run begins to fit.
loads = smallest(lambda status: status != 127)
fits = smallest(lambda status: status == 0)
limits = set(range(loads - (1 << 20), loads + (12 << 20), grain << 16))
limits |= set(range(fits - (4 << 20), fits + (9 << 20), grain << 18))
seen = set()
bad = []
for limit in sorted(limits):
    end = run(limit, capture_output=True, text=True)
    seen.add(end.returncode)
    # The dynamic loader has its own ways to say the last.
    named = any(word in end.stderr for word in
                ["'ulimit -v'", "loading shared libraries", "shared object", "Out of memory",
                 "out of memory", "cannot allocate TLS"])
    if end.returncode not in (0, 1, 127) or (end.returncode and not named):
        bad.append((limit, end.returncode, end.stderr[-200:]))
if not bad and seen == {0, 1, 127}:
    print("ended well and with errors, and not otherwise")
else:
    print(seen, *bad, sep="\n")
