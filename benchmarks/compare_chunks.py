"""EWT's derived base chunks beside CoNLL-2000's gold ones: Markdown tables for docs/chunks.md.

    python benchmarks/compare_chunks.py --data-dir ../shared/data

CoNLL-2000 comes without trees, so the two corpora are compared by their statistics, and by a
table from tag trigrams to chunk tags that is learnt on the one and looked up on the other.
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from probes.data.conllu_files import read_conllu
from probes.data.ewt_join import join
from probes.data.propbank import Skeleton, Tree, read_skeletons
from probes.data.sentence import SPLITS, Frame, Sentence

NAMES = ("EWT", "CoNLL-2000")
BE = {
    "be",
    "is",
    "are",
    "was",
    "were",
    "been",
    "being",
    "am",
    "'s",
    "'re",
    "'m",
    "\u2019s",
    "\u2019m",
}


class Tagged(NamedTuple):
    """A sentence as CoNLL-2000 has it."""

    words: Sequence[str]
    tags: Sequence[str]
    bio: Sequence[str]


class Chunk(NamedTuple):
    """A chunk and the part-of-speech tags of its words."""

    type: str
    tags: tuple[str, ...]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", type=Path, required=True, help="searched recursively")
    root = parser.parse_args().data_dir
    skeletons = read_skeletons(find(root, "propbank-release-*.tar.gz"))
    sentences: list[Sentence] = []
    for split in SPLITS:
        path = find(root, f"en_ewt-ud-{split}.conllu")
        sentences += [s for s in join(read_conllu(path, "en"), skeletons)[0] if s.chunks]
    joined = [(s, skeleton_of(s, skeletons)) for s in sentences]
    ewt = [Tagged(s.words, k.tags, s.chunks) for s, k in joined]
    conll = list(conll2000(find(root, "conll2000.zip")))
    by_type(ewt, conll)
    lengths(ewt, conll)
    shapes(ewt, conll)
    merges(ewt, conll)
    missed_tags(joined)
    trigrams(ewt, conll)


def find(root: Path, pattern: str) -> Path:
    """The first file below `root` whose name matches."""
    found = sorted(root.rglob(pattern))
    if not found:
        sys.exit(f"{root}: no {pattern} in it or below; see docs/chunks.md.")
    return found[0]


def skeleton_of(sentence: Sentence, skeletons: dict[str, tuple[Skeleton, ...]]) -> Skeleton:
    """The skeleton that a joined sentence joined with."""
    document, _, number = sentence.id.rpartition("-")
    return skeletons[document][int(number) - 1]


def conll2000(archive: Path) -> Iterator[Tagged]:
    """The sentences of CoNLL-2000, training and test data together."""
    with zipfile.ZipFile(archive) as files:
        for name in ("conll2000/train.txt", "conll2000/test.txt"):
            for block in files.read(name).decode("utf-8").strip().split("\n\n"):
                yield Tagged(*zip(*(line.split() for line in block.splitlines()), strict=True))


def chunks_of(sentences: Iterable[Tagged]) -> Iterator[Chunk]:
    """Every chunk of the sentences."""
    for _, tags, bio in sentences:
        starts = [i for i, tag in enumerate(bio) if tag.startswith("B-")]
        for start in starts:
            end = start + 1
            while end < len(bio) and bio[end].startswith("I-"):
                end += 1
            yield Chunk(bio[start][2:], tuple(tags[start:end]))


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a Markdown table."""
    print(f"\n### {title}\n\n| {' | '.join(header)} |\n|{' --- |' * len(header)}")
    for row in rows:
        cells = (f"{cell:.3f}" if isinstance(cell, float) else f"{cell}" for cell in row)
        print(f"| {' | '.join(cells)} |")


def by_type(*corpora: Sequence[Tagged]) -> None:
    """Share of words, share of chunks and mean length of each type."""
    words = [Counter(t.partition("-")[2] or t for s in c for t in s.bio) for c in corpora]
    chunks = [Counter(chunk.type for chunk in chunks_of(c)) for c in corpora]
    rows = []
    for type_ in sorted(words[0] | words[1], key=lambda t: -words[1][t]):
        row: list[object] = [type_]
        row += [count[type_] / count.total() for count in words]
        if type_ != "O":
            row += [count[type_] / count.total() for count in chunks]
            row += [words[i][type_] / max(chunks[i][type_], 1) for i in (0, 1)]
        else:
            row += [""] * 4
        rows.append(row)
    sizes = [
        [name, len(corpus), w.total(), c.total()]
        for name, corpus, w, c in zip(NAMES, corpora, words, chunks, strict=True)
    ]
    table("Sizes", ["corpus", "sentences", "words", "chunks"], sizes)
    heads = ("words", "chunks", "mean length")
    header = [f"{what}, {name}" for what in heads for name in NAMES]
    table("Types", ["type", *header], rows)


def lengths(*corpora: Sequence[Tagged]) -> None:
    """Share of each length among the chunks of a type."""
    rows = []
    for type_ in ("NP", "VP", "PP", "ADVP", "ADJP", "SBAR"):
        for name, corpus in zip(NAMES, corpora, strict=True):
            count = Counter(min(len(c.tags), 6) for c in chunks_of(corpus) if c.type == type_)
            rows.append([type_, name, *(count[n] / count.total() for n in range(1, 7))])
    table("Lengths in words", ["type", "corpus", "1", "2", "3", "4", "5", "6 and more"], rows)


def shapes(*corpora: Sequence[Tagged]) -> None:
    """The most frequent tag sequences of verb chunks."""
    counts = [Counter(" ".join(c.tags) for c in chunks_of(x) if c.type == "VP") for x in corpora]
    frequent = {s for count in counts for s, _ in count.most_common(22)}
    rows = [
        [f"`{shape}`", *(count[shape] / count.total() for count in counts)]
        for shape in sorted(frequent, key=lambda shape: -counts[1][shape])
    ]
    table("Shapes of VP", ["tags", "EWT", "CoNLL-2000"], rows)


def merges(*corpora: Sequence[Tagged]) -> None:
    """How often a verb and the verb form after it are one chunk."""
    rows = []
    for what, second in (("verb, *to*, verb", "TO"), ("verb, gerund", "VBG")):
        row: list[object] = [what]
        for corpus in corpora:
            one = all_ = 0
            for words, tags, bio in corpus:
                for i in range(1, len(tags) - (second == "TO")):
                    if tags[i] != second or not tags[i - 1].startswith("VB"):
                        continue
                    if second == "TO" and not tags[i + 1].startswith("VB"):
                        continue
                    if second == "VBG" and (words[i - 1].lower() in BE or bio[i][2:] != "VP"):
                        continue
                    all_ += 1
                    one += bio[i] == "I-VP"
            row += [f"{one:,} of {all_:,}", one / all_]
        rows.append(row)
    table("One chunk or two", ["sequence", "EWT", "", "CoNLL-2000", ""], rows)


def missed_tags(joined: Sequence[tuple[Sentence, Skeleton]]) -> None:
    """What PropBank says of the subjectless clauses that joined their verb's chunk."""
    control = object_control(joined)
    verdicts: Counter[str] = Counter()
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence, skeleton in joined:
        frames = {frame.predicate[0]: frame for frame in sentence.frames}
        for clause in clauses(skeleton.tree):
            if sentence.chunks[clause.start] != "I-VP" or not has_no_subject(clause):
                continue
            verb = clause.start - 1
            while verb > 0 and not skeleton.tags[verb].startswith(("VB", "MD")):
                verb -= 1
            verdict = judge(sentence, skeleton, clause, verb, frames.get(verb), control)
            verdicts[verdict] += 1
            form = skeleton.tags[clause.start]
            forms[verdict]["to" if form in ("TO", "RB") else form] += 1
    rows: list[list[object]] = [["all", verdicts.total(), 1.0, ""]]
    for verdict, n in verdicts.most_common():
        by_form = ", ".join(f"{form} {m}" for form, m in forms[verdict].most_common())
        rows.append([verdict, n, n / verdicts.total(), by_form])
    title = "Clauses without a subject in their verb's chunk, by what CoNLL-2000 would do"
    table(title, ["verdict", "clauses", "share", "first word"], rows)


def judge(
    sentence: Sentence,
    skeleton: Skeleton,
    clause: Tree,
    verb: int,
    frame: Frame | None,
    control: set[str],
) -> str:
    """Whether CoNLL-2000 too would have joined the clause, as far as PropBank can tell."""
    if frame is None:
        return "unknown: no frame"
    label = next((a for a, span in frame.arguments if span == (clause.start, clause.end)), "")
    if "ARGM" in label:
        return "apart: adjunct (-PRP, -ADV, -CLR)"
    if sentence.words[verb].lower() in BE and label:
        return "apart: predicate of *be* (-PRD)"
    if label == "ARG0":
        return "apart: extraposed subject"
    passive = skeleton.tags[verb] == "VBN" and any(
        word.lower() in BE | {"get", "got"} for word in sentence.words[max(0, verb - 4) : verb]
    )
    if passive and frame.roleset.partition(".")[0] in control:
        return "apart: trace of the object in a passive"
    return "one chunk: complement" if label else "one chunk: auxiliary-like, no argument"


def object_control(joined: Sequence[tuple[Sentence, Skeleton]]) -> set[str]:
    """Verbs that take an object and an infinitive rather than an infinitive with a subject."""
    with_object: Counter[str] = Counter()
    with_subject: Counter[str] = Counter()
    for sentence, skeleton in joined:
        lemmas = {f.predicate[0]: f.roleset.partition(".")[0] for f in sentence.frames}
        for phrase in subtrees(skeleton.tree):
            verb = phrase.children[0]
            if phrase.label != "VP" or not isinstance(verb, int) or verb not in lemmas:
                continue
            lemma = lemmas[verb]
            rest = [c for c in phrase.children[1:] if isinstance(c, Tree)]
            labels = [c.label for c in rest]
            if labels[:2] == ["NP", "S"] and skeleton.tags[rest[1].start] == "TO":
                with_object[lemma] += 1
            elif labels[:1] == ["S"] and not has_no_subject(rest[0]):
                with_subject[lemma] += 1
    return {lemma for lemma, n in with_object.items() if n > with_subject[lemma]}


def has_no_subject(clause: Tree) -> bool:
    """Whether a clause begins with its verb phrase."""
    first = clause.children[0]
    return isinstance(first, Tree) and first.label == "VP"


def clauses(tree: Tree) -> Iterator[Tree]:
    """Every S right below a VP."""
    for phrase in subtrees(tree):
        if phrase.label == "VP":
            yield from (c for c in phrase.children if isinstance(c, Tree) and c.label == "S")


def subtrees(tree: Tree) -> Iterator[Tree]:
    """The tree and every constituent below it."""
    yield tree
    for child in tree.children:
        if isinstance(child, Tree):
            yield from subtrees(child)


def trigrams(ewt: Sequence[Tagged], conll: Sequence[Tagged], at_least: int = 15) -> None:
    """Look the chunk tag up in a table from tag trigrams, learnt on CoNLL-2000."""
    learnt: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for sentence in conll:
        for context, bio in zip(contexts(sentence), sentence.bio, strict=True):
            learnt[context][bio] += 1
    rows: list[list[object]] = []
    differing: Counter[tuple[str, str, str]] = Counter()
    for name, corpus in zip(NAMES, (ewt, conll), strict=True):
        agreeing = known = 0
        for sentence in corpus:
            for context, bio in zip(contexts(sentence), sentence.bio, strict=True):
                seen = learnt.get(context)
                if seen is None or seen.total() < at_least:
                    continue
                usual, n = seen.most_common(1)[0]
                known += 1
                agreeing += usual == bio
                if corpus is ewt and usual != bio and n > 0.85 * seen.total():
                    differing[context[1], usual, bio] += 1
        rows.append([name, known, agreeing / known])
    table("Tag trigrams of CoNLL-2000", ["corpus", "words", "usual chunk tag"], rows)
    header = ["tag", "CoNLL-2000 (over .85 of the trigram)", "EWT", "words"]
    table("Where EWT differs", header, [[*key, n] for key, n in differing.most_common(20)])


def contexts(sentence: Tagged) -> Iterator[tuple[str, ...]]:
    """The part-of-speech tags around each word; the newer tags under their old names."""
    old = {"HYPH": ":", "NFP": ":", "ADD": "NNP"}
    tags = ["<s>", *(old.get(tag, tag) for tag in sentence.tags), "</s>"]
    return zip(tags, tags[1:], tags[2:], strict=False)


if __name__ == "__main__":
    main()
