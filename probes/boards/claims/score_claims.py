"""The claims of two papers about vectors, layers and heads, with their tests.

The Primer is "A Primer in BERTology" (Rogers et al. 2020, arXiv 2002.12327v1), which surveys other
studies. Kovaleva et al. 2019 is "Revealing the Dark Secrets of BERT". Claims that read only scores
and their evidence are here; those that read a family's measurements are in its `claims.py`.
"""

from __future__ import annotations

from functools import cache, partial
from itertools import chain, combinations

from probes.boards.claims.rules import Claim, Reads, greater, peak_in
from probes.measurements.catalogue import family_modules


@cache
def all_claims() -> tuple[Claim, ...]:
    """All claims, by section of their source."""
    claims = chain(CLAIMS, *(module.CLAIMS for module in family_modules("claims")))
    return tuple(sorted(claims, key=lambda claim: claim.source.partition(";")[0]))


_best = partial(Reads, "training_variance", "p_best", layers="all")
_expected = partial(Reads, "localisation", "expected_layer")
_mix = partial(Reads, "localisation", "kl")

CLAIMS = (
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
)
"""Claims about scores and the evidence behind them."""
