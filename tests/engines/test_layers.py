"""Which layers `--layers` means."""

import pytest

from probes.common.errors import UserError
from probes.engines.plan import layers_of
from probes.engines.validation import validate


@pytest.mark.parametrize(
    ("given", "n_layers", "layers"),
    [
        ("all", 3, (0, 1, 2, 3)),
        ("0,6,12", 12, (0, 6, 12)),
        ("every:4", 12, (0, 4, 8, 12)),
        ("every:4", 6, (0, 4, 6)),
        ("every:1", 2, (0, 1, 2)),
        ("every:99", 2, (0, 2)),
    ],
)
def test_layers_by_number_or_by_step(given, n_layers, layers):
    assert layers_of(validate({"layers": given}), n_layers, "m") == layers


def test_a_layer_that_there_is_not():
    with pytest.raises(UserError, match=r"^--layers 7: m has layers 0 to 6\.$"):
        layers_of(validate({"layers": "0,7"}), 6, "m")
