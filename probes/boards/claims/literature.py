"""What "A Primer in BERTology" says about vectors, attention heads and layers.

Rogers et al. 2020, arXiv 2002.12327v1, in our words and in the order of its sections: 3, 4, 5.1,
5.2 and 7.1; and of other studies a sentence of the abstract of Ethayarajh 2019 that it leaves out,
two on what models say themselves, and three on heads that are disabled. Statements that nothing
here can test are listed in docs/method.md.
"""

from __future__ import annotations

from probes.boards.claims.answers import (
    acceptable_is_likelier,
    decodable_not_used,
    fills_in,
    negation_is_ignored,
    readable_later,
    roles_are_told,
    scope_is_harder,
)
from probes.boards.claims.bands import higher, late_middle, lower, middle
from probes.boards.claims.claim import Claim
from probes.boards.claims.disabled_heads import (
    POINT,
    core_heads_not_essential,
    few_do_the_work,
    many_can_be_pruned,
    some_heads_hurt,
)
from probes.boards.claims.head_predicates import (
    COMPLETE,
    mostly_patterns,
    none_complete,
    one_above,
    some_above,
    to_special_tokens,
)
from probes.boards.claims.intervals import (
    clusters_at_last_layer,
    final_layers_change_most,
    greater_above,
    less_above,
    lies_above,
    lies_below,
    trees_above_chain,
)
from probes.boards.claims.layers import (
    falls_there,
    middle_transfers,
    peaks_before,
    peaks_in,
    rises,
    trees_peak_in,
)
from probes.boards.claims.mixes import final_layers_lower, in_order, more_spread

FAR = 0.1
"""An expected cosine that counts as far from isotropic: below that of any layer of BERT-base in
Ethayarajh 2019, as far as known."""

CLAIMS = (
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
        "context-specific-higher",
        "Later layers produce more context-specific vectors",
        "3",
        "Ethayarajh 2019",
        "self-similarity of words in at least five sentences, minus the anisotropy over all words, "
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
        "self-similarity, minus that of random words; a mean over words in at least five "
        "sentences, which depends on how often they occur",
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
        "agreement-filled-in",
        "The model itself takes the agreement of subject and verb into account when it fills in a "
        "hidden verb",
        "4.1",
        "Goldberg 2019",
        "verbs of real text that have a form of the other number in train, against the commoner "
        "number; theirs are present-tense verbs of Wikipedia, against no baseline",
        fills_in(),
    ),
    Claim(
        "agreement-across-attractors",
        "It does so even if nouns of the other number stand between subject and verb",
        "4.1",
        "Goldberg 2019",
        "at least one noun of the other number, as by Linzen et al. 2016; theirs by how many, and "
        "on made sentences too",
        fills_in("1+ attractors"),
    ),
    Claim(
        "npi-scope-harder",
        "Words that allow negative polarity items are told better than violations of their scope",
        "4.1",
        "Warstadt et al. 2019",
        "minimal pairs of BLiMP with *only* and with *not*, by likelihood; theirs are classifiers "
        "and other pairs",
        scope_is_harder,
    ),
    Claim(
        "negation-ignored",
        "Negation is not understood: the same word stays likelier with *not* as without it",
        "4.1",
        "Ettinger 2020",
        "an exact test of each half of NEG-136-SIMP; theirs counts items",
        negation_is_ignored,
    ),
    Claim(
        "decodable-not-used",
        "That syntax is encoded does not mean that the model relies on it",
        "4.1",
        "Ettinger 2020",
        "the number of a hidden verb: at some layer a probe, which learns from labels, is right "
        "more often than the model that fills the verb in; theirs changes the input",
        decodable_not_used,
    ),
    Claim(
        "roles-known",
        "There is some knowledge of semantic roles",
        "4.2",
        "Ettinger 2020",
        "ROLE-88, the better word above that of the reversed roles in more than half; theirs "
        "reports shares without a test",
        roles_are_told,
    ),
    Claim(
        "acceptable-likelier",
        "Language models find the acceptable sentence of a minimal pair likelier",
        "",
        "Warstadt et al. 2020; Salazar et al. 2020",
        "within-word l2r for masked models (Kauf & Ivanova 2023), theirs pseudo-log-likelihood; "
        "more than half of all pairs, which says less than the studies do",
        acceptable_is_likelier,
    ),
    Claim(
        "readable-later",
        "What a probe decodes at a layer becomes readable through the model's own head only later",
        "",
        "nostalgebraist 2020",
        "the number of a hidden verb; theirs are next words of GPT-2, without a probe beside them. "
        "The head has learned to read the last layer alone",
        readable_later,
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
        "semantic-heads",
        "Attention of a few heads is aligned with core semantic relations",
        "5.1",
        "Kovaleva et al. 2019",
        "PropBank roles, theirs frame elements; above other places at the same distance, theirs "
        "above most other heads",
        some_above("role"),
    ),
    Claim(
        "core-heads-unused",
        "Heads that track core relations need not contribute to tasks",
        "5.1",
        "Kovaleva et al. 2019, section 4.6",
        "heads chosen for nsubj, obj, ARG0 and ARG1 where there are any, theirs two of frame "
        "elements; frozen probes, theirs GLUE; a contribution is a point more than that of the "
        "median head, which is ours",
        core_heads_not_essential,
    ),
    Claim(
        "some-heads-hurt",
        "Some heads hurt: disabling them improves performance",
        "",
        "Kovaleva et al. 2019, section 4.6 and figure 8",
        "frozen probes of the last layer and a test corrected over heads; theirs are fine-tuned "
        "models on GLUE, all of which improve, and no tests",
        some_heads_hurt,
    ),
    Claim(
        "many-heads-prunable",
        "Of BERT's heads, 40 % can be pruned by importance without a noticeable drop",
        "",
        "Michel et al. 2019, section 4",
        f"frozen probes, theirs BERT fine-tuned to MNLI; noticeable is a drop of {POINT:g}, which "
        "is ours",
        many_can_be_pruned,
    ),
    Claim(
        "few-heads-work",
        "A few heads do most of the work",
        "",
        "Voita et al. 2019, abstract",
        "zeroing four fifths by importance costs less than half of what zeroing all does; theirs "
        "are learned gates of a translation model that is trained on, 38 of 48 heads for .15 BLEU",
        few_do_the_work,
    ),
    Claim(
        "word-order-low",
        "The lower layers have the most information on linear word order",
        "5.2",
        "Lin et al. 2019",
        "indices in real text by regression, theirs as classes in generated sentences; lower is up "
        "to layer 4 of 12",
        peaks_in({"position": lower}),
    ),
    Claim(
        "word-order-falls",
        "Knowledge of linear word order falls around layer 4 of BERT-base",
        "5.2",
        "Lin et al. 2019",
        "from layer 3 to 5 of 12 or the same depth, more steeply than before and no less steeply "
        "than afterwards, by regression on real text",
        falls_there("position"),
    ),
    Claim(
        "hierarchy-rises",
        "As word order falls, main verb and subject come to be known better",
        "5.2",
        "Lin et al. 2019",
        "the same step on real text: the main verb among verbs, where theirs is an auxiliary, and "
        "the subject among nouns",
        rises("main-verb", "subject-noun"),
    ),
    Claim(
        "syntax-middle",
        "Tree depth is reconstructed best from the middle layers, 6–9 of 12 and 14–19 of 24, where "
        "syntax is most prominent",
        "5.2",
        "Hewitt & Manning 2019",
        "regression of a word's depth in UD trees; theirs fits a linear map after which norms of "
        "vectors are depths, to the Penn Treebank",
        peaks_in({"depth": middle}),
    ),
    Claim(
        "agreement-late-middle",
        "Subject–verb agreement is best around layers 8–9",
        "5.2",
        "Goldberg 2019",
        "a classifier on the vector at the hidden verb; the source is a cloze study (4.1), of the "
        "words that the model itself prefers, without any classifier",
        peaks_in({"agreement": late_middle}),
    ),
    Claim(
        "syntactic-probing-middle",
        "Performance on syntactic probing tasks peaks around the middle",
        "5.2",
        "Jawahar et al. 2019",
        "one of their tasks, TreeDepth, with dependency trees; the borders of the middle are those "
        "of Hewitt & Manning",
        peaks_in({"tree-depth": middle}),
    ),
    Claim(
        "middle-transfers-best",
        "The middle layers perform best overall and are the most transferable across tasks",
        "5.2",
        "Liu et al. 2019a",
        "mean ranks over whichever tasks were run, not theirs; the borders of the middle are those "
        "of Hewitt & Manning",
        middle_transfers,
    ),
    Claim(
        "pipeline-order",
        "Layers follow the classical pipeline: POS tagging, dependency parsing, semantic roles",
        "5.2",
        "Tenney et al. 2019a",
        "probes of this family on means of words, theirs MLPs that attend to spans; layers are "
        "standardised before they are mixed",
        in_order("pos", "deprel", "srl"),
    ),
    Claim(
        "coreference-after-parsing",
        "Layers follow the classical pipeline: POS tagging, dependency parsing, coreference",
        "5.2",
        "Tenney et al. 2019a",
        "as for pipeline-order; candidates are mentions of the text, and texts are windows of a "
        "few sentences",
        in_order("pos", "deprel", "coreference"),
    ),
    Claim(
        "chunks-before-parsing",
        "Lower layers are more useful for chunking, middle ones for parsing",
        "5.2",
        "Jawahar et al. 2019",
        "where probes of chunk tags and of tree depth are best; for chunks, the source clusters "
        "vectors of spans, without any probe",
        peaks_before("chunking", "depth"),
    ),
    Claim(
        "pos-middle",
        "POS tagging is performed best at the middle layers",
        "5.2",
        "Liu et al. 2019a",
        "UD tags; the borders of the middle are those of Hewitt & Manning",
        peaks_in({"pos": middle}),
    ),
    Claim(
        "chunks-middle",
        "Chunking is performed best at the middle layers, against Jawahar et al.",
        "5.2",
        "Liu et al. 2019a",
        "the borders of the middle are those of Hewitt & Manning",
        peaks_in({"chunking": middle}),
    ),
    Claim(
        "fine-tuning-changes-final",
        "Fine-tuning changes the final layers most",
        "5.2",
        "Kovaleva et al. 2019",
        "attention alone, by divergence, where theirs is the cosine; the first model of the run is "
        "taken for the one before fine-tuning",
        final_layers_change_most,
    ),
    Claim(
        "semantics-spread",
        "Syntax can be localised in a few layers, semantics is spread across the entire model",
        "5.2",
        "Tenney et al. 2019a",
        "weights and gains as in the source, gains by a measure of ours; semantic roles, whose "
        "gains in the source are less spread than those of relations and proto-roles",
        more_spread("srl"),
    ),
    Claim(
        "proto-roles-spread",
        "Syntax can be localised in a few layers, proto-roles are spread across the entire model",
        "5.2",
        "Tenney et al. 2019a",
        "as for semantics-spread; the fourteen properties of UDS, of which the source has others",
        more_spread("proto-roles"),
    ),
    Claim(
        "coreference-spread",
        "Syntax can be localised in a few layers, coreference is spread across the entire model",
        "5.2",
        "Tenney et al. 2019a",
        "as for semantics-spread and coreference-after-parsing",
        more_spread("coreference"),
    ),
    Claim(
        "surface-syntax-semantics",
        "Surface features are in the lower, syntactic ones in the middle, semantic ones in the "
        "higher layers",
        "5.2",
        "Jawahar et al. 2019",
        "length and tree-depth for two of their tasks, srl for the semantic ones. The Primer "
        "doubts these: one was best at the last layer, three around the middle",
        peaks_in({"length": lower, "tree-depth": middle, "srl": higher}),
    ),
    Claim(
        "final-layers-lower",
        "In most tasks some layers, typically final ones, lower cumulative scores",
        "7.1",
        "Tenney et al. 2019a",
        "only layers above the middle; the count of the source is 5 of 8 tasks",
        final_layers_lower,
    ),
)
