"""Recipes: membership, refusals, means and intervals over seeds, comparisons, and a run of real models."""

import re

import numpy as np
import pytest
from board_by_hand import N, put, put_evidence
from grammar_models import save_causal
from tiny_runs import run, shortened_schedule

from probes.__main__ import main
from probes.boards.recipes import recipe_and_seed, recipe_results
from probes.frames.joined_results import find_results, read_result
from probes.records.row import Row
from probes.statistics.bootstrap import resample

WRONG = {
    **{"a-seed-0": 20, "a-seed-1": 26, "a-seed-2": 35},
    **{"b-seed-0": 50, "b-seed-1": 70, "b-seed-2": 68},
}
WRONGS = [*WRONG.values()]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("multiberts/seed-3", ("multiberts", "3")),
        ("google/multiberts-seed_12-step_20k", ("google/multiberts-step_20k", "12")),
        ("seed-3", ("seed", "3")),
        ("m@seed7", ("m", "7")),
        ("random:org/m", ("random:org/m", "0")),
        ("random-4:seed-3", ("random:seed-3", "4")),
        ("linseed-3", None),
        ("seed-7b", None),
        ("bert-base", None),
    ],
)
def test_recipe_and_seed_are_in_the_name(name, expected):
    assert recipe_and_seed(name) == expected


@pytest.fixture
def stored_results(tmp_path):
    for model, wrong in WRONG.items():
        put(tmp_path / "results", model, "pos", wrong)
    return tmp_path / "results"


def refused(capsys, *words):
    assert main([*map(str, words)]) == 2
    (line,) = re.findall("^error: .*$", capsys.readouterr().err, re.MULTILINE)
    return line


def test_a_recipe_s_table_has_means_and_intervals_over_seeds_and_sentences(stored_results, capsys):
    assert main(["show", str(stored_results), "--recipes", "--format", "md"]) == 0
    text = capsys.readouterr().out
    assert "recipe a · c 1 · linear probe · test" in text
    a, _ = recipe_results(find_results(stored_results), None)
    assert [*a.seeds] == ["0", "1", "2"]
    wrong = np.array([20, 26, 35])
    cell = a.score_cell(1)
    assert cell.best
    assert cell.value == pytest.approx(1 - 27 / N)
    # Sentences resampled for all seeds at once, and t with 2 degrees of freedom for seeds.
    rng, n = np.random.default_rng(3), 400_000
    sampled = resample(N) @ (np.arange(N) < wrong[:, None]).mean(0) / N
    noise = rng.choice(sampled, n) + wrong.std(ddof=1) / N / np.sqrt(3) * rng.standard_t(2, n)
    low, high = 1 - np.quantile(noise, [0.975, 0.025])
    assert cell.interval == pytest.approx((low, high), abs=0.006)
    assert "Only 3 seeds: how much scores vary over seeds cannot be concluded" in text
    # 95 % of χ² with 2 degrees of freedom lie between −2 ln .975 and −2 ln .025.
    factors = [np.sqrt(2 / (-2 * np.log(x))) for x in (0.025, 0.975)]
    assert "may be {:.1f} to {:.1f} times".format(*factors) in text


def test_training_of_probes_is_in_the_table_where_all_seeds_have_it(stored_results, capsys):
    """Two samples: one shared by all seeds adds .02, and nothing belongs to single seeds."""
    assert "probe training" in shown_variance(stored_results, capsys)
    for path in find_results(stored_results):
        score = read_result(path).score(1)
        rows = [Row("accuracy", score + x, 1, axes={"sample": i}) for i, x in ((1, 0.0), (2, 0.02))]
        put_evidence(path, "training_variance", [Row("training_sd", 0.01, n=1), *rows])
    row = re.search(r"\| pos .*\|", shown_variance(stored_results, capsys))[0]
    assert row.split(" | ")[-1].strip(" |") == f"{100 * 0.02 / np.sqrt(2):.2f}"


def shown_variance(folder, capsys):
    assert main(["show", str(folder), "--recipes", "--format", "md"]) == 0
    return capsys.readouterr().out.partition("what varies")[2]


def test_recipes_are_compared_and_paired_where_seeds_are_shared(stored_results, tmp_path, capsys):
    def row(*more):
        assert main(["compare", str(stored_results), "--recipes", *more, "--format", "md"]) == 0
        found = capsys.readouterr().out
        (line,) = re.findall(r"^\|  \| (.*) \|$", found, re.MULTILINE)
        name, n, best, _, difference, p = line.split(" | ")
        assert (name, n, best) == ("b", "3", "1/1")
        ends = re.search(r"\[(\S+), (\S+)\]", difference.replace("−", "-")).groups()
        value = difference.partition(" ")[0]
        return value, tuple(map(float, ends)), float(p.replace("&lt;", "")), found

    def expected(rights, variance, df):
        """Sentences resampled for all seeds alike, and Student's t for seeds."""
        rng, n = np.random.default_rng(4), 400_000
        sampled = resample(N) @ (np.arange(N) < np.array(WRONGS)[:, None]).T.dot(rights) / N
        noise = rng.choice(sampled, n) + np.sqrt(variance) / N * rng.standard_t(df, n)
        return pytest.approx(100 * np.quantile(noise, [0.025, 0.975]), abs=1.3)

    value, ends, p, text = row()
    assert value == "−8.9"
    assert "Seeds are paired" in text
    rights = np.array([1, 1, 1, -1, -1, -1]) / 3
    assert ends == expected(rights, np.var([30, 44, 33], ddof=1) / 3, 2)
    assert p < 0.05
    # A recipe of other seeds is not paired.
    recipes = tmp_path / "recipes.toml"
    recipes.write_text('[recipes]\na = ["a-seed-*"]\nb = ["b-seed-1", "b-seed-2", "z-*"]\n')
    put(stored_results, "z-seed-9", "pos", 50)
    variances = np.var(WRONGS[:3], ddof=1) / 3, np.var(WRONGS[3:], ddof=1) / 3
    df = int(sum(variances) ** 2 / sum(x**2 / 2 for x in variances))
    value, ends, _, text = row(str(recipes))
    assert value == "−8.9"
    assert ends == expected(rights, sum(variances), df)


CASES = {
    "another corpus": ("corpus__digest", "x", "a-seed-7 cannot be compared with a-seed-0 on pos (corpus files x"),
    "another pooling": ("pooling", "last", "(pooling last, not mean)"),
    "other layers": ("wrongs", (9,), "(layers 0, not 1)"),
    "the same seed": ("model", "a_seed_2", "are both of seed 2; a recipe has one model of each seed"),
    "the same weights": ("model__digest", "a-seed-0 None", "a-seed-0 and a-seed-7 are the same model"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_may_not_stand_together_is_refused_in_one_line(stored_results, capsys, case):
    field, value, said = CASES[case]
    name = value if field == "model" else "a-seed-7"
    put(stored_results, name, "pos", 9, **({} if field == "model" else {field: value}))
    recipes = stored_results / "recipes.toml"
    recipes.write_text('[recipes]\na = ["a[-_]seed[-_]*"]\n')
    line = refused(capsys, "show", stored_results, "--recipes", recipes)
    assert line.startswith("error: recipe a: ")
    assert said in line


FILES = {
    "[recipes]\na = []": "a: give a list of globs of model names.",
    '[recipes]\na = [""]': "a: give a list of globs of model names.",
    "recipes = 3": "no recipes; give a table [recipes]",
    "[recipes": "not TOML",
    '[recipes]\n"" = ["a-*"]': "a recipe has an empty name",
    '[recipes]\na = ["a-*"]\nb = ["*-0"]': "a-seed-0 belongs to the recipes a and b.",
    '[recipes]\na = ["b-sed-0"]': "no model is called b-sed-0. Did you mean 'b-seed-0'?",
    '[recipes]\na = ["a-seed-0"]': "recipe a: one seed on pos. It says nothing about others",
}


@pytest.mark.parametrize("text", FILES)
def test_recipe_files_that_cannot_be_used_are_refused_in_one_line(stored_results, capsys, text):
    (stored_results / "recipes.toml").write_text(text)
    file = stored_results / "recipes.toml"
    assert FILES[text] in refused(capsys, "compare", stored_results, "--recipes", file)


def test_filters_and_globs_without_models_are_said(stored_results, tmp_path, capsys):
    line = refused(capsys, "compare", stored_results, "--recipes", "--probe", "mlp")
    assert "no results of mlp probes" in line
    recipes = tmp_path / "recipes.toml"
    recipes.write_text('[recipes]\na = ["a-seed-0", "a-sed-1", "a-seed-2"]\n')
    assert main(["show", str(stored_results), "--recipes", str(recipes)]) == 0
    assert "recipe a: no model is called a-sed-1" in capsys.readouterr().err


def test_single_recipes_have_nothing_to_be_compared_with(tmp_path, capsys):
    put(tmp_path, "m", "pos", 9)
    assert "No recipe among m: no two names" in refused(capsys, "show", tmp_path, "--recipes")
    for seed in range(2):
        put(tmp_path, f"m-seed-{seed}", "pos", 9, predictions=False)
    assert "m: no two recipes have" in refused(capsys, "compare", tmp_path, "--recipes")
    assert main(["show", str(tmp_path), "--recipes"]) == 0
    output = capsys.readouterr()
    assert "left out m: in no recipe" in output.err
    assert "No intervals for m: predictions are missing" in output.out


def test_models_trained_from_three_seeds_are_a_recipe(tmp_path, capsys):
    """The commands of the documentation, on language models of a known grammar."""
    folders = [tmp_path / f"toy-seed-{seed}" for seed in range(3)]
    for seed, folder in enumerate(folders):
        save_causal(folder, steps=20, seed=seed)
    with shortened_schedule():
        run(folders[0], tmp_path, beside=folders[1:], tasks="pos", probes="linear", twins=3)
        capsys.readouterr()
        assert main(["compare", str(tmp_path / "results"), "--recipes", "--format", "md"]) == 0
    text = capsys.readouterr().out
    rows = re.findall(r"^\|.*\| (\S+) \| 3 \| ./2 \|.*$", text, re.MULTILINE)
    assert rows == ["random:toy-seed-0", "toy"]
