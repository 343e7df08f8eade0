"""Work split among threads by hand."""

import threading

import pytest
import torch

from probes.compute.workers import each


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_each_item_has_a_thread_of_its_own_that_torch_does_not_split_again():
    both = threading.Barrier(2, timeout=60)

    def doubled(item):
        both.wait()  # passed only if two items are worked on at once
        return 2 * item, torch.get_num_threads(), threading.current_thread()

    made = each(doubled, range(4))
    assert [number for number, *_ in made] == [0, 2, 4, 6]
    assert {threads for _, threads, _ in made} == {1}
    assert len({thread for *_, thread in made}) == 2
    assert torch.get_num_threads() == 2


def test_what_a_call_raises_is_raised_and_the_rest_left_out():
    begun = []

    def fails(item):
        begun.append(item)
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        each(fails, range(1000))
    assert len(begun) < 1000
    assert torch.get_num_threads() == 2
