"""Layer × training step, from stored records."""

import pytest
from board_by_hand import N, put
from drawn import data_of, svg, texts

from probes.__main__ import main
from probes.boards.groups import group
from probes.boards.score_charts import revision_of, steps
from probes.common.errors import UserError
from probes.measurements.joined_results import find_results
from probes.tables.charts import PAPER


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("org/m@step1000", ("org/m", 1000)),
        ("m@step-2000", ("m", 2000)),
        ("m@1000", ("m", 1000)),
        ("m@stage1-step150-tokens1B", ("m", 150)),
        ("m@v1.2", None),
        ("m@main", None),
        ("m", None),
        ("pythia-160m", None),
        ("checkpoint-500", ("", 500)),
        ("mine-checkpoint-500", ("mine", 500)),
        ("step_7", ("", 7)),
    ],
)
def test_the_step_is_in_the_name(name, expected):
    assert revision_of(name) == expected


def drawn(folder):
    (found,), _ = group(find_results(folder))
    return steps(found, PAPER)


def test_a_row_per_layer_and_a_column_per_step_in_numeric_order(tmp_path):
    for step, wrongs in ((2000, (300, 100)), (1000, (320, 200)), (10, (340, 360))):
        put(tmp_path, f"m@step{step}", "pos", 0, wrongs=wrongs)
    put(tmp_path, "m@step1000", "depth", 0, wrongs=(40, 20))
    put(tmp_path, "m", "pos", 0, wrongs=(1, 2))
    put(tmp_path, "random:m", "pos", 0, wrongs=(1, 2), random_seed=0)
    found = drawn(tmp_path)
    cells = {
        (row["panel"].split("\n")[0], row["row"], row["column"]): row
        for row in data_of(found.chart)
    }
    wrongs = {"2000": (300, 100), "1000": (320, 200), "10": (340, 360)}
    expected = {
        ("pos", str(layer), step): 100 * (1 - wrong / N)
        for step, each in wrongs.items()
        for layer, wrong in enumerate(each)
    }
    expected |= {("depth", "0", "1000"): 90, ("depth", "1", "1000"): 95}
    assert {place: row["value"] for place, row in cells.items()} == pytest.approx(expected)
    order = {row["column"]: row["column_at"] for row in cells.values()}
    assert sorted(order, key=order.get) == ["10", "1000", "2000"]
    assert {"layer", "training step"} <= set(texts(svg(found.chart)))
    assert sorted(found.missing) == ["m", "random:m"]


def test_steps_of_two_models_are_no_figure(tmp_path):
    put(tmp_path, "m@step1", "pos", 0)
    put(tmp_path, "n@step2", "pos", 0)
    with pytest.raises(UserError, match=r"steps of several models \(m, n\); name the folders of"):
        drawn(tmp_path)


def test_two_revisions_of_one_step_are_no_figure(tmp_path):
    put(tmp_path, "m@step1", "pos", 0)
    put(tmp_path, "m@1", "pos", 0)
    with pytest.raises(UserError, match="are both of step 1; name one of them"):
        drawn(tmp_path)


def test_the_command_draws_it(tmp_path, capsys):
    for step in (1, 2):
        put(tmp_path, f"m@step{step}", "pos", 100)
    put(tmp_path, "other", "pos", 100)
    path = tmp_path / "f.pdf"
    assert main(["figure", "steps", str(tmp_path), "-o", str(path)]) == 0
    assert path.read_bytes().startswith(b"%PDF")
    assert "not drawn: other (its name has no training step)" in capsys.readouterr().err
