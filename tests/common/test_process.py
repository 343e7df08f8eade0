"""Garbage collection that is put off, and comes back."""

import gc
import weakref

import pytest

from probes.common.process import infrequent_garbage_collection


class Knot:
    def __init__(self):
        self.itself = self


@pytest.fixture(autouse=True)
def usual():
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_garbage_is_looked_for_less_often_inside_and_as_before_after_an_error():
    @infrequent_garbage_collection()
    def fail():
        assert gc.isenabled()
        assert gc.get_threshold()[0] > 70_000
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("age", [0, 1])
def test_cycles_are_still_found(age):
    with infrequent_garbage_collection():
        knot = Knot()
        for generation in range(age):
            gc.collect(generation)
        gone = []
        weakref.finalize(knot, gone.append, True)  # asking for it would hold it
        del knot
        kept = []
        while not gone and len(kept) < 3_000_000:
            kept.append([])
        assert gone
