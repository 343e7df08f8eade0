"""Texts and chats of two classes, a random GPT-2, and its passes by transformers alone."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from grammar_models import gpt2_config, word_level
from toy_grammar import PERSONS
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2LMHeadModel

TEXTS: dict[str, Any] = {"text": "text", "label": ("label",), "positions": ("last",), "probes": ("linear",), "evidence": ("none",), "twins": 0}  # fmt: skip
ANSWERS = {"answers": " dance, laugh", "prompt": " they"}

# A chat ends with a word of the template, as one ends with the header of an answer.
TEMPLATE = (
    "{% for m in messages %}{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %} they{% endif %}"
)

INPUTS = {
    "texts": ("texts.csv", TEXTS, ANSWERS),
    "chats": (
        "chats.jsonl",
        {**TEXTS, "text": "", "messages": "chat"},
        {"answers": " dance, laugh"},
    ),
}
"""File, settings and options by kind."""


def save_gpt2(folder: Path, seed: int, **changes: Any) -> GPT2LMHeadModel:
    """Write a tiny random GPT-2 with one token per word, and return it.

    Args:
        changes: to its configuration.
    """
    tokenizer = word_level()
    torch.manual_seed(seed)
    model = GPT2LMHeadModel(gpt2_config(tokenizer, **changes))
    model.save_pretrained(folder)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    return model


def write_table(path: Path, rows: Any) -> None:
    """Write a labelled table of texts; rows are of text, label and split."""
    with path.open("w") as file:
        csv.writer(file).writerows([("text", "label", "split"), *rows])


def save_texts(folder: Path) -> Path:
    """Write the model, and texts about persons and things of one class or the other."""
    save_gpt2(folder / "model", 5, n_embd=16, n_layer=2, n_head=2, initializer_range=0.3)
    rng, labels = np.random.default_rng(0), {}
    while len(labels) < 120:
        form = rng.choice(["", "s"])
        words = rng.choice(PERSONS, rng.integers(2, 5))
        labels[" ".join(f"the {word}{form}" for word in words)] = ["few", "many"][form == "s"]
    splits = ("train", "train", "dev", "test") * 30
    rows = [(*row, split) for row, split in zip(labels.items(), splits, strict=True)]
    write_table(folder / "texts.csv", rows)
    with (folder / "chats.jsonl").open("w") as chats:
        for text, label, split in rows:
            messages = [{"role": "user", "content": text}]
            chats.write(json.dumps({"label": label, "split": split, "chat": messages}) + "\n")
    return folder


class PlainModel:
    """A GPT-2 by transformers alone, and the texts of train and test with their classes.

    Args:
        kind: "texts", before which scores need a start token, or "chats", which end with a header.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        self.model = AutoModelForCausalLM.from_pretrained(folder / "model").eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder / "model")
        self.header = " they" if kind == "chats" else ""
        self.start = [self.tokenizer.eos_token_id] if kind == "texts" else []
        with (folder / "texts.csv").open() as file:
            rows = list(csv.DictReader(file))
        self.texts, self.prompts, self.many = {}, {}, {}
        for split in ("train", "test"):
            of_split = [x for x in rows if x["split"] == split]
            self.texts[split] = [x["text"] + self.header for x in of_split]
            self.prompts[split] = [x["text"] + " they" for x in of_split]
            self.many[split] = np.array([x["label"] == "many" for x in of_split])
        body = self.model.transformer
        self.modules = [body.drop, body.h[0], body.ln_f]

    def ids(self, text: str) -> list[int]:
        """Tokens without a start token."""
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

    def states(self, texts: Iterable[str], start: Sequence[int] = ()) -> Any:
        """States of the last tokens at all layers, read after start tokens. (layers, n, H)."""
        caught: list[list[Any]] = [[] for _ in self.modules]

        def catch(module: Any, _: Any, output: Any) -> None:  # after a hook that changes it
            hidden = output[0] if isinstance(output, tuple) else output
            caught[self.modules.index(module)].append(hidden[0, -1].double().numpy())

        hooks = [module.register_forward_hook(catch) for module in self.modules]
        with torch.no_grad():
            for text in texts:
                self.model(torch.tensor([[*start, *self.ids(text)]]))
        for hook in hooks:
            hook.remove()
        return np.array(caught)

    def logits(self, text: str) -> torch.Tensor:
        """Logits after the start token, if any, and every token of a text."""
        with torch.no_grad():
            return self.model(torch.tensor([self.start + self.ids(text)])).logits[0].double()

    @contextmanager
    def changed(
        self, layer: int, change: Callable[[torch.Tensor], torch.Tensor], n_start: int | None = None
    ) -> Iterator[None]:
        """Change the states of a layer, of all tokens but the first ones.

        Args:
            n_start: number of these; by default the start token, if the pass begins with it.
        """

        def hook(_: Any, __: Any, output: Any) -> Any:
            hidden = output[0] if isinstance(output, tuple) else output
            n = n_start
            if n is None:  # a pass of `generate` may have one new token alone
                n = len(self.start) if hidden.shape[1] > 1 else 0
            hidden = torch.cat([hidden[:, :n], change(hidden[:, n:])], dim=1)
            return (hidden, *output[1:]) if isinstance(output, tuple) else hidden

        handle = self.modules[layer].register_forward_hook(hook)
        with torch.no_grad():
            yield
        handle.remove()
