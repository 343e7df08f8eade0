"""Interchange interventions, by hand, with hooks on plain models, and where grammar is known."""

import csv
from itertools import product

import numpy as np
import pytest
import torch
from grammar_models import save_causal, word_level
from measuring import command_line, measure
from scipy.stats import bootstrap
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from statistics_simulation import drawn_tokens, exchanged_words
from toy_grammar import AUXILIARIES, PERSONS, attractors
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
)

from probes.cli.main import main
from probes.data.items import minimal_pair
from probes.families.interventions.controls import N_ARBITRARY_PAIRS, arbitrary_tokens
from probes.families.interventions.directions import DIRECTIONS
from probes.families.interventions.erasers import Moments, leace
from probes.families.interventions.experiment import CLOZE, resampling_units
from probes.families.interventions.interchange_pairs import (
    Contrast,
    aligned_pairs,
    choice,
    contrasts,
    contrasts_by_paradigm,
    train_and_test_contrasts,
    with_sides,
)
from probes.families.interventions.interchange_scores import (
    ARBITRARY,
    CHANGED,
    DIFFERENCE,
    FLIPPED,
    LAST,
    MASKED,
    OWN,
    RATIO,
    ParadigmScores,
)

NUMBERS = "Sing", "Plur"
AUX = [forms for *_, forms, _ in AUXILIARIES]


def agreement_rows(uid="near", between="near the nurse", of=lambda noun: NUMBERS):
    """Minimal pairs of all nouns and auxiliaries."""
    for noun, forms in product(PERSONS, AUX):
        for number, wanted in zip(NUMBERS, of(noun), strict=True):
            form = noun + ("s" if number == "Plur" else "")
            good, bad = (forms[x] for x in (wanted, NUMBERS[wanted == "Sing"]))
            before = f"the {form} {between}".split()
            sentences = (" ".join([*before, x, "."]) for x in (good, bad))
            yield dict(zip(("sentence_good", "sentence_bad"), sentences, strict=True), UID=uid)


@pytest.fixture(scope="module")
def agreement_pairs(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "agreement.csv"
    with path.open("w") as file:
        writer = csv.DictWriter(file, ["sentence_good", "sentence_bad", "UID"])
        writer.writeheader()
        writer.writerows([*agreement_rows(), *agreement_rows("alone", "")])
    return path


def interchange_run(model, folder, corpus, pairs, training=10):
    """A run with its rows by metric, direction, layer and place in the text."""
    options = {"interchange": {"pairs": pairs, "training": training}}
    run = measure("interchange", model, corpus, folder, options=options)
    run.rows = {}
    for row in run.record.rows:
        where = row.axes.get("at") or (row.axes["paradigm"], row.axes["position"])
        metric = row.metric if row.axes["answers"] == OWN else row.axes["answers"]
        run.rows[metric, row.axes["direction"], row.layer, where] = row
    return run


def sentences(*pairs, paradigm="p"):
    return [minimal_pair(f"{paradigm}-{i}", paradigm, *pair) for i, pair in enumerate(pairs)]


AGREE = [("the author laughs", "the author laugh"), ("the authors laugh", "the authors laughs")]


@pytest.mark.parametrize(
    ("items", "causal", "expected"),
    [
        (sentences(*AGREE), True, [("the author", "the authors", "laughs/laugh")]),
        # Another noun is no partner while there is one with more letters in common.
        (
            sentences(*AGREE, ("the pilot laughs", "the pilot laugh")),
            True,
            [("the author", "the authors", "laughs/laugh")],
        ),
        # Prefixes differ in two places; continuations are the same; texts do not share a prefix.
        (sentences(AGREE[0], ("some authors laugh", "some authors laughs")), True, []),
        (sentences(AGREE[0], ("the actor laughs", "the actor laugh")), True, []),
        (sentences(("no author ever laughs", "the author ever laughs")), True, []),
        # What follows matters to a masked model alone.
        (sentences(AGREE[0], ("the authors laugh now", "the authors laughs now")), False, []),
        (
            sentences(AGREE[0], ("the authors laugh now", "the authors laughs now")),
            True,
            [("the author", "the authors", "laughs/laugh")],
        ),
    ],
)
def test_prefixes_that_differ_in_one_word_and_in_what_is_right_after_them(items, causal, expected):
    found = contrasts(filter(None, (choice(item, causal) for item in items)))
    plain = [(*map(" ".join, x[:2]), *map("/".join, x.answers)) for x in found]
    assert plain == expected


def test_sides_follow_from_words_in_common():
    verbs = {"laughs": "laugh", "is": "are", "were": "was"}
    pairs = [
        pair
        for noun in ("author", "pilot")
        for one, other in verbs.items()
        for pair in (
            (f"the {noun} {one}", f"the {noun} {other}"),
            (f"the {noun}s {other}", f"the {noun}s {one}"),
        )
    ]
    pairs += [("a cat sat", "a cat sit"), ("a dog sit", "a dog sat")]  # shares no word with them
    items = sentences(*pairs)
    found = with_sides(contrasts(choice(item, True) for item in items))
    assert {x.changed: x.side for x in found} == {
        ("author", "authors"): found[0].side,
        ("pilot", "pilots"): found[0].side,
    }
    assert found[0].exchanged().changed == ("authors", "author")
    assert found[0].exchanged().side == 1 - found[0].side


def test_no_changed_word_is_in_train_and_in_test_though_words_share_partners():
    given = [
        Contrast((f"a{i}", one), (f"a{i}", other), (("x", "y"),), ())
        for i in range(5)
        for one, other in product("abcdef", "uvwxyz")
        if i % 2 or one in "abc" or other in "xyz"
    ]
    train, test = ({x for y in part for x in y.changed} for part in train_and_test_contrasts(given))
    assert train
    assert test
    assert train.isdisjoint(test)


def test_pairs_of_prompts_take_turns_between_the_words_that_they_exchange():
    """With 20 pairs of prompts there are 20 pairs of words, if there are so many."""
    given = [
        Contrast((f"a{i}", f"n{k}"), (f"a{i}", f"n{k}s"), (("x", "y"),), ())
        for k in range(9)
        for i in range(3 + 5 * (k == 0))
    ]
    for part in train_and_test_contrasts(given):
        words = [frozenset(x.changed) for x in part]
        n = len(set(words))
        assert n >= 4
        assert all(len(set(words[first : first + n])) == n for first in (0, n, 2 * n))


def test_pairs_that_share_a_word_are_one_unit():
    a, b, c, d, e = resampling_units([("a", "b"), ("d", "e"), ("b", "a"), ("c", "a"), ("f", "e")])
    assert a == c == d
    assert b == e != a


def measured_by_hand(n_words, per_word, rng, effect=1.0):
    """Two layers, one place, of pairs whose values are those of their words."""
    values = effect + rng.standard_normal((2, 1, len(DIRECTIONS), n_words)).repeat(per_word, -1)
    words = [((f"{i}", f"{i}s"), "p") for i in range(n_words) for _ in range(per_word)]
    right = np.ones(len(words), dtype=bool)
    return ParadigmScores("p", [], [0], values, np.abs(values) / 2, values > 0, right, words)


def test_resampling_is_by_exchanged_words():
    """Four pairs of prompts for each word know no more than one: scipy's interval of the words."""
    found = measured_by_hand(24, 4, np.random.default_rng(0))
    rows = list(found.rows([0, 1], [{"at": CHANGED}]))
    checked = 0
    for row in rows:
        if row.axes["direction"] == "LEACE" and row.metric == RATIO:
            own = found.ratio[row.layer, 0, DIRECTIONS.index("LEACE"), ::4]
            other = np.abs(own) / 2
            values = {OWN: own, ARBITRARY: other, DIFFERENCE: own - other}[row.axes["answers"]]
            plain = bootstrap((values,), np.mean, n_resamples=9999, method="percentile", rng=1)
            assert row.value == pytest.approx(values.mean())
            room = 0.1 * (plain.confidence_interval.high - plain.confidence_interval.low)
            assert row.interval == pytest.approx(plain.confidence_interval, abs=room)
            assert (row.p is None) == (row.axes["answers"] == ARBITRARY)
            checked += 1
    assert checked == 6


def test_intervals_know_that_other_tokens_might_have_been_drawn():
    """Of 300; the standard error of a share of .9 is .017. One draw for all pairs covers a third."""
    assert drawn_tokens(1, shared=True, n_sets=300) < 0.45
    assert drawn_tokens(N_ARBITRARY_PAIRS, shared=False, n_sets=300) > 0.86


def test_words_that_move_nothing_on_average_are_rarely_an_effect():
    """Of 100 tables of 14 cells; resampled by prompt, more than half have an effect."""
    wrong, covered = exchanged_words(20, "words", 0.0, 14, 100)
    assert wrong <= 0.09
    assert covered > 0.88


@pytest.mark.parametrize(("effect", "further"), [(0.0, False), (3.0, True)])
def test_answers_that_move_less_far_than_arbitrary_ones_are_no_effect(effect, further):
    """Without any effect the mean of absolute differences is subtracted, which is above 0."""
    scores = measured_by_hand(40, 2, np.random.default_rng(2), effect)
    rows = scores._replace(arbitrary=np.abs(scores.ratio) / 2 + 0.2).rows([0, 1], [{"at": LAST}])
    rows = [row for row in rows if row.axes["answers"] == DIFFERENCE]
    assert len(rows) == 2 * len(DIRECTIONS)
    for row in rows:
        assert (row.value > 0) == further
        assert row.p < 0.05 if further else row.p == 1


@pytest.mark.parametrize("n_words", [7, 19])
def test_with_fewer_than_20_exchanged_pairs_of_words_nothing_is_inferred(n_words):
    """With 7 words and 40 pairs of prompts, tests by prompt find an effect in 2 of 5 null tables."""
    for row in measured_by_hand(n_words, 6, np.random.default_rng(1)).rows([0, 1], [{"at": LAST}]):
        assert (row.low, row.high, row.p) == (None, None, None)
        assert row.why == "fewer than 20 pairs of words are exchanged"


@pytest.fixture(scope="module")
def random_model(tmp_path_factory):
    """Gemma 3 with random weights; its embeddings are scaled, and its norms have weights."""
    folder, tokenizer = tmp_path_factory.mktemp("gemma"), word_level()
    sizes = {"hidden_size": 24, "intermediate_size": 32, "head_dim": 12, "initializer_range": 0.3}
    layers = {"num_hidden_layers": 3, "num_attention_heads": 2, "num_key_value_heads": 1}
    ends = {"pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0}
    window = {"max_position_embeddings": 64, "sliding_window": 8}
    config = Gemma3TextConfig(vocab_size=len(tokenizer), **sizes, **layers, **ends, **window)
    torch.manual_seed(0)
    Gemma3ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def pairs_of(corpus, tokenizer, causal, n_test, n_train=10):
    """The same pairs as in the run, with tokens from transformers."""
    with corpus.open() as file:
        items = [
            minimal_pair(str(i), row["UID"], row["sentence_good"], row["sentence_bad"])
            for i, row in enumerate(csv.DictReader(file))
        ]
    sizes, found, every = (n_train, n_test), [], {}
    for paradigm, parts in contrasts_by_paradigm(items, causal, *sizes).items():
        texts = [text for part in parts for x in part for three in x.texts() for text in three]
        pieces = {}
        for text in texts:
            given = tokenizer(text.words[0], add_special_tokens=False, return_offsets_mapping=True)
            pieces[text] = Tokens(np.array(given["input_ids"]), np.array(given["offset_mapping"]))
        every |= pieces
        found.append((paradigm, *aligned_pairs(parts, pieces, causal, sizes)))
    tokens = {token for pieces in every.values() for token in pieces.ids.tolist()}
    for seed, (paradigm, train, test) in enumerate(found):
        columns = arbitrary_tokens(tokens, [pair.answers for pair in test], seed)
        draws = columns[:, : 2 * N_ARBITRARY_PAIRS].reshape(-1, N_ARBITRARY_PAIRS, 2)
        yield paradigm, train, test, seed, draws


class Tokens:
    def __init__(self, ids, letters):
        self.ids, self.letters = ids, letters


def plain_pass(model, ids, layer=None, place=None, change=None):
    """Log-probabilities after a prompt, and states; with another state at a layer and place."""
    body = model.model

    def hook(_module, args, output):
        changed = (output if isinstance(output, torch.Tensor) else output[0]).clone()
        changed[0, place] = change(changed[0, place])
        return changed if isinstance(output, torch.Tensor) else (changed, *output[1:])

    def pre_hook(_module, args):
        changed = args[0].clone()
        changed[0, place] = change(changed[0, place])
        return (changed, *args[1:])

    handle = None
    if layer == 0:
        handle = body.layers[0].register_forward_pre_hook(pre_hook)
    elif layer is not None:
        last = layer == len(body.layers)
        handle = (body.norm if last else body.layers[layer - 1]).register_forward_hook(hook)
    with torch.no_grad():
        out = model(input_ids=torch.tensor([ids]), output_hidden_states=True)
    if handle:
        handle.remove()
    states = [x[0] for x in out.hidden_states]
    return out.logits[0, -1].log_softmax(-1), states


def fitted_by_libraries(x, z, differences):
    """Read and write vectors of each direction, from scikit-learn; for LEACE from its eraser."""

    def unit(v):
        return v / np.linalg.norm(v), v / np.linalg.norm(v)

    scaler = StandardScaler().fit(x)
    probe = LogisticRegression(max_iter=500).fit(scaler.transform(x), z).coef_[0] / scaler.scale_
    eraser = leace(Moments.of([(x[:, None], z[:, None])]))
    svd = TruncatedSVD(1, algorithm="arpack").fit(differences)
    return {
        "mean difference": unit(x[z == 1].mean(0) - x[z == 0].mean(0)),
        "probe": unit(probe),
        "LEACE": (eraser.left[:, 0], eraser.right[0]),
        "first component": unit(svd.components_[0]),
    }


def test_rows_are_those_of_plain_passes_with_hooks(random_model, agreement_pairs, tmp_path):
    """CausalGym's formula on ten pairs at every direction; controls with the same random numbers.

    The control of answers is the mean of twenty draws of tokens for each pair, and each pair has
    directions of its own: random ones with steps as long as along the mean difference, and the
    mean difference of classes that are shuffled within pairs.
    """
    rows = interchange_run(random_model, tmp_path, agreement_pairs, 10).rows
    tokenizer = AutoTokenizer.from_pretrained(random_model)
    model = AutoModelForCausalLM.from_pretrained(random_model).eval()
    start = [tokenizer.bos_token_id]
    checked = 0
    for paradigm, train, test, seed, arbitrary in pairs_of(agreement_pairs, tokenizer, True, 10):
        assert (len(train), len(test)) == (10, 10)
        assert len({tuple(draw) for pair in arbitrary.tolist() for draw in pair}) > 100
        assert (arbitrary[..., 0] != arbitrary[..., 1]).all()
        for layer, place in product((0, 2, 3), range(test[0].position, test[0].end)):
            at = 1 + place  # behind the start token

            def state(tokens, layer=layer, at=at):
                return plain_pass(model, [*start, *tokens])[1][layer][at].double().numpy()

            sides = np.array([(pair.side, 1 - pair.side) for pair in train]).ravel()
            x = np.array([state(tokens) for pair in train for tokens in pair.tokens])
            if np.allclose(x[::2], x[1::2]):
                continue  # causal: at layer 0, later tokens are the same
            every = fitted_by_libraries(x, sides, x[::2] - x[1::2])
            rng, mean = np.random.default_rng([seed, layer, place]), every["mean difference"][0]
            signs = rng.choice((-1.0, 1.0), (10, 10))
            controls = {
                "shuffled classes": [2 * (v / np.linalg.norm(v),)
                                     for v in signs @ (x[1::2] - x[::2])],
                "random": [(mean, v / np.linalg.norm(v)) for v in rng.standard_normal((10, 24))],
            }  # fmt: skip
            for name in ("whole", *every, *controls):
                ratios, flips, moved, steps = [], [], [], []
                for i, pair in enumerate(test):
                    source = torch.from_numpy(state(pair.tokens[1])).float()
                    both = every[name] if name in every else controls.get(name, [()] * 10)[i]

                    def change(h, source=source, both=both, steps=steps):
                        if not both:
                            return source
                        read, write = (torch.from_numpy(v).float() for v in both)
                        steps.append(float(abs((source - h) @ read)))
                        return h + ((source - h) @ read) * write

                    before, _ = plain_pass(model, [*start, *pair.tokens[0]])
                    of_source, _ = plain_pass(model, [*start, *pair.tokens[1]])
                    after, _ = plain_pass(model, [*start, *pair.tokens[0]], layer, at, change)
                    for b, s in pair.answers:
                        ratios.append(float(before[b] - before[s] + after[s] - after[b]))
                        if before[b] > before[s] and of_source[s] > of_source[b]:
                            flips.append(float(after[s] > after[b]))
                        one, other = arbitrary[i].T
                        odds = [(x[one] - x[other]).numpy() for x in (before, after)]
                        moved.append(np.abs(odds[0] - odds[1]).mean())
                where = name, layer, (paradigm, place + 1)
                assert rows[RATIO, *where].value == pytest.approx(np.mean(ratios), abs=2e-3)
                assert rows[ARBITRARY, *where].value == pytest.approx(np.mean(moved), abs=2e-3)
                less = np.mean(ratios) - np.mean(moved)
                assert rows[DIFFERENCE, *where].value == pytest.approx(less, abs=2e-3)
                if name == "mean difference":
                    as_long = steps
                elif name == "random":
                    assert steps == pytest.approx(as_long)
                if flips:
                    assert rows[FLIPPED, *where].value == pytest.approx(np.mean(flips))
                    assert rows[FLIPPED, *where].n == len(flips)
                checked += 1
    assert checked > 30


@pytest.fixture(scope="module")
def grammar_model(tmp_path_factory):
    """A causal model that was trained on the toy grammar, with one token per word."""
    folder = tmp_path_factory.mktemp("words") / "model"
    save_causal(folder, tokenizer=word_level())
    return folder


@pytest.fixture(scope="module")
def knows_grammar(grammar_model, agreement_pairs):
    return interchange_run(grammar_model, grammar_model.parent, agreement_pairs, 14, 14)


@pytest.mark.slow
def test_number_is_where_the_grammar_has_it_and_nowhere_else(knows_grammar):
    """Erasure finds it at the last layer of the verb's place; here, too."""
    record, rows = knows_grammar.record, knows_grammar.rows
    for place, layer in ((CHANGED, 0), (LAST, 2)):
        assert rows[FLIPPED, "whole", layer, place].value == 1  # exactly the source's answer
    assert rows[FLIPPED, "whole", 0, CHANGED].n > 0.9 * rows[RATIO, "whole", 0, CHANGED].n
    assert rows[RATIO, "whole", 0, CHANGED].p is None
    near = [key for key in rows if key[0] == FLIPPED and key[3] == ("near", 4)]
    assert near
    for _, direction, layer, place in near:  # "near the": the number is carried over, not there
        assert rows[FLIPPED, direction, layer, place].value < 0.1
    for direction in ("mean difference", "LEACE"):
        assert rows[FLIPPED, direction, 2, LAST].value > 0.9
    for (metric, direction, *_), row in rows.items():
        if metric == FLIPPED and direction == "random":
            assert row.value < 0.1
    ratio, moved = (rows[metric, "LEACE", 2, LAST].value for metric in (RATIO, ARBITRARY))
    assert moved < 0.5 * ratio
    n, every = (rows[metric, "whole", 0, ("near", 2)].n for metric in (FLIPPED, RATIO))
    assert next(note for note in record.notes if note.startswith("near:")) == (
        f"near: of {n} continuations answered right, the whole vector flips most if taken from "
        "'queen/queens' (position 2) at layer 0 or 'nurse' (position 5) at layers 1–2. There, the "
        f"mean difference moves the log-odds of all {every} by 96% of what the whole vector does, "
        "and that of shuffled classes by 68%."
    )


@pytest.mark.slow
def test_erasure_finds_number_where_interchange_does(knows_grammar, grammar_model, tmp_path):
    """At the last token from layer 1 on; at layer 0, neither changes an answer there."""
    exchanged = knows_grammar.rows
    settings = {"tasks": "agreement", "probes": "linear"}
    record = measure("erasure", grammar_model, attractors(), tmp_path, **settings).record
    for layer in range(3):
        labels, *controls = (
            record.rows.at(CLOZE, layer, erased="agreement", eraser=x, less="nothing").value
            for x in ("labels", "control task", "random")
        )
        flipped = exchanged[FLIPPED, "whole", layer, ("near", 5)].value
        assert flipped == float(layer > 0)
        assert labels == 0 if layer == 0 else labels > max(0.4, 0.1 + max(controls))


def test_a_masked_model_answers_at_the_masked_place(tmp_path, agreement_pairs):
    """The source's vector there gives its answer at the last layer, whatever else is different."""
    tokenizer = word_level(masked=True)
    sizes = {"hidden_size": 24, "intermediate_size": 32, "max_position_embeddings": 64}
    layers = {"num_hidden_layers": 2, "num_attention_heads": 2, "initializer_range": 0.3}
    torch.manual_seed(0)
    plain = BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), **sizes, **layers)).eval()
    plain.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    rows = interchange_run(tmp_path / "model", tmp_path, agreement_pairs, 10).rows
    n_right, changed = 0, []
    for _, _, test, *_ in pairs_of(agreement_pairs, tokenizer, False, 10):
        for pair in test:
            base, source = ([x if x >= 0 else tokenizer.mask_token_id for x in tokens]
                            for tokens in pair.tokens)  # fmt: skip
            ids = torch.tensor([[tokenizer.cls_token_id, *x, tokenizer.sep_token_id]
                                for x in (base, source)])  # fmt: skip
            with torch.no_grad():
                logits = plain(input_ids=ids).logits
                embedded = plain.bert.embeddings.word_embeddings(ids)
                embedded[0, 1 + pair.position] = embedded[1, 1 + pair.position]
                exchanged = plain(inputs_embeds=embedded).logits
            assert torch.allclose(exchanged[0], logits[1], atol=1e-4)
            before, after = logits[:, 1 + pair.end]
            for b, s in pair.answers:
                n_right += int(before[b] > before[s] and after[s] > after[b])
                changed.append(float(before[b] - before[s] + after[s] - after[b]))
    for layer, at in ((0, CHANGED), (2, MASKED)):
        flipped = rows[FLIPPED, "whole", layer, at]
        assert (flipped.value, flipped.n) == (1, n_right)
        assert rows[RATIO, "whole", layer, at].value == pytest.approx(np.mean(changed), abs=1e-3)


def test_a_corpus_without_such_pairs_is_left_out_with_the_reason(tmp_path, random_model, capsys):
    path = tmp_path / "pairs.csv"
    path.write_text("sentence_good,sentence_bad\nthe cook laughs,the laughs cook\n")
    assert main(command_line("interchange", random_model, path, tmp_path)) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "none of its 1 paradigms has 10 pairs of prompts that differ in one token" in said
