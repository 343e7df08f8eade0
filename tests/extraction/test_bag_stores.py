"""Stores of bags: all tokens of texts, beside vectors of one position."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import build
from tiny_readings import (
    collected,
    encoder_of,
    files_below,
    plain_input,
    shards_of_store,
    small_shards,
)

from probes.common.errors import UserError
from probes.extraction.reading import shards
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.encoding import StoreRequest, begin_store, text_vectors, vectors_of
from probes.extraction.reading.text_vectors import TextVectors
from probes.extraction.reading.views import Text, View
from probes.tasks.positions import Position
from probes.training.standardisation import SpanRows

MEAN, ALL, LAST_TWO = (Position.parse(name) for name in ("mean", "all", "all:last:2"))
WORDS = ("light", "she", "counts", "the", "boats", "lightkeepers")


def random_texts(n: int, seed: int = 0) -> list[str]:
    """Distinct texts of 1 to 45 words; windows hold 30 subwords."""
    rng = np.random.default_rng(seed)
    return [" ".join([str(i), *map(str, rng.choice(WORDS, rng.integers(0, 45)))]) for i in range(n)]


def view_of(texts: list[str]) -> View:
    return View("plain", tuple(Text((text,), (0, 1), written=True) for text in texts))


VIEW = view_of(random_texts(40))


def request(
    encoder: Encoder, cache: Path, *positions: Position, view: View = VIEW, layers: Any = range(3)
) -> StoreRequest:
    about = cache, encoder.info, "float32", view, layers, positions
    return text_vectors(*about, split=encoder.split)


def n_tokens(encoder: Encoder, view: View = VIEW) -> np.ndarray[Any, Any]:
    return np.array([len(pieces.ids) for pieces in encoder.split(view.texts)])


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_the_mean_of_a_stored_bag_is_the_stored_mean(name, tmp_path, monkeypatch):
    small_shards(monkeypatch, 64)
    encoder = encoder_of(name)
    stored = vectors_of(request(encoder, tmp_path, MEAN, ALL, LAST_TWO), encoder)
    assert stored.n_shards > 5
    lengths = n_tokens(encoder)
    assert lengths.max() > encoder.capacity
    bags, pairs, means = (stored.of(position) for position in (ALL, LAST_TWO, MEAN))
    assert bags.lengths.tolist() == lengths.tolist()
    assert pairs.lengths.tolist() == np.minimum(2, lengths).tolist()
    assert means.lengths.tolist() == [1] * len(lengths)
    assert stored.starts.tolist() == means.starts.tolist()  # copies leave it as it is
    for layer in range(3):
        rows = SpanRows.of(np.stack([bags.starts, bags.starts + bags.lengths], axis=1))
        wanted = torch.from_numpy(means.layer(layer)[means.starts]).float()
        torch.testing.assert_close(rows.means(bags.layer(layer)), wanted, rtol=1e-3, atol=1e-3)
        # The last two of all tokens are those two.
        for place in range(len(lengths)):
            end = bags.starts[place] + lengths[place]
            two = pairs.starts[place] + np.arange(pairs.lengths[place])
            all_rows = np.arange(end - len(two), end)
            np.testing.assert_array_equal(pairs.layer(layer)[two], bags.layer(layer)[all_rows])


def test_texts_without_the_bag_have_no_rows(tmp_path):
    encoder, role = encoder_of("bert"), Position.parse("all:user")
    stored = vectors_of(request(encoder, tmp_path, role), encoder).of(role)
    assert not stored.lengths.any()
    assert stored.layer(1).shape == (0, 16)


def test_a_bag_is_added_to_a_store_and_takes_the_bytes_that_were_told(tmp_path):
    encoder, every = encoder_of("bert"), np.arange(n_tokens(encoder_of("bert")).sum())
    plain, both = request(encoder, tmp_path, MEAN), request(encoder, tmp_path, MEAN, ALL)
    vectors_of(plain, encoder)
    assert both.key == plain.key
    before = files_below(tmp_path)
    of_layer, of_lengths, means = len(every) * 16 * 2, 40 * 8, 3 * 40 * 16 * 2
    assert both.bytes_missing() == 3 * of_layer + of_lengths
    vectors_of(request(encoder, tmp_path, ALL, layers=[1]), encoder)
    assert both.bytes_missing() == 2 * of_layer
    vectors_of(both, encoder)
    assert before.items() < files_below(tmp_path).items()
    arrays = [path for path in tmp_path.rglob("*.npy") if "all" in path.name]
    assert sum(np.load(path).nbytes for path in arrays) == 3 * of_layer + of_lengths
    assert both.bytes_missing() == 0
    together = request(encoder, tmp_path / "together", MEAN, ALL)
    assert together.bytes_missing() == 3 * of_layer + of_lengths + means
    for layer in range(3):
        added, made = (vectors_of(x, encoder).of(ALL).layer(layer) for x in (both, together))
        np.testing.assert_array_equal(added[every], made[every])


def test_shards_are_cut_by_the_tokens_that_are_stored(tmp_path, monkeypatch):
    """A token takes 3 layers × 16 × 2 bytes, and a text's mean as many."""
    small_shards(monkeypatch, 64, n_batches=100)
    monkeypatch.setitem(shards._MOST_BYTES, "cpu", 200 * 96)
    encoder, lengths = encoder_of("bert"), n_tokens(encoder_of("bert"))
    means, bags = request(encoder, tmp_path / "means", MEAN), request(encoder, tmp_path, ALL, MEAN)
    for asked in (means, bags):
        begin_store(asked, encoder)
    (only,) = shards_of_store(means)
    assert len(only.texts) == 40
    n_rows = [int((lengths + 1)[shard.index].sum()) for shard in shards_of_store(bags)]
    assert max(n_rows) <= 200
    assert min(n_rows[:-1]) > 100
    assert sum(n_rows) == lengths.sum() + 40


def test_a_bag_is_read_inside_a_block():
    """Against a hook on the MLP of a plain pass over each text."""
    encoder, seen = encoder_of("bert"), []
    texts = [text for text in VIEW.texts if len(text.words[0].split()) < 9]
    found = collected(encoder, texts, TextVectors([(2, "mlp", ALL), (2, "mlp", MEAN)], "float32"))
    mlp = encoder.model.encoder.layer[1].output.dense
    hook = mlp.register_forward_hook(lambda _, __, output: seen.append(output[0, 1:-1]))
    for text in texts:
        with torch.no_grad():
            encoder.model(**plain_input(encoder, text))
    hook.remove()
    torch.testing.assert_close(found["layer-02-mlp-v2-all"], torch.cat(seen), rtol=1e-4, atol=1e-5)
    means = torch.stack([states.mean(0) for states in seen])
    torch.testing.assert_close(found["layer-02-mlp-v2-mean"], means, rtol=1e-4, atol=1e-5)


LOUD = "she counts zzz boats the boats"


@pytest.fixture
def loud():
    """A view, and encoders for which "zzz" is beyond fp16 at layer 0."""
    texts = random_texts(30, seed=1)
    view = view_of([*texts[:11], LOUD, *texts[11:]])

    def make(value: float) -> Encoder:
        model, tokenizer = build("gpt2", "GPT2Model")
        (piece,) = {int(i) for i in tokenizer(" zzz").input_ids[-1:]}
        with torch.no_grad():
            model.wte.weight[piece, 3] = value
        return Encoder(model, tokenizer, name="loud", device="cpu")

    return view, make


def test_a_token_beyond_fp16_moves_everything_to_fp32(loud, tmp_path, capsys, monkeypatch):
    small_shards(monkeypatch, 64)
    view, make = loud
    encoder, free = make(1e5), []
    narrow = request(encoder, tmp_path, ALL, view=view)
    n_bytes = n_tokens(encoder, view).sum() * 3 * 16 * 4 + len(view.texts) * 8
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=free[-1]))
    free.append(n_bytes - 1)
    with pytest.raises(UserError, match="MB are free; choose another --cache-dir"):
        vectors_of(narrow, encoder)
    free.append(n_bytes)
    stored = vectors_of(narrow, encoder).of(ALL)
    assert "beyond fp16's range: everything is encoded again" in capsys.readouterr().err
    assert stored.encoding.storage == "float32"
    place = view.index[view.texts[11]]
    rows = stored.starts[place] + np.arange(stored.lengths[place])
    found = stored.layer(0)[rows][:, 3]
    assert found.max() == pytest.approx(1e5, rel=1e-4)
    assert np.isfinite(found).all()


def test_a_token_that_is_not_finite_is_told_by_its_text(loud, tmp_path, monkeypatch):
    small_shards(monkeypatch, 64, n_batches=4)
    view, make = loud
    encoder = make(float("nan"))
    with pytest.raises(UserError) as caught:
        vectors_of(request(encoder, tmp_path, ALL, view=view), encoder)
    assert str(caught.value).startswith(
        "--model loud: layer 0 gives a vector that is not finite (NaN or infinite) for the text "
        f"'{LOUD}'; the model is broken"
    )
