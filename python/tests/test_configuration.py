"""docs/reference/configuration.md lists every parameter with its default, as `garlic config` prints them."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8")


def told(text):
    return dict(re.findall(r"^\| `(\w+)` \| `([^`]*)` \|", text, re.M))


def same(shown, value):
    """Numbers by their value, everything else as text."""
    try:
        return [float(v) for v in shown.strip("[]").split(",")] == [float(v) for v in value.strip("[]").split(",")]
    except ValueError:
        return shown == value.strip('"')


def test_every_parameter_and_default(program):
    ours, published = PAGE.split("## The published method\n")
    shown = {"default": told(ours), "paper": told(published)}
    values = {}
    for preset in shown:
        text = subprocess.run([program, "config", "--preset", preset], check=True, capture_output=True, text=True).stdout
        values[preset] = dict(re.findall(r"^(\w+) = (.*)$", text, re.M))
        values[preset].pop("gradient_epochs", None)
    keys = [*shown["default"], *shown["paper"]]
    assert sorted(keys) == sorted(set(values["default"]) | set(values["paper"]))
    wrong = [k for preset in shown for k, v in shown[preset].items() if not same(v, values[preset][k])]
    assert not wrong
