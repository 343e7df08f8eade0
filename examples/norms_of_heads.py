"""A chart of one's own: a class to be given in `shows=` of a measurement.

`shown.frame` has the rows of all models, with a column for each axis; `shown.arrays` their arrays.
`style` has the width of the chart and its font. Put names that users choose, such as labels, into
the data: Vega reads them as expressions in titles of tooltips.
"""


class NormsOfHeads:
    name = "norms_of_heads"
    title = "Norms of heads"
    note = "Mean over test words."

    def missing(self, shown):
        return {}

    def chart(self, shown, style):
        from probes import heat_map  # imports pandas

        rows = shown.frame[shown.frame["metric"] == "head_norm"]
        cells = rows.rename(columns={"layer": "row", "head": "column"})
        cells = cells.assign(panel=cells["model"], text=cells["value"].map("{:.1f}".format))
        columns = ["panel", "model", "row", "column", "value", "text"]
        return heat_map(
            cells[columns],
            style,
            down="layer",
            across="head",
            legend_title="mean norm",
            title=self.title,
        )
