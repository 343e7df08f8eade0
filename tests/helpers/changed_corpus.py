"""Corpora that lack something."""


def changed(folder, change, splits=("train", "dev", "test")):
    """A corpus in CoNLL-U, with lines of words changed."""
    for split in splits:
        path = folder / f"{split}.conllu"
        lines = path.read_text(encoding="utf-8").split("\n")
        lines = [change(line.split("\t")) if line[:1].isdigit() else line for line in lines]
        path.write_text("\n".join(lines), encoding="utf-8")
    return folder
