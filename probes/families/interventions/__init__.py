"""Interventions. Does a model use what can be decoded from it?

- Which heads and blocks does it need for its own answers, and for stored probes?
- How many heads can be disabled, the least important first?
- What is lost if the labels of a task are erased from a layer?
- Does the answer follow if a layer's state is replaced by that of another prompt?
- Does it follow if a step towards another class is added to a layer?

All are experiments: a state is changed (`changes.py`), an effect read out (`readouts.py`,
`probe_readout.py`) and compared with that of controls (`controls.py`). `experiment.py` compares.
Files of one measurement begin with its name; several need `erasers.py`, `directions.py`, which are
fitted to states, and `text_prompts.py`.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    PositiveFloat,
    PositiveInt,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
)

from probes.common.errors import UserError
from probes.families.interventions.neutral_text import NeutralText
from probes.measurements.catalogue import Family
from probes.records.values import Frozen
from probes.tasks.positions import Position

_TWO = (
    "give two answers, that of the positive class first (it sorts last), such as ' yes, no' after "
    "texts, and Yes,No after chats"
)


def _answers(answers: Any) -> Any:
    """Two texts with a comma between them, or none; spaces are part of them."""
    texts = tuple(answers.split(",") if isinstance(answers, str) and answers else answers)
    if texts and (len(texts) != 2 or len({"", *texts}) != 3):
        raise ValueError(_TWO)
    return texts


_Answers = Annotated[tuple[str, ...], BeforeValidator(_answers)]
_ANSWERS = (
    "answers of the positive class and of the other, with their spaces: ' yes, no' after texts, "
    "Yes,No after chats"
)


class _AnswersOfTexts(Frozen):
    """A prompt and two answers, which are settings of a record only where they are given."""

    prompt: str = Field(default="", description="text to append to each text of a task")
    answers: _Answers = Field(default=(), description=_ANSWERS, validate_default=True)

    @model_serializer(mode="wrap")
    def _without_empty(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Settings by name; keys of records without answers stay as they were."""
        settings = handler(self).items()
        return {name: x for name, x in settings if x or name not in ("prompt", "answers")}


class _NeedsAnswers(_AnswersOfTexts):
    """A prompt and two answers, without which nothing is measured of texts."""

    @field_validator("answers")
    @classmethod
    def _given_for_texts(cls, answers: tuple[str, ...], about: ValidationInfo) -> tuple[str, ...]:
        run = about.context
        if not (run and run.texts):
            return answers
        if not answers:
            raise ValueError(_TWO)
        if all(Position.parse(x).kind in ("mean", "max", "all") for x in run.positions):
            raise UserError(
                f"--positions {','.join(run.positions)}: interchange and steering change texts "
                "that are read at one token; use --positions last."
            )
        return answers


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
        default=300, description="random sentences of dev, and of test, to read at every step"
    )


class ErasureOptions(_AnswersOfTexts):
    """Options of `erasure`."""

    sentences: PositiveInt = Field(
        default=300, description="random test sentences, or texts, to read for every layer"
    )


class InterchangeOptions(_NeedsAnswers):
    """Options of `interchange`."""

    pairs: PositiveInt = Field(
        default=20, description="prompts of each task, or pairs of each paradigm, to change"
    )
    training: PositiveInt = Field(
        default=100, description="other prompts, or pairs of them, to fit directions to"
    )


def _doses(doses: Any) -> Any:
    """Numbers, separated by commas."""
    try:
        numbers = [*map(float, doses.split(",") if isinstance(doses, str) else doses)]
    except (TypeError, ValueError):
        numbers = []
    if not numbers or not all(x and math.isfinite(x) for x in numbers):
        raise ValueError("give numbers other than 0, separated by commas")
    return tuple(dict.fromkeys(numbers))


_Neutral = Annotated[
    Any, PlainValidator(NeutralText.of), PlainSerializer(lambda x: {x.name: x.digest})
]
"""A `NeutralText`, which pydantic cannot describe."""


class SteeringOptions(_NeedsAnswers):
    """Options of `steering`."""

    examples: PositiveInt = Field(
        default=40, description="prompts of dev and of test to steer, of each task or paradigm"
    )
    doses: Annotated[tuple[float, ...], BeforeValidator(_doses)] = Field(
        default=(-2.0, -1.0, -0.5, 0.5, 1.0, 2.0),
        description="steps to add, in units of the distance of the class means along the direction",
    )
    draws: int = Field(default=20, ge=2, description="draws of each random control")
    damage: PositiveFloat = Field(
        default=0.1, description="increase of loss on neutral text to allow, in nats per piece"
    )
    neutral: _Neutral = Field(
        default="sample",
        validate_default=True,
        description="corpus of neutral text on which damage is measured",
    )
    generate: int = Field(
        default=0,
        ge=0,
        description="most tokens that the model writes after each test prompt of texts and chats, "
        "untouched and steered; 0 for none",
    )


_OPTIONS: dict[str, type[Frozen]] = {
    "ablation": AblationOptions,
    "pruning": PruningOptions,
    "erasure": ErasureOptions,
    "interchange": InterchangeOptions,
    "steering": SteeringOptions,
}

FAMILY = Family(measurements={name: name for name in _OPTIONS}, options=_OPTIONS, claims="claims")
