"""Control characters in labels, groups and notes are escaped in every format, as in names."""

import json
import re

import pytest
from results_by_hand import make_result, with_rows

from probes.pages.layers_md import layers_md
from probes.pages.page import table_html, templates
from probes.pages.page_charts import packed
from probes.records.row import Row
from probes.tables.printing import printer
from probes.tables.table import Cell, Table, TableRow

ODD = "a\x1b[31mb\x07\u202e\x00z"
ESCAPED = r"a\x1b[31mb\x07\u202e\x00z"
ROW = TableRow.of(ODD, Cell("1", note=ODD, value=1.0))
TABLE = Table(ODD, (ODD, f"x\n{ODD}"), (ROW,), notes=(ODD,))


def require_plain(text):
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)


@pytest.mark.parametrize("form", ["table", "md", "csv", "json", "latex"])
def test_tables_in_every_format(form, capsys):
    with printer.printing(form):
        printer.show([TABLE])
        printer.say(ODD)
    said = capsys.readouterr().out
    require_plain(said)
    if form == "json":
        assert json.loads(said)[0]["table"] == ESCAPED
    elif form == "csv":
        assert said.count(ESCAPED) == 6


def test_rows_for_programs(capsys):
    with printer.printing("csv"):
        printer.show([TABLE], [{"label": ODD}])
    assert capsys.readouterr().out == f'"label"\n"{ESCAPED}"\n'
    with printer.printing("json"):
        printer.show([TABLE], [{"label": ODD}])
    said = capsys.readouterr().out
    require_plain(said)
    assert json.loads(said) == [{"label": ODD}]


def test_documents_and_charts():
    result = make_result("pos", [0.5, 0.9], groups={ODD: 9})
    result = with_rows(result, [Row("accuracy", 0.5, 1, axes={"group": ODD})])
    text = layers_md([result])
    for each in (table_html(TABLE), text, templates().from_string("{{ x }}").render(x=ODD)):
        require_plain(each)
        assert "x1b[31mb" in each
    assert packed({"label": [ODD]}) == packed({"label": [ESCAPED]})
