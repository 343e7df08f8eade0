"""Claims of the literature about the geometry of word vectors, with their tests."""

from __future__ import annotations

from functools import partial

from probes.boards.claims.rules import Claim, Reads, greater

_cosine = partial(Reads, "geometry", "anisotropy")
_own = partial(Reads, "geometry", "self_similarity_adjusted")

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
)
