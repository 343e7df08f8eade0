"""Scores of pieces against one plain forward pass for each, and against known probabilities."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from grammar_models import grammar_models
from slow_scores import ends_of_words, left_to_right, pseudo_log_likelihood, within_word_l2r
from tiny_models import build
from tiny_readings import small_shards
from toy_grammar import minimal_pairs
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
)

from probes.common.errors import NoHeadError, UserError
from probes.extraction.models.loading import load_encoder
from probes.extraction.models.model_files import find_model
from probes.extraction.reading.alignment import WordTokenizer, stretch_of_pieces
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.encoding import StoreRequest, full_store, read
from probes.extraction.reading.token_scores import (
    ScoredStretches,
    TokenScores,
    joined_token_scores,
    stored_scores,
)
from probes.extraction.reading.views import Text, View

CLASSES = {"masked": AutoModelForMaskedLM, "causal": AutoModelForCausalLM}
SLOW = {"masked": (pseudo_log_likelihood, within_word_l2r), "causal": (left_to_right,) * 2}
WINDOW = 64
TEXTS = [
    *(pair["sentence_good"] for pair in minimal_pairs(2, seed=3)),
    "The cooks near the witnesses don't unbox kayaks; who knows?",
    "zigzagging",
    "  Two spaces  and none before the end ",
]
REGIONS = ("The cooks near the", " witness", "", " watched two kayaks", ".")


class Scores(NamedTuple):
    """Scores of the pieces of one text."""

    log_p: np.ndarray
    within_word: np.ndarray
    rank: np.ndarray


def whole(text: str) -> Text:
    return Text((text,), (0, 1), written=True)


def view_of(texts: Sequence[Text | str]) -> View:
    return View("written", tuple(whole(x) if isinstance(x, str) else x for x in texts))


def read_scores(encoder: Encoder, view: View, batch_tokens: int = 1024) -> ScoredStretches:
    found = list(read(view, TokenScores(), encoder, batch_tokens))
    arrays = [{name: x.numpy() for name, x in parts.items()} for _, parts in found]
    return joined_token_scores(view, [shard for shard, _ in found], arrays)


def by_piece(encoder: Encoder, texts: Sequence[Any], batch_tokens: int = 1024) -> list[Scores]:
    """The scores of all kept pieces of each text, in the order of texts."""
    view = view_of(texts)
    found: dict[int, Scores] = {}
    for shard, parts in read(view, TokenScores(), encoder, batch_tokens):
        stretches = np.cumsum([text.kept_span[1] - text.kept_span[0] for text in shard.texts])
        ends = np.cumsum(parts["pieces"].numpy())[stretches - 1]
        split = [np.split(parts[name].numpy(), ends[:-1]) for name in Scores._fields]
        found |= dict(zip(shard.index.tolist(), map(Scores, *split), strict=True))
    return [found[i] for i in range(len(view.texts))]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return grammar_models(tmp_path_factory)


@pytest.fixture(scope="module", params=["masked", "causal"])
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def plain(kind, folders):
    """A model and its tokenizer as transformers loads them."""
    model = CLASSES[kind].from_pretrained(folders[kind])
    return model.eval(), AutoTokenizer.from_pretrained(folders[kind])


@pytest.fixture(scope="module")
def encoder(kind, folders):
    """The same model here."""
    return load_encoder(find_model(str(folders[kind])), device="cpu", lm_head=True)


def distribution(model: Any, ids: Sequence[int]) -> np.ndarray:
    """Log-probabilities of all tokens at all positions."""
    with torch.no_grad():
        found = model(input_ids=torch.tensor([list(ids)])).logits[0].double().log_softmax(-1)
    return np.asarray(found)


# -- against a plain pass for each piece --------------------------------------------------


@pytest.mark.slow
def test_scores_are_the_slow_ones(kind, encoder, plain):
    several = 0
    for text, its in zip(TEXTS, by_piece(encoder, TEXTS), strict=True):
        alone, later = (score(*plain, text) for score in SLOW[kind])
        np.testing.assert_allclose(its.log_p, alone, atol=1e-4)
        np.testing.assert_allclose(its.within_word, later, atol=1e-4)
        several += int((np.abs(its.log_p - its.within_word) > 1e-3).sum())
    # Words of several pieces, whose later pieces give them away.
    assert several == 0 if kind == "causal" else several > 10


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["causal"], indirect=True)
def test_without_any_start_token_the_first_piece_is_not_scored(plain):
    model, tokenizer = plain
    bare = PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer)
    encoder = Encoder(model, bare, name="bare", device="cpu")
    for text, its in zip(TEXTS, by_piece(encoder, TEXTS), strict=True):
        ids = bare(text)["input_ids"]
        of_next = distribution(model, ids)
        expected = [of_next[i, token] for i, token in enumerate(ids[1:])]
        assert np.isnan(its.log_p[0])
        assert its.rank[0] == -1
        np.testing.assert_allclose(its.log_p[1:], expected, atol=1e-4)
    found = read_scores(encoder, view_of([text]))
    assert found.pieces.tolist() == [len(ids) - 1]
    assert found.log_p[0] == pytest.approx(np.nansum(its.log_p.astype(np.float64)), abs=1e-6)


@pytest.mark.slow
def test_rank_is_the_place_in_the_sorted_vocabulary(kind, encoder, plain):
    model, tokenizer = plain
    seen = set()
    for text, its in zip(TEXTS, by_piece(encoder, TEXTS), strict=True):
        ids = tokenizer(text)["input_ids"]
        if kind == "causal":
            ids = [tokenizer.bos_token_id, *ids]
            of = {i: distribution(model, ids)[i - 1] for i in range(1, len(ids))}
        else:
            mask = tokenizer.mask_token_id
            hidden = {i: [*ids[:i], mask, *ids[i + 1 :]] for i in range(1, len(ids) - 1)}
            of = {i: distribution(model, given)[i] for i, given in hidden.items()}
        ranks = [
            np.argsort(-log_p, kind="stable").tolist().index(ids[i]) for i, log_p in of.items()
        ]
        assert its.rank.tolist() == ranks
        seen |= set(ranks)
    assert 0 in seen
    assert len(seen) > 10


@pytest.mark.slow
def test_equal_probabilities_share_their_ranks(kind, plain):
    """A model to which all tokens are equally likely ranks none of them first."""
    _, tokenizer = plain
    model, _ = unigram(kind, tokenizer)
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
    (its,) = by_piece(Encoder(model, tokenizer, name="equal", device="cpu"), ["the"])
    n_tokens = model.get_output_embeddings().weight.shape[0]
    assert its.rank[-1] == (n_tokens - 1) / 2


# -- words ----------------------------------------------------------------------------------

WORDS = ("the", " old lightkeepers", ",", "", " who count", " boats", ".")


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        ("gpt2", "GPT2LMHeadModel"),
        ("llama-3", "LlamaForCausalLM"),
        ("llama-2", "LlamaForCausalLM"),
        ("gemma3", "Gemma3ForCausalLM"),
    ],
)
def test_the_end_of_a_word_is_part_of_it(family, kind):
    """By plain passes, one for each piece; byte-level pieces (Ġ), then SentencePiece (▁)."""
    model, tokenizer = build(family, kind)
    tokenizer.bos_token = tokenizer.bos_token or tokenizer.eos_token
    encoder = Encoder(model, tokenizer, name=family, device="cpu")
    n = len(WORDS)
    spans = [(0, n), (1, 2), (1, 3), (2, 3), (4, 6), (5, n)]
    texts = [Text(WORDS, span, written=True) for span in spans]
    found = read_scores(encoder, view_of(texts))
    corrected = found.with_word_ends()
    given = model, tokenizer, "".join(WORDS)
    expected = np.array([left_to_right(*given), ends_of_words(*given)])
    (pieces,) = encoder.split(texts[:1])
    log_p, ends = np.add.reduceat(expected, pieces.bounds[:-1], axis=1)
    log_p[3] = ends[3] = 0  # no piece
    assert np.abs(ends[[1, 4, 5, 6]]).min() > 0.01
    for one, (start, end) in zip(texts, spans, strict=True):
        own = slice(found.score_index(one), found.score_index(one) + end - start)
        np.testing.assert_allclose(found.log_p[own], log_p[start:end], atol=1e-4)
        np.testing.assert_allclose(found.word_ends[own], ends[start:end], atol=1e-4)
        total = (log_p + ends)[start:end]
        np.testing.assert_allclose(corrected.log_p[own], total, atol=1e-4)
        np.testing.assert_allclose(corrected.within_word[own], total, atol=1e-4)


@pytest.mark.parametrize(
    ("family", "kind"),
    [("roberta", "RobertaForMaskedLM"), ("bert", "BertLMHeadModel"), ("bert", "BertForMaskedLM")],
)
def test_words_of_masked_models_or_of_word_pieces_are_as_their_pieces(family, kind):
    model, tokenizer = build(family, kind)
    model.config.is_decoder = kind == "BertLMHeadModel"
    for part in model.modules():
        if kind == "BertLMHeadModel" and hasattr(part, "is_causal"):
            part.is_causal = part.is_decoder = True
    encoder = Encoder(model, tokenizer, name=family, device="cpu")
    assert encoder.info.causal == (kind == "BertLMHeadModel")
    found = read_scores(encoder, view_of([Text(WORDS, (0, len(WORDS)), written=True)]))
    assert found.log_p.any()
    assert not found.word_ends.any()


# -- what must not matter -----------------------------------------------------------------


@pytest.mark.slow
def test_neither_batches_nor_other_texts_change_scores(kind, encoder):
    whole_view = by_piece(encoder, TEXTS)
    for found in (by_piece(encoder, TEXTS, 8), [by_piece(encoder, [x])[0] for x in TEXTS]):
        for its, other in zip(found, whole_view, strict=True):
            np.testing.assert_allclose(its.log_p, other.log_p, atol=1e-5)
            np.testing.assert_allclose(its.within_word, other.within_word, atol=1e-5)
            assert its.rank.tolist() == other.rank.tolist()


@pytest.mark.slow
def test_kept_stretches_have_the_scores_that_they_have_in_the_whole(kind, encoder):
    n = len(REGIONS)
    spans = [(0, n), *((i, j) for i in range(n) for j in range(i + 1, n + 1) if (i, j) != (0, n))]
    texts = [Text(REGIONS, span, written=True) for span in spans]
    found = read_scores(encoder, view_of(texts))
    every = {name: getattr(found, name)[:n] for name in ("pieces", "log_p", "within_word", "rank")}
    for text, (start, end) in zip(texts, spans, strict=True):
        own = slice(found.score_index(text), found.score_index(text) + end - start)
        np.testing.assert_allclose(found.log_p[own], every["log_p"][start:end], atol=1e-5)
        later = every["within_word"][start:end]
        np.testing.assert_allclose(found.within_word[own], later, atol=1e-5)
        assert found.pieces[own].tolist() == every["pieces"][start:end].tolist()
        assert found.rank[own].tolist() == every["rank"][start:end].tolist()
    assert (every["pieces"] > 0).tolist() == [True, True, False, True, True]
    # The sum over stretches is that over the text as one.
    as_one = read_scores(encoder, view_of(["".join(REGIONS)]))
    assert as_one.log_p[0] == pytest.approx(every["log_p"].sum(), abs=1e-4)
    assert as_one.within_word[0] == pytest.approx(every["within_word"].sum(), abs=1e-4)
    assert as_one.pieces[0] == every["pieces"].sum()


# -- longer than the window ---------------------------------------------------------------


def window_starts(n: int, room: int) -> list[int]:
    return [*range(0, n - room, room // 2), n - room]


def window_of(piece: int, starts: Sequence[int], room: int, kind: str) -> int:
    """The window where the piece is farthest from an edge, the earlier of two; the first for causal models."""
    here = [start for start in starts if start <= piece < start + room]
    if kind == "causal":
        return here[0]
    return max(here, key=lambda s: (min(piece - s, s + room - 1 - piece), -s))


@pytest.mark.slow
def test_pieces_of_long_texts_are_each_scored_once_in_a_window(kind, encoder, plain):
    model, tokenizer = plain
    long = " ".join(TEXTS[:10] * 2)
    long_and_short = [TEXTS[0], long, TEXTS[1]]
    ids = tokenizer(long, add_special_tokens=False)["input_ids"]
    assert len(ids) > 1.5 * WINDOW
    found = by_piece(encoder, long_and_short)
    room = WINDOW - (2 if kind == "masked" else 1)
    starts = window_starts(len(ids), room)
    assert len(starts) > 2
    expected = []
    for piece, token in enumerate(ids):
        start = window_of(piece, starts, room, kind)
        place, part = piece - start + 1, ids[start : start + room]
        if kind == "masked":
            given = [tokenizer.cls_token_id, *part, tokenizer.sep_token_id]
            given[place] = tokenizer.mask_token_id
            expected.append(distribution(model, given)[place, token])
        else:
            given = [tokenizer.bos_token_id, *part]
            expected.append(distribution(model, given)[place - 1, token])
    np.testing.assert_allclose(found[1].log_p, expected, atol=1e-4)
    assert np.isfinite(found[1].within_word).all()
    for short, its in zip((TEXTS[0], TEXTS[1]), (found[0], found[2]), strict=True):
        (alone,) = by_piece(encoder, [short])
        np.testing.assert_allclose(its.log_p, alone.log_p, atol=1e-5)


# -- known probabilities ------------------------------------------------------------------


def unigram(kind: str, tokenizer: Any) -> tuple[Any, np.ndarray]:
    """A model that gives each token a probability of its own, whatever the context."""
    n = len(tokenizer)
    p = np.random.default_rng(0).dirichlet(np.ones(n))
    log_p = torch.tensor(np.log(p), dtype=torch.float32)
    torch.manual_seed(0)
    sizes = {"vocab_size": n, "tie_word_embeddings": False}
    if kind == "causal":
        config = GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=32, **sizes)
        model: Any = GPT2LMHeadModel(config).eval()
        with torch.no_grad():
            model.transformer.ln_f.weight.zero_()
            model.transformer.ln_f.bias.copy_(torch.eye(16)[0])
            model.lm_head.weight.zero_()[:, 0] = log_p
    else:
        sizes |= {"hidden_size": 16, "intermediate_size": 16, "max_position_embeddings": 32}
        config = BertConfig(num_hidden_layers=1, num_attention_heads=2, **sizes)
        model = BertForMaskedLM(config).eval()
        with torch.no_grad():
            model.cls.predictions.decoder.weight.zero_()
            model.cls.predictions.decoder.bias.copy_(log_p)
    return model, np.log(p)


@pytest.mark.slow
def test_known_probabilities_are_found_exactly(kind, plain):
    _, tokenizer = plain
    model, log_p = unigram(kind, tokenizer)
    encoder = Encoder(model, tokenizer, name="unigram", device="cpu")
    assert encoder.info.causal == (kind == "causal")
    order = np.argsort(np.argsort(-log_p))
    for text, its in zip(TEXTS, by_piece(encoder, TEXTS), strict=True):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        np.testing.assert_allclose(its.log_p, log_p[ids], atol=2e-6)
        np.testing.assert_allclose(its.within_word, log_p[ids], atol=2e-6)
        assert its.rank.tolist() == order[ids].tolist()
    found = read_scores(encoder, view_of(TEXTS))
    sums = [log_p[tokenizer(x, add_special_tokens=False)["input_ids"]].sum() for x in TEXTS]
    np.testing.assert_allclose(found.log_p, sums, atol=1e-4)


# -- texts with special tokens of their own -----------------------------------------------

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}"
)
"""Writes the start token that the tokenizer would also put before a text."""


@pytest.mark.parametrize("family", ["gpt2", "llama-3", "gemma3"])
def test_of_a_chat_the_tokens_of_its_template_are_scored(family):
    kinds = {
        "gpt2": "GPT2LMHeadModel",
        "llama-3": "LlamaForCausalLM",
        "gemma3": "Gemma3ForCausalLM",
    }
    model, tokenizer = build(family, kinds[family])
    tokenizer.chat_template = TEMPLATE
    encoder = Encoder(model, tokenizer, name="tiny", device="cpu")
    chats = [[{"role": "user", "content": x}] for x in ("the birds", "she counts the old boats")]
    texts = [Text((json.dumps(x),), (0, 1), written=True, chat=True) for x in chats]
    for chat, its in zip(chats, by_piece(encoder, texts), strict=True):
        ids = tokenizer.apply_chat_template(chat, return_dict=True)["input_ids"]
        assert ids[0] == tokenizer.bos_token_id
        expected = distribution(model, ids)[np.arange(len(ids) - 1), ids[1:]]
        assert np.isnan(its.log_p[0])
        np.testing.assert_allclose(its.log_p[1:], expected, atol=1e-4)
        assert its.rank[0] == -1


def test_a_masked_model_scores_a_text_with_special_tokens_by_place():
    model, tokenizer = build("bert", "BertForMaskedLM")
    encoder = Encoder(model, tokenizer, name="tiny", device="cpu")
    text = "[CLS] the old keeper [SEP] counts boats [SEP]"
    ((log_p, *_),) = by_piece(encoder, [Text((text,), (0, 1), written=True, special=True)])
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    for place, token in enumerate(ids):
        masked = [*ids[:place], tokenizer.mask_token_id, *ids[place + 1 :]]
        assert log_p[place] == pytest.approx(distribution(model, masked)[place, token], abs=1e-4)


def test_before_a_message_a_space_belongs_to_the_template():
    parts = "user\n", "the", " old", " keeper"
    offsets = [(0, 4), (4, 5), (5, 8), (8, 12), (12, 19)]
    assert stretch_of_pieces(offsets, parts, rendered=True).tolist() == [0, 0, 1, 2, 3]
    assert stretch_of_pieces(offsets, parts).tolist() == [0, 1, 1, 2, 3]


# -- in a store ---------------------------------------------------------------------------


@pytest.mark.slow
def test_stored_scores_are_those_that_were_read(kind, encoder, tmp_path, monkeypatch):
    regions = Text(REGIONS, (0, len(REGIONS)), written=True)
    view = view_of([*TEXTS[:4], regions, *TEXTS[4:], Text(REGIONS, (1, 4), written=True)])
    direct = read_scores(encoder, view)
    small_shards(monkeypatch, 64)
    reading = StoreRequest(tmp_path, encoder.info, "float32", view, TokenScores())
    stored = full_store(reading, encoder)
    assert stored.n_shards > 3
    found = stored_scores(view, stored)
    assert found.pieces.tolist() == direct.pieces.tolist()
    assert found.rank.tolist() == direct.rank.tolist()
    for part in ("log_p", "within_word"):
        np.testing.assert_allclose(getattr(found, part), getattr(direct, part), atol=1e-4)
    assert found.score_index(view.texts[-1], 2) == 4 + len(REGIONS) + len(TEXTS[4:]) + 2


# -- what cannot be scored ----------------------------------------------------------------


def test_models_without_a_head_or_a_mask_are_refused(tiny_bert, tmp_path):
    with pytest.raises(NoHeadError, match="its files have no weights of a language-model head"):
        load_encoder(find_model(str(tiny_bert)), device="cpu", lm_head=True)
    encoder = load_encoder(find_model(str(tiny_bert)), device="cpu")
    assert not encoder.has_head
    with pytest.raises(NoHeadError, match="--model tiny-bert: it has no language-model head"):
        read_scores(encoder, view_of(["birds sing"]))
    model, tokenizer = build("bert", "BertForMaskedLM")
    assert tokenizer.mask_token
    tokenizer.mask_token = None
    maskless = Encoder(model, tokenizer, name="maskless", device="cpu")
    with pytest.raises(UserError, match="has no mask token"):
        read_scores(maskless, view_of(["the old keeper"]))


def test_a_head_that_gives_no_number_is_refused():
    model, tokenizer = build("gpt2", "GPT2LMHeadModel")
    encoder = Encoder(model, tokenizer, name="broken", device="cpu")
    with torch.no_grad():
        model.transformer.ln_f.bias[3] = float("nan")
    with pytest.raises(UserError, match="a probability that is not a number"):
        read_scores(encoder, view_of(["the old keeper"]))


# -- pieces and stretches -----------------------------------------------------------------

WRITTEN = ("The café", " naïve", "", " 🙂 birds", " — touch", " it", ".", "")


@pytest.mark.parametrize("family", ["gpt2", "roberta", "llama-3"])
def test_byte_level_pieces_are_of_the_stretch_that_they_spell(family):
    kinds = {"gpt2": "GPT2Model", "roberta": "RobertaModel", "llama-3": "LlamaModel"}
    _, tokenizer = build(family, kinds[family])
    (pieces,) = WordTokenizer(tokenizer)([Text(WRITTEN, (0, len(WRITTEN)), written=True)])
    assert len(pieces.bounds) == len(WRITTEN) + 1
    whole_text = tokenizer("".join(WRITTEN), add_special_tokens=False)["input_ids"]
    assert pieces.ids.tolist() == whole_text
    alphabet = {c: b for b, c in byte_characters().items()}
    for i, stretch in enumerate(WRITTEN):
        own = pieces.ids[pieces.bounds[i] : pieces.bounds[i + 1]].tolist()
        spelt = "".join(tokenizer.convert_ids_to_tokens(own))
        assert bytes(alphabet[c] for c in spelt).decode() == stretch
    assert np.diff(pieces.bounds)[[2, 7]].tolist() == [0, 0]
    assert np.diff(pieces.bounds)[3] > 3  # the bytes of an emoji


def byte_characters() -> dict[int, str]:
    """GPT-2's printable stand-ins for the 256 bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in printable]
    return {b: chr(b) for b in printable} | {b: chr(256 + n) for n, b in enumerate(rest)}


def test_word_pieces_are_of_the_stretch_that_they_have_alone():
    """No piece of WordPiece goes over a space, so that stretches can be split one by one."""
    _, tokenizer = build("bert", "BertModel")
    (pieces,) = WordTokenizer(tokenizer)([Text(WRITTEN, (0, len(WRITTEN)), written=True)])
    for i, stretch in enumerate(WRITTEN):
        own = pieces.ids[pieces.bounds[i] : pieces.bounds[i + 1]].tolist()
        assert own == tokenizer(stretch, add_special_tokens=False)["input_ids"]
    assert np.diff(pieces.bounds)[[2, 3, 7]].tolist() == [0, 2, 0]
    # Of " 🙂 birds" half is unknown, of " — touch" half as well; of " naïve" nothing is.
    assert (pieces.ids == tokenizer.unk_token_id).tolist().count(True) == 2
    assert pieces.unknown == 2


@pytest.mark.parametrize(
    ("stretches", "offsets", "expected"),
    [
        (("ab", " cd"), [(0, 2), (2, 5)], [0, 1]),  # the space before a word is in its piece
        (("ab ", "cd"), [(0, 2), (2, 5)], [0, 1]),  # also where it is in the stretch before
        (("ab ", "cd"), [(0, 2), (2, 3), (3, 5)], [0, 1, 1]),  # a space by itself goes with what follows
        (("ab", "cd"), [(0, 3), (3, 4)], [0, 1]),  # a piece over a border: its first letter
        (("ab", "cd"), [(0, 4)], [0]),
        (("a", "", "b"), [(0, 1), (1, 2)], [0, 2]),
        (("", "a", ""), [(0, 1)], [1]),
        (("a", " "), [(0, 1), (1, 2)], [0, 1]),  # a space at the end
        (("🙂", "é"), [(0, 1), (0, 1), (0, 1), (0, 1), (1, 2), (1, 2)], [0, 0, 0, 0, 1, 1]),
        (("ab", "cd"), [], []),
        (("whatever",), [(5, 8), (0, 5)], [0, 0]),
    ],
)  # fmt: skip
def test_stretches_by_hand(stretches, offsets, expected):
    assert stretch_of_pieces(offsets, stretches).tolist() == expected


def test_pieces_out_of_order_are_refused():
    with pytest.raises(UserError, match=r"pieces of 'abcd' are out of order"):
        stretch_of_pieces([(2, 4), (0, 2)], ("ab", "cd"))
