"""Interchange of the last token of texts, by hooks on a plain model, and by hand."""

import json
from functools import partial
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from measuring import command_line, measure
from plain_texts import INPUTS, TEXTS, PlainModel

from probes.__main__ import main
from probes.common.errors import UserError
from probes.families.interventions import ErasureOptions, InterchangeOptions
from probes.families.interventions import interchange_texts as module
from probes.families.interventions.directions import (
    LEACE,
    MEAN,
    PROBE,
    RANDOM,
    SHUFFLED,
    class_directions,
)
from probes.families.interventions.directions import WHOLE_VECTOR as WHOLE
from probes.families.interventions.interchange_scores import FLIPPED, LAST, RATIO
from probes.families.interventions.interchange_texts import SAME_CLASS

LAYERS = 0, 1, 2


def interchange_run(folder, output, settings=TEXTS, corpus="texts.csv", **options):
    options = {"interchange": {"pairs": 30, **options}}
    return measure(
        "interchange", folder / "model", folder / corpus, output, options=options, **settings
    )


@pytest.fixture(scope="module", params=["texts", "chats"])
def measured(texts, request, tmp_path_factory):
    """A run, its rows, and the bases and sources that it exchanged."""
    corpus, settings, options = INPUTS[request.param]
    seen, pairs_of = {}, module._exchanged_log_odds

    def kept(context, train, pool, sources):
        seen.update(pool=pool, sources=sources, bases=np.arange(30))
        own = dict.fromkeys((False, True), np.arange(30))
        seen["with itself"] = pairs_of(context, train, pool, own)
        return pairs_of(context, train, pool, sources)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_exchanged_log_odds", kept)
        run = interchange_run(texts, tmp_path_factory.mktemp("a"), settings, corpus, **options)
    rows = {(x.metric, x.axes["direction"], x.layer): x for x in run.record.rows}
    plain = PlainModel(texts, request.param)
    return SimpleNamespace(run=run, rows=rows, plain=plain, **seen)


def test_the_last_tokens_state_is_exchanged_as_in_a_plain_model(measured):
    """Whole, and along the mean difference of all training texts, at every layer."""
    plain, pool, other = measured.plain, measured.pool, measured.sources[False]
    first, second = plain.ids(" dance laugh")

    def log_odds(text):
        logits = plain.logits(text)[-1]
        return float(logits[first] - logits[second])

    def exchanged(states, source, along):
        """The last state is the source's, or has its part along a unit vector."""
        step = source - states[:, -1].double()
        step = step if along is None else (step @ along) * along
        return torch.cat([states[:, :-1], (states[:, -1] + step).float()[:, None]], dim=1)

    test = [x.words[0].removesuffix(" dance") for x in pool.prompts.texts]
    assert sorted(test) == sorted(plain.prompts["test"])
    is_many = dict(zip(plain.prompts["test"], plain.many["test"], strict=True))
    many = np.array([is_many[x] for x in test])
    assert np.array_equal(many, pool.classes == 1)
    train, own = (
        torch.from_numpy(plain.states(x, plain.start)) for x in (plain.prompts["train"], test)
    )
    side = np.where(many, 1, -1)
    before = side * np.array([*map(log_odds, test)])
    right = (before > 0) & (before[other] > 0)
    assert 0 < right.sum() < 30
    for layer in LAYERS:
        many_of_train = plain.many["train"]
        mean = train[layer, many_of_train].mean(0) - train[layer, ~many_of_train].mean(0)
        for name, along in ((WHOLE, None), (MEAN, mean / mean.norm())):
            after = []
            for text, source in zip(test, own[layer, other], strict=True):
                with plain.changed(layer, partial(exchanged, source=source, along=along), 0):
                    after.append(log_odds(text))
            after = side * np.array(after)
            row, flipped = (measured.rows[x, name, layer] for x in (RATIO, FLIPPED))
            assert row.value == pytest.approx((before - after).mean(), abs=2e-3, rel=5e-3)
            assert flipped.value == pytest.approx((after[right] < 0).mean(), abs=1e-9)
            assert (row.n, flipped.n) == (30, right.sum())
            assert row.axes["exchanged"] == "label@last"
            assert row.axes["at"] == LAST
            # All 30 texts are bases, and most pairs are each other's source.
            too_few = "fewer than 20 independent pairs of texts"
            assert (row.p, row.low, row.why) == (None, None, too_few)
    assert measured.rows[RATIO, WHOLE, 2].value != measured.rows[RATIO, MEAN, 2].value


def test_at_the_last_layer_the_whole_state_gives_the_sources_answer(measured):
    pool, other, same = measured.pool, measured.sources[False], measured.sources[True]
    side = 2 * pool.classes - 1
    for name, source in ((WHOLE, other), (SAME_CLASS, same)):
        moved = (side * (pool.log_odds - pool.log_odds[source])).mean()
        assert measured.rows[RATIO, name, 2].value == pytest.approx(moved, abs=1e-4)
    assert measured.rows[FLIPPED, WHOLE, 2].value == 1


def test_a_source_equal_to_the_base_changes_nothing(measured):
    untouched, *changed = measured.__dict__["with itself"]
    assert len(changed) == len(LAYERS) * 7
    np.testing.assert_allclose(changed, np.tile(untouched, (len(changed), 1)), atol=1e-5)


def test_sources_are_of_the_right_class_and_come_once_where_they_can(measured):
    classes, bases = measured.pool.classes, measured.bases
    other, same = measured.sources[False], measured.sources[True]
    assert (classes[other] == 1 - classes[bases]).all()
    assert (classes[same] == classes[bases]).all()
    assert (same != bases).all()
    assert len(set(same.tolist())) == 30
    fewer = min(np.bincount(classes[bases]))
    assert len(set(other.tolist())) == 2 * fewer


def test_sources_are_no_bases_where_others_are_left():
    classes = np.array([0, 1, 0, 1, 1, 1, 0, 0, 1, 0])
    assert module._sources(classes, 4, own_class=False).tolist() == [4, 6, 5, 7]
    assert module._sources(classes, 4, own_class=True).tolist() == [6, 4, 7, 5]
    assert module._sources(classes[:3], 3, own_class=False).tolist() == [1, 0, 1]
    assert module._sources(classes[:4], 4, own_class=True).tolist() == [2, 3, 0, 1]


def test_classes_take_turns_and_documents_come_once_before_they_come_twice():
    classes = np.array([1, 1, 0, -1, 1, 0])
    assert module._balanced_order(["a", "a", "b", "c", "d", "b"], classes).tolist() == [
        0,
        2,
        4,
        5,
        1,
    ]


@pytest.mark.parametrize("kind", ["balanced", "a tenth", "documents"])
def test_sources_add_no_effect_of_their_own(kind, monkeypatch):
    """Log-odds are noise, and states carry them over. Of 120 tables of three layers.

    If sources are any texts, and bases alone are resampled, the whole state has one in 24, 44 and
    17 % of tables.
    """
    names, n = (WHOLE, SAME_CLASS), 40
    monkeypatch.setattr(module, "_NAMES", names)
    context = SimpleNamespace(layers=LAYERS, model=SimpleNamespace(causal=True))
    task = SimpleNamespace(task=SimpleNamespace(name="t"))
    effects = []
    for seed in range(60):
        rng, document = np.random.default_rng(seed), np.arange(600)
        is_many = rng.random(600) < (0.1 if kind == "a tenth" else 0.5)
        log_odds = rng.normal(size=600) + rng.normal(size=(len(LAYERS), 600))
        if kind == "documents":
            document = document // 3
            log_odds, is_many = log_odds + 2 * rng.normal(size=600)[document], is_many[document]
        drawn = rng.permutation(600)
        classes = is_many[drawn].astype(int)
        chosen = module._balanced_order(document[drawn].tolist(), classes)[: 2 * n]
        pool = drawn[chosen]
        sources = {own: module._sources(classes[chosen], n, own_class=own) for own in (False, True)}
        units = [(str(document[i]), str(document[i])) for i in pool]
        states = SimpleNamespace(prompts=SimpleNamespace(units=units))
        # Exchanges are measured as differences, of log-odds that are 0 in the untouched pass.
        side = 2 * classes[chosen][:n] - 1
        odds = [side * (layer[pool][sources[own]] - layer[pool][:n])
                for layer in log_odds for own in (False, True)]  # fmt: skip
        odds, right = np.stack([np.zeros(n), *odds]), np.ones(n, dtype=bool)
        rows = [x for x in module._rows(context, task, states, sources, odds, right) if x.p]
        assert len(rows) == len(names) * len(LAYERS)
        for name in names:
            effects.append(min(x.p for x in rows if x.axes["direction"] == name) < 0.05)
    assert np.mean(effects) < 0.08


def test_controls_and_directions_are_all_there(measured):
    names = {x.axes["direction"] for x in measured.run.record.rows}
    assert names == {WHOLE, MEAN, PROBE, LEACE, SHUFFLED, RANDOM, SAME_CLASS}
    (note,) = measured.run.record.notes
    assert "'many' is the positive class, with the answer ' dance'; the other is ' laugh'." in note
    right = measured.rows[FLIPPED, WHOLE, 0].n
    assert f"Of 30 pairs of texts, {right} were answered right." in note


def test_by_use_and_a_chart_show_what_follows_the_last_token(measured, capsys):
    folder = measured.run.folder / "results"
    assert main(["show", str(folder), "--by", "use", "--format", "json"]) == 0
    lines = json.loads(capsys.readouterr().out)
    assert len(lines) == len(LAYERS)
    for (layer, line), (head, name) in product(
        enumerate(lines), (("interchanged", WHOLE), ("along one direction", MEAN))
    ):
        (value,) = (x for column, x in line.items() if column.startswith(head))
        assert value == pytest.approx(measured.rows[FLIPPED, name, layer].value)
    path = measured.run.folder / "interchange.svg"
    assert main(["figure", "interchanged_texts", str(folder), "-o", str(path)]) == 0
    assert SAME_CLASS in path.read_text()


def test_of_states_that_are_all_equal_no_direction_is_exchanged():
    """Embeddings of the last token of a prompt are the same in all texts."""
    _, parts = class_directions(np.ones((6, 4)), np.array([0, 1] * 3))
    for read, write in parts.values():
        assert read.shape == write.shape == (1, 4)
        assert not (read.any() and write.any())


def test_answers_are_needed(texts, tmp_path):
    with pytest.raises(UserError, match="--interchange-answers: give two answers"):
        interchange_run(texts, tmp_path)
    assert not [*tmp_path.iterdir()]  # nothing is computed


def test_words_are_refused(texts, tmp_path, capsys):
    line = command_line("interchange", texts / "model", "sample", tmp_path, "--tasks", "pos")
    main(["run", *line, "--limit", "40", "--probes", "linear", "--evidence", "none"])
    assert "pos: only texts of two classes are exchanged" in capsys.readouterr().err


def test_records_without_answers_keep_their_settings():
    """Settings are part of the key of a record."""
    assert ErasureOptions().model_dump(mode="json") == {"sentences": 300}
    assert InterchangeOptions().model_dump(mode="json") == {"pairs": 20, "training": 100}
    given = InterchangeOptions(answers=" a, b", prompt="x").model_dump(mode="json")
    assert given == {"prompt": "x", "answers": [" a", " b"], "pairs": 20, "training": 100}
    assert InterchangeOptions.model_validate(given).answers == (" a", " b")
