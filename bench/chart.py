"""The chart of the README: recall against queries a second, from the results of `make bench`.

    python bench/chart.py docs/recall-and-speed.svg

Needs matplotlib. The background is transparent and all colours are of medium lightness, so that the chart can be read on
light and on dark pages. The same results give the same bytes.
"""

import json
import math
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import matplotlib.ticker

RESULTS = Path(__file__).parent / "results"
# Those that have results are drawn.
PANELS = {
    "fashion-mnist-784-euclidean": "Fashion-MNIST, 60,000 x 784",
    "photosift1m-128-euclidean": "photosift1m, 1,000,000 x 128",
    "techdocs-384-angular": "techdocs, text embeddings, 250,000 x 384",
}
NAMES = {
    "garlic": ("GARLIC", "#d6384c"),
    "symphonyqg": ("SymphonyQG", "#c653a8"),
    "rabitq-ivf": ("RaBitQ-IVF", "#8c9a2b"),
    "vsag": ("VSAG HGraph", "#6a6fd8"),
    "lorann": ("LoRANN", "#9a6fd0"),
    "faiss-pq": ("faiss IVF, PQ fast scan", "#3f7fd1"),
    "faiss-rabitq": ("faiss IVF, RaBitQ fast scan", "#5b9bd0"),
    "scann": ("ScaNN", "#cf8a1d"),
    "faiss-hnsw-sq": ("faiss HNSW, SQ8", "#46b39d"),
    "faiss-hnsw": ("faiss HNSW", "#2aa0b5"),
    "hnswlib": ("hnswlib", "#3f9b63"),
    "faiss-ivf": ("faiss IVF-Flat", "#7d92c9"),
    "usearch": ("usearch", "#a58560"),
}
TICKS = (0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998)
TARGETS = (0.90, 0.95, 0.99)
INK = "#787d85"


def front(rows):
    """(recall, queries a second) of the rows that no other row beats in both, recall ascending."""
    points = sorted(((row["recall"], row["qps"]) for row in rows), reverse=True)
    kept = []
    for recall, speed in points:
        if not kept or speed > kept[-1][1]:
            kept.append((recall, speed))
    return [p for p in kept[::-1] if TICKS[0] <= p[0] <= 0.9985]


def across(recall):
    """Every halving of the misses takes the same room."""
    return -math.log10(1 - recall)


def fastest(rows, target):
    """Queries a second of the fastest row that reaches a recall, 0 if none does."""
    return max((row["qps"] for row in rows if row["recall"] >= target), default=0)


def panel(axes, name, title):
    """Draws the curves of one data set. A library that beats GARLIC at a target has a wider one."""
    rivals = json.loads((RESULTS / f"{name}.json").read_text())["rivals"]
    unknown = rivals.keys() - NAMES.keys()
    if unknown:
        raise SystemExit(f"{name}: no name and colour for {', '.join(sorted(unknown))}; add them to NAMES")
    rows = {rival: [row for row in rivals[rival]["rows"] if row["k"] == 10 and row["mode"] == "batch"]
            for rival in NAMES if rival in rivals}
    for rival, own in rows.items():
        label, color = NAMES[rival]
        points = front(own)
        ours = rival == "garlic"
        wins = any(fastest(own, t) > fastest(rows.get("garlic", []), t) for t in TARGETS)
        axes.plot([across(r) for r, _ in points], [q for _, q in points], color=color, label=label, marker="o",
                  markersize=4 if ours else 2.5, linewidth=2.6 if ours else 2 if wins else 1.3, zorder=3 if ours else 2)
    axes.set_yscale("log")
    axes.set_xticks([across(t) for t in TICKS], [f"{t:g}" for t in TICKS])
    axes.yaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_title(title, fontsize=11)
    axes.set_xlabel("10-recall@10")
    axes.grid(color=INK, alpha=0.25, linewidth=0.7)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def main():
    out = Path(sys.argv[1])
    plt.rcParams.update({
        "svg.fonttype": "none", "svg.hashsalt": "garlic", "font.family": "sans-serif", "font.size": 10, "text.color": INK,
        "axes.edgecolor": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.titlecolor": INK,
    })
    panels = {name: title for name, title in PANELS.items() if (RESULTS / f"{name}.json").is_file()}
    if not panels:
        raise SystemExit(f"no results in {RESULTS}: run `make bench` first")
    figure, row = plt.subplots(1, len(panels), squeeze=False)
    for axes, (name, title) in zip(row[0], panels.items(), strict=True):
        panel(axes, name, title)
    row[0][0].set_ylabel("queries a second, one core")
    # One legend for all panels: a library may be missing in some of them.
    handles = {label: handle for axes in row[0] for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    labels = [label for label, _ in NAMES.values() if label in handles]
    columns = 2 * len(panels)
    legend = 0.26 * math.ceil(len(labels) / columns)
    height = 3.9 + legend
    figure.set_size_inches(5 * len(panels), height)
    figure.legend([handles[label] for label in labels], labels, loc="lower center", ncols=columns, frameon=False)
    figure.tight_layout(rect=(0, legend / height, 1, 1))
    figure.savefig(out, transparent=True, metadata={"Date": None, "Creator": "bench/chart.py"})


if __name__ == "__main__":
    main()
