"""What the scripts that draw pictures for docs/ share: colours by dialect, light and dark,
and boxes, words and arrows."""

import html

# Class, light, dark. The ground is the picture's own, so that it is read on any page.
COLOURS = [("ground", "#ffffff", "#161b22"), ("nn", "#ddf4e4", "#17402a"), ("dist", "#dcebfb", "#17355c"),
           ("plan", "#fdebd3", "#54380f"), ("file", "#eceff3", "#30363d")]
STYLE = """text { font: 14px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; fill: %(ink)s }
.small { font-size: 12px; fill: %(grey)s }
.code { font: 12px ui-monospace, Menlo, 'DejaVu Sans Mono', monospace; fill: %(grey)s }
.name { font: bold 15px ui-monospace, Menlo, 'DejaVu Sans Mono', monospace }
.line { fill: none; stroke: %(grey)s; stroke-width: 1.5 }
.thin { fill: none; stroke: %(grey)s; stroke-width: 1; opacity: 0.7 }
.label { font-size: 12.5px }
.head { fill: %(grey)s }
"""
LIGHT = {"ink": "#1f2328", "grey": "#57606a"}
DARK = {"ink": "#e6edf3", "grey": "#9ea7b3"}


def style(more, strokes):
    def rules(inks, column):
        return (STYLE % inks + "".join(f".{row[0]} {{ fill: {row[column]} }}\n" for row in [*COLOURS, *more])
                + "".join(f".{row[0]} {{ fill: none; stroke: {row[column]} }}\n" for row in strokes))
    return f"{rules(LIGHT, 1)}@media (prefers-color-scheme: dark) {{\n{rules(DARK, 2)}}}\n"


class Picture:
    def __init__(self):
        self.parts = []

    def box(self, kind, x, y, width, height, radius=6):
        self.parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" '
                          f'rx="{radius}"/>')

    def text(self, x, y, words, kind="", anchor="start"):
        kind = f' class="{kind}"' if kind else ""
        anchor = f' text-anchor="{anchor}"' if anchor != "start" else ""
        self.parts.append(f'<text{kind} x="{x}" y="{y}"{anchor}>{html.escape(words)}</text>')

    def lines(self, x, y, lines, kind="small", anchor="middle"):
        """Around the height y."""
        for number, words in enumerate(lines):
            self.text(x, y + 5 + 16 * number - 8 * (len(lines) - 1), words, kind, anchor)

    def arrow(self, x, y, x2, y2):
        self.parts.append(f'<path class="line" d="M{x} {y}L{x2} {y2}"/>')
        tip = (f"M{x2 - 4} {y2 - 1}l4 7l4 -7z" if x == x2 else f"M{x2 - 1} {y2 - 4}l7 4l-7 4z")
        self.parts.append(f'<path class="head" d="{tip}"/>')

    def curve(self, x, y, x2, y2):
        """Down from one place to another."""
        middle = (y + y2) / 2
        self.parts.append(f'<path class="thin" d="M{x:g} {y:g}C{x:g} {middle:g} {x2:g} {middle:g} {x2:g} {y2 - 6:g}"/>')
        self.parts.append(f'<path class="head" d="M{x2 - 3:g} {y2 - 6:g}l3 6l3 -6z"/>')

    def bracket(self, x, y, y2):
        self.parts.append(f'<path class="line" d="M{x} {y}h8v{y2 - y}h-8"/>')

    def render(self, width, height, title, script, colours=(), strokes=()):
        """The file that `script` draws, on its own ground; `colours` are more of its own, and
        `strokes` those of lines."""
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                f'height="{height}" role="img">\n<title>{title}</title>\n'
                f"<!-- Drawn by {script}. -->\n<style>\n{style(colours, strokes)}</style>\n"
                f'<rect class="ground" width="{width}" height="{height}" rx="10"/>\n'
                + "\n".join(self.parts) + "\n</svg>\n")
