"""Claims of the literature about attention heads, with their tests."""

from __future__ import annotations

from functools import partial

from probes.boards.claims.rules import Claim, ModelRows, Reads, greater, most_of, somewhere
from probes.families.attention.heads import EVERY, NOT_PUNCTUATION
from probes.records.row import Row


def _is_tested(model: ModelRows, row: Row) -> bool:
    """Whether a head was chosen for a single relation with enough words."""
    return row.p is not None and row.axes["feature"] not in (EVERY, NOT_PUNCTUATION)


_special = partial(Reads, "attention", "special", among_all=True)
_uniform = _special(layers="last", baseline="uniform")
_head = partial(Reads, "attention", among_all=True, chosen=..., head=..., direction=...)
_above = partial(_head, "above_baseline")
_changed = partial(Reads, "attention_change", "map_divergence", base=...)

CLAIMS = (
    Claim(
        "special-tokens-attended",
        "Most heads attend to [CLS], [SEP] and punctuation more than uniformly",
        "Primer 5.1; Kovaleva et al. 2019, 4.1; Clark et al. 2019",
        "more than uniform attention; single sentences without fine-tuning, so no blocks",
        partial(greater, (_special(head=...), _uniform), needed=most_of),
    ),
    Claim(
        "heads-specialise",
        "Some heads specialise in certain types of syntactic relations",
        "Primer 5.1; Htut et al. 2019; Clark et al. 2019",
        "UD relations, above the best fixed offset; heads are chosen on dev",
        partial(somewhere, "above 0", _above(measure="relation", feature=..., keep=_is_tested)),
    ),
    Claim(
        "no-head-has-trees",
        "No single head has the complete information on syntactic trees",
        "Primer 5.1; Clark et al. 2019; Htut et al. 2019",
        "complete means a UAS of .9, like a good parser; the limit is ours",
        partial(greater, (0.9, _head("relation", feature=NOT_PUNCTUATION)), (0.9, _head("uas"))),
    ),
    Claim(
        "fine-tuning-changes-final",
        "Fine-tuning changes the last two layers most",
        "Primer 5.2; Kovaleva et al. 2019, 4.3",
        "divergence of attention, the study uses cosines; the first model of the run is the base",
        partial(greater, (_changed(layers="last two"), _changed(layers="below the last two"))),
    ),
    Claim(
        "heads-alike",
        "Heads of a layer are more alike than heads of different layers",
        "Primer 7.1; Clark et al. 2019, 6",
        "mean distances in most layers; the study looks at a map of all heads",
        partial(
            greater,
            (Reads("head_similarity", "head_distance_difference", among_all=True), 0.0),
            needed=most_of,
        ),
    ),
)
