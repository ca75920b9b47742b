"""What the scripts that write pages of docs/ share. A page may begin with a head
written by hand, down to a line that is MARK: it is kept, and what follows is
written. With --check nothing is written: a page that is not what would be is
shown as a diff, and the exit status is 1."""

import difflib
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MARK = "<!-- generated -->\n"


def keep_head(path):
    """The page's own head, MARK included."""
    head, mark, _ = path.read_text().partition(MARK)
    if not mark:
        sys.exit(f"{path.relative_to(ROOT)}: expected a line '{MARK.strip()}'")
    return head + mark + "\n"


def settle(pages, folders, command, check):
    """`pages`: paths and what they are to hold; `folders`: where no other page may lie.
    `command` renews them."""
    gone = {page for folder in folders for page in folder.glob("*.md")} - pages.keys()
    diff = []
    for path, text in {**pages, **dict.fromkeys(gone, "")}.items():
        old = path.read_text() if path.exists() else ""
        if old != text:
            name = str(path.relative_to(ROOT))
            diff += difflib.unified_diff(old.splitlines(), text.splitlines(), name,
                                         f"what {command} writes", lineterm="")
    if not check:
        for path in gone:
            path.unlink()
        for path, text in pages.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    elif diff:
        print("\n".join(diff))
        sys.exit(f"{len(pages)} pages checked, some are out of date: run {command} and "
                 "commit what it writes")
