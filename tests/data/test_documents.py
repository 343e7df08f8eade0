"""Windows of documents."""

from probes.data.sentence import ROOT, Mention, Sentence, one_sentence, windows

E1 = Mention("e1", "person", (0, 1))


def numbered_words(name, n_words, document="d", **layers):
    words = tuple(f"{name}{i}" for i in range(n_words))
    return Sentence(name, "en", words, document=document, **layers)


def test_a_window_ends_with_each_sentence_and_stays_in_its_document():
    given = [numbered_words("a", 2), *(numbered_words(name, 1) for name in "bcd")]
    given += [numbered_words("e", 1, "other"), *(numbered_words(name, 1, "") for name in "fg")]
    found = list(windows(given, 3))
    texts = ["a0 a1", "a0 a1 b0", "a0 a1 b0 c0", "b0 c0 d0", "e0", "f0", "g0"]
    assert [" ".join(window.words) for window in found] == texts
    starts = [(0,), (0, 2), (0, 2, 3), (0, 1, 2), (0,), (0,), (0,)]
    assert [window.starts for window in found] == starts
    assert [(w.id, w.document) for w in found] == [(s.id, s.document) for s in given]


def test_heads_and_mentions_are_counted_from_the_first_word():
    one = numbered_words("a", 2, upos=("X", "Y"), heads=(1, ROOT), mentions=(E1,))
    other = numbered_words("b", 3, upos=("Z", "Z", "Z"), heads=(ROOT, 0, 1), mentions=(E1,))
    window = one_sentence([one, other])
    assert window.upos == ("X", "Y", "Z", "Z", "Z")
    assert window.heads == (1, ROOT, ROOT, 2, 3)
    assert window.mentions == (E1, Mention("e1", "person", (2, 3)))


def test_a_layer_that_a_sentence_lacks_is_left_out_but_it_may_have_no_mentions():
    window = one_sentence(
        [numbered_words("a", 1, upos=("X",), mentions=(E1,)), numbered_words("b", 1)]
    )
    assert (window.upos, window.mentions) == ((), (E1,))
