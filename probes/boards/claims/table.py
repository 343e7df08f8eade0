"""The claims of two papers about vectors, layers and heads, with their tests.

The Primer is "A Primer in BERTology" (Rogers et al. 2020, arXiv 2002.12327v1), which surveys other
studies. Kovaleva et al. 2019 is "Revealing the Dark Secrets of BERT".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

from probes.boards.claims.rules import ModelRows, Reads, greater, most_of, peak_in, somewhere
from probes.families.attention.heads import EVERY, NOT_PUNCTUATION
from probes.records.row import Row


@dataclass(frozen=True)
class Claim:
    """A statement, its source, the differences of our test from the study, and the test."""

    name: str
    statement: str
    source: str
    differs: str
    rule: partial[Any]


def _is_tested(model: ModelRows, row: Row) -> bool:
    """Whether a head was chosen for a single relation with enough words."""
    return row.p is not None and row.axes["feature"] not in (EVERY, NOT_PUNCTUATION)


def _is_core(model: ModelRows, row: Row) -> bool:
    """Whether the disabled head is the best for a core relation or role."""
    core = ("nsubj", "obj", "ARG0", "ARG1")
    best = model.read(_above(measure=("relation", "role"), feature=core))
    return (row.layer, row.axes["head"]) in {(each.layer, each.axes["head"]) for each in best}


_best = partial(Reads, "training_variance", "p_best", layers="all")
_expected = partial(Reads, "localisation", "expected_layer")
_mix = partial(Reads, "localisation", "kl")
_filled = partial(Reads, "cloze", "cloze_accuracy", "agreement")
_guessed = partial(_filled, baseline="majority")
_FAR = "1+ attractors"
_negation = partial(Reads, "completion", "sensitivity", threshold=0.0, phenomenon=...)
_PLAIN, _NEGATED = "NEG-136-SIMP, affirmative", "NEG-136-SIMP, negative"
_cosine = partial(Reads, "geometry", "anisotropy")
_own = partial(Reads, "geometry", "self_similarity_adjusted")
_trees = partial(Reads, "structure", layers="all", rank="@rank")
_special = partial(Reads, "attention", "special")
_uniform = _special(layers="last", baseline="uniform")
_head = partial(Reads, "attention", chosen=..., head=..., direction=...)
_above = partial(_head, "above_baseline")
_drop = partial(Reads, "ablation", "ablation_drop", at="@n_layers", predicts=...)
_changed = partial(Reads, "attention_change", "divergence", base=...)

CLAIMS = (
    Claim(
        "senses-cluster",
        "Vectors form clusters that correspond to word senses",
        "Primer 3; Wiedemann et al. 2019",
        "k-means on vectors of predicates and PropBank senses, above chance; the study classifies",
        partial(greater, (Reads("geometry", "ami", layers="last", labels="senses"), 0.0)),
    ),
    Claim(
        "context-specific-higher",
        "Later layers produce more context-specific vectors",
        "Primer 3; Ethayarajh 2019",
        "self-similarity of words in at least five sentences, minus the anisotropy over all words",
        partial(greater, (_own(layers="lower"), _own(layers="higher"))),
    ),
    Claim(
        "narrow-cone",
        "Two random words have a higher cosine than with uniform directions",
        "Primer 3; Ethayarajh 2019",
        "above 0; the source says much higher, without a limit",
        partial(greater, (_cosine(layers="above 0"), 0.0)),
    ),
    Claim(
        "narrower-higher",
        "Random words have a higher cosine in higher layers than in lower ones",
        "Primer 3; Ethayarajh 2019",
        "the borders of lower and higher layers are ours",
        partial(greater, (_cosine(layers="higher"), _cosine(layers="lower"))),
    ),
    Claim(
        "trees-recovered",
        "Linear maps of vectors recover much of dependency trees",
        "Primer 4.1; Hewitt & Manning 2019",
        "UD trees, from the middle layers; much means more than by linking neighbours",
        partial(greater, (_trees("uuas", layers="middle"), Reads("structure", "chain_uuas"))),
    ),
    Claim(
        "agreement-known",
        "The model fills in verbs that agree, even with nouns of the other number in between",
        "Primer 4.1; Goldberg 2019",
        "verbs of real text, compared with the commoner number; the study has no baseline",
        partial(greater, (_filled(), _guessed()), (_filled(group=_FAR), _guessed(group=_FAR))),
    ),
    Claim(
        "negation-ignored",
        "Negation is not understood: the same word is likelier with *not* and without it",
        "Primer 4.1; Ettinger 2020",
        "more than half of NEG-136-SIMP right without *not*, fewer than half with it",
        partial(greater, (_negation(paradigm=_PLAIN), 0.5), (0.5, _negation(paradigm=_NEGATED))),
    ),
    Claim(
        "decodable-not-used",
        "The model need not rely on the syntax that it encodes",
        "Primer 4.1; Ettinger 2020",
        "at some layer a probe knows more hidden verbs than the model; the study changes inputs",
        partial(somewhere, "above 0", Reads("cloze", "decodable_less_used", "agreement")),
    ),
    Claim(
        "special-tokens-attended",
        "Most heads attend to [CLS], [SEP] and punctuation: the vertical pattern",
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
        "semantic-heads",
        "Attention of a few heads is aligned with core semantic relations",
        "Primer 5.1; Kovaleva et al. 2019, 4.2",
        "PropBank roles, above other places at the same distance; the study uses frame elements",
        partial(somewhere, "above 0", _above(measure="role", feature=..., keep=_is_tested)),
    ),
    Claim(
        "core-heads-unused",
        "Heads that track core relations need not contribute to tasks",
        "Primer 5.1; Kovaleva et al. 2019, 4.6",
        "disabling the heads of nsubj, obj, ARG0, ARG1 costs frozen probes under a point (ours)",
        partial(greater, (0.01, _drop(disabled="head", head=..., keep=_is_core))),
    ),
    Claim(
        "some-heads-hurt",
        "Some heads hurt: disabling them improves performance",
        "Primer 7.1; Kovaleva et al. 2019, 4.6",
        "frozen probes of the last layer, corrected over heads; the study fine-tunes, untested",
        partial(somewhere, "below 0", _drop(disabled="head", head=...)),
    ),
    Claim(
        "word-order-low",
        "The lower layers have the most information on linear word order",
        "Primer 5.2; Lin et al. 2019",
        "regression of places in real text; the study classifies in generated sentences",
        partial(peak_in, (_best("position"), "lower")),
    ),
    Claim(
        "syntax-middle",
        "Tree depth is reconstructed best from the middle layers",
        "Primer 5.2; Hewitt & Manning 2019",
        "regression of a word's depth in UD trees; the study fits norms of projected vectors",
        partial(peak_in, (_best("depth"), "middle")),
    ),
    Claim(
        "trees-middle",
        "Structural probes recover trees and their depths best from the middle layers",
        "Primer 5.2; Hewitt & Manning 2019",
        "UD trees, at one rank",
        partial(peak_in, (_trees("uuas_p_best"), "middle"), (_trees("nspr_p_best"), "middle")),
    ),
    Claim(
        "agreement-late-middle",
        "Subject–verb agreement is best around layers 8–9 of 12",
        "Primer 5.2; Goldberg 2019",
        "a classifier on the vector at the hidden verb; the study uses the model's own answer",
        partial(peak_in, (_best("agreement"), "late middle")),
    ),
    Claim(
        "pos-chunks-middle",
        "POS tagging and chunking are performed best at the middle layers",
        "Primer 5.2; Liu et al. 2019a",
        "UD tags; the borders of the middle follow Hewitt & Manning",
        partial(peak_in, (_best("pos"), "middle"), (_best("chunking"), "middle")),
    ),
    Claim(
        "chunks-before-parsing",
        "Lower layers are more useful for chunking, middle ones for parsing",
        "Primer 5.2; Jawahar et al. 2019",
        "best layers of probes of chunk tags and tree depth; the study clusters vectors of chunks",
        partial(peak_in, (_best("chunking"), "lower"), (_best("depth"), "middle")),
    ),
    Claim(
        "pipeline-order",
        "Layers follow the classical pipeline: POS tagging, dependency parsing, semantic roles",
        "Primer 5.2; Tenney et al. 2019a",
        "expected layers of probes of this family; the study uses MLPs that attend to spans",
        partial(greater, *combinations(map(_expected, ("srl", "deprel", "pos")), 2)),
    ),
    Claim(
        "semantics-spread",
        "Syntax can be localised in a few layers, semantics is spread across the entire model",
        "Primer 5.2; Tenney et al. 2019a",
        "divergence of mix weights from uniform ones, lower for srl than for pos and deprel",
        partial(greater, (_mix("pos"), _mix("srl")), (_mix("deprel"), _mix("srl"))),
    ),
    Claim(
        "fine-tuning-changes-final",
        "Fine-tuning changes the last two layers most",
        "Primer 5.2; Kovaleva et al. 2019, 4.3",
        "divergence of attention, the study uses cosines; the first model of the run is the base",
        partial(greater, (_changed(layers="last two"), _changed(layers="below the last two"))),
    ),
)
