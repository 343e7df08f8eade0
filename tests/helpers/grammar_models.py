"""Small language models of known grammars: that of the embedded corpus, and the toy grammar.

They are trained in the test and know agreement and word order, so scores of language models can
be tested on them.
Both tokenizers cut *-s* and *-es* off where the rest is a word, of nouns and of verbs.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock
from tiny_tokenizers import BERT_NAMES
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from torch.nn.functional import cross_entropy
from toy_grammar import attractors, minimal_pairs
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
)

SAMPLE = Path(__file__).parents[2] / "data" / "sample" / "train.conllu"
LONGEST = 16
"""Words of the longest sentence of the sample that is trained on."""
EACH = 2000
"""Sentences with attractors, and good ones of every kind of minimal pair, that are trained on."""
SEED = 11
FREQUENT = 5
"""How often a word must occur for BERT to have it whole."""
WINDOW = 64
MASKED = 0.2
BATCH = 64
RATE = 3e-3
IGNORED = -100
END = "<|endoftext|>"
WORD = re.compile(r"\w+|[^\w\s]")

Task = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""From the ids of a batch to what the model reads, and what it should say at every position."""


class GrammarModels(Mapping[str, Path]):
    """Folders of the `masked` and the `causal` model; each is trained when it is first asked for."""

    def __init__(self, base: Path) -> None:
        self._base = base

    def __getitem__(self, kind: str) -> Path:
        folder = self._base / "grammars" / kind
        folder.parent.mkdir(exist_ok=True)
        with FileLock(folder.with_suffix(".lock")):
            if not folder.exists():
                unfinished = folder.with_suffix(".unfinished")
                shutil.rmtree(unfinished, ignore_errors=True)
                TRAIN[kind](unfinished)
                unfinished.rename(folder)
        return folder

    def __iter__(self) -> Iterator[str]:
        return iter(TRAIN)

    def __len__(self) -> int:
        return len(TRAIN)


def grammar_models(tmp_path_factory: pytest.TempPathFactory) -> GrammarModels:
    """The two models, trained at most once in a session of tests, whatever its processes."""
    base = tmp_path_factory.getbasetemp()
    return GrammarModels(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)


@cache
def training_text() -> tuple[str, ...]:
    """Sentences of the sample and of the toy grammar, as one writes them."""
    lines = SAMPLE.read_text(encoding="utf-8").splitlines()
    found = [line.removeprefix("# text = ") for line in lines if line.startswith("# text = ")]
    short = (line for line in found if len(line.split()) <= LONGEST)
    between = ("".join(s.written) for s in attractors(EACH, SEED).splits["train"])
    return (*short, *between, *(pair["sentence_good"] for pair in minimal_pairs(EACH, SEED)))


def save_masked(folder: Path, steps: int = 1600) -> None:
    """Train a BERT and write it with its tokenizer."""
    tokenizer = wordpiece()
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=192,
        max_position_embeddings=WINDOW,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.05,
        pad_token_id=tokenizer.pad_token_id,
    )
    special = torch.tensor(tokenizer.all_special_ids)

    def hide(ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = (torch.rand(ids.shape) < MASKED) & ~torch.isin(ids, special)
        masked = ids.masked_fill(hidden, tokenizer.mask_token_id)
        return masked, ids.masked_fill(~hidden, IGNORED)

    _save(_trained(lambda: BertForMaskedLM(config), tokenizer, hide, steps), tokenizer, folder)


def gpt2_config(tokenizer: PreTrainedTokenizerFast, **sizes: Any) -> GPT2Config:
    """The configuration of a GPT-2 that begins and ends as its tokenizer says."""
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    return GPT2Config(vocab_size=len(tokenizer), n_positions=WINDOW, **ends, **sizes)


def save_causal(
    folder: Path,
    steps: int = 600,
    tokenizer: PreTrainedTokenizerFast | None = None,
    seed: int = SEED,
) -> None:
    """Train a GPT-2 and write it with its tokenizer, by default that of bytes.

    The text does not depend on the seed.
    """
    tokenizer = tokenizer or byte_level()
    sizes = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_inner": 192, "initializer_range": 0.05}
    dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    config = gpt2_config(tokenizer, **sizes, **dropout)

    def shift(ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        end = torch.full((len(ids), 1), tokenizer.eos_token_id)
        return torch.cat([end, ids], 1), torch.cat([ids, end], 1)

    model = _trained(lambda: GPT2LMHeadModel(config), tokenizer, shift, steps, seed)
    _save(model, tokenizer, folder)


def save_random(folder: Path, seed: int, more_words: Sequence[str] = ()) -> None:
    """Write a GPT-2 of random weights, which knows no grammar, with one token per word."""
    tokenizer = word_level()
    vocabulary = tokenizer.get_vocab()
    vocabulary |= {word: len(vocabulary) + i for i, word in enumerate(more_words)}
    tokenizer.backend_tokenizer.model = models.WordLevel(vocabulary, unk_token="[UNK]")
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_inner": 32, "initializer_range": 0.3}
    config = gpt2_config(tokenizer, **sizes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        _save(GPT2LMHeadModel(config), tokenizer, folder)


TRAIN: dict[str, Callable[[Path], None]] = {"masked": save_masked, "causal": save_causal}


def wordpiece() -> PreTrainedTokenizerFast:
    """BERT's, with the frequent words, *-s*, *-es* and letters.

    The vocabulary is listed, since training breaks ties at random.
    """
    counts = Counter(word for line in training_text() for word in WORD.findall(line.lower()))
    letters = sorted(set("".join(counts)))
    whole = [w for w, n in sorted(counts.items()) if n >= FREQUENT and not is_inflected(w, counts)]
    pieces = [*BERT_NAMES.values(), *letters, *(f"##{letter}" for letter in letters), "##es"]
    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys([*pieces, *whole]))}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    around = [(token, vocabulary[token]) for token in ("[SEP]", "[CLS]")]
    backend.post_processor = processors.BertProcessing(*around)
    return PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=WINDOW, **BERT_NAMES)


def byte_level() -> PreTrainedTokenizerFast:
    """GPT-2's: a BPE of bytes that adds no start token by itself."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    lines = [WORD.findall(line) for line in training_text()]
    known = {word.lower() for line in lines for word in line}
    stems = (
        " " * (i > 0) + word
        for line in lines
        for i, word in enumerate(line)
        if not is_inflected(word.lower(), known)
    )
    trainer = trainers.BpeTrainer(
        vocab_size=1500,
        special_tokens=[END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    backend.train_from_iterator(stems, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, model_max_length=WINDOW, bos_token=END, eos_token=END
    )


def word_level(*, masked: bool = False) -> PreTrainedTokenizerFast:
    """One token for each word, whether singular or plural, in small letters."""
    found = {word for line in training_text() for word in WORD.findall(line.lower())}
    names = {"bos_token": END, "eos_token": END, "unk_token": "[UNK]"}
    names = BERT_NAMES if masked else names
    listed = dict.fromkeys([*names.values(), *sorted(found)])
    vocabulary = {word: i for i, word in enumerate(listed)}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    if masked:
        around = [(token, vocabulary[token]) for token in ("[SEP]", "[CLS]")]
        backend.post_processor = processors.BertProcessing(*around)
    return PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=WINDOW, **names)


def is_inflected(word: str, known: Container[str]) -> bool:
    """Whether it is a known word of three letters or more with *-s* or *-es*."""
    stems = {word.removesuffix("s"), word.removesuffix("es")} - {word}
    return any(len(stem) > 2 and stem in known for stem in stems)


def _trained(
    build: Callable[[], Any], tokenizer: Any, task: Task, steps: int, seed: int = SEED
) -> Any:
    """The model after so many batches of equally long texts; on one thread, always the same."""
    same_length: dict[int, list[list[int]]] = defaultdict(list)
    for ids in tokenizer(list(training_text()))["input_ids"]:
        same_length[len(ids)].append(ids)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        batches = [
            batch
            for _, texts in sorted(same_length.items())
            for batch in torch.tensor(texts)[torch.randperm(len(texts))].split(BATCH)
        ]
        model = build().train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, RATE, total_steps=steps, pct_start=0.1
        )
        for _ in range(steps):
            inputs, wanted = task(batches[int(torch.randint(len(batches), ()))])
            loss = cross_entropy(model(input_ids=inputs).logits.flatten(0, 1), wanted.flatten())
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    torch.set_num_threads(threads)
    return model.eval()


def _save(model: Any, tokenizer: Any, folder: Path) -> None:
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
