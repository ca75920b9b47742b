"""Holds rows of `--report=memory --what-if --json`, on the standard input, against compiles with their bytes as
memory budget: fewer bytes take more work, and a budget of a row's bytes has a peak of as many, the least included.

    check_frontier.py ACC-OPT MODEL"""
import json
import re
import subprocess
import sys


def main():
    acc_opt, model = sys.argv[1:]
    decoder, text, points = json.JSONDecoder(), sys.stdin.read().strip(), []
    while text:
        part, end = decoder.raw_decode(text)
        points += part.get("frontier", [])
        text = text[end:].strip()
    assert len(points) >= 8, f"expected at least 8 points, found {len(points)}"
    for before, after in zip(points, points[1:]):
        assert after["peak_bytes"] < before["peak_bytes"], (before, after)
        assert after["more_work"] > before["more_work"], (before, after)
        assert after["time"] > before["time"], (before, after)
    for point in (points[0], points[len(points) // 2], points[-1]):
        done = subprocess.run([acc_opt, model, "--train", "--loss=loss", "--target=cpu:x86-64-v3", "--micro-batches=2",
                               "--report=memory", f"--memory-budget={point['peak_bytes']}"],
                              capture_output=True, text=True, check=True)
        peak = int(re.search(r"planned peak[^(]*\((\d+)\)", done.stdout)[1])
        assert peak == point["peak_bytes"], f"expected a peak of {point}, found {peak}"
        again = re.search("memory budget: (.*);", done.stderr)
        assert (again[1] if again else "12 layers none") == point["computed_again"], (point, done.stderr)


main()
