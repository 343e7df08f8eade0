"""Erased labels of texts, by hooks on a plain model and LEACE of its authors."""

import json
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from concept_erasure import LeaceFitter
from measuring import command_line, measure
from plain_passes import stored_probe
from plain_texts import INPUTS, TEXTS, PlainModel
from sklearn.linear_model import LogisticRegression
from tiny_models import build

from probes.cli.main import main
from probes.common.errors import UserError
from probes.data.sentence import Sentence
from probes.extraction.reading.alignment import WordTokenizer
from probes.families.interventions.changes import NOTHING
from probes.families.interventions.erasure import ANSWER, DROP, LABELS, RANDOM, SHUFFLED
from probes.families.interventions.experiment import LOG_ODDS, LOSS
from probes.families.interventions.readouts import loss_words

TASK, LAST = "label@last", 2


def erasure_run(model, corpus, folder, settings=TEXTS, **options):
    return measure("erasure", model, corpus, folder, options={"erasure": options}, **settings)


def answers_of(plain):
    """Log-odds of the own answer against the other of each test text."""
    first, second = plain.ids(" dance laugh")
    ends = [plain.logits(x)[-1] for x in plain.prompts["test"]]
    odds = np.array([float(x[first] - x[second]) for x in ends])
    return np.where(plain.many["test"], odds, -odds)


def loss_of(plain):
    """Loss of all tokens of test texts that something precedes, without the header."""
    losses = []
    for text in plain.texts["test"]:
        ids = plain.start + plain.ids(text)
        log_p = plain.logits(text).log_softmax(-1)
        scored = range(1, len(ids) - bool(plain.header))
        losses += [-float(log_p[i - 1, ids[i]]) for i in scored]
    return np.mean(losses)


def erased_at(plain, layer, eraser, n_start):
    def erase(states):
        return torch.stack([eraser(x.double()) for x in states]).float()

    return plain.changed(layer, erase, n_start)


def leace_of_authors(states, many):
    exact = {"dtype": torch.float64, "svd_tol": 1e-10, "constrain_cov_trace": False}
    fitter = LeaceFitter(states.shape[1], 2, **exact)
    fitter.update(torch.from_numpy(states), torch.from_numpy(np.eye(2)[many.astype(int)]))
    return fitter.eraser


@pytest.fixture(scope="module", params=["texts", "chats"])
def measured(texts, request, tmp_path_factory):
    """A run with all answers, its rows by metric, layer, eraser and control; and a plain model."""
    (corpus, settings, options), folder = INPUTS[request.param], tmp_path_factory.mktemp("erasure")
    run = erasure_run(texts / "model", texts / corpus, folder, settings, **options)
    rows = {
        (x.metric, x.layer, x.axes.get("eraser"), x.axes.get("less"), x.axes.get("at")): x
        for x in run.record.rows
    }
    return SimpleNamespace(run=run, rows=rows, plain=PlainModel(texts, request.param))


def test_erased_at_each_layer_texts_lose_as_much_as_in_a_plain_model(measured):
    """Probes, loss and answers, each before minus after."""
    plain, probes = (
        measured.plain,
        {k: stored_probe(measured.run.folder, TASK, k) for k in (0, 1, 2)},
    )
    train, test, many = (
        plain.states(plain.texts["train"]),
        plain.states(plain.texts["test"]),
        plain.many["test"],
    )
    labels = np.where(many, "many", "few")
    before, loss = answers_of(plain), loss_of(plain)
    for layer in (0, 1, LAST):
        eraser = leace_of_authors(train[layer], plain.many["train"])
        with erased_at(plain, layer, eraser, 0):
            erased = plain.states(plain.texts["test"])
        with erased_at(plain, layer, eraser, len(plain.start)):
            after, loss_after = answers_of(plain), loss_of(plain)

        def row(metric, at=None, layer=layer):
            return measured.rows[metric, layer, LABELS, NOTHING, at]

        for at in range(layer, LAST + 1):
            scores = [
                (probes[at].predict(x[at].astype("float32")) == labels).mean()
                for x in (test, erased)
            ]
            assert row(DROP, at).value == pytest.approx(scores[0] - scores[1], abs=0.04)
        assert row(LOG_ODDS).value == pytest.approx((before - after).mean(), abs=2e-3, rel=5e-3)
        assert row(LOG_ODDS).n == len(many)
        drop = (before > 0).mean() - (after > 0).mean()
        assert row(ANSWER).value == pytest.approx(drop, abs=0.04)
        assert row(LOSS).value == pytest.approx(loss_after - loss, abs=2e-3, rel=5e-3)
        assert np.abs(before - after).max() > 0.01


def test_no_new_probe_decodes_erased_labels_there(measured):
    plain = measured.plain
    train, many = plain.states(plain.texts["train"])[1], plain.many["train"]
    with erased_at(plain, 1, leace_of_authors(train, many), 0):
        left = plain.states(plain.texts["train"])[1]
    fresh = [LogisticRegression(C=np.inf, max_iter=5000).fit(x, many) for x in (train, left)]
    assert fresh[0].score(train, many) > 0.75
    assert fresh[1].score(left, many) <= max(many.mean(), 1 - many.mean()) + 1e-9


def test_controls_are_shuffled_labels_and_random_directions(measured):
    rows = measured.rows
    for metric, control in product((LOG_ODDS, ANSWER), (SHUFFLED, RANDOM)):
        own, other, less = (
            rows[metric, 1, *x, None]
            for x in ((LABELS, NOTHING), (control, NOTHING), (LABELS, control))
        )
        assert less.value == pytest.approx(own.value - other.value, abs=1e-6)
        assert less.low < less.value < less.high
    sizes = {x: rows["erased_variance", 1, x, None, None].value for x in (LABELS, SHUFFLED, RANDOM)}
    assert sizes[RANDOM] == pytest.approx(sizes[LABELS])
    assert sizes[SHUFFLED] != sizes[LABELS]
    assert rows["erased_rank", 1, SHUFFLED, None, None].value == 1
    assert rows[DROP, 1, LABELS, SHUFFLED, LAST].n == 30
    notes = measured.run.record.notes
    (note,) = (x for x in notes if "positive class" in x)
    assert "label@last: 'many' is the positive class, with the answer ' dance'" in note
    right = (answers_of(measured.plain) > 0).mean()
    assert f"Untouched, the model gives {right:.0%} of 30 texts the answer of their label." in note


def test_without_answers_a_note_says_how_to_get_them(texts, tmp_path):
    settings = {**TEXTS, "positions": ("last", "last:2")}
    record = erasure_run(texts / "model", texts / "texts.csv", tmp_path, settings).record
    assert "What the model answers is left out: give two answers with --erasure-answers." in (
        record.notes
    )
    metrics = {x.metric for x in record.rows}
    assert LOSS in metrics
    assert not {LOG_ODDS, ANSWER} & metrics
    # Both positions are read in one pass, and each is erased by its own eraser.
    drops = [x.axes for x in record.rows if x.metric == DROP]
    pairs = {(x["erased"], x["predicts"], x["probes"]) for x in drops}
    names = TASK, "label@last:2"
    assert pairs == {(x, y, "own" if x == y else "other") for x in names for y in names}


def test_answers_that_begin_alike_are_refused(texts, tmp_path):
    for answers, message in (("one", "give two answers, that of the positive class first"),
                             (" dance, dance now", "they begin with the same token")):  # fmt: skip
        with pytest.raises(UserError, match=f"--erasure-answers.*{message}"):
            erasure_run(texts / "model", texts / "texts.csv", tmp_path, answers=answers)


def test_means_are_refused(texts, tmp_path, capsys):
    flags = ["--text", "text", "--label", "label", "--positions", "mean", "--evidence", "none"]
    main(command_line("erasure", texts / "model", texts / "texts.csv", tmp_path, *flags))
    message = "label@mean is left out: it is not read at one token of a text; use "
    assert message + "--positions last" in " ".join(capsys.readouterr().err.split())


def test_a_masked_model_does_not_lose_all_words_of_a_text_at_once():
    text = "One of ten  words\nis hidden, and the others are read ."
    (whole,), words = loss_words([Sentence("a", "en", (text,), whole=True)], causal=False)
    assert "".join(whole.words) == text
    assert len(whole.words) == 12
    assert len(words[whole]) == 2  # 15 % of 11 with a letter


def test_chats_lose_without_a_block_what_a_plain_model_loses(texts, tmp_path):
    """Block 1 is skipped: of all tokens of a chat, the probe reads the last one."""
    corpus, settings, _ = INPUTS["chats"]
    run = measure("ablation", texts / "model", texts / corpus, tmp_path, **settings)
    plain, probe = PlainModel(texts, "chats"), stored_probe(run.folder, TASK, LAST)
    labels = np.where(plain.many["test"], "many", "few")

    def now():
        right = probe.predict(plain.states(plain.texts["test"])[LAST].astype("float32")) == labels
        return loss_of(plain), right.mean()

    loss, score = now()
    skip = plain.modules[1].register_forward_hook(lambda _, given, __: given[0])
    loss_without, score_without = now()
    skip.remove()
    skipped = [x for x in run.record.rows if x.axes["disabled"] == "block" and x.layer == 1]
    (increase,) = (x for x in skipped if x.metric == LOSS)
    (drop,) = (x for x in skipped if x.metric == "ablation_drop" and x.axes["at"] == LAST)
    assert increase.value == pytest.approx(loss_without - loss, rel=5e-3)
    assert abs(increase.value) > 0.01
    assert drop.value == pytest.approx(score - score_without, abs=0.04)
    assert (drop.n, increase.p, increase.split) == (30, None, "test")


@pytest.mark.parametrize("special", [False, True])
def test_of_a_chat_only_words_of_messages_are_scored(special):
    _, tokenizer = build("qwen3", "Qwen3Model")
    tokenizer.chat_template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|endoftext|>\n{% endfor %}"
    chat = [
        {"role": "user", "content": "the old  keeper"},
        {"role": "assistant", "content": "2 boats"},
    ]
    written = tokenizer.apply_chat_template(chat, tokenize=False)
    content = written if special else json.dumps(chat)
    sentence = Sentence("a", "en", (content,), whole=True, chat=not special, special=special)
    (text,), words = loss_words([sentence], causal=True, tokenizer=WordTokenizer(tokenizer))
    assert "".join(text.words) == written
    expected = ["the", " old", "  keeper", " boats"]
    if special:  # which words a template wrote is not known
        expected = ["user", "\nthe", *expected[1:3], "assistant", " boats"]
    assert [text.words[i] for i in words[text]] == expected
    assert text.rendered
