"""Rows of records, by what they are numbers of."""


def row_of(rows, metric, layer=None, split="test", **axes):
    """The one row of a metric that is of this layer and split, with exactly these axes."""
    (found,) = (
        row
        for row in rows
        if (row.metric, row.layer, row.split, dict(row.axes)) == (metric, layer, split, axes)
    )
    return found


def values_along(rows, axis, metric, layer=None):
    """The values of a metric at a layer along one axis, such as ``draw``."""
    return [
        row.value for row in rows if (row.metric, row.layer, *row.axes) == (metric, layer, axis)
    ]


def value_of(rows, metric, layer=None, split="test", **axes):
    """Its value."""
    return row_of(rows, metric, layer, split, **axes).value
