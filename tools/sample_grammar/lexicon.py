"""The words of the open classes, and which of them train never sees.

Classes are semantic, so that sentences make some sense; many words stand in several classes
and several parts of speech, so that the word alone does not tell. Verbs are in valencies.py.
"""

from __future__ import annotations

import zlib

DRAW = 318
"""Chosen such that train lacks words of nearly every class, but not the likes of *run*."""

PARTS = 12
"""Lemmas fall in this many parts by checksum: one is test's alone, one is dev's and test's."""


def listed(line: str) -> tuple[str, ...]:
    """The words of a line, as a tuple."""
    return tuple(line.split())


def _lists(table: str) -> dict[str, tuple[str, ...]]:
    """``name: word word`` lines; a line that starts with blanks continues the one before."""
    lists: dict[str, tuple[str, ...]] = {}
    name = ""
    for line in table.strip().splitlines():
        head, colon, rest = line.partition(":")
        name = head.strip() if colon else name
        lists[name] = lists.get(name, ()) + tuple((rest if colon else line).split())
    return lists


NOUNS = _lists("""
person: cook guide guard nurse judge host coach pilot guest farmer teacher student doctor baker
    sailor painter singer dancer driver visitor child woman man boy girl friend uncle aunt cousin
    queen king captain clerk tailor gardener porter witness player patient expert twin novice
    native cook guide guard nurse judge host coach pilot champion elder scout page groom ranger
    model potter shepherd hunter fisherman lawyer
animal: dog cat horse bird duck fish sheep deer goose mouse fox wolf cow pony rabbit bear fly
    kitten lamb hound swallow crane ape parrot seal bat
fragile: vase plate cup window mirror bottle glass jug bowl lamp dish pot tile pane saucer
closable: door gate window box drawer case safe shutter cupboard trunk chest hatch
meltable: ice butter wax snow chocolate cheese candle frost
rollable: ball wheel barrel coin stone log hoop marble tire drum
vessel: boat ship raft ferry canoe barge kayak
cloth: coat blanket shirt towel scarf hat dress sheet flag curtain sock rag glove
food: soup rice egg potato fish bread cake meat stew bean pie tomato apple roast
vehicle: train wagon cart truck bus tram coach car van sledge aircraft
sounding: bell gong horn chime
burnable: log letter candle paper branch straw leaf map match
portable: book plant watch ring box picture key hammer brush comb saw nail stamp bag basket map
    lamp rope present pen knife chair ladder sign card note kite stick light iron plane
    bow pipe can spade rake hook tool camera purse needle net book plant watch light saw
instrument: hammer stick key knife brush spade hook rope tool stone crowbar wrench
song: song tune story poem game dance trick lesson prayer march hymn
tale: story joke secret lie dream tale truth reason
task: work job task test drawing trick
letter: letter note card poem report message book bill
place: garden park kitchen station river bridge lake field forest hill village town market shop
    farm house school library street square yard beach island tower barn valley mill museum
    cellar camp harbor port bank well castle inn orchard dock track court office
event: dance race play show storm walk run swim ride drive march trial concert wedding lesson
    game fight match talk speech visit fire feast fair contest parade meal test
idea: plan answer question report promise claim offer rule change hope dream idea reason mistake
    series need wish hint order
time: morning evening winter summer afternoon night spring autumn fall weekend
day: Monday Tuesday Wednesday Thursday Friday Saturday Sunday
period: week month year summer winter spring night
unit: day week month year hour minute
material: stone wood iron glass paper garden kitchen village winter school river water silver metal
    plastic market straw garden silk
quality: care pride joy patience skill love fear calm hope force pleasure kindness delight
name: Mark Bill Rose Grant Frank Will May Robin Jack Pat Sue Art Dean Iris Violet Hazel Daisy Ivy
    Anna Tom Maria Peter Lucy Oscar Nina Paul Emma Hugo Clara Simon Alice Drew Dale Glen Sandy
    Cliff Pearl Ray June Penny Faith Olive Miles Chase
""")

ADJECTIVES = _lists("""
person: kind fast patient old young tall careful clever strong famous rich poor proud brave calm
    quiet fine well cold hungry tired angry lazy polite present fit right early late slow honest
    open secret expert native shy firm ready idle wise stern
animal: fast old young small big brown wild hungry tame quiet calm slow gray lame shy
thing: light open close clean warm cool dry wet empty old new small big red blue green heavy
    wooden cold square round flat wide long short cheap strange fine plain secret clear hard soft
    narrow orange silver present double second smooth rusty dirty tiny sharp
place: open close clean warm cool dry empty old quiet narrow wide cold dark calm secret present
    clear square small famous strange distant busy steep level free
event: long short hard quick fine early late quiet strange slow famous second last fair free
idea: clever secret open hard fine right strange clear new early short second simple firm plain
""")

ADVERBS = _lists("""
manner: quickly slowly carefully quietly well fast hard gladly loudly badly suddenly late early
    straight calmly gently proudly alone together neatly fast hard well
manner in the middle: quickly slowly carefully quietly gladly suddenly gently neatly
always: often always never sometimes usually rarely still already soon once
where: inside outside there upstairs home below above abroad nearby
degree: very quite rather too really pretty so
""")


def allowed(lemma: str, split: str) -> bool:
    """Whether `split` may use the word: a sixth of every open class is kept from train."""
    part = zlib.crc32(f"{DRAW} {lemma.lower()}".encode()) % PARTS
    return part > 1 or split == "test" or (part == 1 and split == "dev")
