"""Tokenizers trained on text of our own in the style of every family.

`Tiny.split` splits one word on its own, by the family's convention, without our code.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import regex
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

TEXT = [
    "the old keeper of the harbour light counts the boats that return before dark",
    "we saw the birds that the children had fed near the water in the morning",
    "a letter from the keys to the cabinets was given to her by the new teacher",
    "nobody knows why the vase broke while they were running past the open window",
    "She said: do n't touch it, the paint is wet; we'll see it tomorrow, won't we?",
    "In 1987 the 24 boats of the fleet sailed north (some never came back) and sold 300 tons.",
    "The Keeper's daughter watches what her father wrote, word by word, and keeps silent.",
    "Light winds run over light sand; her light watch lights that room lightly.",
] * 3

LLAMA3_REGEX = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_REGEX = LLAMA3_REGEX.replace(r"\p{N}{1,3}", r"\p{N}")
GPT2_REGEX = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

Split = Callable[[str], list[int]]


@dataclass(frozen=True)
class Tiny:
    """A trained tokenizer.

    Attributes:
        backend: as `tokenizers` has it, special tokens and post-processor included.
        split: one word's ids; empty where the word leaves nothing.
        prefix, suffix: names of the special tokens around a text.
        named: which token is the mask, the padding, and so on.
    """

    backend: Tokenizer
    split: Split
    prefix: tuple[str, ...]
    suffix: tuple[str, ...]
    named: dict[str, str]

    def around(self) -> tuple[list[int], list[int]]:
        ids = self.backend.token_to_id
        return [ids(t) for t in self.prefix], [ids(t) for t in self.suffix]

    @property
    def unknown(self) -> int:
        return self.backend.token_to_id(self.named["unk_token"])


BERT_NAMES = {
    "unk_token": "[UNK]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
ROBERTA_NAMES = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "cls_token": "<s>",
    "sep_token": "</s>",
    "unk_token": "<unk>",
    "pad_token": "<pad>",
    "mask_token": "<mask>",
}


def _finish(
    backend: Tokenizer, split: Split, prefix: tuple[str, ...], suffix: tuple[str, ...], names: Any
) -> Tiny:
    around = {t: backend.token_to_id(t) for t in (*prefix, *suffix)}
    if around:
        # As published: BERT's kin have token types, RoBERTa's a token twice, decoders begin again.
        begins, kind = " ".join(prefix), 1 if prefix == ("[CLS]",) else 0
        between = {"[CLS]": suffix, "<s>": 2 * suffix}.get(begins, suffix) or prefix
        backend.post_processor = processors.TemplateProcessing(
            single=[*prefix, "$A", *suffix],
            pair=[*prefix, "$A", *between, f"$B:{kind}", *(f"{t}:{kind}" for t in suffix)],
            special_tokens=list(around.items()),
        )
    return Tiny(backend, cache(split), prefix, suffix, dict(names))


@cache
def wordpiece(cls: str = "[CLS]", sep: str = "[SEP]", mpnet: bool = False) -> Tiny:
    """BERT: lower case, no accents, punctuation and Chinese characters apart."""
    names = {**ROBERTA_NAMES, "unk_token": "[UNK]"} if mpnet else BERT_NAMES
    specials = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"] if mpnet else list(BERT_NAMES.values())
    backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.train_from_iterator(
        TEXT, trainers.WordPieceTrainer(vocab_size=260, special_tokens=specials)
    )
    return _finish(backend, _alone(backend), (cls,), (sep,), names)


def _alone(backend: Tokenizer, lead: str = "") -> Split:
    """Splits words as the `tokenizers` library does, after `lead`; special tokens are text."""
    plain = Tokenizer.from_str(backend.to_str())
    plain.encode_special_tokens = True
    return lambda word: plain.encode(lead + word, add_special_tokens=False).ids


@cache
def byte_level(
    specials: tuple[str, ...],
    prefix: tuple[str, ...],
    suffix: tuple[str, ...],
    names: tuple[tuple[str, str], ...],
    pattern: str = GPT2_REGEX,
    nfc: bool = False,
) -> Tiny:
    """GPT-2's kin: bytes, merged within the matches of a regular expression."""
    backend = Tokenizer(models.BPE())
    if nfc:
        backend.normalizer = normalizers.NFC()
    if pattern == GPT2_REGEX:
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
    backend.train_from_iterator(
        TEXT,
        trainers.BpeTrainer(
            vocab_size=420,
            special_tokens=list(specials),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
    )
    return _finish(backend, _alone(backend, " "), prefix, suffix, names)


@cache
def sentencepiece_bpe(scheme: str) -> Tiny:
    """Llama 2 (Metaspace, prepend scheme `scheme`) and Gemma (a normalizer: "gemma")."""
    gemma = scheme == "gemma"
    specials = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"] if gemma else ["<unk>", "<s>", "</s>"]
    in_bytes = [f"<0x{b:02X}>" for b in range(256)]
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    trained.train_from_iterator(
        TEXT, trainers.BpeTrainer(vocab_size=600, special_tokens=specials + in_bytes)
    )
    model = json.loads(trained.to_str())["model"]
    merges = [tuple(merge) for merge in model["merges"]]
    backend = Tokenizer(
        models.BPE(model["vocab"], merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    if gemma:
        backend.normalizer = normalizers.Replace(" ", "▁")
        backend.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    else:
        backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    backend.add_special_tokens(specials)
    bos = "<bos>" if gemma else "<s>"
    names = {"bos_token": bos, "eos_token": "<eos>" if gemma else "</s>", "unk_token": "<unk>"}
    if gemma:
        names |= {"pad_token": "<pad>", "mask_token": "<mask>"}
    return _finish(backend, _alone(backend, " " if gemma else ""), (bos,), (), names)


_UNIGRAM: dict[str, tuple[list[str], tuple[str, ...], tuple[str, ...], dict[str, str]]] = {
    "t5": (
        ["<pad>", "</s>", "<unk>"],
        (),
        ("</s>",),
        {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"},
    ),
    "xlm-r": (["<s>", "<pad>", "</s>", "<unk>"], ("<s>",), ("</s>",), ROBERTA_NAMES),
    "albert": (
        ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"],
        ("[CLS]",),
        ("[SEP]",),
        {**BERT_NAMES, "unk_token": "<unk>", "pad_token": "<pad>"},
    ),
    "deberta": (["[PAD]", "[CLS]", "[SEP]", "[UNK]"], ("[CLS]",), ("[SEP]",), BERT_NAMES),
}


@cache
def unigram(style: str) -> Tiny:
    """SentencePiece unigram: "t5", "xlm-r", "albert" and "deberta"."""
    specials, prefix, suffix, names = _UNIGRAM[style]
    unk = names["unk_token"]
    trained = Tokenizer(models.Unigram())
    trained.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    trained.train_from_iterator(
        [line.lower() for line in TEXT] if style == "albert" else TEXT,
        trainers.UnigramTrainer(vocab_size=220, special_tokens=specials, unk_token=unk),
    )
    vocab = json.loads(trained.to_str())["model"]["vocab"]
    backend = Tokenizer(models.Unigram([(t, s) for t, s in vocab], specials.index(unk), False))
    metaspace = pre_tokenizers.Metaspace(prepend_scheme="always")
    if style == "deberta":
        backend.pre_tokenizer = metaspace
        backend.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Strip()])
    else:
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), metaspace]
        )
    if style == "albert":
        backend.normalizer = normalizers.Sequence(
            [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
        )
    backend.add_special_tokens(list(dict.fromkeys([*specials, *names.values()])))
    scores = {token: (i, score) for i, (token, score) in enumerate(vocab) if token not in specials}
    unk_id = specials.index(unk)

    def split(word: str) -> list[int]:
        if style == "albert":
            word = unicodedata.normalize("NFKD", word).lower()
            word = "".join(c for c in word if unicodedata.category(c) != "Mn")
        if style == "deberta":
            spaced = regex.sub(r"\s{2,}|[\n\r\t]", " ", word)
            parts = unicodedata.normalize("NFC", spaced).strip().split(" ")
        else:
            parts = word.split()
        ids: list[int] = []
        for part in parts:
            ids += _likeliest("▁" + part, scores, unk_id)
        return ids

    return _finish(backend, split, prefix, suffix, names)


def _likeliest(text: str, scores: dict[str, tuple[int, float]], unk_id: int) -> list[int]:
    """Unigram by hand: the segmentation of the highest score; unknown neighbours fuse."""
    worst = min(score for _, score in scores.values()) - 10
    best: list[tuple[float, list[int]]] = [(0.0, [])]
    for end in range(1, len(text) + 1):
        ways = []
        for start in range(end):
            piece = text[start:end]
            if piece in scores:
                i, score = scores[piece]
                ways.append((best[start][0] + score, [*best[start][1], i]))
        if text[end - 1] not in scores:
            ways.append((best[end - 1][0] + worst, [*best[end - 1][1], unk_id]))
        best.append(max(ways, key=lambda way: way[0]))
    ids = best[-1][1]
    return [i for n, i in enumerate(ids) if i != unk_id or n == 0 or ids[n - 1] != unk_id]
