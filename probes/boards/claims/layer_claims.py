"""What the Primer says about layers.

All statements of section 5.2 about what is found where, in its order and in our words, and that of
section 7.1 about final layers.
"""

from __future__ import annotations

from probes.boards.claims.bands import higher, late_middle, lower, middle
from probes.boards.claims.claim import Claim, needs
from probes.boards.claims.fine_tuning import final_layers_change_most
from probes.boards.claims.layers import falls_there, middle_transfers, peaks_before, peaks_in, rises
from probes.boards.claims.mixes import final_layers_lower, pipeline, semantics_spread

LAYER_CLAIMS = (
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
        "attention-middle",
        "GPT-2 attends most to dependency relations in the middle layers",
        "5.2, footnote 3",
        "Vig & Belinkov 2019",
        "",
        needs("the share of attention that goes along dependency relations"),
    ),
    Claim(
        "pipeline-order",
        "Layers follow the classical pipeline: POS tagging, dependency parsing, semantic roles",
        "5.2",
        "Tenney et al. 2019a",
        "probes of this family on means of words, theirs MLPs that attend to spans; layers are "
        "standardised before they are mixed",
        pipeline,
    ),
    Claim(
        "chunks-before-parsing",
        "Lower layers are more useful for chunking, middle ones for parsing",
        "5.2",
        "Jawahar et al. 2019",
        "where probes of chunk tags and of tree depth may be best; for chunks, the source clusters "
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
        "final-task-specific",
        "The final layers are the most specific to the task of pre-training",
        "5.2",
        "Liu et al. 2019a",
        "",
        needs("the score of the pre-training task at every layer"),
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
        "lower-layers-restored",
        "A fine-tuned model loses little if its lower layers are restored to what they were",
        "5.2",
        "Hao et al. 2019",
        "",
        needs("a fine-tuned model with restored weights"),
    ),
    Claim(
        "semantics-spread",
        "Syntax can be localised in a few layers, semantics is spread across the entire model",
        "5.2",
        "Tenney et al. 2019a",
        "weights and gains as in the source, gains by a measure of ours; semantic roles alone, "
        "whose gains in the source are less spread than those of relations and proto-roles",
        semantics_spread,
    ),
    Claim(
        "large-more-spread",
        "Gains of BERT-large have the pattern of BERT-base, only more spread out",
        "5.2",
        "Tenney et al. 2019a",
        "",
        needs("two models of one kind, and a report is on one"),
    ),
    Claim(
        "surface-syntax-semantics",
        "Surface features are in the lower, syntactic ones in the middle, semantic ones in the "
        "higher layers",
        "5.2",
        "Jawahar et al. 2019",
        "length and tree-depth for two of their tasks, srl for the semantic ones, which are not "
        "here. The Primer doubts these: one was best at the last layer, three around the middle",
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
