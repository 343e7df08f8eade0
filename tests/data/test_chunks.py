"""Base chunks: thirty sentences chunked by hand from the rules in docs/corpora.md.

The sentences are made up and bracketed as in the English Web Treebank. The tags were written
down from the rules before the program saw them. Each block is what the sentence shows, its
tree and its tags.
"""

from __future__ import annotations

import re

import pytest

from probes.data.chunk_schemes import WordError, chunks_of, require_bio
from probes.data.chunks import Tree, chunk

BY_HAND = r"""
a noun chunk ends at its head
(S (NP (NP (DT The) (JJ old) (NN mayor)) (PP (IN of) (NP (NNP Bristol)))) (VP (VBD resigned)
(NP (NN yesterday))) (. .))
B-NP I-NP I-NP B-PP B-NP B-VP B-NP O

a subjectless infinitive joins its verb; ADJP and ADVP in front of the head
(S (NP (PRP She)) (VP (VBZ wants) (S (VP (TO to) (VP (VB buy) (NP (DT a) (ADJP (ADVP
(RB very)) (JJ small)) (NN boat)))))) (. .))
B-NP B-VP I-VP I-VP B-NP I-NP I-NP I-NP O

a possessive opens the next noun chunk; an adverb of the clause stays outside the VP
(S (NP (NP (PRP$ My) (NN sister) (POS 's)) (JJ big) (NN dog)) (ADVP (RB never)) (VP
(VBZ barks)) (. .))
B-NP I-NP B-NP I-NP I-NP B-ADVP B-VP O

modals, negation, auxiliaries and adverbs between them are one verb chunk
(S (NP (PRP They)) (VP (MD could) (RB not) (VP (VB have) (VP (VBN been) (ADVP (RB really)) (VP
(VBG waiting) (PP (IN for) (NP (PRP us))))))) (. .))
B-NP B-VP I-VP I-VP I-VP I-VP I-VP B-PP B-NP O

an inverted auxiliary is outside
(SQ (VBD Did) (NP (PRP you)) (VP (VB see) (NP (DT the) (NN film))) (. ?))
O B-NP B-VP B-NP I-NP O

a preposition of two words; a particle
(S (PP (IN Because) (IN of) (NP (DT the) (NN rain))) (, ,) (NP (PRP we)) (VP (VBD took) (PRT
(RP off)) (ADVP (RB early))) (. .))
B-PP I-PP B-NP I-NP O B-NP B-VP B-PRT B-ADVP O

a complementiser; such as; a predicative adjective
(S (NP (PRP He)) (VP (VBD said) (SBAR (IN that) (S (NP (NP (NN fruit)) (PP (JJ such) (IN as)
(NP (NNS pears)))) (VP (VBZ is) (ADJP (JJ cheap)) (PP (IN in) (NP (NNP Spain))))))) (. .))
B-NP B-VP B-SBAR B-NP B-PP I-PP B-NP B-VP B-ADJP B-PP B-NP O

an object keeps the infinitive apart
(S (NP (PRP We)) (VP (VBD told) (NP (PRP him)) (S (VP (TO to) (VP (VB leave))))) (. .))
B-NP B-VP B-NP B-VP I-VP O

negation after the last verb is outside
(S (NP (PRP I)) (VP (VBP am) (RB not) (ADJP (JJ sure))) (. .))
B-NP B-VP O B-ADJP O

interjections; a measure in front of an adjective
(S (INTJ (UH Oh)) (, ,) (INTJ (UH well)) (, ,) (NP (PRP it)) (VP (VBZ is) (ADJP (NP (CD 61)
(NNS years)) (JJ old))) (. !))
B-INTJ O B-INTJ O B-NP B-VP B-NP I-NP B-ADJP O

a hyphen ties a phrase into a compound; a quantifier phrase
(S (NP (DT A) (ADJP (NP (NNP New) (NNP York)) (HYPH -) (VBN based)) (NN firm)) (VP (VBD paid)
(NP (QP (JJR more) (IN than) ($ $) (CD 5) (CD million)))) (. .))
B-NP I-NP I-NP I-NP I-NP I-NP B-VP B-NP I-NP I-NP I-NP I-NP O

coordinated verbs are one chunk, coordinated clauses are not
(S (S (NP (NNP Anna)) (VP (VBD washed) (CC and) (VBD dried) (NP (DT the) (NNS cups)))) (, ,)
(CC and) (S (NP (NNP Ben)) (VP (VBD slept))) (. .))
B-NP B-VP I-VP I-VP B-NP I-NP O O B-NP B-VP O

coordinated verb phrases; an adverb inside the second
(S (NP (PRP He)) (VP (VP (VBZ cooks)) (CC and) (VP (ADVP (RB then)) (VBZ washes) (PRT
(RP up)))) (. .))
B-NP B-VP O B-VP I-VP B-PRT O

question words and relative pronouns are noun chunks
(SBARQ (WHNP (WP What)) (SQ (VBD did) (NP (NP (DT the) (NNS people)) (SBAR (WHNP (WP who)) (S
(VP (VBD left) (ADVP (RB early)))))) (VP (VB say))) (. ?))
B-NP O B-NP I-NP B-NP B-VP B-ADVP B-VP O

a question adverb; an imperative
(S (SBAR (WHADVP (WRB When)) (S (NP (PRP it)) (VP (VBZ stops)))) (, ,) (VP (VB call) (NP
(PRP me)) (PP (IN at) (NP (CD 5) (NN pm)))) (. .))
B-ADVP B-NP B-VP O B-VP B-NP B-PP B-NP I-NP O

coordination inside a noun chunk; as well as
(S (NP (NP (DT Both) (NNS cats) (CC and) (NNS dogs)) (, ,) (CONJP (RB as) (RB well) (IN as))
(NP (CD two) (NNS mice)) (, ,)) (VP (VBP live) (ADVP (RB there))) (. .))
B-NP I-NP I-NP I-NP O B-CONJP I-CONJP I-CONJP B-NP I-NP O B-VP B-ADVP O

a comma in front of the head is inside; a subjectless gerund joins its verb
(S (NP (DT The) (JJ tall) (, ,) (JJ dark) (NN stranger)) (VP (VBD kept) (S (VP (VBG smiling)
(PP (IN at) (NP (PRP us)))))) (. .))
B-NP I-NP I-NP I-NP I-NP B-VP I-VP B-PP B-NP O

a list marker
(S (LST (LS 1) (-RRB- -RRB-)) (VP (VB Turn) (NP (PRP it)) (PRT (RP off))) (. .))
B-LST O B-VP B-NP B-PRT O

ago; negation in front of to
(S (ADVP (NP (CD Three) (NNS years)) (RB ago)) (NP (PRP I)) (VP (VBD decided) (S (RB not) (VP
(TO to) (VP (VB smoke))))) (. .))
B-NP I-NP B-ADVP B-NP B-VP O B-VP I-VP O

in order to
(S (NP (PRP He)) (VP (VBD paused) (SBAR (IN in) (NN order) (S (VP (TO to) (VP
(VB breathe)))))) (. .))
B-NP B-VP B-SBAR O B-VP I-VP O

an adjective phrase after a possessive keeps its brackets; out of
(S (NP (NP (DT The) (NN manager) (POS 's)) (ADJP (RBS most) (JJ loyal)) (NN friend)) (VP
(VBZ is) (PP (IN out) (PP (IN of) (NP (NN town))))) (. .))
B-NP I-NP B-NP B-ADJP I-ADJP B-NP B-VP B-PP B-PP B-NP O

a possessive with nothing possessed
(S (NP (DT That) (NN house)) (VP (VBZ is) (NP (NNP Maria) (POS 's))) (. .))
B-NP I-NP B-VP B-NP B-NP O

hyphens; NML
(NP (NP (NNS Thanks)) (PP (IN for) (NP (NP (PRP$ your) (NML (NN e) (HYPH -) (NN mail))) (PP
(IN about) (NP (DT the) (ADJP (ADVP (RB up)) (HYPH -) (PP (IN to) (HYPH -) (NP (NN date))))
(NN list))))) (. !))
B-NP B-PP B-NP I-NP I-NP I-NP B-PP B-NP I-NP I-NP I-NP I-NP I-NP I-NP O

a complementiser of two words; an adverb inside a noun chunk
(S (SBAR (RB Even) (IN though) (S (NP (PRP it)) (VP (VBD rained)))) (, ,) (NP (RB hardly)
(NN anyone)) (VP (VBD left)) (. .))
B-SBAR I-SBAR B-NP B-VP O B-NP I-NP B-VP O

a parenthesis splits a verb chunk; a subject keeps the infinitive apart
(S (`` ") (S (NP (PRP I)) (VP (MD will) (PRN (, ,) ('' ") (S (NP (PRP she)) (VP (VBD said)))
(, ,) (`` ")) (VP (VB help) (S (NP (PRP you)) (VP (VB move)))))) (. .) ('' "))
O B-NP B-VP O O B-NP B-VP O O B-VP B-NP B-VP O O

addresses are nouns
(S (VP (VP (VB Email) (NP (ADD bob@example.org))) (CC or) (VP (VB see) (NP
(ADD http://example.org)))) (. .))
B-VP B-NP O B-VP B-NP O

a preposition with a relative pronoun
(S (NP (EX There)) (VP (VBZ is) (NP (NP (DT a) (NN man)) (SBAR (WHPP (IN in) (WHNP (WP$ whose)
(NN garden))) (S (NP (NNS roses)) (VP (VBP grow) (ADJP (JJ wild))))))) (. .))
B-NP B-VP B-NP I-NP B-PP B-NP I-NP B-NP B-VP B-ADJP O

a purpose infinitive joins too, for want of function tags
(SBARQ (WHNP (WHADJP (WRB How) (JJ many)) (NNS people)) (SQ (VP (VBP are) (ADVP (RB only))
(ADVP (RB here)) (S (VP (TO to) (VP (VB learn)))))) (. ?))
B-NP I-NP I-NP B-VP I-VP I-VP I-VP I-VP O

a parenthesis after a noun; unlike conjuncts in front of the head
(S (NP (NP (NNP Smith)) (PRN (-LRB- -LRB-) (NP (DT the) (NN chair)) (-RRB- -RRB-))) (VP
(VBD voted) (NP (UCP (NN state) (CC and) (JJ local)) (NNS taxes)) (PRT (RP down))) (. .))
B-NP O B-NP I-NP O B-VP B-NP I-NP I-NP I-NP B-PRT O

an adjective phrase after the noun; an emoticon
(S (NP (NP (NNP Paula)) (, ,) (ADJP (JJ tired) (CC but) (JJ happy)) (, ,)) (VP (VBD went)
(ADVP (NN home))) (NFP ^_^))
B-NP O B-ADJP I-ADJP I-ADJP O B-VP B-ADVP O
"""

BLOCKS = [block.splitlines() for block in BY_HAND.strip().split("\n\n")]


def bracketed(text: str) -> tuple[Tree, list[str]]:
    """The tree and the tags of a sentence in Penn Treebank brackets."""
    tags: list[str] = []
    pending: list[tuple[str, int, list[Tree | int]]] = [("TOP", 0, [])]
    for label, tag, close in re.findall(r"\((\S+)(?= \()|\((\S+) [^()\s]+\)|(\))", text):
        if label:
            pending.append((label, len(tags), []))
        elif tag:
            pending[-1][2].append(len(tags))
            tags.append(tag)
        elif close:
            done, start, children = pending.pop()
            pending[-1][2].append(Tree(done, start, len(tags), tuple(children)))
    ((_, _, children),) = pending
    return Tree("TOP", 0, len(tags), tuple(children)), tags


@pytest.mark.parametrize("block", BLOCKS, ids=[block[0] for block in BLOCKS])
def test_by_hand(block):
    _, *tree, expected = block
    assert chunk(*bracketed(" ".join(tree))) == tuple(expected.split())


def test_words_before_a_phrase_cut_off_from_their_head_are_outside():
    text = "(NP (DT the) (PP (IN in) (NP (NN house))) (NN lawyer))"
    assert chunk(*bracketed(text)) == ("O", "B-PP", "B-NP", "B-NP")


def test_a_phrase_without_a_head_is_outside():
    assert chunk(*bracketed("(NP (NNS points) (PP (SYM -) (NP (CD 7))))")) == ("B-NP", "O", "B-NP")
    assert chunk(*bracketed("(FRAG (. ...))")) == ("O",)


@pytest.mark.parametrize(
    ("tree", "bio"),
    [
        # Around a whole chunk, as in CoNLL-2000's "-LRB-/O CNN/B-NP -RRB-/O".
        ("(NP (NP (NNP WASHINGTON)) (NP (-LRB- -LRB-) (NNP CNN) (-RRB- -RRB-)))", "B-NP O B-NP O"),
        ("(NP (`` ``) (DT the) (JJ big) (NN deal) ('' ''))", "O B-NP I-NP I-NP O"),
        ("(NP (-LRB- -LRB-) (`` ``) (NNP CIA) ('' '') (-RRB- -RRB-))", "O O B-NP O O"),
        ("(PP (-LRB- -LRB-) (IN in) (NP (NNP Rome)) (-RRB- -RRB-))", "O B-PP B-NP O"),
        ("(NP (-LRB- -LRB-) (NN title) (PP (IN of) (NP (NNS books))) (-RRB- -RRB-))",
         "O B-NP B-PP B-NP O"),
        ("(ADJP (`` ``) (JJ normal) ('' ''))", "O B-ADJP O"),
        ("(VP (`` ``) (VBD fixed) ('' '') (NP (PRP it)))", "O B-VP O B-NP"),
        # Never closed.
        ("(NP (`` ``) (JJ good) (`` ``) (NNS speakers))", "O B-NP I-NP I-NP"),
        # Around the beginning of a chunk, as in "``/B-NP cold/I-NP fusion/I-NP ''/I-NP tests/I-NP".
        ("(NP (`` ``) (JJ cold) (NN fusion) ('' '') (NNS tests))", "B-NP I-NP I-NP I-NP I-NP"),
        ("(NP (-LRB- -LRB-) (CD 713) (-RRB- -RRB-) (CD 571-9571))", "B-NP I-NP I-NP I-NP"),
        ("(NP (-LRB- -LRB-) (NN a) (-LRB- -LRB-) (NN b) (-RRB- -RRB-) (NN c) (-RRB- -RRB-))",
         "O B-NP I-NP I-NP I-NP I-NP O"),
        # Inside, and in list markers: "-LRB-/B-LST 1/I-LST -RRB-/O".
        ("(NP (DT the) (`` ``) (NN law) ('' ''))", "B-NP I-NP I-NP O"),
        ("(LST (-LRB- -LRB-) (LS 1) (-RRB- -RRB-))", "B-LST I-LST O"),
    ],
)  # fmt: skip
def test_a_bracket_or_quote_in_front_of_a_whole_chunk_is_outside(tree, bio):
    assert chunk(*bracketed(tree)) == tuple(bio.split())


# -- BIO tags -----------------------------------------------------------------------------


def test_chunks_end_before_the_next_word_outside_or_at_the_end():
    tags = ["O", "B-NP", "I-NP", "B-NP", "O", "B-VP", "I-VP"]
    assert list(chunks_of(tags)) == [("NP", 1, 3), ("NP", 3, 4), ("VP", 5, 7)]


@pytest.mark.parametrize(
    ("tags", "word", "message"),
    [
        ("I-NP", 0, "'I-NP' is not allowed at the start of a sentence"),
        ("O I-NP I-NP", 1, "'I-NP' is not allowed after 'O'"),
        ("B-NP I-VP", 1, "'I-VP' is not allowed after 'B-NP'"),
        ("B-NP I-NP I-VP I-VP", 2, "'I-VP' is not allowed after 'I-NP'"),
        ("O E-NP", 1, "'E-NP' is not a BIO tag"),
        ("B-", 0, "'B-' is not a BIO tag"),
    ],
)
def test_the_error_names_the_first_invalid_tag(tags, word, message):
    require_bio(["B-NP", "I-NP", "O", "B-VP"])
    with pytest.raises(WordError, match=message) as caught:
        require_bio(tags.split())
    assert caught.value.word == word
