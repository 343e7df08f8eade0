"""Vectors of whole texts, against plain passes over the raw strings, pooled here."""

from itertools import product
from pathlib import Path
from typing import get_args

import pytest
import torch
from places import NORMS, states_by_hand
from tiny_models import fast_tokenizer
from tiny_readings import collected, encoder_of

from probes.extraction.reading.encoding import text_vectors, vectors_of
from probes.extraction.reading.text_vectors import TextVectors, pieces_at
from probes.extraction.reading.vectors import layer_part, lengths_part
from probes.extraction.reading.views import Text, View
from probes.tasks.positions import Position
from probes.tasks.task import ReadSite

NAMES = (
    "mean",
    "first",
    "last",
    "max",
    "last:3",
    "after:the",
    r"match:(\w+)[ ,]",
    "all",
    "all:last:3",
)
POSITIONS = [Position.parse(name) for name in NAMES]

SHORT = [
    "the old keeper of the light",
    "She said:  do n't touch it,\nthe paint is wet",
    " boats sailed north\n\n",
    "she",
]

LONG = " ".join(["the boats of the fleet sailed, some never came back;"] * 9)

FAMILIES = ["bert", "roberta", "xlm-roberta", "gpt2", "llama-2", "llama-3", "qwen3", "t5"]


def whole(*texts):
    return [Text((text,), (0, 1), written=True) for text in texts]


def ours(encoder, texts, batch_tokens=512):
    kept = list(product(range(encoder.info.n_layers + 1), [None], POSITIONS))
    return collected(encoder, whole(*texts), TextVectors(kept, "float32"), batch_tokens)


def states(model, ids):
    with torch.no_grad():
        output = model(input_ids=torch.tensor([ids]), output_hidden_states=True)
    return [state[0] for state in (*output.hidden_states[:-1], output.last_hidden_state)]


def letters(text):
    """The letters at the positions "after" and "match", by plain loops."""
    found, at = {}, text.rfind("the") + 3
    while 3 <= at < len(text) and text[at].isspace():
        at += 1
    if 3 <= at < len(text):
        found["after:the"] = at
    ends = [i for i in range(1, len(text)) if text[i] in " ," and text[i - 1].isalnum()]
    return found | ({NAMES[6]: ends[-1] - 1} if ends else {})


def by_hand(model, tokenizer, text, window=32, states=states):
    """The vectors of a text by layer and pooling, by plain passes over its windows.

    Args:
        states: reads the states of a window, by layer.
    """
    around = tokenizer("the").input_ids
    bare = tokenizer("the", add_special_tokens=False).input_ids
    (start,) = [i for i in range(len(around)) if around[i : i + len(bare)] == bare][:1]
    prefix, suffix = around[:start], around[start + len(bare) :]
    ids = tokenizer(text).input_ids[start : -len(suffix) or None]
    by_letter = {}
    for name, letter in letters(text).items():
        # char_to_token gives the first of several pieces of one letter, here all are ASCII.
        by_letter[name] = tokenizer(text).char_to_token(letter) - start
    room = window - len(prefix) - len(suffix)
    last = max(0, len(ids) - room)
    starts = [*range(0, last, room // 2), last]
    read = [states(model, prefix + ids[s : s + room] + suffix) for s in starts]
    causal = type(model).__name__.startswith(("GPT", "Llama", "Qwen", "Gemma"))

    def margin(p, w):
        left, right = p - starts[w], min(starts[w] + room, len(ids)) - p - 1
        return left if causal else min(left, right)

    def best_window(p):
        windows = [w for w, s in enumerate(starts) if s <= p < s + room]
        return max(windows, key=lambda w: (margin(p, w), -w))

    best = list(map(best_window, range(len(ids))))
    found = {}
    for layer in range(len(read[0])):
        pieces = torch.stack([read[w][layer][start + p - starts[w]] for p, w in enumerate(best)])
        found[layer, "mean"], found[layer, "max"] = pieces.mean(0), pieces.max(0).values
        found[layer, "first"], found[layer, "last"] = read[0][layer][0], pieces[-1]
        found[layer, "all"], found[layer, "all:last:3"] = pieces, pieces[-3:]
        if len(ids) > 2:
            found[layer, "last:3"] = pieces[-3]
        for name, piece in by_letter.items():
            found[layer, name] = pieces[piece]
    return found, len(starts)


def of_text(found, layer, position, place):
    """The vector of a text, or all vectors of its bag."""
    vectors = found[layer_part(layer, position=position)]
    if not position.is_bag:
        return vectors[place]
    return vectors.split(found[lengths_part(position)].tolist())[place]


BLANKS = [  # position, text, the letter that it reads
    (r"match:\n", "the boats\nof the light", 9),
    (r"match:\s+", "the boats of  the light", 17),
    (r"match:\x01", "the boats\x01", 9),
    (r"match:boats\s", "the boats \n of the light", 8),
    (r"match:(?<=boats)", "the boats", None),
    ("after:boats", "the boats\x01", 9),
]


@pytest.mark.parametrize("name", FAMILIES)
def test_nothing_outside_a_match_is_read(name):
    """A piece that transformers gives for a letter, or none: not the one before or after it."""
    encoder, tokenizer, places = encoder_of(name), fast_tokenizer(name), {}
    for given, text, letter in BLANKS:
        (read,) = whole(text)
        places[given] = pieces_at(Position.parse(given), read, *encoder.split([read]))
        token = None if letter is None else tokenizer(text).char_to_token(letter)
        wanted = [] if token is None else [token - len(encoder.words.prefix)]
        assert list(places[given]) == wanted
    if name == "bert":
        assert [x for x, place in places.items() if place] == [r"match:boats\s"]


@pytest.mark.parametrize("name", FAMILIES)
def test_pooled_vectors_are_those_of_plain_passes(name):
    encoder, tokenizer = encoder_of(name), fast_tokenizer(name)
    texts = [*SHORT, LONG]
    found = ours(encoder, texts)
    window = encoder.info.window
    for place, text in enumerate(texts):
        wanted, n_windows = by_hand(encoder.model, tokenizer, text, window)
        assert n_windows == 1 or text == LONG
        for (layer, name), vector in wanted.items():
            own = of_text(found, layer, Position.parse(name), place)
            torch.testing.assert_close(own, vector, rtol=1e-4, atol=1e-5)
    assert {name for _, name in wanted} == set(NAMES)
    assert n_windows > 2 or window > len(LONG)


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama-3", "gemma3", "gpt-neox", "albert", "t5"])
def test_vectors_at_sites_are_those_of_plain_passes(name):
    """Attention, MLP, the state between them, and the last block before the final norm."""
    encoder, tokenizer = encoder_of(name), fast_tokenizer(name)
    texts, names = [*SHORT, LONG], ("mean", "last", "max")
    parts = list(states_by_hand(encoder.model, name, torch.tensor([[5, 6, 7]])))
    lacking = {"mid": name == "gpt-neox", "unnormed": name not in NORMS}
    sites = [x for x in (None, *get_args(ReadSite)) if not lacking.get(x)]
    every, positions = range(encoder.info.n_layers + 1), list(map(Position, names))
    view = View("plain", tuple(whole(*texts)))
    about = Path("none"), encoder.info, "float32", view, every, positions
    collector = text_vectors(*about, sites=sites).collector.in_float32()
    assert len(collector.parts) == len(parts) * len(names)
    found = collected(encoder, view.texts, collector, 64)

    def states(model, ids):
        return list(states_by_hand(model, name, torch.tensor([ids])).values())

    for place, text in enumerate(texts):
        wanted, _ = by_hand(encoder.model, tokenizer, text, encoder.info.window, states)
        for number, part in enumerate(parts):
            for position in names:
                own, vector = found[f"{part}-{position}"][place], wanted[number, position]
                torch.testing.assert_close(own, vector, rtol=1e-5, atol=3e-6)
    at_last = [found[f"{part}-last"][0, 0].item() for part in parts]
    assert len(set(at_last)) == len(parts)


@pytest.mark.parametrize("batch_tokens", [1, 40, 4096])
def test_batches_do_not_matter(batch_tokens):
    encoder = encoder_of("bert")
    texts = [*SHORT, LONG]
    other = ours(encoder, texts, batch_tokens)
    for part, vectors in ours(encoder, texts).items():
        torch.testing.assert_close(other[part], vectors, rtol=1e-5, atol=1e-6)


def reading(encoder, cache, view, positions):
    return text_vectors(cache, encoder.info, "float32", view, range(3), positions)


def test_a_pooling_is_added_to_what_is_stored(tmp_path):
    encoder = encoder_of("bert")
    view = View("plain", tuple(whole(*SHORT, LONG)))
    vectors_of(reading(encoder, tmp_path, view, [Position("mean")]), encoder)
    both = reading(encoder, tmp_path, view, [Position("mean"), Position("max")])
    assert both.key == reading(encoder, tmp_path, view, [Position("mean")]).key
    nothing_stored = reading(encoder, tmp_path / "empty", view, [Position("mean"), Position("max")])
    assert 2 * both.bytes_missing() == nothing_stored.bytes_missing() > 0
    stored = vectors_of(both, encoder)
    assert stored.encoding.texts_in_several_windows == 1
    found = ours(encoder, [*SHORT, LONG])
    for pooling in ("mean", "max"):
        layer = torch.from_numpy(stored.of(Position(pooling)).layer(2)[stored.starts]).float()
        torch.testing.assert_close(layer, found[f"layer-02-{pooling}"], rtol=1e-3, atol=1e-3)
    made = (
        stored.derived("features", lambda: 1),
        stored.of(Position("max")).derived("features", lambda: 2),
    )
    assert made == (1, 2)
