"""Curves against recall as an SVG file, written by hand: no plotting library to install."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 860, 540
LEFT, RIGHT, TOP, BOTTOM = 78, 170, 56, 56
TICKS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999)
COLORS = {
    "garlic": "#c0182b", "faiss-ivf": "#1f77b4", "faiss-pq": "#0b4f8a", "faiss-hnsw": "#17a2b8", "hnswlib": "#2e8b57",
    "scann": "#e08a00", "lorann": "#7b4fb3", "usearch": "#8c6d46",
    "faiss-rabitq": "#6f9fd8", "faiss-hnsw-sq": "#5fc9b0", "symphonyqg": "#d64fa0", "rabitq-ivf": "#8a9a1f", "vsag": "#4a4f9c",
}
LOWEST = 0.75


def _across(recall):
    """Recall on a scale that gives each halving of the misses the same room."""
    return -math.log10(1 - min(recall, 0.9995))


def _front(points, higher):
    """The points that no other beats, recall ascending."""
    front = []
    for recall, value in sorted(points, key=lambda p: (-p[0], -p[1] if higher else p[1])):
        if not front or (value > front[-1][1] if higher else value < front[-1][1]):
            front.append((recall, value))
    return front[::-1]


def draw(series, title, note, label, higher):
    """The plot as text, `note` below its title. `series` maps names to (recall, value) points.

    `higher` says which values are good.
    """
    series = {n: [p for p in points if p[0] >= LOWEST and p[1] > 0] for n, points in series.items()}
    series = {n: points for n, points in series.items() if points}
    values = [v for points in series.values() for _, v in points] or [1, 10]
    recalls = [r for points in series.values() for r, _ in points] or [LOWEST, 0.99]
    x_low, x_high = _across(min(recalls)) - 0.04, _across(max(recalls)) + 0.04
    y_low, y_high = math.log10(min(values)) - 0.05, math.log10(max(values)) + 0.05

    def x(recall):
        return LEFT + (_across(recall) - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT)

    def y(value):
        return HEIGHT - BOTTOM - (math.log10(value) - y_low) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
           'font-family="sans-serif" font-size="13">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="24" font-size="15" font-weight="bold">{escape(title)}</text>', _text(LEFT, 42, note, "start")]
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for tick in TICKS:
        if x_low <= _across(tick) <= x_high:
            out.append(_line(x(tick), TOP, x(tick), bottom, "#ddd"))
            out.append(_text(x(tick), bottom + 18, f"{tick:g}", "middle"))
    for power in range(math.floor(y_low), math.ceil(y_high) + 1):
        for digit in (1, 2, 5):
            value = digit * 10.0 ** power
            if y_low <= math.log10(value) <= y_high:
                out.append(_line(LEFT, y(value), right, y(value), "#ddd"))
                out.append(_text(LEFT - 8, y(value) + 4, f"{value:,.0f}" if value >= 1 else f"{value:g}", "end"))
    out.append(f'<rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{bottom - TOP}" fill="none" stroke="#888"/>')
    out.append(_text((LEFT + right) / 2, HEIGHT - 16, "recall", "middle"))
    out.append(f'<text transform="translate(20 {(TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">{escape(label)}, '
               f'{"higher" if higher else "lower"} is better</text>')
    # GARLIC last, so that its curve lies on top.
    for name in sorted(series, key=lambda n: n == "garlic"):
        out += _curve(_front(series[name], higher), COLORS.get(name, "#555"), name == "garlic", x, y)
    # The legend in the order of the curves, as the reader meets them from above.
    middle = {n: sum(math.log(v) for _, v in points) / len(points) for n, points in series.items()}
    for row, name in enumerate(sorted(series, key=lambda n: -middle[n])):
        at, color = TOP + 14 + 22 * row, COLORS.get(name, "#555")
        out.append(_line(right + 16, at - 4, right + 44, at - 4, color, 3))
        weight = ' font-weight="bold"' if name == "garlic" else ""
        out.append(f'<text x="{right + 52}" y="{at}"{weight}>{escape("GARLIC" if name == "garlic" else name)}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def _curve(points, color, bold, x, y):
    path = " ".join(f"{x(r):.1f},{y(v):.1f}" for r, v in points)
    yield f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{3 if bold else 1.8}"/>'
    for recall, value in points:
        yield f'<circle cx="{x(recall):.1f}" cy="{y(value):.1f}" r="{4 if bold else 3}" fill="{color}"/>'


def _line(x1, y1, x2, y2, color, width=1):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" stroke-width="{width}"/>'


def _text(x, y, text, anchor):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
