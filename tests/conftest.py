"""What all tests share."""

from __future__ import annotations

import gc
import os
import signal
import sys
from functools import cache
from pathlib import Path

import hypothesis
import pytest

# Where tests run in the background, shells have SIGINT ignored, and programs that are started inherit
# that; tests of Ctrl-C need what a terminal gives.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tiny models gain nothing from threads, and lose much where cores are shared.
os.environ["OMP_NUM_THREADS"] = "1"

# Inputs are slow to draw on a machine that does something else.
hypothesis.settings.register_profile(
    "suite", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("suite")


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter):
    """Say how many tests of pages were skipped for want of a browser."""
    skipped = terminalreporter.stats.get("skipped", [])
    if n := sum("no browser" in str(report.longrepr) for report in skipped):
        install = "apt-get install chromium chromium-driver"
        terminalreporter.write_line(
            f"{n} tests of pages skipped, since there is no browser: {install}"
        )


SENTENCES = [
    "the old dog sees a cat near the house",
    "she gave him some books and he read them",
    "birds sing when the sun is up .",
]


@pytest.fixture(autouse=True)
def messages_are_shown(monkeypatch):
    """Whatever a test before this one has asked for with -q or -v."""
    from probes.common.terminal import progress

    monkeypatch.setattr(progress, "quiet", False)
    monkeypatch.setattr(progress, "verbose", False)


@pytest.fixture(scope="module", autouse=True)
def earlier_objects_are_no_garbage():
    """Collections do not go through what was imported and made before a module of tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def ray_here():
    """Ray starts on this machine; otherwise the test is skipped."""
    from on_ray import require_ray

    require_ray()


@pytest.fixture(scope="session", autouse=True)
def registered_corpora_are_parsed_once():
    """In a process of tests: a parse takes longer than most of what is tested after it."""
    import probes.data.treebank as treebank

    read = treebank.read_conllu

    @cache
    def parsed_once(path, language, _changed):
        parsed = tuple(read(path, language))
        gc.freeze()  # or every later collection would go through them
        return parsed

    def sentences(path, language):
        return parsed_once(path, language, path.stat().st_mtime_ns)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(treebank, "read_conllu", sentences)
        yield


@pytest.fixture(scope="session", autouse=True)
def cache_of_tests(tmp_path_factory):
    """Tests neither read what the user's cache has, nor write there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROBES_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with the real corpora; without it, the test is skipped."""
    folder = Path(os.environ.get("PROBES_DATA_DIR", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real corpora at {folder}; set PROBES_DATA_DIR to their folder")
    return folder


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory) -> Path:
    """A folder with a tiny BERT, randomly initialised, and its WordPiece tokenizer."""
    import torch
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("models") / "tiny-bert"
    # Listed, since training breaks ties at random: every session would have another model.
    words = sorted({word for sentence in SENTENCES for word in sentence.split()})
    letters = sorted(set("".join(words)))
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = dict.fromkeys([*special, *letters, *(f"##{letter}" for letter in letters), *words])
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    splits = BertWordPieceTokenizer(vocab=vocabulary, lowercase=True)
    tokenizer = BertTokenizerFast(tokenizer_object=splits._tokenizer, model_max_length=64)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    with torch.random.fork_rng():
        torch.manual_seed(7)
        BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def small_sample(tmp_path_factory) -> Path:
    """The first twelve sentences of each split of the sample, which tests only read."""
    from killing import small_corpus

    return small_corpus(tmp_path_factory.mktemp("corpora") / "small")


@pytest.fixture
def hub_cache(tiny_bert, tmp_path, monkeypatch) -> Path:
    """A hub cache that holds the tiny model as `bert-base-uncased`, laid out by hand."""
    import shutil

    commit = "0123456789abcdef0123456789abcdef01234567"
    repo = tmp_path / "hub" / "models--bert-base-uncased"
    shutil.copytree(tiny_bert, repo / "snapshots" / commit)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


@pytest.fixture
def revisions(tiny_bert, hub_cache) -> Path:
    """The hub cache with the tags step1000 and step2000, the latter with another configuration."""
    import shutil

    from safetensors.torch import load_file, save_file

    repo = hub_cache / "models--bert-base-uncased"
    for digit, tag in (("1", "step1000"), ("2", "step2000")):
        folder = repo / "snapshots" / (digit * 40)
        shutil.copytree(tiny_bert, folder)
        weights = folder / "model.safetensors"
        save_file(
            {name: x * (1 + int(digit)) for name, x in load_file(weights).items()},
            weights,
            metadata={"format": "pt"},
        )
        (repo / "refs" / tag).write_text(digit * 40)
    config = repo / "snapshots" / ("2" * 40) / "config.json"
    config.write_text(config.read_text() + "\n")
    return hub_cache


@pytest.fixture
def short_schedule(monkeypatch):
    """Probes that stop early."""
    from tiny_runs import shorten_schedule

    # With the test's own patch: two that overlap would restore each other's values.
    shorten_schedule(monkeypatch)


@pytest.fixture
def plug_ins():
    """What a test loads is taken back when it is over."""
    from probes.measurements import plugins

    def forget():
        for loading in reversed(list(plugins._loaded.values())):
            loading.unregister()
        plugins._loaded.clear()
        plugins.broken.clear()

    forget()
    yield
    forget()


@pytest.fixture
def write(tmp_path):
    """Writes a file of plug-ins."""

    def write(text, name="mine.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


@pytest.fixture
def run_with(tiny_bert, tmp_path):
    """Runs the tiny model with files of plug-ins; see `plugged_in.run_included`."""
    from functools import partial

    from plugged_in import run_included

    return partial(run_included, tiny_bert, tmp_path)


@pytest.fixture
def install(tmp_path, monkeypatch, plug_ins):
    """Installs a package of one module, by hand."""
    site = tmp_path / "site"
    monkeypatch.syspath_prepend(site)
    modules = []

    def install(module, text, points, group="probes.plug_ins"):
        info = site / f"{module}-2.1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Name: dist-{module}\nVersion: 2.1\n")
        lines = "\n".join(f"{name} = {value}" for name, value in points.items())
        (info / "entry_points.txt").write_text(f"[{group}]\n{lines}\n")
        (site / f"{module}.py").write_text(text)
        modules.append(module)
        return site / f"{module}.py"

    yield install
    for module in modules:
        sys.modules.pop(module, None)


@pytest.fixture
def draws(monkeypatch, tmp_path, capsys):
    """Runs the command in a folder; returns its status, what was to be drawn, and its messages."""

    from probes.__main__ import main

    def draws(*arguments):
        given = []
        monkeypatch.setattr(
            "probes.tables.figures.save", lambda chart, path, style: given.append(chart)
        )
        status = main(["figure", *map(str, arguments), "-o", str(tmp_path / "x.pdf")])
        return status, (given or [None])[0], " ".join(capsys.readouterr().err.split())

    return draws
