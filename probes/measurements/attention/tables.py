"""Tables of attention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from probes.measurements.attention.gold import FEWEST_LISTED
from probes.measurements.attention.names import DESCRIBED
from probes.measurements.attention.patterns import (
    BOUNDS,
    CLASSES,
    CLEAR,
    MIXED,
    beyond_uniform,
    classes,
)
from probes.measurements.attention.payload import Choice, Clusters, Findings, HeadNumbers, Mixes
from probes.measurements.cells import score_cell
from probes.records.record import Record
from probes.records.table import NOTHING, Cell, Table, TableRow
from probes.records.titles import subject_title
from probes.records.values import Estimate
from probes.statistics.formatting import shown, shown_p
from probes.statistics.partition import FEWEST
from probes.statistics.significance import ALPHA

FEATURES = ("nouns", "verbs", "pronouns", "subjects", "objects", "negation")

ATTENDS = {
    "dependent to head": "to head",
    "head to dependent": "to dep.",
    "undirected": "either",
    "argument to predicate": "to pred.",
    "predicate to argument": "to arg.",
}
"""Who attends to whom, in few letters."""


def tables(record: Record[Findings]) -> list[Table]:
    """Statistics and patterns by layer, then the chosen heads."""
    found, title = record.payload, f"{subject_title(record)} · attention"
    made = [_statistics(title, found), _patterns(title, found)]
    if any(x.measure == "feature" for x in found.numbers):
        made.append(_features(title, found))
    made += choice_tables(title, found)
    if found.mixes:
        made.append(_mixes(title, found, found.mixes))
    if found.clusters:
        made.append(_clusters(title, found, found.clusters))
    return made


def choice_tables(title: str, found: Findings, *, every: bool = False) -> list[Table]:
    """Relations, roles and trees with the head chosen for each.

    Args:
        every: whether rare relations are listed too.
    """
    made = []
    if found.choices_of("relation"):
        made.append(_relations(title, found, every))
    if found.choices_of("role"):
        made.append(_roles(title, found))
    if found.choices_of("uas"):
        made.append(_trees(title, found))
    return made


def _statistics(title: str, found: Findings) -> Table:
    rows = _by_layer(found, [(each.measure, each.feature) for each in DESCRIBED])
    notes = tuple(note for note in (*_notes(found), _absent(found)) if note)
    heads = ("layer", *(each.column for each in DESCRIBED))
    return Table(f"{title} · mean over heads, %", heads, rows, notes=notes)


def _features(title: str, found: Findings) -> Table:
    rows = _by_layer(found, [("feature", name) for name in FEATURES])
    note = (
        "Mean attention of a sentence's tokens to that word of a kind which gets most of it, over "
        "sentences with such words."
    )
    heads = ("layer", *FEATURES)
    return Table(f"{title} · to words, mean over heads, %", heads, rows, notes=(note,))


def _by_layer(found: Findings, columns: list[tuple[str, str]]) -> tuple[TableRow, ...]:
    """Means over the heads of each layer, then what uniform attention gives."""
    each = [found.of(*column) for column in columns]
    last = len(found.layers) - 1
    rows = [
        TableRow.of(
            str(layer),
            *(_mean(x.values[place]) if x else NOTHING for x in each),
            ends_section=place == last,
        )
        for place, layer in enumerate(found.layers)
    ]
    uniform = (_mean(tuple(y for row in x.baseline for y in row)) if x else NOTHING for x in each)
    return (*rows, TableRow.of("uniform", *uniform, faint=True))


def _mean(values: tuple[float | None, ...]) -> str:
    known = [value for value in values if value is not None]
    return shown(sum(known) / len(known), "accuracy") if known else NOTHING


def _notes(found: Findings) -> Iterator[str]:
    what = "pairs of neighbouring sentences" if found.segments == "two" else "sentences"
    for split, of in found.splits.items():
        yield (
            f"{split}: {of.texts:,} {what}, {of.words:,} words"
            + (f"; {of.too_long:,} left out, longer than the model's window." * bool(of.too_long))
            + "." * (not of.too_long)
        )
    yield (
        "Entropy: share of the greatest that is possible. Means over test texts; those of single "
        f"heads, with intervals over {found.resampled}, are in heads.csv."
    )


def _absent(found: Findings) -> str:
    """What needs annotation that the corpus lacks, or has too little of."""
    kinds = {"relation": "relations", "role": "roles", "uas": "trees"}
    names = [name for measure, name in kinds.items() if not found.choices_of(measure)]
    if found.segments == "two" or not names:
        return ""
    return f"Left out for lack of annotation: {', '.join(names)}."


def _patterns(title: str, found: Findings) -> Table:
    masses = {x.feature: x for x in found.numbers if x.measure == "pattern"}
    heads = ("layer", *(f"{name}\nmass" for name in masses), *CLASSES.values())
    n = len(found.layers)
    rows = [
        TableRow.of(
            first,
            *(_beyond(x, place) if place < n else NOTHING for x in masses.values()),
            *counts,
            ends_section=place == n - 1,
        )
        for place, (first, *counts) in enumerate(counted_classes(found))
    ]
    signs = ", ".join(f"{sign} {name}" for name, sign in CLASSES.items())
    note = (
        f"Heads by class: {signs}. {WHERE_BOUNDS} Masses: mean share of attention, % beyond "
        "uniform; columns are chosen on other rows than they are measured on. By a rule, "
        "not by the network of Kovaleva et al. (2019), which was never published: VD if both "
        f"masses are {MIXED} or more and together {CLEAR}; else the class of the greatest mass, if "
        f"that is {CLEAR} or more; else H."
    )
    return Table(f"{title} · patterns", heads, tuple(rows), notes=(note,), repeated=1)


WHERE_BOUNDS = (
    f"Layers: with a bound of {CLEAR:.1f}; last rows: of all heads with other bounds, too."
).replace(" 0.", " .")
"""What the rows of counts are."""


def counted_classes(found: Findings) -> list[tuple[str, ...]]:
    """How many heads have each class: cells of a row for each layer, then of all for each bound."""
    rows: list[tuple[str, Iterable[str]]] = [
        (str(layer), names) for layer, names in zip(found.layers, found.patterns, strict=True)
    ]
    rows += [
        (f"all, {bound:.1f}".replace("0.", "."), chain(*classes(found.numbers, bound)))
        for bound in BOUNDS
    ]
    counts = [(first, Counter(names)) for first, names in rows]
    return [(first, *(str(of[name] or NOTHING) for name in CLASSES)) for first, of in counts]


def _beyond(numbers: HeadNumbers, layer: int) -> str:
    """A pattern's mass beyond that of uniform attention, averaged over heads."""
    pairs = [(x, numbers.baseline_of(layer, i)) for i, x in enumerate(numbers.values[layer])]
    known = [beyond_uniform(x, y) for x, y in pairs if x is not None and y is not None]
    return shown(sum(known) / len(known), "accuracy") if known else NOTHING


def _relations(title: str, found: Findings, every: bool) -> Table:
    choices = found.choices_of("relation")
    listed = [choice for choice in choices if every or choice.n_test >= FEWEST_LISTED]
    notes = [
        "Of each relation the head that is best on dev, and who attends to whom in it: how often "
        "the word that is attended to most is the right one. To head: dependents attend to their "
        "heads; to dep.: heads to their dependents. Baseline: the best fixed distance on train, in "
        "brackets, +1 being the next word. Chance: any other word of the sentence.",
        _tested(choices, found),
    ]
    if len(choices) > len(listed):
        notes.append(f"{len(choices) - len(listed)} rarer relations are in heads.csv.")
    if found.rare:
        names = ", ".join(f"{name} {n}" for name, n in found.rare.items())
        notes.append(f"Too rare to be scored, with words in test: {names}.")
    return _choices(f"{title} · relations · test, %", "relation", listed, tuple(notes))


def _roles(title: str, found: Findings) -> Table:
    notes = [
        "The greatest attention from a word of an argument (at most 3 words, at least 2 from its "
        "predicate) to one of the predicate, × 100, or from the predicate to the argument, in the "
        "head and direction that exceed the controls most on dev. Baseline: other places of the "
        "sentence at the same distance. Chance: uniform attention.",
        _tested(found.choices_of("role"), found),
    ]
    if found.rare_roles:
        names = ", ".join(f"{name} {n}" for name, n in found.rare_roles.items())
        notes.append(f"Too rare to be scored, with links in test: {names}.")
    if found.without_controls:
        notes.append(
            f"{found.without_controls:,} links of dev and test have no such place and are left out."
        )
    return _choices(f"{title} · roles · test", "role", found.choices_of("role"), tuple(notes))


def _trees(title: str, found: Findings) -> Table:
    chains = ", ".join(f"{name} {100 * x:.1f}" for name, x in found.chains.items())
    note = (
        "Maximum spanning trees of a head's attention between words, without being told the root; "
        "words that are not punctuation. UAS: right heads in arborescences; UUAS: words linked to "
        f"their head in undirected trees. Baseline: the better chain on train. Chains on test: "
        f"{chains}. Chance: a random tree."
    )
    choices = [*found.choices_of("uas"), *found.choices_of("uuas")]
    notes = note, _tested(choices, found)
    return _choices(f"{title} · trees · test, %", "tree", choices, notes)


def _tested(choices: list[Choice], found: Findings) -> str:
    """What is tested, and together with what."""
    n = sum(choice.p is not None for choice in choices)
    return (
        f"★: above the baseline. p: two-sided, corrected for the {n} that are tested, in which "
        f"head and baseline differ in {FEWEST} {found.resampled} or more."
    )


def _mixes(title: str, found: Findings, mixes: Mixes) -> Table:
    names = (*(f"layer {layer}" for layer in found.layers), "all layers")
    dev, test = (*mixes.dev_layers, mixes.dev_every), (*mixes.layers, mixes.every)
    rows = [
        TableRow.of(name, shown(on_dev, "accuracy"), percent_cell(on_test))
        for name, on_dev, on_test in zip(names, dev, test, strict=True)
    ]
    note = (
        "UAS of the attention-only probe of Clark et al. (2019), words that are not punctuation: a "
        f"weighted sum of heads, fitted to {mixes.words:,} words in {mixes.sentences:,} training "
        "sentences."
    )
    left_out = f"{mixes.left_out:,} sentences of the sample are left out: they are too long."
    return Table(
        f"{title} · mixes of heads, %",
        ("heads of", "dev", "test"),
        tuple(rows),
        notes=(note, *[left_out] * bool(mixes.left_out)),
    )


def _clusters(title: str, found: Findings, clusters: Clusters) -> Table:
    its = clusters.found
    rows = [
        TableRow.of(str(layer), _distance(its.within_layers[layer - 1])) for layer in found.layers
    ]
    rows[-1] = TableRow(rows[-1].cells, ends_section=True)
    rows.append(TableRow.of("of one layer", _distance(its.within)))
    rows.append(TableRow.of("of two layers", _distance(its.between)))
    note = (
        "Root of the mean Jensen–Shannon divergence of two heads, at most .83, over "
        f"{clusters.tokens:,} tokens of {clusters.texts:,} sentences of dev and test."
    )
    nearest = (
        f"The nearest head is of the same layer for {_share(its.nearest_in_layer)} of heads, "
        f"{_share(its.nearest_by_chance)} by chance."
    )
    return Table(
        f"{title} · distances of heads", ("layer", "mean"), tuple(rows), notes=(note, nearest)
    )


def _distance(value: float | None) -> str:
    return shown(value, "distance")


def _share(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.0f} %"


def _choices(title: str, what: str, choices: list[Choice], notes: tuple[str, ...]) -> Table:
    heads = (what, "n", "head", "attends", "test", "baseline", "chance", "difference", "p")
    rows = [
        TableRow.of(
            choice.feature.replace("at most", "≤") or choice.measure.upper(),
            f"{choice.n_test:,}",
            f"{choice.layer}–{choice.head}",
            ATTENDS[choice.direction],
            percent_cell(choice.test, best=is_better(choice)),
            _baseline(choice),
            shown(choice.chance, "accuracy"),
            _signed(choice.difference),
            NOTHING if choice.p is None else shown_p(choice.p),
        )
        for choice in choices
    ]
    return Table(title, heads, tuple(rows), notes=notes, repeated=1)


def _signed(difference: Estimate) -> Cell:
    """A difference of shares in points, with half its interval."""
    if difference.value is None:
        return Cell(NOTHING)
    text = f"{100 * difference.value:+z.1f}".replace("-", "−")
    return Cell(text, percent_cell(difference).half, value=difference.value)


def _baseline(choice: Choice) -> str:
    """The baseline, and at which distance it is if it is a fixed one."""
    value = shown(choice.baseline.value, "accuracy")
    _, _, offset = choice.baseline_kind.partition("offset ")
    return f"{value} ({offset})" if offset else value


def is_better(choice: Choice) -> bool:
    """Whether the head is above its baseline beyond chance."""
    above = choice.difference.value is not None and choice.difference.value > 0
    return above and choice.p is not None and choice.p < ALPHA


def percent_cell(estimate: Estimate, *, best: bool = False) -> Cell:
    """A share in points, with half its interval."""
    return score_cell(
        estimate.value, estimate.interval, "accuracy", value=estimate.value, best=best
    )
