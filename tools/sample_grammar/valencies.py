"""Verbs: their constructions, what may fill their arguments, and their PropBank rolesets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sample_grammar.lexicon import ADJECTIVES, NOUNS

THING = ("portable", "fragile", "cloth", "portable")
"""Things in general; a class named twice is drawn twice as often."""


class Slot(NamedTuple):
    """One argument: PropBank role, grammatical function, classes that fill it, preposition."""

    role: str
    function: str
    classes: tuple[str, ...]
    preposition: str = ""


@dataclass(frozen=True)
class Valency:
    """A verb in one construction; `particle` follows the verb or the object."""

    lemma: str
    roleset: str
    subject: Slot
    complements: tuple[Slot, ...] = ()
    particle: str = ""


_TRANSITIVE = """
watch.01: person animal event vehicle | guide.01: person person vessel
guard.01: closable place | nurse.01: person animal | judge.01: person event | host.01: event event
coach.01: person | book.03: vehicle event | plant.01: burnable portable
light.01: burnable fragile | cook.01: food | hammer.01: portable | brush.01: cloth animal
comb.01: animal place | paint.02: closable portable | water.01: portable place
visit.01: person place place | help.01: person | follow.02: person animal
praise.01: person idea song | blame.01: person | thank.01: person | love.01: person animal food
hate.01: event food person | fear.01: animal person event | like.01: person food event portable
admire.01: person place cloth | meet.02: person | call.02: person animal | chase.01: animal person
catch.01: animal rollable person | steal.01: portable cloth animal | hide.01: portable letter
hold.01: portable fragile | draw.02: animal place portable | build.01: vessel closable place
eat.01: food | drink.01: food | carry.01: portable fragile person | clean.01: cloth place fragile
fix.02: vehicle portable closable | check.01: portable vehicle letter | lift.01: portable rollable
wash.01: cloth fragile animal | cut.01: cloth food burnable | fold.01: cloth letter
wrap.01: portable fragile | load.01: vehicle vessel | measure.01: cloth place closable
record.01: song idea | cover.01: portable food | run.01: place event | read.01: letter letter
write.01: letter song | answer.01: person letter | question.01: person idea
name.01: animal vessel | order.02: food cloth | test.01: vehicle person | stamp.01: letter
sign.01: letter | seal.01: letter | push.01: vehicle rollable person | pull.01: vehicle animal
kick.01: rollable person | find.01: portable person animal | see.01: person animal place
hear.01: person song sounding | notice.01: person animal portable | remember.01: person event idea
forget.01: portable event idea | feed.01: animal person | ride.01: animal vehicle
drive.01: vehicle | wear.01: cloth | touch.01: animal portable | park.01: vehicle | trim.01: cloth
map.01: place | pack.01: cloth portable | rent.01: vehicle place vessel
shelter.01: animal person | train.01: animal person | pet.01: animal
sketch.01: place animal person | order.02: food portable | dress.01: person
bite.01: person animal | pilot.01: vessel | captain.01: vessel | shepherd.01: animal person
groom.01: animal | witness.01: event event | model.01: cloth | champion.01: idea
tailor.01: cloth | iron.01: cloth | nail.01: closable | mark.01: letter place | rake.01: place
hook.01: animal | bag.01: food portable | farm.01: place | ship.01: portable cloth
swallow.01: food | scout.01: place | polish.01: fragile portable | greet.01: person
chop.01: burnable food | repair.01: vehicle vessel | free.01: animal person
calm.01: person animal | empty.01: closable fragile | present.01: idea song
face.01: person place | hurt.01: person animal | miss.02: person vehicle event
rob.01: place person
"""
_CAUSATIVE = """
break.01: fragile closable | crack.01: fragile | shatter.01: fragile | open.01: closable closable
close.01: closable | shut.01: closable | melt.01: meltable | freeze.01: food meltable
roll.01: rollable | bounce.01: rollable | spin.01: rollable | sink.01: vessel | dry.02: cloth food
ring.01: sounding | burn.01: burnable food | boil.01: food | bake.01: food | bend.01: portable
tear.01: cloth letter | move.01: vehicle vessel animal | turn.01: vehicle rollable person
stop.01: vehicle person event | start.01: event event | end.01: event | drop.01: rollable fragile
warm.01: food cloth | cool.01: food | change.01: idea place | heat.01: food | swing.01: closable
"""
_INTRANSITIVE = """
dance.01:ARG0: person | sing.01:ARG0: person animal | laugh.01:ARG0: person
smile.01:ARG0: person | sleep.01:ARG0: person animal | work.01:ARG0: person
play.01:ARG0: person animal | live.01:ARG0: person animal | talk.01:ARG0: person
fish.01:ARG0: person | cook.01:ARG0: person | paint.02:ARG0: person | hunt.01:ARG0: animal person
watch.01:ARG0: person | eat.01:ARG0: person animal | drink.01:ARG0: person animal
read.01:ARG0: person | shout.01:ARG0: person | fall.01:ARG1: person fragile
arrive.01:ARG1: person vehicle letter | wait.01:ARG1: person animal | sit.01:ARG1: person animal
stand.01:ARG1: person animal | come.01:ARG1: person animal vehicle
disappear.01:ARG1: portable person | vanish.01:ARG1: animal portable | die.01:ARG1: animal
float.01:ARG1: vessel portable | appear.01:ARG1: person animal | wake.01:ARG1: person animal
leave.11:ARG0: person vehicle | rest.01:ARG1: person animal | rise.01:ARG1: person vessel
shop.01:ARG0: person | rise.01:ARG1: person animal
"""
_MOTION = (
    "walk.01 run.02 swim.01 jump.03 march.01 race.01 rush.01 travel.01 sail.01 hurry.01 crawl.01"
)
_DATIVE = """
give.01:ARG2 | send.01:ARG2 | lend.01:ARG2 | show.01:ARG2 | hand.01:ARG2 | offer.01:ARG3
sell.01:ARG2 | throw.01:ARG2 | give.01:ARG2 | write.01:ARG2 | teach.01:ARG2 | tell.01:ARG2
"""
_DATIVE_OBJECTS = {
    "teach": ("song",), "tell": ("tale",), "write": ("letter",), "throw": ("rollable", "cloth"),
}  # fmt: skip
_CONTROL = """
want.01:ARG1 try.01:ARG1 hope.01:ARG1 plan.01:ARG1 decide.01:ARG1 need.01:ARG1 refuse.01:ARG1
learn.01:ARG1 promise.01:ARG2 agree.01:ARG1 offer.01:ARG1 forget.01:ARG1 like.01:ARG1 love.01:ARG1
"""
_RAISING = "seem.01 appear.02"
_OBJECT_CONTROL = """
ask.02:ARG2:ARG1 persuade.01:ARG1:ARG2 order.01:ARG2:ARG1 force.01:ARG1:ARG2 teach.01:ARG2:ARG1
help.01:ARG2:ARG1
"""
_SAYING = """
say.01 think.01 know.01 believe.01 hope.01 claim.01 report.01 hear.01 see.01 notice.01 fear.01
remember.01 learn.01 guess.01
"""
_ASKING = "wonder.01 ask.01 know.01 remember.01"
_PARTICLE = """
pick.up.04: portable cloth | clean.up.02: place fragile | carry.out.03: idea | set.up.03: portable
tear.up.04: letter cloth | wake.up.02: person animal | dry.out.03: cloth | cool.down.02: food
"""
_PREPOSITIONAL = """
wait.01:ARG1:ARG2:for: person vehicle letter | look.01:ARG0:ARG1:at: portable person place
listen.01:ARG0:ARG1:to: person song sounding | talk.01:ARG0:ARG2:to: person
talk.01:ARG0:ARG1:about: event idea person | fish.01:ARG0:ARG1:for: animal
look.01:ARG0:ARG1:at: animal cloth fragile | arrive.01:ARG1:ARG4:at: place
sit.01:ARG1:ARG2:on: portable place | go.02:ARG0:ARG4:to: place
come.01:ARG1:ARG4:to: place event | fall.01:ARG1:ARG4:into: place
stand.01:ARG1:ARG2:on: portable place | go.02:ARG0:ARG4:into: place
"""


def _entries(table: str) -> list[list[str]]:
    return [entry.split(":") for line in table.strip().splitlines() for entry in line.split("|")]


def _slot(role: str, function: str, classes: str, preposition: str = "") -> Slot:
    return Slot(role, function, tuple(classes.split()), preposition)


def _name(roleset: str) -> tuple[str, str]:
    return roleset.strip().split(".")[0], roleset.strip()


def _valencies() -> dict[str, list[Valency]]:
    person = _slot("ARG0", "nsubj", "person person person animal")
    agent = _slot("ARG0", "nsubj", "person")
    v: dict[str, list[Valency]] = {}
    v["transitive"] = [
        Valency(*_name(r), agent, (_slot("ARG1", "obj", c),)) for r, c in _entries(_TRANSITIVE)
    ]
    v["causative"] = [
        Valency(*_name(r), agent, (_slot("ARG1", "obj", c),)) for r, c in _entries(_CAUSATIVE)
    ]
    v["inchoative"] = [
        Valency(*_name(r), _slot("ARG1", "nsubj", c)) for r, c in _entries(_CAUSATIVE)
    ]
    v["intransitive"] = [
        Valency(*_name(r), _slot(role, "nsubj", c)) for r, role, c in _entries(_INTRANSITIVE)
    ]
    v["motion"] = [Valency(*_name(r), person) for r in _MOTION.split()]
    v["double object"], v["to dative"] = [], []
    for r, role in _entries(_DATIVE):
        lemma, roleset = _name(r)
        thing = _slot("ARG1", "obj", " ".join(_DATIVE_OBJECTS.get(lemma, THING)))
        hearer, goal = (
            _slot(role.strip(), "iobj", "person"),
            _slot(role.strip(), "obl", "person", "to"),
        )
        v["double object"].append(Valency(lemma, roleset, agent, (hearer, thing)))
        v["to dative"].append(Valency(lemma, roleset, agent, (thing, goal)))
    v["control"] = [
        Valency(*_name(r), agent, (_slot(role, "xcomp", ""),))
        for r, role in (entry.split(":") for entry in _CONTROL.split())
    ]
    v["raising"] = [
        Valency(*_name(r), _slot("ARG1", "nsubj", "person"), (_slot("C-ARG1", "xcomp", ""),))
        for r in _RAISING.split()
    ]
    v["object control"] = [
        Valency(*_name(r), agent, (_slot(o, "obj", "person"), _slot(x, "xcomp", "")))
        for r, o, x in (entry.split(":") for entry in _OBJECT_CONTROL.split())
    ]
    v["saying"] = [
        Valency(*_name(r), agent, (_slot("ARG1", "ccomp", "that"),)) for r in _SAYING.split()
    ]
    v["asking"] = [
        Valency(*_name(r), agent, (_slot("ARG1", "ccomp", "whether"),)) for r in _ASKING.split()
    ]
    v["telling"] = [
        Valency(
            "tell",
            "tell.01",
            agent,
            (_slot("ARG2", "iobj", "person"), _slot("ARG1", "ccomp", "that")),
        )
    ]
    v["particle"] = []
    for r, c in _entries(_PARTICLE):
        lemma, particle, sense = r.strip().split(".")
        roleset = f"{lemma}_{particle}.{sense}"
        v["particle"].append(Valency(lemma, roleset, agent, (_slot("ARG1", "obj", c),), particle))
    v["prepositional"] = [
        Valency(*_name(r), _slot(s, "nsubj", "person"), (_slot(o, "obl", c, p),))
        for r, s, o, p, c in _entries(_PREPOSITIONAL)
    ]
    v["having"] = [
        Valency("have", "have.03", agent, (_slot("ARG1", "obj", " ".join(THING)),)),
        Valency("have", "have.03", agent, (_slot("ARG1", "obj", "idea event animal"),)),
        Valency("do", "do.02", agent, (_slot("ARG1", "obj", "task"),)),
    ]
    return v


VALENCIES = _valencies()

AMBIGUOUS = frozenset(v.lemma for vs in VALENCIES.values() for v in vs) & frozenset(
    word for table in (NOUNS, ADJECTIVES) for words in table.values() for word in words
)
"""Lemmas that are verbs and also nouns or adjectives."""
