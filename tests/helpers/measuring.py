"""Runs of one measurement of a corpus, and the record that each makes."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

from killing import small_corpus
from tiny_models import save
from tiny_runs import run


def measure(measurement, model, corpus, folder, **settings):
    """Run a measurement on a whole corpus in Python; it makes one record.

    Args:
        folder: where its results and its cache go.
        settings: further arguments of `run_probes`.

    Returns:
        the record and its path, all results, and what was given.
    """
    path_or_corpus = str(corpus) if hasattr(corpus, "joinpath") else corpus
    settings = {"limit": None, "corpus": path_or_corpus, "measurements": measurement, **settings}
    results = run(model, folder, **settings)
    ((path, record),) = results.measured.items()
    return SimpleNamespace(
        record=record, path=path, results=results, model=model, corpus=corpus, folder=folder
    )


def command_line(measurement, models, corpus, folder, *flags):
    """The same run as arguments of the command line."""
    names = models if isinstance(models, list) else [models]
    folders = ["--output", str(folder / "results"), "--cache-dir", str(folder / "cache")]
    line = ["--model", *map(str, names), "--corpus", str(corpus), "--measurements", measurement]
    return [*line, "--twins", "0", "--device", "cpu", "--threads", "1", *folders, *flags]


class SessionRuns:
    """Tiny models, small corpora and runs of measurements; equal ones are made once a session.

    Tests only read them.
    """

    def __init__(self, tmp_path_factory):
        @cache
        def model(family, **changes):
            """Folder of a tiny model; `changes` to its configuration."""
            folder = tmp_path_factory.mktemp("models") / family
            save(family, folder, **changes)
            return folder

        @cache
        def corpus(n):
            """Folder of the first n sentences of each split of the sample."""
            return small_corpus(tmp_path_factory.mktemp("corpora") / "small", n)

        @cache
        def measure_once(measurement, model, corpus, **settings):
            """A run, in a folder of its own."""
            folder = tmp_path_factory.mktemp(measurement)
            return measure(measurement, model, corpus, folder, **settings)

        self.model, self.corpus, self.measure = model, corpus, measure_once
