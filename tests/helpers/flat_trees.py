"""Constituents for a corpus that has none: its base chunks, below one S."""

from dataclasses import replace

from probes.data.chunk_schemes import chunks_of
from probes.data.chunks import Tree


def with_flat_trees(corpus):
    """The corpus with a tree for every sentence."""

    def annotated(sentence):
        found = list(chunks_of(sentence.chunks))
        within = {word for _, start, end in found for word in range(start, end)}
        parts = {
            start: Tree(label, start, end, tuple(range(start, end))) for label, start, end in found
        }
        parts |= {word: word for word in range(len(sentence)) if word not in within}
        whole = 0, len(sentence)
        tree = Tree("S", *whole, tuple(part for _, part in sorted(parts.items())))
        return replace(sentence, constituents=Tree("TOP", *whole, (tree,)).constituents())

    splits = {split: tuple(map(annotated, part)) for split, part in corpus.splits.items()}
    return replace(corpus, splits=splits)
