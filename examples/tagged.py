"""A corpus in a format of its own: one sentence per line, such as `she/PRON sings/VERB`.

    python run_probes.py --model MODEL --include tagged.py --corpus tagged --tasks pos

`train.tagged`, `dev.tagged` and `test.tagged` are beside this file. For a file to download, give a
`probes.Remote` with its SHA-256 instead of a path.
"""

from pathlib import Path

from probes import SPLITS, Corpus, Registered, Sentence, corpora

HERE = Path(__file__).parent


def read(source):
    """All splits. The id of a sentence must be unique in the corpus."""
    splits = {}
    for split in SPLITS:
        lines = source.files[split][0].read_text(encoding="utf-8").splitlines()
        pairs = [[pair.rsplit("/", 1) for pair in line.split()] for line in lines]
        splits[split] = tuple(
            Sentence(
                f"{split} {n}", "en", tuple(w for w, _ in line), upos=tuple(t for _, t in line)
            )
            for n, line in enumerate(pairs)
        )
    return Corpus(source.name, source.version, source.licence, splits)


corpora.add(
    "tagged",
    Registered(
        name="tagged",
        version="1",
        licence="CC0-1.0",
        summary="A few tagged sentences.",
        files={split: HERE / f"{split}.tagged" for split in SPLITS},
        read=read,
        layers=frozenset({"upos"}),
    ),
)
