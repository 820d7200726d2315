"""Reasons that numbers cannot give: why ours differ from the published ones, found by looking into it.

Keys are anchors of sections or `claim-N`; a note is shown with its section, or with its claim unless that agrees.
Only what an experiment or a test of this repository shows belongs here, with its name.
"""

from __future__ import annotations

NOTES: dict[str, str] = {
    "claim-4-at-120-steps": (
        "Splitting and cloning make several times as many cells as there were at the start: most cells that a query "
        "meets were made later."
    ),
    "claim-7-at-120-steps": (
        "Nothing but the covariance differs between our three. In 120 steps full covariances stay nearly round and cells "
        "cover next to no point (the column of covered points): there is no difference to see yet."
    ),
    "claim-7-when-trained": (
        "Nothing but the covariance differs between our three. Full covariances run away: they cover most points by few "
        "cells, of which the largest holds a third of the points. Trained in rotated space they do not (experiment "
        "training-length), and then are worth about twice as much a candidate as diagonal and isotropic ones, far from "
        "the published thirteen and twenty times."
    ),
    "losses": (
        "At 120 steps all terms give the same within the spread of the seeds. When trained, every variant with the "
        "divergence term is worth a fifth of what the cells were worth at 120 steps. Without it cells hardly cover points "
        "and keep most of that value: covering points is what the divergence asks for, and it makes retrieval dearer."
    ),
}
