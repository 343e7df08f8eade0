"""Steering, by hand, with hooks on plain models, and where the circuit is known."""

import csv
from collections import Counter
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import scipy
import torch
from grammar_models import word_level
from measuring import command_line, measure
from plain_texts import ANSWERS, INPUTS, TEXTS, PlainModel, save_gpt2, write_table
from sklearn.linear_model import LogisticRegression
from test_interchange import agreement_rows
from toy_grammar import AUXILIARIES, INTRANSITIVE, PERSONS, attractors
from transformers import AutoModelForCausalLM, AutoTokenizer

from probes.cli.main import main
from probes.common.errors import UserError
from probes.data.sentence import Sentence
from probes.families.interventions import SteeringOptions
from probes.families.interventions.directions import LEACE, MEAN, PROBE, RANDOM, SHUFFLED
from probes.families.interventions.experiment import LOG_ODDS, LOSS
from probes.families.interventions.interchange_scores import RATIO
from probes.families.interventions.neutral_text import _sample
from probes.families.interventions.steering_answers import (
    ALONG,
    ANSWERED,
    FIRST,
    UNTOUCHED,
    first_answer,
)
from probes.families.interventions.steering_damage import Damage
from probes.families.interventions.steering_effects import AGAINST, STEERED, Effects, GroupEffects
from probes.families.interventions.steering_inputs import (
    DIRECTIONS,
    NORM,
    Prompts,
    SteeringInput,
    _control_doses,
    _steps,
    stepped,
)
from probes.statistics.partition import partition

NUMBER, COPY = 0, 1
"""Features of the circuit: the number of a noun, and its copy at later tokens."""


NOUNS = [noun for noun in PERSONS if noun not in ("coach", "witness")]
"""Persons whose plural has an *-s* more."""


def save_circuit(folder):
    """A GPT-2 of three blocks that answers with the mean number of the nouns before.

    Block 2 copies it from its place in the embeddings of nouns to one that the head reads. All
    other weights of blocks are 0.
    """
    model = save_gpt2(folder, 3, n_embd=64, n_layer=3, n_head=1, tie_word_embeddings=False)
    vocabulary = word_level().get_vocab()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "ln_" not in name and "wte" not in name:
                weight.zero_()
        embeddings = model.transformer.wte.weight
        embeddings[:, [NUMBER, COPY]] = 0
        for noun in NOUNS:
            embeddings[vocabulary[noun], NUMBER] = -0.1
            embeddings[vocabulary[noun + "s"], NUMBER] = 0.1
        attention = model.transformer.h[1].attn
        attention.c_attn.weight[NUMBER, 128 + COPY] = 1  # a value; all keys are equal
        attention.c_proj.weight[COPY, COPY] = 1
        for *_, forms, _ in AUXILIARIES:
            model.lm_head.weight[vocabulary[forms["Plur"]], COPY] = 3
            model.lm_head.weight[vocabulary[forms["Sing"]], COPY] = -3
    model.save_pretrained(folder)
    return folder


def steering_run(model, corpus, folder, settings=None, **options):
    """A run with its rows by metric, direction, layer, dose and control; of all paradigms."""
    options = {"examples": 20, "draws": 8, "doses": "-1,1,2", **options}
    run = measure(
        "steering", model, corpus, folder, options={"steering": options}, **(settings or {})
    )
    run.rows = {}
    for row in run.record.rows:
        if not row.axes.get("paradigm") and not row.axes.get("chosen"):
            axes = (row.axes.get(x) for x in ("direction", "dose", "less"))
            key = row.metric if row.split != "dev" else f"dev {row.metric}"
            run.rows[key, row.layer, *axes] = row
    return run


@pytest.fixture(scope="module")
def circuit(tmp_path_factory):
    """The circuit, steered on minimal pairs and on texts."""
    folder = tmp_path_factory.mktemp("circuit")
    model, pairs = save_circuit(folder / "model"), folder / "pairs.csv"
    with pairs.open("w") as file:
        writer = csv.DictWriter(file, ["sentence_good", "sentence_bad", "UID"])
        writer.writeheader()
        writer.writerows(agreement_rows())
    rows = [
        (f"the {noun}{form} likes to {last}", f"n{form}", ("train", "train", "dev", "test")[i % 4])
        for i, noun in enumerate(NOUNS)
        for form, last in product(("", "s"), INTRANSITIVE[:4])  # states differ in it, too
    ]
    write_table(folder / "texts.csv", rows)
    on_pairs = steering_run(model, pairs, folder / "a")
    on_texts = steering_run(model, folder / "texts.csv", folder / "b", TEXTS, answers=" are, is", examples=40, damage=99)  # fmt: skip
    return SimpleNamespace(pairs=on_pairs, texts=on_texts)


def by_layer(run, metric, **axes):
    """Values of a metric on test, by layer, of rows with these values on axes."""
    return {
        row.layer: row.value
        for row in run.record.rows
        if row.metric == metric and row.split == "test" and not row.axes.get("chosen")
        if all(row.axes.get(name) == x for name, x in axes.items())
    }


def test_all_experiments_find_the_same_circuit(circuit, tmp_path):
    """Block 2 brings number to the last token; the answer depends on it there from layer 2 on."""

    def run_of(name, model, corpus, settings, **options):
        folder, settings = tmp_path / name, {**settings, "options": {name: options}}
        return measure(name, model, corpus, folder, **settings)

    path, texts = circuit.texts.model, circuit.texts.corpus
    noisy = AutoModelForCausalLM.from_pretrained(path)  # heads of zeros cannot be told from none
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in noisy.transformer.h.parameters():
            weight += 0.01 * torch.randn_like(weight)
    noisy.save_pretrained(tmp_path / "noisy")
    AutoTokenizer.from_pretrained(path).save_pretrained(tmp_path / "noisy")
    words = {"tasks": "agreement", "probes": "linear"}
    disabled = run_of("ablation", tmp_path / "noisy", attractors(), words, how="zero")
    heads = by_layer(disabled, LOG_ODDS, disabled="head")
    assert heads[2] > 10 * max(abs(heads[1]), abs(heads[3]))
    erased = run_of("erasure", path, texts, TEXTS, answers=" are, is")
    exchanged = run_of("interchange", path, texts, TEXTS, answers=" are, is")
    for effects in (
        by_layer(erased, LOG_ODDS, eraser="labels", less="nothing"),
        by_layer(exchanged, RATIO, direction="whole"),
        by_layer(circuit.texts, STEERED, direction=MEAN, dose=1.0, less=None),
    ):
        assert min(effects[2], effects[3]) > 10 * max(abs(effects[0]), abs(effects[1]))


def test_steering_finds_a_known_circuit(circuit):
    """Number can be steered at the last token's layers 2 and 3, and nowhere below."""
    for run, (layer, name) in product((circuit.pairs, circuit.texts), product((0, 1), DIRECTIONS)):
        row = run.rows[STEERED, layer, name, 1, None]
        assert (abs(row.value), row.low, row.p) == (0, None, 1 if run is circuit.texts else None)
    for run, layer, name in product((circuit.pairs, circuit.texts), (2, 3), (MEAN, LEACE)):
        by_dose = [run.rows[STEERED, layer, name, dose, None] for dose in (-1, 1, 2)]
        assert by_dose[0].value < 0 < by_dose[1].value < by_dose[2].value
        assert run.rows[AGAINST, layer, name, 2, None].value == 0
        if run is circuit.pairs:
            assert {row.p for row in by_dose} == {None}  # 14 pairs of words are too few
            assert by_dose[0].why == "fewer than 20 pairs of words are exchanged"
        else:  # at layer 2, large steps of any kind saturate the norm after it
            assert all(row.p < 0.05 for row in (by_dose if layer == 3 else by_dose[:1]))
    (agreement,) = circuit.pairs.record.rows.matching(
        "steering_agreement", steered="agreement", paradigm="near"
    )[2:3]
    assert agreement.value == pytest.approx(1, abs=1e-4)


def test_what_is_chosen_on_dev_has_its_value_on_test(circuit):
    run = circuit.texts
    chosen = [x for x in run.record.rows if x.axes.get("chosen")]
    rows = {(x.metric, x.split, x.axes["direction"], x.axes.get("less")): x for x in chosen}
    best = rows[STEERED, "test", MEAN, None]
    on_dev = {
        (layer, dose): np.sign(dose) * row.value
        for (metric, layer, direction, dose, _), row in run.rows.items()
        if metric == f"dev {STEERED}" and direction == MEAN
        and run.rows[f"dev {LOSS}", layer, MEAN, dose, None].value <= 99
    }  # fmt: skip
    assert (best.layer, best.axes["dose"]) == max(on_dev, key=on_dev.get)
    everywhere = run.rows[STEERED, best.layer, MEAN, best.axes["dose"], None]
    assert best.value == everywhere.value
    assert everywhere.p <= best.p < 0.05  # it is corrected over doses, too
    assert rows[LOSS, "test", MEAN, None].value is not None
    (sentence,) = (x for x in run.record.notes if x.startswith("label@last, mean difference"))
    assert f"at layer {best.layer} with dose {best.axes['dose']:g}. There" in sentence
    assert f"change by {best.value:+.2f} nats" in sentence


def test_a_step_that_breaks_text_is_not_chosen(circuit):
    """At every layer where number can be steered, neutral text loses more than 0.1 nats."""
    loss = circuit.pairs.rows[f"dev {LOSS}", 3, MEAN, 1, None]
    assert 1 < loss.low < loss.value < loss.high
    assert (
        "near, mean difference: nothing moves answers the right way at this damage."
        in circuit.pairs.record.notes
    )


def steps_of(plain):
    """Mean differences of the last tokens of training texts, by layer."""
    states, many = torch.from_numpy(plain.states(plain.texts["train"])), plain.many["train"]
    return (states[:, many].mean(1) - states[:, ~many].mean(1)).float()


@pytest.mark.parametrize("kind", ["texts", "chats"])
def test_log_odds_are_those_of_hooks_on_a_plain_model(texts, kind, tmp_path):
    plain, (corpus, settings, answers) = PlainModel(texts, kind), INPUTS[kind]
    options = {**answers, "examples": 100}
    run = steering_run(texts / "model", texts / corpus, tmp_path, settings, **options)
    (first, second), steps = plain.ids(" dance laugh"), steps_of(plain)

    def log_odds(layer, dose):
        with plain.changed(layer, lambda states: states + dose * steps[layer]):
            logits = [plain.logits(text)[-1] for text in plain.prompts["test"]]
        return torch.stack([x[first] - x[second] for x in logits])

    for layer, dose in product(range(3), (-1, 2)):
        moved = (log_odds(layer, dose) - log_odds(layer, 0)).numpy()
        row = run.rows[STEERED, layer, MEAN, dose, None]
        assert row.value == pytest.approx(moved.mean(), rel=5e-3, abs=2e-3)
        assert row.n == 30
        against = run.rows[AGAINST, layer, MEAN, dose, None].value
        assert against == pytest.approx((moved * dose < 0).mean(), abs=1 / 29)
    assert "'many' is the positive class" in " ".join(run.record.notes)
    assert run.rows[STEERED, 1, PROBE, 2, None].value != run.rows[STEERED, 1, MEAN, 2, None].value


@pytest.mark.parametrize("kind", ["texts", "chats"])
def test_answers_are_those_of_generate_with_hooks(texts, kind, tmp_path):
    plain, words, (corpus, settings, _) = PlainModel(texts, kind), ("pleasure", "fix"), INPUTS[kind]
    options = {"answers": " pleasure, fix", "prompt": " they" if kind == "texts" else ""}
    options |= {"generate": 6, "damage": 99, "doses": "-8,8", "examples": 12}
    run = steering_run(texts / "model", texts / corpus, tmp_path, settings, **options)
    best = next(x for x in run.record.rows if x.metric == ANSWERED and x.axes["direction"] == MEAN)
    arrays = np.load(run.path.with_suffix(".npz"), allow_pickle=False)
    prompts = arrays["label@last prompts"].tolist()
    assert len(set(prompts) & set(plain.prompts["test"])) == 12
    firsts, steps = {}, steps_of(plain)
    for step, dose in ((UNTOUCHED, 0), (ALONG, best.axes["dose"])):
        with plain.changed(best.layer, lambda x, dose=dose: x + dose * steps[best.layer]):
            ids = [torch.tensor([plain.start + plain.ids(prompt)]) for prompt in prompts]
            new = [plain.model.generate(x, do_sample=False, max_new_tokens=6)[0, x.shape[1] :] for x in ids]  # fmt: skip
        texts_of = [plain.tokenizer.decode(x, skip_special_tokens=True) for x in new]
        written = arrays[f"label@last {MEAN if dose else UNTOUCHED}"].tolist()
        assert [x.split() for x in written] == [x.split() for x in texts_of]
        firsts[step] = [next((x for x in text.split() if x in words), "") for text in texts_of]
        for name, word in zip(FIRST, (*words, ""), strict=True):
            (row,) = run.record.rows.matching(
                ANSWERED, steered=..., direction=MEAN, dose=..., chosen=..., step=step, answer=name
            )
            assert row.value == pytest.approx(firsts[step].count(word) / 12)
            assert (row.n, row.why) == (12, "fewer than 20 sentences")
    assert any(firsts[UNTOUCHED])
    assert firsts[UNTOUCHED] != firsts[ALONG]
    assert written != arrays[f"label@last random, as {MEAN}"].tolist()
    (note,) = (x for x in run.record.notes if x.startswith("After "))
    assert repr(written[1]) in note


def test_damage_is_a_ratio_whose_documents_are_resampled():
    rng, n = np.random.default_rng(0), 40
    pieces, before = rng.integers(1, 9, n), rng.normal(-20, 1, n)
    falls = [pieces * rng.normal(mean, 0.5, n) for mean in (1, 2)]
    cells, documents = [(MEAN, 1, 1.0)], partition([str(i // 2) for i in range(n)], "dev")
    parts = [Damage(cells, np.stack([before, before - x]), pieces, documents, "dev") for x in falls]
    (row,) = Damage.mean(parts).rows(lambda cell: {"dose": cell[2]})
    fall = np.mean(falls, axis=0).reshape(20, 2).sum(1)
    sizes = pieces.reshape(20, 2).sum(1)
    assert row.value == pytest.approx(fall.sum() / sizes.sum())
    assert Damage.mean(parts).increase(cells[0]) == pytest.approx(row.value)
    sd = scipy.stats.bootstrap(
        (fall, sizes), lambda x, y, axis: x.sum(axis) / y.sum(axis), paired=True, rng=rng
    ).standard_error
    assert row.high - row.low == pytest.approx(2 * 1.96 * sd, rel=0.1)


def test_neutral_sentences_come_from_as_many_documents_as_there_are():
    for n_documents, counts in ((21, [1] * 20), (3, [6, 7, 7])):
        names = [str(min(i, n_documents - 1)) for i in range(100)]  # most are of the last one
        names = [*names[:40], *[str(i % n_documents) for i in range(60)]]
        texts = [Sentence(str(i), "en", ("w",), document=x) for i, x in enumerate(names)]
        assert sorted(Counter(x.document for x in _sample(texts, "test")).values()) == counts


def test_the_first_whole_word_counts():
    answers = (" not true", " True")
    assert first_answer("It is true, not false.", answers) == "other"
    assert first_answer("NOT TRUE", answers) == "positive"
    assert first_answer("untrue or truest", answers) == "neither"
    assert first_answer("", answers) == "neither"


@pytest.mark.parametrize(
    ("text", "answers", "first"),
    [
        ("这是真的。", ("真", "假"), "positive"),  # no spaces between words
        ("คำตอบคือไม่ใช่", ("ใช่", "ไม่ใช่"), "other"),
        ("हैं नहीं", ("है", "नहीं"), "other"),  # a mark after a letter is part of the word
        ("caf\u00e9", ("cafe\u0301", "tea"), "positive"),
        ("not\n  true", (" not true", " true"), "positive"),
        ("_true_", ("true", "false"), "positive"),
        ("nothing, yesterday, no", ("not", "no"), "other"),
        ("5, not 50", ("50", "5"), "other"),
    ],
)
def test_words_are_whole_in_every_script(text, answers, first):
    assert first_answer(text, answers) == first


def context_of(doses=(-1.0, 1.0), draws=4):
    return SimpleNamespace(options=SteeringOptions(doses=doses, draws=draws))


@pytest.mark.parametrize("paired", [False, True])
def test_a_step_of_dose_1_goes_from_mean_to_mean(paired):
    rng, z = np.random.default_rng(1), np.tile([0, 1], 50)
    x = rng.normal(size=(100, 6)) + np.outer(z, [3, 1, 0, 0, 0, 0])
    mean = x[1::2].mean(0) - x[::2].mean(0)
    steps, rows = _steps(context_of(), {"steered": "t"}, {3: (x, z)}, paired=paired)
    for name in (MEAN, PROBE, LEACE):
        (step,), (back,) = steps[name, 3, 1.0], steps[name, 3, -1.0]
        assert step @ step == pytest.approx(mean @ step)  # as far as the means along it
        assert np.array_equal(back, -step)
    assert steps[MEAN, 3, 1.0][0] == pytest.approx(mean)
    scaled = LogisticRegression(C=1.0, max_iter=200).fit((x - x.mean(0)) / x.std(0), z)
    weights = scaled.coef_[0] / x.std(0)
    cosine = (
        weights
        @ steps[PROBE, 3, 1.0][0]
        / np.linalg.norm(weights)
        / np.linalg.norm(steps[PROBE, 3, 1.0])
    )
    assert cosine == pytest.approx(1)
    for control in (RANDOM, SHUFFLED):
        assert np.linalg.norm(steps[control, 3, 1.0], axis=1) == pytest.approx(np.linalg.norm(mean))
        assert len(np.unique(steps[control, 3, 1.0][:, 0])) == 4
    unit = mean / np.linalg.norm(mean)
    pooled = np.sqrt(((x[::2] @ unit).var(ddof=1) + (x[1::2] @ unit).var(ddof=1)) / 2)
    values = {(row.metric, row.axes.get("direction")): row.value for row in rows}
    assert values["steering_separation", MEAN] == pytest.approx(np.linalg.norm(mean) / pooled)
    others = (
        x[1::2] - x[::2]
        if paired
        else np.concatenate([x[1::2] - x[::2].mean(0), x[1::2].mean(0) - x[::2]])
    )
    cosines = others @ unit / np.linalg.norm(others, axis=1)
    assert values["steering_agreement", None] == pytest.approx(cosines.mean())


def test_the_norm_alone_is_that_after_the_step():
    states = torch.randn(3, 4, 6)
    vector = np.random.default_rng(0).normal(size=6)
    rescaled = stepped((NORM, 1, 1.0), vector).interventions[0].change(states, states)
    after = states + torch.from_numpy(vector).float()
    torch.testing.assert_close(rescaled.norm(dim=-1), after.norm(dim=-1))
    torch.testing.assert_close(
        rescaled / rescaled.norm(dim=-1, keepdim=True), states / states.norm(dim=-1, keepdim=True)
    )


def effects_of(own, controls, norm, n_units=30):
    """Effects of a direction at layers (layers, prompts), and draws of both controls."""
    n_layers, n = own.shape
    prompts = Prompts([], np.zeros(n), [], np.ones(n), [(str(i % n_units),) * 2 for i in range(n)])
    layers, step = range(n_layers), np.ones((1, 4))
    steps = {(name, k, 1.0): step for name, k in product((MEAN, NORM), layers)}
    group = SteeringInput({"steered": "t"}, prompts, prompts, steps, [], "documents")
    test = {(MEAN, k, 1.0): own[k][None] for k in layers}
    test |= {(x, k, 1.0): controls[i, k] for i, x in enumerate((RANDOM, SHUFFLED)) for k in layers}
    test |= {(NORM, k, 1.0): norm[k][None] for k in layers}
    effects = Effects({"steered": "t"}, [GroupEffects(group, {}, test, None)])
    rows = effects.compared([(MEAN, k, 1.0) for k in layers])
    return {(row.metric, row.layer, row.axes.get("less")): row for row in rows}


def test_controls_of_a_shorter_step_are_interpolated():
    steps = {(MEAN, 2, 2.0): np.array([[3.0, 4]]), (PROBE, 2, 2.0): np.array([[0.0, 2]])}
    steps[NORM, 2, 2.0] = steps[MEAN, 2, 2.0]
    group = SteeringInput({}, None, None, steps, [])
    effects = {1.0: np.array([[3.0], [-1]]), 2.0: np.array([[5.0], [1]])}
    test = {(RANDOM, 2, size): x for size, x in effects.items()}
    test |= {(NORM, 2, dose): np.array([[dose]]) for dose in (-1.0, 1.0, 2.0)}
    part = GroupEffects(group, {}, test, None)
    assert np.array_equal(part.like(RANDOM, (MEAN, 2, 2.0)), effects[2.0])
    # 2 / 5 of the length of the mean difference at dose 2 is its length at 0.8.
    assert part.like(RANDOM, (PROBE, 2, 2.0)) == pytest.approx(0.8 * effects[1.0])
    assert part.like(NORM, (PROBE, 2, 2.0)) == pytest.approx(np.array([[0.8]]))


def test_controls_are_measured_down_to_the_shortest_step():
    assert _control_doses((-2.0, 0.5, 2.0), 0.7) == [0.5, 2.0]
    assert _control_doses((1.0, -1.0), 0.0) == [1.0]  # no other direction
    assert _control_doses((0.5, 1.0), 0.04) == pytest.approx([0.04, 0.04 * 12.5**0.5, 0.5, 1.0])


def test_a_direction_like_its_controls_is_found_in_5_percent_of_tables():
    """Effects of all steps are drawn alike, with a mean of their own and noise of prompts."""
    rng, layers, n, draws = np.random.default_rng(7), 6, 60, 20
    rejected = {None: 0, RANDOM: 0, SHUFFLED: 0}
    for _ in range(120):
        common = rng.normal(size=(layers, n))
        own = common + rng.normal(0, 1, (layers, 1)) + rng.normal(0, 0.5, (layers, n))
        controls = (
            rng.normal(0, 1, (2, layers, draws, 1))
            + rng.normal(0, 0.5, (2, layers, draws, n))
            + common[None, :, None]
        )
        rows = effects_of(own, controls, common)
        for less in rejected:
            rejected[less] += any(rows[STEERED, k, less].p < 0.05 for k in range(layers))
    assert rejected[RANDOM] <= 13  # 6 of 120 expected; 13 has a probability under 1 %
    assert rejected[SHUFFLED] <= 13
    assert rejected[None] <= 6


def test_a_direction_that_only_shortens_vectors_does_no_more_than_the_norm():
    rng = np.random.default_rng(0)
    shorter = 2 + rng.normal(0, 0.3, (2, 60))
    rows = effects_of(shorter, rng.normal(0, 0.1, (2, 2, 10, 60)), shorter)
    assert rows[STEERED, 0, RANDOM].p < 0.05
    assert rows[STEERED, 0, SHUFFLED].p < 0.05
    assert (rows[STEERED, 0, NORM].value, rows[STEERED, 0, None].p) == (0, 1)


def test_against_the_dose_nothing_is_found():
    rng = np.random.default_rng(0)
    rows = effects_of(
        rng.normal(-2, 0.3, (2, 60)), rng.normal(0, 0.1, (2, 2, 10, 60)), np.zeros((2, 60))
    )
    assert rows[STEERED, 0, None].p == 1
    assert rows[STEERED, 0, RANDOM].p < 0.05
    assert rows[AGAINST, 0, None].value == 1


def test_seven_units_have_no_interval_and_no_p():
    rng = np.random.default_rng(0)
    rows = effects_of(
        rng.normal(2, 0.3, (1, 60)), rng.normal(0, 0.1, (2, 1, 10, 60)), np.zeros((1, 60)), 7
    )
    row = rows[STEERED, 0, None]
    assert (row.low, row.p, row.why) == (None, None, "fewer than 20 documents")
    assert rows[STEERED, 0, RANDOM].p is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"answers": ""},
            "--steering-answers '': give two answers, that of the positive class first",
        ),
        ({"answers": " dance, dance now"}, "they begin with the same token after a prompt"),
        ({"answers": " dance,"}, "--steering-answers '? dance,'?: give two answers"),
        ({"answers": " dance, dance"}, "--steering-answers '? dance, dance'?: give two answers"),
        ({"neutral": "nowhere"}, "^--steering-neutral nowhere: no corpus of sentences to read"),
        (
            {"neutral": "TEXTS"},
            r"^--steering-neutral \S+/texts.csv: no corpus of sentences to read",
        ),
        ({"neutral": "BAD"}, r"^--steering-neutral \S+: \S+bad.conllu, line 1: .*; correct it, or"),
        ({"doses": "0,1"}, "--steering-doses '?0,1'?: give numbers other than 0"),
        ({"doses": "x"}, "--steering-doses '?x'?: give numbers other than 0"),
        ({"doses": "1,nan"}, "--steering-doses '?1,nan'?: give numbers other than 0"),
        ({"doses": "-inf"}, "--steering-doses '?-inf'?: give numbers other than 0"),
        ({"doses": 1}, "--steering-doses 1: give numbers other than 0"),
    ],
)
def test_what_cannot_be_steered_is_refused_in_one_line(texts, tmp_path, options, message):
    (tmp_path / "bad.conllu").write_text("a b c\n")
    files = {"TEXTS": str(texts / "texts.csv"), "BAD": str(tmp_path / "bad.conllu")}
    options = {name: files.get(x, x) for name, x in options.items()}
    folder = tmp_path / "a"
    with pytest.raises(UserError, match=message):
        steering_run(texts / "model", texts / "texts.csv", folder, TEXTS, **{**ANSWERS, **options})
    # Nothing is computed, not even scores.
    assert not [*folder.rglob("*.json")]


def test_prompts_that_fit_with_a_start_token_are_read(texts, tmp_path):
    """A window of 64 has a start token, which the tokenizer does not add, text, prompt and answer."""
    rng, lengths = np.random.default_rng(0), {"train": 4, "dev": 4, "test": 61}
    rows = []
    for i, (split, length) in product(range(20), lengths.items()):
        n_words = length + (split == "test" and i % 4 == 0)
        rows.append((" ".join(rng.choice(PERSONS, n_words)), "ab"[i % 2], split))
    write_table(tmp_path / "long.csv", rows)
    run = steering_run(texts / "model", tmp_path / "long.csv", tmp_path, TEXTS, **ANSWERS)
    assert run.rows[STEERED, 1, MEAN, 1, None].n == 15


def test_neutral_text_is_looked_for_where_the_run_says(tmp_path):
    (tmp_path / "a").mkdir()
    run = SimpleNamespace(texts="", data_dir=tmp_path / "a", cache_dir=tmp_path / "b", offline=True)
    with pytest.raises(
        ValueError, match=f"ewt.* not found below {tmp_path / 'a'} or in {tmp_path / 'b'}"
    ):
        SteeringOptions.model_validate({"neutral": "ewt"}, context=run)


def test_a_record_names_neutral_text_by_its_digest():
    settings = SteeringOptions().model_dump(mode="json")
    assert [*settings["neutral"]] == ["sample"]
    assert len(settings["neutral"]["sample"]) == 64
    # It can be read where the corpus is not found any more.
    gone = SteeringOptions.model_validate({"neutral": {"gone.conllu": "0"}})
    assert gone.model_dump(mode="json")["neutral"] == {"gone.conllu": "0"}


@pytest.mark.parametrize("positions", ["mean", "all,max"])
@pytest.mark.parametrize("name", ["steering", "interchange"])
def test_texts_that_are_read_at_many_tokens_are_refused_at_once(texts, capsys, name, positions):
    flags = ["--text", "text", "--label", "label", "--positions", positions]
    line = command_line(name, texts / "model", texts / "texts.csv", texts / "b", *flags)
    assert main([*line, f"--{name}-answers", " dance, laugh"]) == 2
    said = capsys.readouterr().err
    assert f"error: --positions {positions}: interchange and steering change texts" in said
    assert not (texts / "b").exists()
