"""Tables in the terminal."""

import io
import json
import re
from dataclasses import replace

import pytest
import vl_convert
from results_by_hand import make_result
from rich.console import Console

from probes.boards.layer_tables import score_table
from probes.tables.colours import shade
from probes.tables.printing import print_table
from probes.tables.table import Table, TableRow


@pytest.mark.parametrize(("width", "tables"), [(60, 5), (80, 3), (200, 1)])
def test_a_table_of_many_tasks_is_split_and_nothing_is_cut(width, tables):
    console = Console(width=width, record=True, file=io.StringIO())
    names = [f"long-task-name-{i}" for i in range(9)]
    print_table(score_table([make_result(name, (0.123, 0.456)) for name in names]), console)
    text = console.export_text()
    assert "…" not in text
    assert text.count("m · c · linear probe") == 1
    assert text.count("\nlayer ") == tables
    assert [text.count(name) for name in names] == [1] * 9
    assert text.count("45.6★") == 9


def test_no_table_is_wider_than_the_terminal():
    names = ("pos", "a-longer-name", "dep")
    for width in range(40, 90):
        console = Console(width=width, record=True, file=io.StringIO())
        print_table(score_table([make_result(name, (0.123, 0.456)) for name in names]), console)
        text = console.export_text()
        rules = [line for line in text.splitlines() if line.startswith("─")]
        assert rules
        assert all(len(line) <= width for line in text.splitlines())
        assert all(len(rule.strip()) == len(rule) for rule in rules)
        assert [text.count(f"{name}") for name in names] == [1] * 3


def test_heads_of_several_words_are_broken_where_the_last_column_would_not_fit():
    heads = ("layer", "anisotropy", "standardised anisotropy", "participation ratio", "norm",
             "sd of norm", "position, %")  # fmt: skip
    table = Table("t", heads, (TableRow.of("0", ".061", ".003", "80.6", "9.60", "1.72", "6.3"),))
    for repeated, width in ((0, 82), (1, 80)):
        console = Console(width=width, record=True, file=io.StringIO())
        print_table(replace(table, repeated=repeated), console)
        text = console.export_text()
        assert text.count("layer") == 1
        assert all(word in text for head in heads for word in head.split())
        assert "6.3" in text


def test_shades_are_those_of_the_heat_maps():
    """They are those of viridis, as Vega has it."""
    spec = {
        "data": {"values": [{"i": i} for i in range(101)]},
        "mark": "point",
        "encoding": {
            "fill": {"field": "i", "type": "quantitative", "scale": {"scheme": "viridis"}}
        },
    }
    text = json.dumps(vl_convert.vegalite_to_scenegraph(spec)["scenegraph"])
    drawn = re.findall(r'"fill": "rgb\((\d+), (\d+), (\d+)\)"', text)[:101]
    for i, parts in enumerate(drawn):
        assert shade(i / 100) == pytest.approx(list(map(int, parts)), abs=20)
