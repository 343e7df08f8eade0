"""Whatever the public interface is given, what comes out is a value or our own error."""

import json
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probes.cli.main import build_parser
from probes.common.errors import UserError
from probes.data.find import find_corpus
from probes.engines.config import RunConfig
from probes.engines.settings import validate
from probes.extraction.model_files import find_model
from probes.extraction.store import FORMAT, StoreKey, store_folder, write_manifest
from probes.extraction.vectors import Vectors
from probes.extraction.views import Text, View
from probes.measurements.joined_results import read_result
from probes.statistics.gold import Gold
from probes.statistics.metrics import metrics


def check(examples):
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )


def or_our_error(call, *arguments, **named):
    """What a call gives; None if it is our error, in one line."""
    try:
        return call(*arguments, **named)
    except UserError as error:
        message = str(error)
        assert message
        assert "\n" not in message
        return None


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


@check(300)
@given(st.dictionaries(st.sampled_from(sorted(RunConfig.model_fields)), VALUES, max_size=3))
def test_settings(given_settings):
    config = or_our_error(validate, given_settings)
    assert config is None or hash(config) == hash(config.model_copy())


FLAGS = sorted(o for a in build_parser()._actions for o in a.option_strings if o != "-h")


@check(300)
@given(st.lists(st.sampled_from(FLAGS) | st.text(max_size=8), max_size=6))
def test_command_lines(arguments):
    if not {"--help", "--version"} & set(arguments):
        or_our_error(build_parser().parse_args, arguments)


@check(100)
@given(st.text(min_size=1, max_size=40))
def test_names_of_models(name):
    assert or_our_error(find_model, "./" + name) is None


@check(100)
@given(st.text(min_size=1, max_size=40))
def test_names_of_corpora(name):
    assert or_our_error(find_corpus, "./\0" + name) is None
    or_our_error(find_corpus, "./nowhere/" + name.replace("/", "_"))


@check(200)
@given(st.binary(max_size=300) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_results(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.json"
        path.write_bytes(content)
        assert or_our_error(read_result, path) is None


KEY = StoreKey("m", "v", "float32", "word vectors v1", {"storage": "float16"})
VIEW = View("plain", (Text(("a", "b"), (0, 2)),))
MANIFEST = {
    "key": asdict(KEY),
    "model": {},
    "view": "plain",
    "layers": 1,
    "texts": 1,
    "rows": 2,
    "shards": 1,
    "words_per_shard": 1024,
    "batch_tokens": 64,
}
ABOUT = {"bytes": 12, "crc32": 0, "shape": [2, 1]}
SHARD = {
    "shard": 0,
    "texts": 1,
    "rows": 2,
    "counts": {},
    "long_texts": [],
    "files": {"layer-00": ABOUT},
}


@check(200)
@given(
    st.binary(max_size=200),
    st.dictionaries(st.sampled_from(sorted({"format", *MANIFEST, *SHARD})), VALUES, max_size=4),
)
def test_stores(content, changes):
    with tempfile.TemporaryDirectory() as cache:
        folder = store_folder(Path(cache), KEY)
        for place, whole in ((folder, MANIFEST), (folder / "00000-layer-00", SHARD)):
            place.mkdir(parents=True)
            (place / "layer-00.npy").write_bytes(content)
            changed = {"format": FORMAT, **whole, "crc32": 0, **changes}
            for text in (content, json.dumps(changed).encode()):
                (place / "manifest.json").write_bytes(text)
                assert or_our_error(Vectors, Path(cache), KEY, VIEW) is None
            write_manifest(place / "manifest.json", whole)
        vectors = Vectors(Path(cache), KEY, VIEW)
        assert vectors.is_complete(["layer-00"])
        assert or_our_error(vectors.layer, 0) is None


@st.composite
def scored(draw):
    """Gold labels of a few sentences and predictions of two cells."""
    n = draw(st.integers(1, 12))
    n_classes = draw(st.integers(1, 4))
    labels = draw(st.lists(st.integers(-1, n_classes - 1), min_size=n, max_size=n))
    sentence = sorted(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    predicted = draw(
        st.lists(st.integers(0, n_classes - 1), min_size=2 * n, max_size=2 * n).map(
            lambda x: np.array(x).reshape(2, n)
        )
    )
    names = tuple(["B-X", "I-X", "O", "B-Y"][:n_classes])
    gold = Gold(
        labels=np.array(labels),
        sentence=np.unique(sentence, return_inverse=True)[1],
        classes=names,
        punctuation=np.zeros(n, dtype=bool),
        unseen=("B-Z",) * labels.count(-1),
    )
    return gold, predicted


@pytest.mark.parametrize("name", ["accuracy", "macro_f1", "balanced_accuracy", "span_f1"])
@check(150)
@given(scored())
def test_metrics(name, given_scores):
    if name not in metrics:
        pytest.skip(f"no metric {name}")
    gold, predicted = given_scores
    found = np.asarray(metrics.get(name)(gold, predicted))
    assert found.shape == (2,)
    known = found[~np.isnan(found)]
    assert ((known >= 0) & (known <= 1)).all()
    if (gold.labels >= 0).all():
        (perfect,) = metrics.get(name)(gold, gold.labels[None])
        # By conlleval's definition F1 is 0 if there is no chunk to find.
        expected = 0 if name == "span_f1" and not gold.chunks else 1
        assert perfect == pytest.approx(expected)
