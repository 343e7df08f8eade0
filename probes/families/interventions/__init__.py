"""Interventions. Does a model use what can be decoded from it?

- Which heads and blocks does it need for its own answers, and for stored probes?
- How many heads can be disabled, the least important first?
- What is lost if the labels of a task are erased from a layer?
- Does the answer follow if a layer's state is replaced by that of another prompt?

All are experiments: a state is changed (`changes.py`), an effect read out (`readouts.py`,
`probe_readout.py`) and compared with that of controls (`controls.py`). `experiment.py` compares.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveInt

from probes.measurements.catalogue import Family
from probes.records.values import Frozen


class AblationOptions(Frozen):
    """Options of `ablation`."""

    sentences: PositiveInt = Field(
        default=300, description="random test sentences to read for every head"
    )
    how: Literal["uniform", "zero"] = Field(
        default="uniform", description="attention of a disabled head; or its output: zero"
    )


class PruningOptions(Frozen):
    """Options of `pruning`."""

    sentences: PositiveInt = Field(
        default=300, description="random sentences of dev, and of test, to read for every share"
    )


class ErasureOptions(Frozen):
    """Options of `erasure`."""

    sentences: PositiveInt = Field(
        default=300, description="random test sentences to read for every layer"
    )


class InterchangeOptions(Frozen):
    """Options of `interchange`."""

    pairs: PositiveInt = Field(
        default=20, description="pairs of prompts of each paradigm to change, each with all answers"
    )
    training: PositiveInt = Field(
        default=100, description="other pairs of prompts of each paradigm, to fit directions to"
    )


FAMILY = Family(
    measurements={
        "ablation": "ablation",
        "pruning": "pruning",
        "erasure": "erasure",
        "interchange": "interchange",
    },
    options={
        "ablation": AblationOptions,
        "pruning": PruningOptions,
        "erasure": ErasureOptions,
        "interchange": InterchangeOptions,
    },
    claims="claims",
)
