"""A probe of one layer as a scikit-learn estimator for any vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GroupShuffleSplit
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from probes.common.arrays import Floats, without_torch
from probes.common.errors import UserError
from probes.common.registry import did_you_mean
from probes.compute.devices import exact_products, pick_device
from probes.records.parameters import FOLDABLE, folded
from probes.records.probe_spec import PROBES
from probes.tasks.task import Kind
from probes.training.batches import Batches, batch_bounds
from probes.training.dataset import class_weights, label_unit, training_order
from probes.training.families import why_unfit
from probes.training.features import InMemory
from probes.training.fit import FitSeed, fit
from probes.training.fitted import parameters_by_name
from probes.training.standardisation import Standardisation, mapped_tensor, standard_scale

Array = NDArray[Any]

_KINDS: dict[str, Kind] = {
    "binary": "classification",
    "multiclass": "classification",
    "multilabel-indicator": "multi-label",
    "continuous": "regression",
}
"""Kinds of tasks by scikit-learn's names of target types."""

_unless_regression = available_if(lambda probe: getattr(probe, "kind_", probe.kind) != "regression")


class LayerProbe(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A probe of one layer's vectors, trained as a run trains it.

    A linear classifier is scikit-learn's ``LogisticRegression(C=1 / 30)`` on standardised vectors
    (``C=2 / 30`` for two classes); a linear regression is `Ridge`, its strength chosen on dev.

    Args:
        family: "linear", "mlp", "mean-difference" or "sparse"; the last two are for classes.
        kind: "classification"; "multi-label" (labels are a matrix of 0 and 1, one column per
            label); "regression"; or "auto": regression if there are fractions, multi-label for
            such a matrix, otherwise classification. So whole numbers are classes in any type: 1,
            1.0 and True are one class. As in scikit-learn.
        seed: seed of an MLP's initial parameters and batches, and of the held-out groups.
        device: the device on which `fit` computes, as in `--device`.
        class_weight: None or "balanced", as in runs of tasks scored by balanced accuracy.

    Attributes:
        kind_: "classification", "multi-label" or "regression".
        classes_: the classes, or the columns of label sets (C,); a regression has none.
        coef_, intercept_: parameters of a linear probe for vectors that are not standardised. As
            in `LogisticRegression`: (C, H) and (C,), but (1, H) and (1,) for two classes.
        coefs_, intercepts_: weight (in, out) and bias (out,) of each layer of the probe, as in
            `MLPClassifier`.
    """

    def __init__(
        self,
        family: str = "linear",
        kind: str = "auto",
        seed: int = 0,
        device: str = "cpu",
        class_weight: str | None = None,
    ) -> None:
        self.family, self.kind, self.seed, self.device = family, kind, seed, device
        self.class_weight = class_weight

    @classmethod
    def of(
        cls, family: str, kind: Kind, layers: Sequence[tuple[Floats, Floats]], classes: Array
    ) -> LayerProbe:
        """Make a fitted probe from parameters.

        Args:
            layers: see `probes.records.parameters.folded`.
            classes: classes in the order of the outputs; ignored for a regression.
        """
        probe = cls(family, kind)
        probe.kind_, probe.n_features_in_ = kind, layers[0][0].shape[1]
        if kind != "regression":
            probe.classes_ = classes
        return probe._with(layers)

    def _with(self, layers: Sequence[tuple[Floats, Floats]]) -> LayerProbe:
        self.coefs_ = [weight.T for weight, _ in layers]
        self.intercepts_ = [bias for _, bias in layers]
        if len(layers) == 1:
            ((self.coef_, self.intercept_),) = layers
        elif hasattr(self, "coef_"):
            del self.coef_, self.intercept_
        return self

    @exact_products()
    def fit(
        self,
        x: ArrayLike,
        y: ArrayLike,
        dev: tuple[ArrayLike, ArrayLike] | None = None,
        groups: ArrayLike | None = None,
    ) -> LayerProbe:
        """Fit the probe, and return it.

        Args:
            x: vectors of n examples: arrays, lists or tensors. Shape (n, H).
            y: labels. Shape (n,), or (n, C) for label sets.
            dev: vectors and labels for choosing an MLP's stopping point and a regression's
                strength. By default, a tenth of the groups is held out; linear classifiers choose
                nothing.
            groups: the sentence of each example, since batches are whole sentences. By default,
                each example is a sentence. Shape (n,).

        Raises:
            UserError: there is no such family, kind or device.
            ValueError: vectors or labels are invalid, or their numbers differ.
        """
        if self.family not in FOLDABLE:
            raise UserError(f"family={self.family!r}: {did_you_mean(self.family, FOLDABLE)}")
        vectors, labels = self._checked(x, y, reset=True)
        if self.class_weight and (self.class_weight, self.kind_) != ("balanced", "classification"):
            raise ValueError(f"class_weight={self.class_weight!r}: only 'balanced', of classes.")
        if reason := why_unfit(self.family, self.kind_):
            raise ValueError(f"family={self.family!r}: {reason}.")
        examples = np.arange(len(labels))
        sentences = examples if groups is None else column_or_1d(without_torch(groups))
        check_consistent_length(vectors, sentences)
        train, held_out = examples, (vectors, labels)
        if dev is not None:
            held_out = self._checked(*dev, reset=False)
        elif self.family == "mlp" or self.kind_ == "regression":
            split = GroupShuffleSplit(1, test_size=0.1, random_state=self.seed)
            train, dev_examples = next(split.split(vectors, groups=sentences))
            held_out = vectors[dev_examples], labels[dev_examples]
        train = train[training_order(sentences[train])]
        _, numbers = np.unique(sentences[train], return_inverse=True)
        return self._trained(vectors[train], labels[train], numbers, *held_out)

    def _trained(
        self, x: Array, y: Array, sentences: Array, dev_x: Array, dev_y: Array
    ) -> LayerProbe:
        """Fit the probe as a run does. Equal `sentences` (of train) must be adjacent."""
        targets, sets, unit = self._targets([y, dev_y])
        n_outputs = 0 if unit else len(self.classes_)
        weights = [np.ones(len(labels), np.float32) for labels in targets]
        if self.class_weight:
            # Dev is weighted by the frequencies of train, as in a run.
            of_class = class_weights(targets[0], n_outputs).astype(np.float32)
            weights = [of_class[labels] for labels in targets]
        # Each example is a span of one row. What counts as constant depends on the type of x.
        span = np.stack([np.arange(len(x)), np.arange(1, len(x) + 1)], axis=1)
        mean, scale = standard_scale(mapped_tensor(x), [span], float(np.finfo(x.dtype).eps) / 2)
        device = pick_device(self.device)

        def batches(part: int, x: Array, sentences: Array) -> Batches:
            numbers = torch.from_numpy(sentences)
            return Batches(
                InMemory(((mapped_tensor(x).float() - mean) * scale)[None].to(device)),
                torch.from_numpy(targets[part])[None].to(device),
                torch.from_numpy(weights[part])[None].to(device),
                numbers.to(device),
                batch_bounds(numbers),
                None if sets is None else sets.to(device),
                scale=scale[None].to(device),
            )

        of_train, of_dev = batches(0, x, sentences), batches(1, dev_x, np.arange(len(dev_x)))
        fitted = fit(of_train, of_dev, n_outputs, PROBES[self.family], [FitSeed(self.seed)])
        if not fitted.dev_loss.isfinite().all():
            raise ValueError("The loss on dev is not finite: the numbers are too large.")
        standardisation = Standardisation({}, mean[None], scale[None])
        parameters = parameters_by_name([0], standardisation, fitted, unit)
        return self._with(folded(parameters, 0, self.kind_))

    def _targets(
        self, labels: list[Array]
    ) -> tuple[list[Array], torch.Tensor | None, tuple[float, float] | None]:
        """Labels of train and dev in training form, label sets, and a regression's `label_unit`."""
        if self.kind_ == "regression":
            mean, deviation = label_unit(labels[0])
            targets = [((y - mean) / deviation).astype(np.float32) for y in labels]
            return targets, None, (mean, deviation)
        if self.kind_ == "multi-label":
            rows, index = np.unique(np.concatenate(labels), axis=0, return_inverse=True)
            targets = np.split(index, [len(labels[0])])
            return targets, torch.from_numpy(rows.astype(np.float32)), None
        return [np.searchsorted(self.classes_, y) for y in labels], None, None

    def _checked(self, x: Any, y: Any, *, reset: bool) -> tuple[Array, Array]:
        """Validated vectors (float32 or float16) and labels; dev keeps only classes of y."""
        arrays, types = (without_torch(x), without_torch(y)), [np.float32, np.float16]
        x, y = validate_data(self, *arrays, reset=reset, dtype=types, multi_output=True)
        if reset:
            self.kind_ = self._kind_of(type_of_target(y))
        if self.kind_ == "multi-label":
            if reset:
                self.classes_ = np.arange(y.shape[1])
            return x, y != 0
        y = column_or_1d(y, warn=True)
        if self.kind_ == "regression":
            return x, y.astype(np.float64)
        if reset:
            self.classes_ = np.unique(y)
            if len(self.classes_) < 2:
                raise ValueError("y has only one class; there is nothing to tell apart.")
            return x, y
        has_class = np.isin(y, self.classes_)
        if not has_class.any():
            raise ValueError("dev has none of the classes of y.")
        return x[has_class], y[has_class]

    def _kind_of(self, target_type: str) -> Kind:
        kinds = tuple(dict.fromkeys(_KINDS.values()))
        kind = _KINDS.get(target_type) if self.kind == "auto" else self.kind
        if kind not in (None, *kinds):
            raise UserError(f"kind={self.kind!r}: {did_you_mean(self.kind, ('auto', *kinds))}")
        # Whole numbers look like classes, but may be the numbers of a regression.
        if kind is None or kind not in ("regression", _KINDS.get(target_type)):
            raise ValueError(f"kind={self.kind!r} does not fit labels that are {target_type}.")
        return kind

    def _outputs(self, x: ArrayLike) -> Floats:
        """Logits (that of the first of two classes is 0), or numbers of a regression. (n, C)."""
        check_is_fitted(self, "coefs_")
        outputs: Floats = validate_data(self, without_torch(x), reset=False, dtype=np.float64)
        for number, (weight, bias) in enumerate(zip(self.coefs_, self.intercepts_, strict=True)):
            outputs = (np.maximum(outputs, 0) if number else outputs) @ weight + bias
        if self.kind_ == "classification" and len(self.classes_) == 2:
            outputs = np.hstack([np.zeros_like(outputs), outputs])
        return outputs

    def predict(self, x: ArrayLike) -> Array:
        """Predict classes or numbers (n,); for label sets, 1 if p > 1/2 (n, C)."""
        outputs = self._outputs(x)
        if self.kind_ == "regression":
            return outputs[:, 0]
        if self.kind_ == "multi-label":
            return (outputs > 0).astype(np.int64)
        classes: Array = self.classes_[outputs.argmax(1)]
        return classes

    @_unless_regression  # type: ignore[untyped-decorator]
    def decision_function(self, x: ArrayLike) -> Floats:
        """Logits (n, C); for two classes, that of the second one (n,)."""
        outputs = self._outputs(x)
        two = self.kind_ == "classification" and len(self.classes_) == 2
        return outputs[:, 1] if two else outputs

    @_unless_regression  # type: ignore[untyped-decorator]
    def predict_proba(self, x: ArrayLike) -> Floats:
        """Probability of each class or label. Shape (n, C)."""
        outputs = self._outputs(x)
        p: Floats = expit(outputs) if self.kind_ == "multi-label" else softmax(outputs, axis=1)
        return p

    def score(self, x: ArrayLike, y: ArrayLike) -> float:
        """Accuracy (of whole sets for label sets), or R² of a regression."""
        score = r2_score if self.kind_ == "regression" else accuracy_score
        return float(score(without_torch(y), self.predict(x)))
