"""What rows say of heads, as tests ask for it."""

from __future__ import annotations

from types import SimpleNamespace

from measuring import measured

from probes.families.attention.heads import choices, grid, head_frame


class HeadNumbers:
    """The rows of a record: its layers, the class of each head, those chosen, and grids."""

    def __init__(self, rows):
        self._frame = head_frame(rows)
        self.layers = sorted(self._frame["layer"].unique())
        self.choices = choices(rows)
        classes = self._frame[self._frame["metric"] == "class"]
        places = zip(classes["layer"], classes["head"], strict=True)
        self.classes = dict(zip(places, classes["feature"], strict=True))

    def of(self, metric, feature=None, direction=None, split="test"):
        """Arrays of layers × heads, and n and the kind of baseline; None if not measured."""
        where = {"feature": feature, "direction": direction, "split": split}
        columns = ("value", "low", "high", "baseline", "n", "baseline_kind")
        grids = {name: grid(self._frame, metric, name, **where) for name in columns}
        if grids["value"].empty:
            return None
        n, kind = (grids.pop(name).iloc[0, 0] for name in columns[4:])
        values, *others = (x.to_numpy(dtype=float) for x in grids.values())
        of = dict(zip(columns[1:4], others, strict=True))
        return SimpleNamespace(values=values, **of, n=n, kind=kind)

    def choices_of(self, metric):
        """Those of a measure."""
        return [choice for choice in self.choices if choice.test.metric == metric]


def one(model, corpus, out, *more):
    """The only record of attention, with its path."""
    found = measured(model, corpus, out, *more, "-q")
    assert found.status == 0
    ((path, record),) = found.records.items()
    heads = HeadNumbers(record.rows)
    return SimpleNamespace(path=path, record=record, heads=heads, line=found.line)
