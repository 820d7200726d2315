"""Reasons that numbers cannot give: why ours differ from the published ones, found by looking into it.

Keys are anchors of sections or `claim-N`; a note is shown with its section, or with its claim unless that agrees.
Only what an experiment or a test of this repository shows belongs here, with its name.
"""

from __future__ import annotations

NOTES: dict[str, str] = {}
