"""Tables of geometry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from probes.common.wording import counted
from probes.measurements.geometry.cka import ENOUGH, is_biased
from probes.measurements.geometry.payload import SIMILARITIES, Findings, LayerGeometry
from probes.measurements.geometry.position import PLACES
from probes.records.record import Record
from probes.records.table import NOTHING, Cell, Table, TableRow
from probes.records.titles import subject_title
from probes.records.values import Estimate
from probes.statistics.formatting import shown

KINDS = {"upos": "part of speech", "chunks": "chunk type", "senses": "sense"}
"""What labels are called."""


def tables(record: Record[Findings]) -> list[Table]:
    """Space, context, clusters where there are any, and similarity of layers."""
    found, title = record.payload, f"{subject_title(record)} · geometry"
    made = [_space(title, found), _context(title, found)]
    if found.labels.keys() - found.missing.keys():
        made.append(_clusters(title, found))
    return [*made, _cka(title, found)]


def _space(title: str, found: Findings) -> Table:
    heads = (
        "layer",
        "anisotropy",
        "standardised",
        "top dimensions\n(share)",
        "participation\nratio",
        "norm\n(sd)",
        "position\n%",
        "within types\n%",
    )
    rows = [
        TableRow.of(
            str(each.layer),
            cell(each.anisotropy),
            number(each.standardised_anisotropy),
            _dominant(each),
            number(each.participation_ratio, ".1f"),
            f"{each.norm_mean:.2f} ({number(each.norm_sd, '.2f').text})",
            _percent(each.position_share),
            _percent(each.position_share_within_types),
        )
        for each in found.layers
    ]
    return Table(title, heads, tuple(rows), notes=tuple(_notes(found)), repeated=1)


def _notes(found: Findings) -> Iterator[str]:
    yield (
        f"{found.words:,} test words in {found.sentences:,} sentences. Anisotropy: expected cosine "
        "of two random words, ± half a 95 % interval over "
        f"{found.resampled}; standardised: with each dimension standardised. Top dimensions: those "
        "that contribute most to it, with their share where it is above 0. Position: variance "
        "explained by the place in the sentence, adjusted for chance."
    )
    yield from _reasons("anisotropy", (each.anisotropy for each in found.layers))
    if found.in_several_windows:
        yield (
            f"{found.in_several_windows:,} sentences are longer than the model's window and are "
            "measured like the others."
        )
    if found.far_words:
        yield (
            f"{counted(found.far_words, 'word')} beyond place {PLACES} of a sentence: all count as "
            "of that place."
        )
    if zeros := {each.layer: each.zero_vectors for each in found.layers if each.zero_vectors}:
        counts = ", ".join(f"{n:,} at layer {layer}" for layer, n in zeros.items())
        yield f"Words whose vector is 0, with cosines of 0: {counts}."
    for name, why in found.missing.items():
        yield f"No clusters against {KINDS[name]}: {why}."


def _context(title: str, found: Findings) -> Table:
    heads = ["layer"]
    for name in SIMILARITIES.values():
        heads += [name, "expected", "difference"]
    rows = []
    for each in found.layers:
        cells = [Cell(str(each.layer))]
        for name in SIMILARITIES:
            similarity = each.similarity(name)
            cells += map(cell, (similarity.raw, similarity.baseline, similarity.adjusted))
        rows.append(TableRow.of(*cells))
    notes = [
        f"Self-similarity and explainable variance: means over {found.types:,} word types, ± half "
        "a 95 % interval over these; intra-sentence similarity: mean over sentences, interval over "
        f"{found.resampled}. Expected: anisotropy; as many random words, in sentences of the same "
        "lengths; as many random words for each type."
    ]
    for name, shown_as in SIMILARITIES.items():
        notes += _reasons(shown_as, (each.similarity(name).adjusted for each in found.layers))
    return Table(f"{title}: context", tuple(heads), tuple(rows), notes=tuple(notes), repeated=1)


def _clusters(title: str, found: Findings) -> Table:
    made = [name for name in found.labels if name not in found.missing]
    heads = ["layer"]
    for name in made:
        heads += [f"{KINDS[name]}\nNMI", f"{KINDS[name]}\nAMI"]
    rows = []
    for each in found.layers:
        both = [x for name in made for x in (each.clusters[name].nmi, each.clusters[name].ami)]
        rows.append(TableRow.of(str(each.layer), *map(cell, both)))
    notes = []
    for name in made:
        about = found.labels[name]
        drawn = f" of {about.available:,}" if about.available > about.items else ""
        lemmas = f" of {counted(about.lemmas, 'lemma')}" if about.lemmas else ""
        left_out = f"; left out: {about.left_out:,}" if about.left_out else ""
        notes.append(
            f"{KINDS[name].capitalize()}: {about.items:,}{drawn} items, {about.classes:,} "
            f"classes{lemmas}{left_out}."
        )
        notes += _reasons(KINDS[name], (each.clusters[name].ami for each in found.layers))
    notes.append(
        "k-means, as many clusters as classes; mean over several starts. AMI is adjusted for "
        "chance, which NMI of few items is not. ± half a 95 % interval over starts and "
        f"{found.resampled}, clusters being taken as they are; of senses, over lemmas."
    )
    return Table(f"{title}: clusters", tuple(heads), tuple(rows), notes=tuple(notes), repeated=1)


def _cka(title: str, found: Findings) -> Table:
    layers = [str(each.layer) for each in found.layers]
    rows = [
        TableRow.of(layer, *(number(x, ".2f") for x in values))
        for layer, values in zip(layers, found.cka, strict=True)
    ]
    notes = ["Linear CKA over test words: 1 for layers that are equal up to rotation and scale."]
    if is_biased(found.words, found.dimensions):
        notes.append(
            f"Too high: {found.words:,} words are fewer than {ENOUGH} times the "
            f"{found.dimensions:,} dimensions."
        )
    return Table(f"{title}: CKA", ("layer", *layers), tuple(rows), notes=tuple(notes), repeated=1)


def cell(estimate: Estimate) -> Cell:
    """A number with half its interval; why it has none is in a note below the table."""
    pair, text = estimate.interval, number(estimate.value).text
    half = "" if pair is None else shown((pair[1] - pair[0]) / 2, "")
    return Cell(text, half, value=estimate.value)


def number(value: float | None, form: str = "") -> Cell:
    """A plain number."""
    if value is None:
        return Cell(NOTHING)
    # Without the sign of −0.0001.
    return Cell(format(value, form) if form else shown(round(value, 3) + 0.0, ""), value=value)


def _percent(value: float | None) -> Cell:
    return number(None if value is None else 100 * value, ".1f")


def _dominant(found: LayerGeometry) -> Cell:
    names = ", ".join(str(each.dimension) for each in found.dominant)
    shares = [each.share for each in found.dominant if each.share is not None]
    if not shares:
        return Cell(names or NOTHING)
    return Cell(f"{names} ({100 * sum(shares):.0f} %)", value=sum(shares))


def _reasons(name: str, estimates: Iterable[Estimate]) -> Iterator[str]:
    """Why numbers or intervals are missing, each reason once."""
    for why in dict.fromkeys(each.missing for each in estimates):
        if why:
            yield f"{name[0].upper()}{name[1:]}: {why}."
