"""The registry of probe families, by specification.

It does not import torch, so that commands which only list names stay fast.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from probes.common.errors import UserError
from probes.common.registry import Registry
from probes.records.probe_spec import PROBES, ProbeSpec

if TYPE_CHECKING:
    from probes.training.family import ProbeFamily

FamilyFactory = Callable[[ProbeSpec], "ProbeFamily"]
"""Function from a specification to a probe family, or a subclass of `ProbeFamily` whose constructor
takes a specification."""

FOR_CLASSES = ("mean-difference", "sparse")
"""Families made from class means: they need classes, but neither training nor a seed."""

READ_TOKENS = ("token-mean", "token-max", "attention")
"""Families that read all tokens of a text."""

MULTI_LAYER = "multi-layer"
"""The family whose probe of a layer reads all layers up to it."""

LIKE_LINEAR = ("linear", "token-mean", MULTI_LAYER)
"""Families whose probes are linear, and converge to one optimum."""

SHIPPED = ("mlp", *FOR_CLASSES, *READ_TOKENS, *LIKE_LINEAR)
"""Families that are no plug-ins."""

probe_families: Registry[FamilyFactory] = Registry("probe family")


def probe_family(spec: ProbeSpec) -> Callable[[FamilyFactory], FamilyFactory]:
    """Register the decorated class or function as a probe family.

    Args:
        spec: how the probes are fitted; `spec.family` is the name for `--probes`.

    Raises:
        UserError: the name is taken or invalid in a file name, or an L2 strength is not positive.
    """
    if not re.fullmatch(r"[a-z0-9_][a-z0-9_-]{0,39}", spec.family):
        raise UserError(
            f"Probe family {spec.family!r}: the name becomes part of file names; use up to 40 of "
            "a-z, 0-9, _ and -, and do not begin with -."
        )
    if len(spec.l2) != 1 or min((*spec.l2, *spec.ridge_l2)) <= 0:
        raise UserError(
            f"Probe family {spec.family!r}: l2={spec.l2}, ridge_l2={spec.ridge_l2}; give one value "
            "of l2, and only values above 0."
        )

    def decorate(factory: FamilyFactory) -> FamilyFactory:
        probe_families.add(spec.family, factory, on_removal=lambda: PROBES.pop(spec.family))
        PROBES[spec.family] = spec
        return factory

    return decorate


def family_of(spec: ProbeSpec) -> ProbeFamily:
    """The family that `spec` describes."""
    return probe_families.get(spec.family)(spec)


def is_convex(spec: ProbeSpec) -> bool:
    """Whether the family's probes converge to one optimum. Built-in families need no torch here."""
    if spec.family in SHIPPED:
        return spec.family in LIKE_LINEAR
    return family_of(spec).convex


def is_seeded(spec: ProbeSpec) -> bool:
    """Whether fits depend on a seed."""
    return spec.family not in FOR_CLASSES and not is_convex(spec)


def reads_tokens(spec: ProbeSpec) -> bool:
    """Whether the family reads all tokens of a text. Built-in families need no torch here."""
    if spec.family in SHIPPED:
        return spec.family in READ_TOKENS
    return family_of(spec).reads_tokens


def reads_several(spec: ProbeSpec) -> bool:
    """Whether a probe reads several vectors: all tokens of a text, or several layers."""
    return spec.family == MULTI_LAYER or reads_tokens(spec)


def why_unfit(family: str, kind: str, *, is_bag: bool = False) -> str:
    """The reason why a family has no probes for tasks of a kind; empty if it has.

    Args:
        is_bag: whether an example is a text with all its tokens.
    """
    if family in FOR_CLASSES and kind != "classification":
        return f"{family} probes need examples of one class each, and the task is {kind}"
    if family == "token-max" and kind == "multi-label":
        return "token-max probes need one class or number per text, and the task is multi-label"
    if not is_bag and reads_tokens(PROBES[family]):
        return f"{family} probes read all tokens of a text; use --positions all"
    return ""


def why_not_convex(spec: ProbeSpec, use: str) -> str:
    """The reason why probes do not serve for what only convex ones do; empty if they do.

    Args:
        use: what only convex probes do.
    """
    if spec.family not in probe_families:
        return ""  # of a stored result whose family is not loaded
    if not is_convex(spec):
        return f"only convex probes {use}"
    return f"only probes of one vector {use}" if reads_several(spec) else ""


@probe_family(PROBES["linear"])
def linear(spec: ProbeSpec) -> ProbeFamily:
    """Multinomial logistic regression, or linear regression."""
    from probes.training.family import Linear

    return Linear()


@probe_family(PROBES["mlp"])
def mlp(spec: ProbeSpec) -> ProbeFamily:
    """One hidden layer of `spec.hidden` rectified units."""
    from probes.training.family import MLP

    return MLP(spec.hidden)


@probe_family(PROBES["mean-difference"])
def mean_difference(spec: ProbeSpec) -> ProbeFamily:
    """The class with the nearest mean."""
    from probes.training.class_means import MeanDifference

    return MeanDifference()


@probe_family(PROBES["sparse"])
def sparse(spec: ProbeSpec) -> ProbeFamily:
    """Logistic regression on the features by which class means differ most."""
    from probes.training.class_means import Sparse

    return Sparse()


@probe_family(PROBES[MULTI_LAYER])
def multi_layer(spec: ProbeSpec) -> ProbeFamily:
    """Linear probes of all layers up to each layer, projected and side by side."""
    from probes.training.family import Linear

    return Linear()


@probe_family(PROBES["token-mean"])
def token_mean(spec: ProbeSpec) -> ProbeFamily:
    """The mean of the scores of a text's tokens."""
    from probes.training.token_probes import TokenMean

    return TokenMean()


@probe_family(PROBES["token-max"])
def token_max(spec: ProbeSpec) -> ProbeFamily:
    """The largest score of a text's tokens."""
    from probes.training.token_probes import TokenMax

    return TokenMax()


@probe_family(PROBES["attention"])
def attention_probe(spec: ProbeSpec) -> ProbeFamily:
    """Weighted means of the scores of a text's tokens, with `spec.hidden` learnt weightings."""
    from probes.training.token_probes import Attention

    return Attention(spec.hidden)


probe_families.mark_as_shipped()
