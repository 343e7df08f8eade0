"""Verb forms that models choose, and what the logit lens reads, against plain passes."""

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from plain_answers import CAUSAL, L2R, distribution, run_models, slow_scores
from plain_passes import words_of_tokens
from scipy.special import softmax
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, recall_score
from slow_scores import ends_of_words, left_to_right
from stratified_kappa import stratified_kappa
from tiny_models import build
from toy_grammar import OTHER, attractors

from probes.data.sentence import Sentence
from probes.examples.verb_forms import Question
from probes.extraction.models.loading import load_encoder
from probes.extraction.models.model_files import find_model
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.encoding import read
from probes.extraction.reading.views import Text, View
from probes.families.behaviour import WordOptions
from probes.families.behaviour.cloze import verb_answers
from probes.families.behaviour.lens_collector import LensAnswers
from probes.records.record_files import read_arrays
from probes.tasks.builtin import tasks
from probes.tasks.task import Example


@pytest.mark.parametrize("word_ends", [True, False])
def test_forms_are_compared_with_or_without_the_ends_of_words(word_ends):
    model, tokenizer = build("gemma3", "Gemma3ForCausalLM")
    encoder = Encoder(model, tokenizer, name="tiny", device="cpu")
    context = SimpleNamespace(
        options=WordOptions(word_ends=word_ends),
        read=lambda view, collector: read(view, collector, encoder, 64),
    )
    texts = [
        Text(("the keeper", f" {x}", " boats."), (1, 2), written=True) for x in ("sees", "see")
    ]
    found = verb_answers(context, [Question(*texts)])
    scores = []
    for text in texts:
        whole = "".join(text.words)
        gains = np.array(ends_of_words(model, tokenizer, whole)) * word_ends
        (pieces,) = encoder.split([text])
        own = slice(*pieces.bounds[1:3])
        scores.append((left_to_right(model, tokenizer, whole) + gains)[own].sum())
        assert not word_ends or abs(gains[own].sum()) > 0.01
    assert found.log_odds[0] == pytest.approx(scores[0] - scores[1], abs=1e-4)


@pytest.fixture(scope="module")
def answered(folders, tmp_path_factory):
    """Probes of agreement and tags, with cloze and lens, of both models.

    There are few training sentences, so that probes make mistakes.
    """
    corpus, models = attractors(train=60), [folders["masked"], folders["causal"]]
    settings = {"tasks": "agreement,pos", "probes": "linear", "measurements": ("cloze", "lens")}
    found = run_models(models, tmp_path_factory.mktemp("cloze"), corpus=corpus, **settings)
    assert not found.failed
    results = {(r.model.name, r.task.name): r for r in found.results}
    paths = {(r.model.name, r.task.name): path for path, r in found.found.items()}
    return SimpleNamespace(results=results, paths=paths, corpus=corpus)


class Verb(NamedTuple):
    """A verb to fill in; `alike` if its two forms have equally many tokens."""

    sentence: Sentence
    place: int
    label: str
    own: str
    other: str
    alike: bool


def verbs_of(corpus, split, tokenizer):
    found = []
    for s in corpus.splits[split]:
        for x in tasks.get("agreement").examples(s):
            if isinstance(x, Example) and x.hide is not None:
                own, other = s.words[x.hide], other_form(corpus, s, x.hide)
                counts = {len(tokenizer(f" {form}")["input_ids"]) for form in (own, other)}
                alike = bool(other) and len(counts) == 1
                found.append(Verb(s, x.hide, str(x.label), own, other, alike))
    return found


def other_form(corpus, s, verb):
    """The form of the same verb and tense with the other number, if train has it."""
    feats = s.feats[verb]
    wanted = s.lemmas[verb], feats["Tense"], OTHER[feats["Number"]]
    found = {
        each.words[i]
        for each in corpus.splits["train"]
        for i, its in enumerate(each.feats)
        if its.get("VerbForm") == "Fin" and (each.lemmas[i], its["Tense"], its["Number"]) == wanted
    }
    return found.pop() if found else ""


def log_odds_of(kind, plain, verb):
    """Log-odds of the right form, by plain passes over the whole texts."""
    model, tokenizer = plain[kind]
    scoring, scores = (L2R if kind == "masked" else CAUSAL), []
    for form in (verb.own, verb.other):
        stretches = [*verb.sentence.written]
        stretches[verb.place] = f" {form}"
        own = np.array(words_of_tokens(tokenizer, stretches)) == verb.place
        scores.append(slow_scores(scoring, model, tokenizer, "".join(stretches))[own].sum())
    return scores[0] - scores[1]


def cloze_arrays(answered, kind):
    (path,) = answered.paths[kind, "agreement"].parent.glob("agreement-linear-cloze-*.json")
    return read_arrays(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_models_of_the_grammar_fill_in_the_right_verb(kind, answered, plain):
    record = answered.results[kind, "agreement"].evidence["cloze"]
    verbs = verbs_of(answered.corpus, "test", plain[kind][1])
    used = cloze_arrays(answered, kind)["used"]
    alike = np.array([verb.alike for verb in verbs])
    assert (~np.isnan(used)).tolist() == alike.tolist()
    for verb, value in list(zip(verbs, used.tolist(), strict=True))[::5]:
        if verb.alike:
            assert value == (1 + np.sign(log_odds_of(kind, plain, verb))) / 2
    without = sum(not verb.other for verb in verbs)
    longer = int((~alike).sum()) - without
    assert min(without, longer) > 0
    assert record.facts == {
        "examples": int(alike.sum()),
        "left out, without a form of the other number in train": without,
        "left out, with forms of different numbers of tokens": longer,
    }
    told = f"{longer} of {len(used)} verbs are left out: with forms of different numbers of tokens."
    assert told in record.notes
    labels, used = [verb.label for verb in verbs if verb.alike], used[alike]
    train = [verb.label for verb in verbs_of(answered.corpus, "train", plain[kind][1])]
    commonest = max(sorted(set(train)), key=train.count)
    majority = record.rows.at("cloze_accuracy", baseline="majority")
    assert majority.value == pytest.approx(labels.count(commonest) / len(labels))
    whole = record.rows.at("cloze_accuracy")
    assert (whole.value, whole.n) == (pytest.approx(used.mean()), len(used))
    assert record.rows.at("cloze_accuracy", group="1+ attractors").value > 0.95  # as trained
    for label in ("Sing", "Plur"):
        its = used[np.array(labels) == label]
        row = record.rows.at("cloze_accuracy", group=f"verb {label}")
        assert (row.value, row.n) == (pytest.approx(its.mean()), len(its))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_the_cells_are_those_of_stored_predictions(kind, answered, plain):
    result = answered.results[kind, "agreement"]
    record = result.evidence["cloze"]
    log_odds = cloze_arrays(answered, kind)["log_odds"]
    asked, verbs = ~np.isnan(log_odds), verbs_of(answered.corpus, "test", plain[kind][1])
    arrays = read_arrays(answered.paths[kind, "agreement"])
    gold = np.array([result.examples.classes.index(verb.label) for verb in verbs])[asked]
    singular = np.array([verb.label == "Sing" for verb in verbs])[asked]
    log_odds = log_odds[asked] * np.where(singular, 1, -1)
    threshold = record.rows.at("answer_threshold", split="train").value
    cut = (log_odds > threshold) == singular
    weights = 1 / np.where(singular, singular.sum(), (~singular).sum())
    for axes, said in (({}, log_odds > 0), ({"threshold": "train"}, log_odds > threshold)):
        row = record.rows.at("cloze_accuracy", group="both numbers alike", **axes)
        assert row.value == pytest.approx(balanced_accuracy_score(singular, said))
        plural = record.rows.at("cloze_accuracy", group="verb Plur", **axes)
        assert plural.value == pytest.approx(recall_score(singular, said, pos_label=False))
    used = record.rows.at("used")
    assert used.value == row.value
    for layer, predicted in zip(result.layers, arrays["predicted"][:, 0], strict=True):
        own = predicted[asked]
        right = own == gold
        assert record.rows.at("decodable", layer).value == pytest.approx(
            balanced_accuracy_score(gold, own)
        )
        shares = confusion_matrix(right, cut, sample_weight=weights, labels=[False, True]) / 2
        names = (("neither", "used_only"), ("decodable_only", "both"))
        found = [[record.rows.at(name, layer).value for name in each] for each in names]
        np.testing.assert_allclose(found, shares)
        gap = record.rows.at("decodable_less_used", layer)
        assert gap.value == pytest.approx(balanced_accuracy_score(gold, own) - used.value)
        assert gap.n == len(cut)
        kappa = record.rows.at("error_consistency", layer).value
        if kappa is None:
            assert right.all()
            assert cut.all()
        else:
            assert kappa == pytest.approx(stratified_kappa(right, cut, singular))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_the_threshold_has_equal_recalls_on_train_by_plain_passes(kind, answered, plain):
    verbs = [x for x in verbs_of(answered.corpus, "train", plain[kind][1]) if x.alike]
    singular = np.array([verb.label == "Sing" for verb in verbs])
    log_odds = np.array([log_odds_of(kind, plain, x) for x in verbs]) * np.where(singular, 1, -1)
    found = (
        answered.results[kind, "agreement"]
        .evidence["cloze"]
        .rows.at("answer_threshold", split="train")
    )
    assert found.n == len(log_odds)
    ordered = np.sort(log_odds)
    tried = [0.0, *(ordered[1:] + ordered[:-1]) / 2]
    recalls = [recall_score(singular, log_odds > t, average=None) for t in tried]
    unlike = [abs(one - other) for one, other in recalls]
    best = min((t for t, x in zip(tried, unlike, strict=True) if x == min(unlike)), key=abs)
    assert found.value == pytest.approx(best, abs=1e-3)


def hidden(model, ids):
    """The states of layers 0 to L at all positions, as transformers lists them."""
    with torch.no_grad():
        found = model(input_ids=torch.tensor([list(ids)]), output_hidden_states=True)
    return [state[0] for state in found.hidden_states]


def answers_of_head(kind, model, state, layer):
    """The logits that the head gives for a state of a layer, after the norm that it expects."""
    with torch.no_grad():
        if kind == "masked":
            found = model.cls(state[None])[0]
        else:  # the last state that transformers lists has gone through the norm
            last = layer == model.config.n_layer
            found = model.lm_head(state if last else model.transformer.ln_f(state))
    return np.asarray(found.double())


UNKNOWN = "\u4e2d"
"""A word that a tiny WordPiece has no piece for, and a byte-level vocabulary several."""


@pytest.mark.parametrize("kind", ["masked", "causal"])
@pytest.mark.parametrize("after", [False, True])
def test_the_lens_is_the_head_on_the_states_of_every_layer(kind, after):
    """Random models, whose norms are not the identity; words of one piece and of several."""
    family = {"masked": ("bert", "BertForMaskedLM"), "causal": ("gpt2", "GPT2LMHeadModel")}[kind]
    model, tokenizer = build(*family)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "ln_f" in name or "LayerNorm" in name:
                weight.add_(0.3 * torch.randn(weight.shape, generator=generator))
    encoder = Encoder(model, tokenizer, name="tiny", device="cpu")
    words = ("she", "counts", "the", "lightkeepers", "boats")
    texts = [Text(words, (0, 5)), Text(words[1:], (1, 4)), Text(words, (2, 3), mask=2)]
    texts = texts[: 3 if kind == "masked" else 2]
    candidates = [
        w for w in ("the", "light", "boats", "that", "of", "she") if len(spelt(encoder, w)) == 1
    ]
    assert len(candidates) >= 3
    answers = [
        {candidates[0]: 1.0},
        {candidates[1]: 0.75, candidates[2]: 0.5},
        {"lightkeepers": 0.5, UNKNOWN: 0.5},
    ]
    collector = LensAnswers((0, 1, 2), answers, after=after)
    ((shard, found),) = read(View("plain", tuple(texts)), collector, encoder)
    assert collector.has_token == [True, True, False]
    tokens = [spelt(encoder, word)[0] for word in candidates[:3]]
    checked = 0
    for text, start in zip(texts, shard.starts, strict=True):
        (pieces,) = encoder.split([text])
        ids = [*encoder.words.prefix, *pieces.ids.tolist(), *encoder.words.suffix]
        states = hidden(model, ids)
        for word in range(*text.kept_span):
            first, end = (
                len(encoder.words.prefix) + int(x) for x in pieces.bounds[word : word + 2]
            )
            place = end - 1 if after else first - (kind == "causal")
            row = found["answers"][int(start) + word - text.kept_span[0]].numpy()
            if place < 0:
                assert np.isnan(row).all()
                continue
            for layer in range(3):
                logits = answers_of_head(kind, model, states[layer][place], layer)
                p = softmax(logits[tokens])
                expected = [p[0], 0.75 * p[1] + 0.5 * p[2], 0]
                np.testing.assert_allclose(row[layer], expected, atol=1e-5)
                checked += 1
    assert checked > 15


def spelt(encoder, word):
    (pieces,) = encoder.split([Text((word,), (0, 1))])
    return [int(x) for x in pieces.ids]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_readable_is_what_plain_states_say_of_the_two_forms(kind, answered, plain, folders):
    model, tokenizer = plain[kind]
    words = load_encoder(find_model(str(folders[kind])), device="cpu").words
    record = answered.results[kind, "agreement"].evidence["lens"]
    right = {}
    probe = answered.results[kind, "agreement"]
    arrays = read_arrays(answered.paths[kind, "agreement"])
    known = []
    for s, verb, _, own, contrary, alike in verbs_of(answered.corpus, "test", tokenizer):
        (one_, other) = (words([Text((form or own,), (0, 1))])[0].ids for form in (own, contrary))
        known.append(alike and len(one_) == len(other) == 1)
        if not known[-1]:
            continue
        if kind == "masked":
            (pieces,) = words([Text(s.words, (verb, verb + 1), mask=verb)])
            ids = [tokenizer.cls_token_id, *pieces.ids.tolist(), tokenizer.sep_token_id]
            place = ids.index(tokenizer.mask_token_id)
        else:
            (pieces,) = words([Text(s.words[:verb], (verb - 1, verb))])
            ids = pieces.ids.tolist()
            place = len(ids) - 1
        for layer, state in enumerate(hidden(model, ids)):
            logits = answers_of_head(kind, model, state[place], layer)
            right.setdefault(layer, []).append(bool(logits[one_[0]] > logits[other[0]]))
        if len(known) % 20 == 1:  # the last layer's answer is the model's own
            own_logits = distribution(model, ids)[place]
            assert (own_logits[one_[0]] > own_logits[other[0]]) == right[layer][-1]
    assert record.facts["examples"] == sum(known) == len(right[0])
    gold = arrays["gold"][known]
    for layer, its in right.items():
        value = balanced_accuracy_score(gold, np.where(its, gold, 1 - gold))
        assert record.rows.at("readable", layer).value == pytest.approx(value)
        said = arrays["predicted"][probe.layers.index(layer), 0][known]
        value = balanced_accuracy_score(gold, said)
        assert record.rows.at("decodable", layer).value == pytest.approx(value)
    assert len(set(map(np.mean, right.values()))) > 1


@pytest.mark.slow
def test_a_label_is_read_from_the_words_that_mostly_have_it(answered, plain):
    """Tags of words in view, of the masked model: by hand on the first sentences."""
    model, tokenizer = plain["masked"]
    result = answered.results["masked", "pos"]
    record, classes = result.evidence["lens"], result.examples.classes
    counts = {}
    for s in answered.corpus.splits["train"]:
        for word, tag in zip(s.words, s.upos, strict=True):
            counts.setdefault(word, dict.fromkeys(classes, 0))[tag] += 1
    token = {w: tokenizer(w, add_special_tokens=False)["input_ids"] for w in counts}
    single = {w: ids[0] for w, ids in token.items() if len(ids) == 1}
    vocabulary = sorted(set(single.values()))
    weights = np.zeros((len(vocabulary), len(classes)))
    for word, i in single.items():
        total = sum(counts[word].values())
        share = [counts[word][tag] / total for tag in classes]
        weights[vocabulary.index(i)] += share
    right = {0: [], 1: [], 2: []}
    for s in answered.corpus.splits["test"]:
        coded = tokenizer([list(s.words)], is_split_into_words=True)
        owners = coded.word_ids(0)
        states = hidden(model, coded["input_ids"][0])
        for word, tag in enumerate(s.upos):
            for layer in right:
                logits = answers_of_head("masked", model, states[layer][owners.index(word)], layer)
                right[layer].append(
                    classes[(softmax(logits[vocabulary]) @ weights).argmax()] == tag
                )
    for layer, its in right.items():
        assert record.rows.at("readable", layer).value == pytest.approx(np.mean(its), abs=1e-9)
    assert len(set(map(np.mean, right.values()))) > 1
    gold = [tag for s in answered.corpus.splits["test"] for tag in s.upos]
    train = [tag for s in answered.corpus.splits["train"] for tag in s.upos]
    commonest = max(set(train), key=train.count)
    majority = record.rows.at("readable", baseline="majority")
    assert majority.value == pytest.approx(gold.count(commonest) / len(gold))
