"""Garbage collection that is put off, and comes back."""

import gc
import weakref

import pytest

from common.collection import seldom_collected


class Knot:
    def __init__(self):
        self.itself = self


def test_garbage_is_looked_for_less_often_inside_and_as_before_after_an_error():
    @seldom_collected()
    def fail():
        assert gc.isenabled()
        assert gc.get_threshold()[0] > 100 * before[0] > 0
        raise ValueError("stop")

    before = gc.get_threshold()
    with pytest.raises(ValueError, match="stop"):
        fail()
    assert gc.get_threshold() == before


def test_cycles_are_still_found():
    with seldom_collected():
        gone = weakref.ref(Knot())
        gathered = []
        while gone() is not None and len(gathered) < 10_000_000:
            gathered.append([])
        assert gone() is None
