"""Tables of heads, on records made by hand."""

import pytest
from corpus_records import store_record
from heads_by_hand import attention, choice, numbers

from probes.__main__ import main
from probes.families.attention.tables import choice_tables, head_tables
from probes.records.row import Rows

OWN, TWIN = {"model": "m"}, {"model": "random:m", "digest": "r", "random_seed": 0}


def test_entropy_of_every_head_in_percent():
    of_heads = [numbers("entropy", [[0.881, 0.2], [0.5, 1.0]], (1.0, 1.0))]
    (table,) = head_tables(attention(of_heads=of_heads), "entropy")
    assert table.heads == ("layer", "1", "2", "mean")
    assert table.texts == [("1", "88", "20", "54"), ("2", "50", "100", "75")]


def masses(vertical, diagonal, uniform=(0.0, 0.0)):
    """Rows of masses of every head."""
    return [
        numbers("pattern", vertical, uniform, feature="vertical"),
        numbers("pattern", diagonal, uniform, feature="diagonal"),
    ]


def test_classes_of_every_head_and_their_counts_by_bound():
    names = [["vertical", "diagonal"], ["vertical + diagonal", "heterogeneous"]]
    found = masses([[0.9, 0.1], [0.35, 0.45]], [[0.1, 0.65], [0.25, 0.1]])
    signs, counts = head_tables(attention((), found, names), "pattern")
    assert signs.texts == [("1", "V", "D"), ("2", "VD", "H")]
    assert counts.texts == [
        ("1", "50.0", "37.5", "1", "1", "–", "–"),
        ("2", "40.0", "17.5", "–", "–", "1", "1"),
        # .45 is vertical with the first bound, .35 + .25 is mixed with all but the last, and .65 is
        # diagonal with all but that.
        ("all, .4", "–", "–", "2", "1", "1", "–"),
        ("all, .5", "–", "–", "1", "1", "1", "1"),
        ("all, .6", "–", "–", "1", "1", "1", "1"),
        ("all, .7", "–", "–", "1", "–", "–", "3"),
    ]
    assert [row.ends_section for row in counts.rows] == [False, True, *[False] * 4]


@pytest.mark.parametrize(
    ("by", "place", "odd"),
    [
        ("relation", {"chosen": "best on dev", "baseline": None}, {"feature": "x"}),
        ("relation", {"chosen": "best on dev", "baseline": "chance"}, {"baseline": None}),
        ("relation", {"chosen": "best on dev", "baseline": None}, {"head": None}),
        ("relation", {"chosen": "best on dev", "baseline": None}, {"direction": "x"}),
        ("pattern", {"feature": "vertical", "head": 1}, {"baseline": "x"}),
        ("pattern", {"feature": "heterogeneous"}, {"feature": "x"}),
    ],
)
def test_a_record_with_one_odd_axis_is_left_out(tmp_path, capsys, by, place, odd):
    whole = attention([choice("nsubj")], masses([[0.5]], [[0.5]]), **OWN)
    rows = list(whole.rows)
    (n, *_) = (
        i for i, row in enumerate(rows) if all(row.axes.get(x) == y for x, y in place.items())
    )
    changed = {axis: x for axis, x in {**rows[n].axes, **odd}.items() if x is not None}
    rows[n] = rows[n]._replace(axes=changed)
    sound = whole.model_copy(update={"model": whole.model.model_copy(update={"name": "sound"})})
    store_record(tmp_path, sound)
    path = store_record(tmp_path, whole.model_copy(update={"rows": Rows.of(rows)}))
    assert main(["heads", str(tmp_path), "--by", by]) == 0
    said = capsys.readouterr()
    assert f"left out {path}: its rows are not those of heads (" in said.err
    assert "sound" in said.out


def chosen(n_rare=60):
    own = [
        choice("det", at=(3, 2), test=0.31, n_test=300, p=0.4, half=0.1, chance=0.08),
        choice("obj", at=(3, 1), test=0.7, n_test=200),
        choice("list", at=(2, 1), test=0.2, n_test=n_rare, p=None, half=None),
    ]
    note = "[relations] Not scored (too rare); words in test: fixed 7."
    return attention(own, notes=(note,), **OWN)


def relations(**more):
    (table,) = choice_tables("m", chosen(), **more)
    return table


def test_choices_beside_the_offset_and_chance():
    table = relations()
    assert table.title == "m · relations · test, %"
    assert table.heads == (
        "relation", "n", "head", "attends", "test", "baseline", "chance", "difference", "p",
    )  # fmt: skip
    assert table.texts == [
        ("det", "300", "3–2", "to head", "31.0 ± 1.0", "30.0 (−2)", "8.0", "+1.0 ± 10.0", ".400"),
        ("obj", "200", "3–1", "to head", "70.0 ± 1.0", "30.0 (−2)", "10.0", "+40.0 ± 5.0", ".001"),
    ]
    assert [row.cells[4].best for row in table.rows] == [False, True]
    assert table.notes[1:] == (
        "★: above the baseline. p: two-sided, corrected for 2 tests; head and baseline must differ "
        "in at least 20 sentences.",
        "1 rarer relations are in heads.csv.",
        "Not scored (too rare); words in test: fixed 7.",
    )


def test_rare_choices_are_listed_on_demand():
    table = relations(with_rare=True)
    assert [row[0] for row in table.texts] == ["det", "obj", "list"]
    assert table.texts[-1][4:] == ("20.0 ± 1.0", "30.0 (−2)", "10.0", "−10.0", "–")
    assert len(table.notes) == 3


@pytest.fixture
def stored_heads(tmp_path):
    """A model, its random twin, and a model read without relations."""
    of_heads = [numbers("entropy", [[0.5, 0.25]] * 2, (1.0, 1.0))]
    of_heads += masses([[0.1] * 2] * 2, [[0.1] * 2] * 2)
    store_record(tmp_path, attention([choice("obj")], of_heads, **OWN))
    store_record(tmp_path, attention([choice("obj", at=(2, 2))], of_heads, **TWIN))
    store_record(tmp_path, attention((), of_heads, model="poor", digest="p"))
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "models", "title", "lines"),
    [
        ((), ("m", "random:m"), "relations · test, %", ["| obj | 200 | 1–1", "| obj | 200 | 2–2"]),
        (("--by", "entropy"), ("m", "random:m", "poor"), "entropy, %", ["| 1 | 50 | 25 | 38 |"] * 3),
    ],
)  # fmt: skip
def test_a_twin_has_a_table_after_its_model(stored_heads, capsys, arguments, models, title, lines):
    assert main(["heads", str(stored_heads), *arguments, "--format", "md"]) == 0
    found = capsys.readouterr()
    titles = [x for x in found.out.splitlines() if x.startswith("#")]
    assert titles == [f"### {model} · c 1 · {title}" for model in models]
    starts = [x[: len(lines[0])] for x in found.out.splitlines()]
    assert [x for x in starts if x in lines] == lines
    assert (
        ("left out" in found.err)
        == ("it has no relations or trees" in found.err)
        == (not arguments)
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["poor"], "poor: no heads were chosen"),
        (["nothing"], "nothing: there is no such folder"),
        (["m", "--by", "head"], "--by head: give entropy, pattern or relation."),
    ],
)
def test_what_cannot_be_shown(stored_heads, capsys, arguments, said):
    place, *more = arguments
    assert main(["heads", str(stored_heads / place), *more]) == 2
    (line,) = [x for x in capsys.readouterr().err.splitlines() if x.startswith("error: ")]
    assert said in line
