"""The house: which folders of sources are rooms, what each sees of the others, and what the
sources really include. `scripts/check-includes` holds them to it, `scripts/house` draws it."""

import pathlib
import re

INCLUDE = re.compile(r'^\s*#?\s*include\s*[<"]([^">]+)[">]')

# A room: the others that it sees. Written in full, so that a new edge is a line of a diff
# that somebody reads. What a room no longer uses, it no longer sees.
SEES = {
    "dialects/Tensor": "runtime/include",
    "dialects/Interfaces": "dialects/Tensor",
    "dialects/Accel": "",
    "dialects/NN": "",
    "dialects/Dist": "",
    "dialects/Plan": "dialects/Dist dialects/NN",

    "lib/Names": "",
    "lib/Cost": "dialects/Accel dialects/Dist dialects/Interfaces dialects/NN",
    "lib/Pipeline": "",
    "lib/Onnx": "lib/Names runtime/include",
    "lib/Transforms": "dialects/Interfaces dialects/NN",
    "lib/Import": "dialects/Accel dialects/Interfaces dialects/NN lib/Names lib/Onnx lib/Transforms",
    "lib/Autodiff": "dialects/Accel dialects/Interfaces dialects/NN lib/Names lib/Onnx lib/Transforms",
    "lib/Precision": "dialects/Accel dialects/Interfaces dialects/NN dialects/Tensor lib/Autodiff",
    "lib/Parallel": "dialects/Accel dialects/Dist dialects/Interfaces dialects/NN lib/Cost lib/Names",
    "lib/Stages": "dialects/Accel dialects/Interfaces dialects/NN lib/Cost lib/Names",
    "lib/Tasks": "dialects/Accel dialects/Dist dialects/Interfaces dialects/NN lib/Cost lib/Pipeline",
    "lib/Search": "dialects/Accel dialects/Dist dialects/Interfaces dialects/NN dialects/Plan lib/Cost lib/Names lib/Parallel lib/Pipeline lib/Plan lib/Tasks",
    "lib/Target": "dialects/Plan",
    "lib/Plan": "dialects/Dist dialects/Interfaces dialects/NN dialects/Plan lib/Cost lib/Target",
    "lib/Target/Element": "dialects/Interfaces dialects/NN dialects/Tensor",
    "lib/Target/CPU": "dialects/Interfaces dialects/NN dialects/Plan dialects/Tensor lib/Cost lib/Plan lib/Target "
                      "lib/Target/Element runtime/Device",
    "lib/Target/Null": "lib/Target",
    "lib/Emit": "dialects/Accel dialects/Dist dialects/NN dialects/Plan lib/Plan lib/Target runtime/include",
    "lib/Scale": "dialects/Dist dialects/Plan lib/Cost lib/Plan",
    "lib/Report": "dialects/Accel dialects/Dist dialects/Interfaces dialects/NN dialects/Plan lib/Cost lib/Names "
                  "lib/Pipeline lib/Plan lib/Scale",
    "lib/Equivalence": "dialects/Accel dialects/Dist dialects/NN dialects/Plan",
    "lib/Evaluate": "dialects/Dist dialects/Interfaces dialects/NN dialects/Plan dialects/Tensor "
                    "runtime/include",
    "lib/Config": "lib/Autodiff lib/Names",
    "lib/Driver": "dialects/Accel dialects/Dist dialects/NN dialects/Plan lib/Autodiff lib/Cost lib/Emit lib/Equivalence lib/Evaluate "
                  "lib/Import lib/Names lib/Onnx lib/Parallel lib/Pipeline lib/Plan lib/Precision lib/Report lib/Search lib/Stages "
                  "lib/Target lib/Target/CPU lib/Target/Element lib/Target/Null lib/Tasks lib/Transforms",

    "runtime/include": "",
    "runtime/Base": "runtime/include",
    "runtime/Format": "runtime/Base runtime/include",
    "runtime/Data": "runtime/Base runtime/Format runtime/include",
    "runtime/Device": "runtime/Base runtime/Format runtime/include",
    "runtime/Storage": "runtime/Base runtime/Format runtime/include",
    "runtime/Network": "runtime/Base runtime/include",
    "runtime/Control": "runtime/Base runtime/Format runtime/Network runtime/include",
    "runtime/Comm": "runtime/Base runtime/Control runtime/Format runtime/Network runtime/include",
    "runtime/Execute": "runtime/Base runtime/Control runtime/Format runtime/Storage runtime/include",
    "runtime/State": "runtime/Base runtime/Control runtime/Data runtime/Execute runtime/Format runtime/include",
    "runtime/Feed": "runtime/Base runtime/Control runtime/Data runtime/State runtime/include",
    "runtime/Calls": "runtime/Base",
    "runtime/Client": "runtime/Base runtime/Calls runtime/include",
    "runtime/Run": "runtime/Base runtime/Calls runtime/Comm runtime/Control runtime/Data runtime/Device runtime/Execute runtime/Feed "
                   "runtime/Format runtime/Network runtime/State runtime/Storage runtime/include",
    "runtime/Conformance": "runtime/Base runtime/Control runtime/Device runtime/Format runtime/Network runtime/include",

    "tools/acc-opt": "dialects/Dist lib/Config lib/Driver runtime/include",
    "tools/acc-eval": "lib/Driver lib/Evaluate runtime/include",
    "tools/acc-lsp-server": "lib/Driver runtime/include",
    "tools/acc-reduce": "lib/Driver runtime/include",
    "tools/acc-run": "runtime/include",
}


def room_of(path):
    """The room that a path from the root lies in, the innermost; None of any other."""
    parts = pathlib.PurePath(path).parts
    for length in (3, 2):
        if "/".join(parts[:length]) in SEES and len(parts) > length:
            return "/".join(parts[:length])
    return None


def path_of(name):
    """Where a file lies that is included as `name`; None of one that is not ours."""
    first = name.split("/")[0]
    if first in ("lib", "dialects"):
        return name
    if first in ("accel-rt", "accel-c"):
        return "runtime/include/" + name
    return "runtime/" + name if "runtime/" + first in SEES else None


def sources(root, folder):
    for pattern in ("*.h", "*.cpp", "*.cu", "*.td"):
        yield from sorted((root / folder).rglob(pattern))


def includes(path):
    """Of a file: numbers of lines, and names as they are included."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match.group(1)


def edges(root):
    """Each room, and those that its sources include something of."""
    found = {room: set() for room in SEES}
    for folder in ("dialects", "lib", "runtime", "tools"):
        for path in sources(root, folder):
            room = room_of(path.relative_to(root))
            for _, name in includes(path):
                other = room_of(path_of(name) or "")
                if room and other and other != room:
                    found[room].add(other)
    return found
