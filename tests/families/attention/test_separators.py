"""Gradients of attention, against transformers' own losses, maps and backward passes."""

from itertools import product

import numpy as np
import pytest
import torch
from measuring import command_line, measure
from plain_texts import write_table
from tiny_models import build, save_tokenizer
from tiny_readings import collected
from transformers import AutoModelForMaskedLM, AutoTokenizer

from probes.cli.main import main
from probes.data.conllu_files import read_conllu
from probes.data.sentence import Corpus
from probes.examples.examples import NotServedError
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.views import Text
from probes.families.attention.head_maps import AttentionGradients, gradients_by_kind
from probes.families.attention.separators import _gradient_collector

TEXTS = [
    Text(tuple(x.split()), (0, len(x.split())))
    for x in ("the birds sing near the old house", "she counts boats", "the lightkeepers write")
]
WORDS = {TEXTS[0]: np.array([1, 5]), TEXTS[1]: np.array([2]), TEXTS[2]: np.array([1])}
KINDS = {
    "bert": "BertForMaskedLM",
    "deberta-v2": "DebertaV2ForMaskedLM",
    "gpt2": "GPT2LMHeadModel",
    "gemma3": "Gemma3ForCausalLM",
}
"""The second returns its maps. The third reads no start token, the last a window of attention."""


def by_hand(model, ids, predicted, mask_id, n_prefix, n_suffix, window=None):
    """Gradient and attention of the three kinds of tokens. Shape (blocks, kinds, 2).

    Args:
        predicted: places of the tokens that a masked model predicts; empty for a causal one.
    """
    labels, given = torch.tensor([ids]), torch.tensor([ids])
    if len(predicted):
        labels = torch.full_like(given, -100)
        labels[0, predicted] = given[0, predicted]
        given = given.clone()
        given[0, predicted] = mask_id
    model.set_attn_implementation("eager")
    out = model(input_ids=given, labels=labels, output_attentions=True)
    gradients = torch.autograd.grad(out.loss, out.attentions)
    n = len(ids)
    row, column = np.indices((n, n))
    before_suffix, found = column < n - n_suffix, []
    kinds = column == 0, ~before_suffix, before_suffix & (column >= max(1, n_prefix))
    for block, both in enumerate(zip(out.attentions, gradients, strict=True)):
        seen = row - column < (window[block] if window else n)
        if not len(predicted):
            seen &= column <= row
        maps, slopes = (x[0].detach().abs().double().mean(0).numpy() for x in both)
        cells = [seen & kind for kind in kinds]
        found.append([(slopes[x].mean() if x.any() else np.nan, maps[x].sum() / n) for x in cells])
    return np.array(found)


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_gradients_are_those_of_a_plain_backward_pass(name, kind):
    model, tokenizer = build(name, kind)
    encoder = Encoder(model, tokenizer, name=name, device="cpu")
    found = collected(encoder, TEXTS, AttentionGradients(WORDS))["gradients"].numpy()
    masked = kind.endswith("MaskedLM")
    window = None
    if name == "gemma3":
        types, size = model.config.layer_types, model.config.sliding_window
        window = [size if x == "sliding_attention" else 99 for x in types]
    prefix, suffix = encoder.words.prefix, encoder.words.suffix
    for text, pieces, numbers in zip(TEXTS, encoder.split(TEXTS), found, strict=True):
        ids = [*prefix, *pieces.ids.tolist(), *suffix]
        bounds = pieces.bounds + len(prefix)
        at = [i for w in WORDS[text] for i in range(bounds[w], bounds[w + 1])] if masked else []
        sizes = len(prefix), len(suffix), window
        expected = by_hand(model, ids, at, encoder.words.mask_id, *sizes)
        np.testing.assert_allclose(numbers[..., :2], expected, rtol=2e-4, atol=1e-6)
        assert numbers[..., 2].sum(-1) == pytest.approx(1)
    if name == "gpt2":
        assert np.isnan(found[:, :, 1, 0]).all()
    else:
        assert (found[:, :, 0, 0] > 0).all()


def test_a_text_of_one_token_that_a_decoder_cannot_predict_has_no_numbers():
    encoder = Encoder(*build("gpt2", "GPT2LMHeadModel"), name="gpt2", device="cpu")
    single = next(
        text for text in (Text((x,), (0, 1)) for x in ["a", "b", "c", "d", "e", "f", "g", "h", "i"])
        if len(encoder.split([text])[0].ids) == 1
    )  # fmt: skip
    alone = collected(encoder, TEXTS, AttentionGradients(WORDS))["gradients"]
    texts = [TEXTS[0], single, *TEXTS[1:]]
    found = collected(encoder, texts, AttentionGradients({**WORDS, single: np.array([0])}))
    assert found["gradients"][1].isnan().all()
    torch.testing.assert_close(found["gradients"][[0, 2, 3]], alone, equal_nan=True)
    with pytest.raises(NotServedError, match="no text has a token that the model could predict"):
        collected(encoder, [single], AttentionGradients({single: np.array([0])}))


def test_numbers_by_kind_by_hand():
    """Two tokens and padding: the second token sees both, the first itself."""
    maps = torch.tensor([[[[1.0, 0, 0], [0.25, 0.75, 0], [0.5, 0.5, 0]]]])
    gradients = torch.tensor([[[[-4.0, 9, 9], [2, -1, 9], [9, 9, 9]]]])
    visible = torch.tensor([[[True, False, False], [True, True, False], [True, True, False]]])
    real = torch.tensor([[True, True, False]])
    kinds = torch.tensor([[[1.0, 0, 0], [0, 0, 0], [0, 1, 0]]])
    found = gradients_by_kind(maps, visible, gradients, real, kinds)[0].numpy()
    expected = [[3, 0.625, 0.75], [np.nan, 0, 0], [1, 0.375, 0.25]]
    np.testing.assert_allclose(found, expected)


def test_texts_of_several_windows_have_no_numbers_and_no_mask_token_is_said():
    model, tokenizer = build("bert", "BertForMaskedLM")
    encoder = Encoder(model, tokenizer, name="bert", device="cpu")
    long = Text(("boats",) * 40, (0, 40))
    texts = [TEXTS[1], long]
    collector = AttentionGradients({**WORDS, long: np.arange(40)})
    found = collected(encoder, texts, collector)["gradients"]
    assert found.isnan().all(-1).all(-1).all(-1).tolist() == [False, True]
    encoder.words.mask_id = None
    with pytest.raises(NotServedError, match="no mask token"):
        collected(encoder, texts, collector)


@pytest.fixture(scope="module")
def gradients_run(session_runs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("separators")
    build("bert", "BertForMaskedLM")[0].save_pretrained(folder / "bert")
    save_tokenizer("bert", folder / "bert")
    return measure("attention_gradients", folder / "bert", session_runs.corpus(60), folder)


def test_a_run_on_a_masked_model(gradients_run):
    test = tuple(read_conllu(gradients_run.corpus / "test.conllu", "en"))
    words = _gradient_collector(Corpus("c", "", "", {"test": test}), (), None)._words
    model = AutoModelForMaskedLM.from_pretrained(gradients_run.model).eval()
    tokenizer = AutoTokenizer.from_pretrained(gradients_run.model)
    found = []
    for sentence in test:
        given = tokenizer([*sentence.words], is_split_into_words=True)
        if len(given["input_ids"]) <= 32:
            chosen = words[Text(sentence.words, (0, len(sentence)))]
            assert len(chosen) == max(1, round(0.15 * len(sentence)))
            at = [i for i, word in enumerate(given.word_ids()) if word in chosen]
            found.append(by_hand(model, given["input_ids"], at, tokenizer.mask_token_id, 1, 1))
    assert 20 < len(found) < 60
    means = np.mean(found, axis=0)
    rows = gradients_run.record.rows
    for layer in (1, 2):
        for kind, name in enumerate(("first token", "separators", "other tokens")):
            gradient = rows.at("attention_gradient", layer, to=name)
            assert gradient.value == pytest.approx(means[layer - 1, kind, 0], rel=1e-3)
            assert gradient.low < gradient.value < gradient.high
            share = rows.at("attention_share", layer, to=name)
            assert share.value == pytest.approx(means[layer - 1, kind, 1], abs=1e-5)
            if kind < 2:
                ratio = means[layer - 1, kind, 0] / means[layer - 1, 2, 0]
                relative = rows.at("relative_gradient", layer, to=name)
                assert relative.value == pytest.approx(ratio, rel=1e-3)
                assert relative.low < relative.value < relative.high
    assert rows.at("relative_gradient", 1, to="other tokens") is None


def test_a_masked_model_predicts_some_words_of_a_whole_text(gradients_run, tmp_path):
    """Of eight words one is masked, as it would be in a sentence of a treebank."""
    model = AutoModelForMaskedLM.from_pretrained(gradients_run.model).eval()
    tokenizer = AutoTokenizer.from_pretrained(gradients_run.model)
    nouns = ("birds", "boats", "keys", "letters")
    texts = [f"the old {x}  sing near the {y} again" for x in nouns for y in nouns]
    splits = ("train", "train", "dev", "test") * 4
    rows = [(x, f"{i // 4 % 2}", y) for i, (x, y) in enumerate(zip(texts, splits, strict=True))]
    write_table(tmp_path / "texts.csv", rows)
    settings = {"text": "text", "label": ("label",), "twins": 0}
    record = measure(
        "attention_gradients", gradients_run.model, tmp_path / "texts.csv", tmp_path, **settings
    ).record
    rng, found = np.random.default_rng(0), []
    for text in texts[3::4]:
        given, (word, *_) = tokenizer(text), rng.permutation(8)
        at = [i for i, number in enumerate(given.word_ids()) if number == word]
        found.append(by_hand(model, given["input_ids"], at, tokenizer.mask_token_id, 1, 1))
    means = np.mean(found, axis=0)
    for layer, (kind, name) in product((1, 2), enumerate(("first token", "separators"))):
        gradient = record.rows.at("attention_gradient", layer, to=name)
        assert gradient.value == pytest.approx(means[layer - 1, kind, 0], rel=1e-3)


def test_a_masked_model_and_texts_with_special_tokens_are_refused(gradients_run, tmp_path, capsys):
    splits = ("train", "train", "dev", "test") * 4
    rows = [(f"[CLS] boat {i} [SEP]", f"{i // 4 % 2}", x) for i, x in enumerate(splits)]
    write_table(tmp_path / "texts.csv", rows)
    flags = ["--text", "text", "--label", "label", "--special-tokens"]
    table = tmp_path / "texts.csv"
    main(command_line("attention_gradients", gradients_run.model, table, tmp_path, *flags))
    message = "it reads in both directions, and would mask special tokens in texts"
    assert message in " ".join(capsys.readouterr().err.split())
