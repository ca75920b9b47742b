"""What is raised where an export would say less than the user's program, and how the
user's own line is found for it."""
import os
import sys
import traceback

_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Refused(Exception):
    """One sentence: what cannot be exported, where it is, and what to do instead."""


def is_library(file):
    """Frames of PyTorch, of this package and of Python itself are not the user's."""
    return (file.startswith((_OWN, "<")) or f"{os.sep}torch{os.sep}" in file or
            file.startswith(os.path.dirname(os.__file__) + os.sep) and
            "site-packages" not in file)


def calling_line():
    """`file:line` of the innermost frame that is the user's, or ''."""
    frame = sys._getframe(1)
    while frame:
        if not is_library(frame.f_code.co_filename):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def line_of_exception(error):
    """The same of where `error` was raised."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not is_library(frame.filename):
            return f"{frame.filename}:{frame.lineno}"
    return ""


def line_of_node(node):
    """The same of a node of an fx graph, from the stack trace that it carries."""
    found = ""
    for line in (node.meta.get("stack_trace") or "").splitlines():
        line = line.strip()
        if line.startswith('File "') and '", line ' in line:
            file, rest = line[6:].split('", line ', 1)
            if not is_library(file) or not found:
                found = f"{file}:{rest.split(',')[0]}"
    return found


def at(line):
    """' at file:line', or nothing where the line is not known."""
    return f" at {line}" if line else ""
