"""Rows of records, by what they are numbers of."""


def row_of(rows, metric, layer=None, split="test", **axes):
    """The one row of a metric that is of this layer and split, with exactly these axes."""
    (found,) = (
        row
        for row in rows
        if (row.metric, row.layer, row.split, dict(row.axes)) == (metric, layer, split, axes)
    )
    return found


def value_of(rows, metric, layer=None, split="test", **axes):
    """Its value."""
    return row_of(rows, metric, layer, split, **axes).value
