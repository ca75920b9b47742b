"""Every collective of an entry is in the picture of a layer once, in a group that says its kind, axes,
count and bytes; how many are in the layer itself is printed."""

import json
import re
import sys
import xml.etree.ElementTree as tree

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}

picture, collectives, entry = sys.argv[1:]
rows = [row for row in json.load(open(collectives)) if row["entry"] == entry]
seen, inside = [], 0
for group in tree.parse(picture).iter("{http://www.w3.org/2000/svg}g"):
    numbers = [int(number) for number in group.get("data-collectives").split()]
    words = " ".join(part.text for part in group if part.tag.endswith("text")).replace(", ", ",")
    amount, unit, count = re.search(r"([0-9.]+) (B|KiB|MiB)(?: × (\d+))?", words).groups()
    total = sum(rows[number]["bytes"] for number in numbers)
    if abs(float(amount) * UNITS[unit] - total) > 0.06 * UNITS[unit]:
        sys.exit(f"{words}: expected {total} bytes")
    for number in numbers:
        row = rows[number]
        if f"{row['kind']} over {row['axes']}" not in words or int(count or 1) != row["count"]:
            sys.exit(f"expected {row}, found {words}")
    seen += numbers
    inside += len(numbers) * any(part.tag.endswith("rect") for part in group)
if sorted(seen) != list(range(len(rows))):
    sys.exit(f"expected each of {len(rows)} collectives once, found {sorted(seen)}")
print(f"{len(rows)} collectives, {inside} of the layer")
