"""Simulations of whole experiments on models with random weights, which use nothing.

They answer at chance, and balanced texts favour neither number, so any effect on agreement is due
to chance. Loss, and what probes lose, do change: those of a random model are what they are.
"""

import csv
from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from grammar_models import save_random
from tiny_runs import run
from toy_grammar import AUXILIARIES, attractors

from probes.families.interventions.experiment import CLOZE, LOG_ODDS
from probes.families.interventions.interchange_scores import DIFFERENCE, OWN, RATIO

N_MODELS, N_NOUNS = 10, 48
NOUNS = ["".join(x) + "o" for x in product("bdfgk", "aei", "lmnr")][:N_NOUNS]
FORMS = [forms for *_, forms, _ in AUXILIARIES]


def rows_of(folder, seed, corpus, measurements, **settings):
    """Rows of a random model, by measurement."""
    save_random(folder / "model", seed, [*NOUNS, *(f"{noun}s" for noun in NOUNS)])
    settings = {"corpus": corpus, "measurements": measurements, "limit": None, **settings}
    measured = run(folder / "model", folder, **settings).measured
    return {record.measurement: list(record.rows) for record in measured.values()}


@pytest.mark.slow
def test_ablation_and_erasure_find_no_use_of_number(tmp_path):
    """Of each kind of change, 5 % of the intervals exclude 0, and no more."""
    excluded = defaultdict(list)
    for seed in range(N_MODELS):
        corpus = attractors(120, 1000 + seed)
        settings = {"tasks": "agreement", "probes": "linear"}
        by_name = rows_of(tmp_path / str(seed), seed, corpus, "ablation,erasure", **settings)
        for name, rows in by_name.items():
            for row in rows:
                if row.metric in (CLOZE, LOG_ODDS) and row.low is not None:
                    kind = row.axes.get("disabled"), row.axes.get("less")
                    excluded[name, *kind].append(not row.low <= 0 <= row.high)
    assert len(excluded) == 6
    for name in ("ablation", "erasure"):
        of_name = [x for key, values in excluded.items() if key[0] == name for x in values]
        assert len(of_name) > 15 * N_MODELS
        assert np.mean(of_name) <= 0.05
    assert max(map(np.mean, excluded.values())) <= 0.1


@pytest.mark.slow
def test_interchange_finds_no_place_of_number(tmp_path):
    """A table is all layers and places of one direction: 24 pairs of words, of 4 answers each."""
    path = tmp_path / "pairs.csv"
    with path.open("w") as file:
        writer = csv.writer(file)
        writer.writerow(["sentence_good", "sentence_bad"])
        for noun, forms, number in product(NOUNS, FORMS, (0, 1)):
            right, wrong = tuple(forms.values())[:: 1 - 2 * number]
            before = f"the {noun}{'s' * number} near the nurse"
            writer.writerow([f"{before} {right} .", f"{before} {wrong} ."])
    found = []
    for seed in range(2 * N_MODELS):
        options = {"interchange": {"pairs": 24, "training": 24}}
        by_name = rows_of(tmp_path / str(seed), seed, str(path), "interchange", options=options)
        tables = defaultdict(list)
        for row in by_name["interchange"]:
            if row.metric == RATIO and row.p is not None and "position" in row.axes:
                tables[row.axes["direction"], row.axes["answers"]].append(row.p < 0.05)
        assert {scale for _, scale in tables} == {OWN, DIFFERENCE}
        assert len(tables) == 14
        found += map(any, tables.values())
    assert np.mean(found) <= 0.05


TEXTS = {"text": "text", "label": ("label",), "positions": ("last",), "probes": ("linear",)}
KINDS = "balanced", "a tenth", "documents"
"""Half of texts are of either class, or a tenth; or three texts of a document share a label."""


def write_texts(path, kind, seed):
    """Texts of persons with random labels, half of them for test."""
    rng, lines = np.random.default_rng(seed), []
    for document in range(120 if kind == "documents" else 240):
        split = ("train", "dev", "test", "test")[document % 4]
        label = ("few", "many")[rng.random() < (0.1 if kind == "a tenth" else 0.5)]
        shared = " ".join(f"the {x}" for x in rng.choice(NOUNS, 3))
        for _ in range(3 if kind == "documents" else 1):
            words = rng.choice(NOUNS, 3 if kind == "documents" else 6)
            text = " ".join([shared] * (kind == "documents") + [f"the {x}" for x in words])
            lines.append([text, label, split, f"{document}"])
    with path.open("w") as file:
        csv.writer(file).writerows([["text", "label", "split", "document"], *lines])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_of_texts_with_random_labels_neither_finds_a_use(kind, tmp_path):
    """A table is all layers of one direction, or of one eraser and control."""
    answers = {"answers": " is, are", "prompt": " and"}
    options = {"erasure": answers, "interchange": {**answers, "pairs": 20}}
    settings = {"options": options, "twins": 0, "evidence": ("none",), **TEXTS}
    if kind == "documents":
        settings["group"] = "document"
    tables = defaultdict(list)
    for seed in range(3):
        write_texts(tmp_path / "texts.csv", kind, seed)
        corpus, folder = str(tmp_path / "texts.csv"), tmp_path / str(seed)
        by_name = rows_of(folder, seed, corpus, "erasure,interchange", **settings)
        for name, rows in by_name.items():
            for row in rows:
                if row.p is not None:
                    control = row.axes.get("eraser"), row.axes.get("less")
                    direction = row.axes.get("direction")
                    tables[name, direction, *control, seed].append(row.p < 0.05)
    # With a tenth in one class, several bases have the same source: too few pairs are independent.
    has_whole = ("interchange", "whole", None, None, 0) in tables
    assert has_whole == (kind != "a tenth")
    assert len(tables) >= 15
    # Of at most 36 tables, of three models, 3 are chance; `test_text_interchange.py` draws more.
    assert np.mean([any(table) for table in tables.values()]) <= 0.1
