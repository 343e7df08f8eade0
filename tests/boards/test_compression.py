"""What smaller models keep of a larger one's gain: by hand and by numpy, on written results."""

import shutil

import numpy as np
import pytest
from board_by_hand import N, put
from drawn import column

from probes.__main__ import main
from probes.boards.compression import kept_gains
from probes.boards.score_charts import kept_gain
from probes.boards.shown_together import all_groups
from probes.frames.joined_results import find_results
from probes.tables.charts import PAPER
from probes.tables.printing import TIE

FIRST_HALF = np.arange(N) < N // 2
"""Words on which a rule is right. Models err on the first words, so the two are unlike."""

MACHINE = {"processor": "p", "cores": "2", "memory": "8 GiB", "device": "cpu", "threads": "1"}


@pytest.fixture
def stored_results(tmp_path):
    """A teacher, two students and a twin; a rule has half of the words of pos right."""
    rules, known = {"majority": FIRST_HALF}, {"words_per_second": "100", **MACHINE}
    for model, size, pos, srl, speed in (
        ("large", 100_000_000, 40, 80, "100"),
        ("medium", 50_000_000, 120, 200, "250"),
        ("small", 8_000_000, 240, 60, None),
    ):
        said = {**known, "words_per_second": speed} if speed else {**MACHINE, "cores": "64"}
        fields = {"model__parameters": size, "provenance": said, "p_best": False}
        put(tmp_path, model, "pos", pos, rules=rules, **fields)
        put(tmp_path, model, "srl", srl, wrongs=(220, srl), **fields)
    # .6, above layer 0 with .45.
    put(tmp_path, "random:large", "srl", 160, random_seed=0, model__parameters=100_000_000)
    for path in tmp_path.rglob("*-training_variance-*"):
        path.unlink()
    return tmp_path


def kept(folder, task):
    results = find_results(folder).values()
    found = {x.model.name: x for x in results if x.task.name == task}
    students = {name: found[name] for name in ("medium", "small")}
    return kept_gains(found["large"], students)


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("pos", {"medium": (0.7 - 0.5) / (0.9 - 0.5), "small": (0.4 - 0.5) / (0.9 - 0.5)}),
        ("srl", {"medium": (0.5 - 0.6) / (0.8 - 0.6), "small": (0.85 - 0.6) / (0.8 - 0.6)}),
    ],
)
def test_shares_by_hand_above_a_rule_and_above_a_twin(task, expected, stored_results):
    found = kept(stored_results, task)
    assert {name: x.value for name, x in found.items()} == pytest.approx(expected)


@pytest.mark.parametrize(
    ("task", "right", "floor"),
    [
        ("pos", {"large": 40, "medium": 120, "small": 240}, FIRST_HALF),
        ("srl", {"large": 80, "medium": 200, "small": 60}, np.arange(N) >= 160),
        # Without the twin, the floor is layer 0.
        ("no twin", {"large": 80, "medium": 200, "small": 60}, np.arange(N) >= 220),
    ],
)
def test_intervals_are_those_of_words_that_numpy_resamples(task, right, floor, stored_results):
    if task == "no twin":
        (folder,) = stored_results.glob("random*")
        shutil.rmtree(folder)
        task = "srl"
    found = kept(stored_results, task)
    drawn = np.random.default_rng(7).integers(N, size=(20_000, N))
    score = {name: (drawn >= wrong).mean(1) for name, wrong in right.items()}
    lowest = floor[drawn].mean(1)
    for name in ("medium", "small"):
        shares = (score[name] - lowest) / (score["large"] - lowest)
        ends = np.quantile(shares, (0.025, 0.975))
        width = np.ptp(ends)
        assert found[name].interval == pytest.approx(ends, abs=0.07 * width)
        assert width > 0.05


def test_training_variance_widens_the_intervals(tmp_path):
    widths = []
    for place, p_best in (("with", None), ("without", False)):
        for model, wrong in (("large", 40), ("medium", 120), ("small", 100)):
            more = {} if p_best is None else {"p_best": p_best}
            put(tmp_path / place, model, "pos", wrong, **more)
        low, high = kept(tmp_path / place, "pos")["medium"].interval
        widths.append(high - low)
    assert widths[0] > 1.1 * widths[1]


def test_no_share_of_a_gain_that_may_be_nothing_and_of_scores_that_cannot_be_resampled(tmp_path):
    for model, wrong in (("large", 190), ("medium", 120), ("small", 100)):
        put(tmp_path / "0", model, "pos", wrong, rules={"majority": FIRST_HALF})
        put(tmp_path / "1", model, "pos", wrong, predictions=model != "small")
        put(tmp_path / "2", model, "pos", wrong, predictions=model != "large")
    for x in kept(tmp_path / "0", "pos").values():
        assert (x.value, x.interval, x.missing) == (None, None, "the gain may be 0")
    found = kept(tmp_path / "1", "pos")
    assert found["medium"].value == pytest.approx((0.7 - 0.25) / (1 - 190 / N - 0.25))
    apart = "scores cannot be resampled together"
    assert (found["small"].value, found["small"].missing) == (None, apart)
    assert {x.missing for x in kept(tmp_path / "2", "pos").values()} == {apart}


def lines(folder, capsys, *models):
    assert main(["compare", *models, "--results", str(folder), "--format", "md"]) == 0
    return capsys.readouterr().out.replace(TIE, " ").splitlines()


def test_compare_begins_with_size_speed_and_shares(stored_results, capsys):
    found = lines(stored_results, capsys, "large", "medium", "small")
    assert found[0] == "### c 1 · linear probe · compression"
    table = [line for line in found if line.startswith("|")][:5]
    assert table[0] == (
        "| model | parameters | times smaller | times faster | pos (accuracy) | srl (accuracy) |"
    )
    begins = [
        "| large | 100.0M | 1.0 | 1.0 |  |  |",
        "| medium | 50.0M | 2.0 | 2.5 | 50.0 ± ",
        "| small | 8.0M | 12.5 | – | −25.0 ",
    ]
    assert [line[: len(begin)] for line, begin in zip(table[2:], begins, strict=True)] == begins
    assert any(line.endswith("· best layers") for line in found)
    # Students may be larger. Only in srl does small score above its floor, and it has no speed.
    found = lines(stored_results, capsys, "small", "large")
    assert "| large | 100.0M | 0.08 | 87.5 " in "\n".join(found)
    assert "No share of pos: the gain may be 0." in found


def test_models_of_one_size_are_not_called_compressed(tmp_path, capsys):
    for model in ("one", "two"):
        put(tmp_path, model, "pos", 40)
    assert not [x for x in lines(tmp_path, capsys, "one", "two") if "compression" in x]


def test_the_figure_shows_shares_by_size(stored_results, capsys):
    (found,), _ = all_groups(find_results(stored_results))
    drawn = kept_gain(found, PAPER)
    assert drawn.missing == {}
    of_pos = {"panel": "pos"}
    assert column(drawn.chart, "model", **of_pos) == ["medium", "small"]
    assert column(drawn.chart, "x", **of_pos) == [50e6, 8e6]
    assert column(drawn.chart, "value", **of_pos) == pytest.approx([50, -25])
    assert column(drawn.chart, "value", panel="srl") == pytest.approx([-50, 125])
    assert set(column(drawn.chart, "level")) == {100}
    ends = [column(drawn.chart, end, **of_pos) for end in ("low", "high")]
    shares = [100 * x for x in kept(stored_results, "pos")["medium"].interval]
    assert [x[0] for x in ends] == pytest.approx(shares)
    page = str(stored_results / "a.svg")
    assert main(["figure", "kept-gain", str(stored_results), "-o", page]) == 0
    text = (stored_results / "a.svg").read_text()
    assert all(x in text for x in ("large", "parameters", "kept, %"))
    alone = [str(x) for x in stored_results.glob("medium*")]
    assert main(["figure", "kept-gain", *alone, "-o", str(stored_results / "b.svg")]) == 2
    assert "medium: there is no other model" in capsys.readouterr().err
