"""What the Primer and its sources say about how vectors lie in space, and about trees in them.

All statements of section 3, one of the abstract of Ethayarajh 2019 that the Primer leaves out, and
what stands behind statements on trees (4.1, 5.2) and chunks (5.2).
"""

from __future__ import annotations

from probes.boards.claims.bands import middle
from probes.boards.claims.claim import Claim, needs
from probes.boards.claims.intervals import (
    clusters_at_last_layer,
    greater_above,
    less_above,
    lies_above,
    lies_below,
)
from probes.boards.claims.tree_predicates import trees_above_chain, trees_peak_in

FAR = 0.1
"""An expected cosine that counts as far from isotropic: below that of any layer of BERT-base in
Ethayarajh 2019, as far as known."""

VECTOR_CLAIMS = (
    Claim(
        "senses-cluster",
        "Vectors form distinct clusters that correspond to word senses",
        "3",
        "Wiedemann et al. 2019",
        "k-means on the last layer's vectors of predicates against PropBank senses, better than "
        "chance; theirs classifies by the nearest neighbours, among senses of dictionaries",
        clusters_at_last_layer,
    ),
    Claim(
        "position-matters",
        "Vectors of a word depend on the position of its sentence",
        "3",
        "Mickus et al. 2019",
        "",
        needs("inputs of two sentences"),
    ),
    Claim(
        "context-specific-higher",
        "Later layers produce more context-specific vectors",
        "3",
        "Ethayarajh 2019",
        "self-similarity of words in at least five sentences, less the anisotropy over all words, "
        "where theirs is of samples; the borders of lower and higher layers are not theirs",
        less_above("self_similarity_adjusted"),
    ),
    Claim(
        "narrow-cone",
        "Vectors occupy a narrow cone: two random words have a much higher cosine than if "
        "directions were uniform",
        "3",
        "Ethayarajh 2019",
        f"words of all sentences and over all pairs, theirs a sample; much is above {FAR:g}",
        lies_above("anisotropy", FAR),
    ),
    Claim(
        "narrower-higher",
        "The cone is narrower in higher layers than in lower ones",
        "3",
        "Ethayarajh 2019",
        "the borders of lower and higher layers are not theirs",
        greater_above("anisotropy"),
    ),
    Claim(
        "static-explains-little",
        "A static vector explains less than 5 % of the variance of a word's vectors",
        "",
        "Ethayarajh 2019, abstract",
        "variance about the mean, since of vectors that are not centred it would repeat "
        "self-similarity, less that of random words; a mean over words in at least five sentences, "
        "which depends on how often they occur",
        lies_below("maximum_explainable_variance_adjusted", 0.05),
    ),
    Claim(
        "trees-recovered",
        "Linear maps of vectors recover much of dependency trees",
        "4.1",
        "Hewitt & Manning 2019",
        "UD trees, theirs Stanford Dependencies of the Penn Treebank; much is more than "
        "neighbours, which says less than the study does",
        trees_above_chain,
    ),
    Claim(
        "trees-middle",
        "Structural probes recover trees and their depths best from the middle layers",
        "5.2",
        "Hewitt & Manning 2019",
        "UD trees, at one rank",
        trees_peak_in(middle, ("uuas", "nspr")),
    ),
    Claim(
        "chunk-clusters-fade",
        "Vectors of chunks form clusters by type in lower layers, which fade in higher ones",
        "5.2",
        "Jawahar et al. 2019",
        "normalised mutual information adjusted for chance; the borders of lower and higher layers "
        "are not theirs, nor is the corpus",
        less_above("ami", labels="chunks"),
    ),
)
