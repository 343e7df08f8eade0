"""What the Primer says about attention heads: section 5.1, in its order and in our words."""

from __future__ import annotations

from probes.boards.claims.claim import Claim, needs
from probes.boards.claims.heads import (
    COMPLETE,
    mostly_patterns,
    none_complete,
    one_above,
    some_above,
    to_special_tokens,
)

HEAD_CLAIMS = (
    Claim(
        "heads-mostly-patterns",
        "Most heads do not directly encode any linguistic information that is not trivial: fewer "
        "than half are heterogeneous",
        "5.1",
        "Kovaleva et al. 2019",
        "classes by a rule on mean masses, theirs by a network that was never published; single "
        "sentences, so without blocks, read by a model that was not fine-tuned",
        mostly_patterns,
    ),
    Claim(
        "special-tokens-attended",
        "Much attention goes to [CLS], [SEP] and punctuation",
        "5.1",
        "Clark et al. 2019",
        "[CLS] and [SEP], or whatever a model has for them, and words tagged PUNCT, where theirs "
        "are periods and commas; much is that most heads exceed uniform attention",
        to_special_tokens,
    ),
    Claim(
        "heads-specialise",
        "Some heads seem to specialise in certain types of syntactic relations",
        "5.1",
        "Htut et al. 2019; Clark et al. 2019",
        "UD relations; heads are chosen on dev and tested on test, theirs on one split",
        some_above("relation"),
    ),
    Claim(
        "object-heads",
        "There are heads that attend to objects more than a positional baseline does",
        "5.1",
        "Htut et al. 2019; Clark et al. 2019",
        "`obj` of UD, verbs and objects attending to each other in either direction",
        one_above("obj"),
    ),
    Claim(
        "no-head-has-trees",
        "No single head has the complete information on syntactic trees",
        "5.1",
        "Clark et al. 2019; Htut et al. 2019",
        f"complete is a UAS of {COMPLETE:g} or more, which is ours; theirs compare single heads "
        "with baselines",
        none_complete,
    ),
    Claim(
        "agreement-weak",
        "Attention weights are weak indicators of subject–verb agreement and of anaphora",
        "5.1",
        "Lin et al. 2019",
        "",
        needs("attention to words that compete with the subject or the antecedent"),
    ),
    Claim(
        "coreference-head",
        "One head resolves coreference as well as a system of rules does",
        "5.1",
        "Clark et al. 2019",
        "",
        needs("annotation of coreference"),
    ),
    Claim(
        "semantic-heads",
        "Attention of a few heads is aligned with core semantic relations",
        "5.1",
        "Kovaleva et al. 2019",
        "PropBank roles, theirs frame elements; above other places at the same distance, theirs "
        "above most other heads",
        some_above("role"),
    ),
    Claim(
        "semantic-heads-unused",
        "Heads that track semantic relations need not contribute to relevant tasks",
        "5.1",
        "Kovaleva et al. 2019",
        "",
        needs("scores of a task with single heads disabled"),
    ),
)
