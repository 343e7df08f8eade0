"""Charts of arrays as data: small pictures in rows and columns.

Rows of a metric say which places an array has numbers of, such as layers and heads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from probes.measurements.choosing import chosen
from probes.records.charts import Gallery, GalleryPanel, Picture

if TYPE_CHECKING:
    import pandas as pd

    from probes.measurements.frame import Findings


@dataclass(frozen=True)
class Maps:
    """An array of pictures with values from 0 to 1. Shape (rows, columns, height, width).

    Attributes:
        name: by which `figure` draws it: letters and underscores.
        array: its name in the file beside the record.
        metric: of which there is a row for each place.
        kind: the axis of these rows that says what kind of place it is.
        down, across: the columns of these rows that say where it is.
        kinds: in the order of their colours, each with the sign that pictures have.
        absent: why a record has no such array.
    """

    name: str
    array: str
    metric: str
    kind: str
    title: str
    note: str
    absent: str
    down: str = "layer"
    across: str = "head"
    kinds: Mapping[str, str] = field(default_factory=dict)

    def missing(self, found: Findings, model: str) -> str:
        """Why there is nothing to draw; empty if there is."""
        if self.array not in found.records[model].arrays:
            return self.absent
        if model not in found.arrays:
            return "its arrays cannot be read"
        return "" if found.arrays[model][self.array].size else self.absent

    def places(self, found: Findings, model: str) -> pd.DataFrame:
        """The kinds of all places, in rows and columns."""
        rows = chosen(found.frame, [self.metric], {})
        rows = rows[rows["model"] == model]
        return rows.pivot(index=self.down, columns=self.across, values=self.kind)

    def chart(self, found: Findings) -> Gallery:
        """A panel for each model."""
        gallery = Gallery(
            self.name,
            self.title,
            self.note,
            self.down,
            self.across,
            low=0.0,
            high=1.0,
            order=tuple(self.kinds),
        )
        for model in found.records:
            if why := self.missing(found, model):
                gallery.missing[model] = why
            else:
                gallery.panels[model] = self.panel(found, model)
        return gallery

    def panel(self, found: Findings, model: str) -> GalleryPanel:
        """The pictures of a model whose array is there."""
        places = self.places(found, model)
        # As it was rounded, which takes the fewest digits.
        maps = found.arrays[model][self.array].astype(np.float64).round(3).tolist()
        return GalleryPanel(
            tuple(map(str, places.index)),
            tuple(map(str, places.columns)),
            tuple(
                tuple(
                    Picture(tuple(map(tuple, values)), self.kinds.get(kind, ""), kind)
                    for kind, values in zip(kinds, pictures, strict=True)
                )
                for kinds, pictures in zip(places.to_numpy(), maps, strict=True)
            ),
        )
