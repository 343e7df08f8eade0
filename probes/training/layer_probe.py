"""A probe of one layer as an estimator of scikit-learn, from any vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GroupShuffleSplit
from sklearn.utils import ClassifierTags, RegressorTags, check_consistent_length, column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from probes.common.arrays import Floats
from probes.common.errors import UserError
from probes.common.registry import did_you_mean
from probes.compute.devices import pick_device
from probes.compute.precision import exact_products
from probes.records.parameters import FOLDABLE, folded
from probes.records.probe_spec import PROBES
from probes.tasks.task import Kind
from probes.training.batches import Batches, batch_bounds
from probes.training.dataset import training_order, unit_of
from probes.training.features import Held
from probes.training.fit import Draw, fit
from probes.training.fitted import named
from probes.training.standardisation import Standardisation
from probes.training.streamed import mapped_tensor, standard_scale

Array = NDArray[Any]

_KINDS: dict[str, Kind] = {
    "binary": "classification",
    "multiclass": "classification",
    "multilabel-indicator": "multi-label",
    "continuous": "regression",
}
"""By scikit-learn's names of what labels are."""

_HELD_OUT = 0.1


def _has_probabilities(probe: LayerProbe) -> bool:
    return getattr(probe, "kind_", probe.kind) != "regression"


class LayerProbe(BaseEstimator):  # type: ignore[misc]
    """A probe of one layer's vectors, trained as a run trains it.

    A linear classifier is scikit-learn's ``LogisticRegression(C=1 / 30)`` on standardised vectors
    (``C=2 / 30`` of two classes, for which scikit-learn has one weight, and the suite two); a
    linear regression is `Ridge`, its strength chosen on dev.

    Args:
        family: "linear" or "mlp".
        kind: "classification"; "multi_label", of labels as a matrix of 0 and 1 with a column for
            each; "regression"; or "auto": a regression if there are fractions, label sets if there
            is such a matrix, else a classification.
        seed: of an MLP's first parameters and batches, and of what is held out.
        device: on which `fit` computes, as `--device`.
        class_weight: as scikit-learn's. Runs take "balanced" for tasks scored by balanced accuracy.

    Attributes:
        kind_: "classification", "multi-label" or "regression".
        classes_: what outputs are of (C,); a regression has none.
        n_features_in_: H, the width of vectors.
        coefs_, intercepts_: weight (in, out) and bias (out,) of each layer of the probe, as
            `MLPClassifier` has them; they apply to vectors as they are, not standardised.
    """

    def __init__(
        self,
        family: str = "linear",
        kind: str = "auto",
        seed: int = 0,
        device: str = "cpu",
        class_weight: Any = None,
    ) -> None:
        self.family, self.kind, self.seed, self.device = family, kind, seed, device
        self.class_weight = class_weight

    @classmethod
    def of(
        cls, family: str, kind: Kind, layers: Sequence[tuple[Floats, Floats]], classes: Array
    ) -> LayerProbe:
        """A fitted probe.

        Args:
            layers: see `probes.records.parameters.folded`.
            classes: in the order of its outputs; ignored for a regression.
        """
        probe = cls(family, kind)
        probe.kind_, probe.n_features_in_ = kind, layers[0][0].shape[1]
        if kind != "regression":
            probe.classes_ = classes
        return probe._with(layers)

    def _with(self, layers: Sequence[tuple[Floats, Floats]]) -> LayerProbe:
        self.coefs_ = [weight.T for weight, _ in layers]
        self.intercepts_ = [bias for _, bias in layers]
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
            y: their labels. Shape (n,), or (n, C) of label sets.
            dev: vectors and labels, on which an MLP's stopping point and a regression's strength
                are chosen. If it is not given, a tenth of the groups is held out for these;
                linear classifiers choose nothing.
            groups: the sentence of each example, by default one of its own: batches are whole
                sentences. Shape (n,).

        Raises:
            UserError: there is no such family, kind or device.
            ValueError: vectors and labels cannot be used, or do not belong together.
        """
        if self.family not in FOLDABLE:
            raise UserError(f"family={self.family!r}: {did_you_mean(self.family, FOLDABLE)}")
        vectors, labels = self._checked(x, y, reset=True)
        self.kind_ = _kind(self.kind, labels)
        labels = self._labels(labels)
        if self.kind_ != "regression":
            self.classes_ = np.unique(labels) if labels.ndim == 1 else np.arange(labels.shape[1])
            if len(self.classes_) < 2:
                raise ValueError("y has only one class; there is nothing to tell apart.")
        sentences = np.arange(len(labels)) if groups is None else column_or_1d(_array(groups))
        check_consistent_length(vectors, sentences)
        train, other = np.arange(len(labels)), (vectors, labels)
        if dev is not None:
            dev_x, dev_y = self._checked(*dev, reset=False)
            other = dev_x, self._labels(dev_y)
        elif self.family == "mlp" or self.kind_ == "regression":
            split = GroupShuffleSplit(1, test_size=_HELD_OUT, random_state=self.seed)
            train, held_out = next(split.split(vectors, groups=sentences))
            other = vectors[held_out], labels[held_out]
        train = train[training_order(sentences[train])]
        _, numbers = np.unique(sentences[train], return_inverse=True)
        return self._trained((vectors[train], labels[train]), other, numbers)

    def _trained(
        self, train: tuple[Array, Array], dev: tuple[Array, Array], sentences: Array
    ) -> LayerProbe:
        """The probe, fitted by what fits those of runs.

        Args:
            sentences: numbers of those of the training examples, equal ones adjacent.
        """
        (x, y), (dev_x, dev_y) = train, dev
        unit = unit_of(y) if self.kind_ == "regression" else None
        n_outputs = 0 if unit else len(self.classes_)
        labels, sets = self._targets((y, dev_y), unit)
        weights = self._weights(y, labels)
        rows = np.stack([np.arange(len(x)), np.arange(1, len(x) + 1)], axis=1)
        mean, scale = standard_scale(mapped_tensor(x), [rows], float(np.finfo(x.dtype).eps) / 2)
        device = pick_device(self.device)

        def batches(x: Array, labels: Array, weights: Array, sentences: Array) -> Batches:
            numbers = torch.from_numpy(sentences)
            return Batches(
                Held(((mapped_tensor(x).float() - mean) * scale)[None].to(device)),
                torch.from_numpy(labels.clip(0) if n_outputs else labels)[None].to(device),
                torch.from_numpy(weights.astype(np.float32))[None].to(device),
                numbers.to(device),
                batch_bounds(numbers),
                None if sets is None else sets.to(device),
            )

        of_train = batches(x, labels[0], weights[0], sentences)
        of_dev = batches(dev_x, labels[1], weights[1], np.arange(len(dev_x)))
        fitted = fit(of_train, of_dev, n_outputs, PROBES[self.family], [Draw(self.seed)])
        if not fitted.dev_loss.isfinite().all():
            raise ValueError(
                "The loss on dev is not finite: y has none of its labels, or numbers are too large."
            )
        how = Standardisation({}, mean[None], scale[None])
        return self._with(folded(named([0], how, fitted, unit), 0))

    def _targets(
        self, given: Sequence[Array], unit: tuple[float, float] | None
    ) -> tuple[list[Array], torch.Tensor | None]:
        """Labels as `Batches` has them, -1 for a class that train lacks; and any label sets."""
        if unit:
            return [((y - unit[0]) / unit[1]).astype(np.float32) for y in given], None
        if self.kind_ == "multi-label":
            sets, index = np.unique(np.concatenate(given), axis=0, return_inverse=True)
            return np.split(index, [len(given[0])]), torch.from_numpy(sets.astype(np.float32))
        code = {label: place for place, label in enumerate(self.classes_.tolist())}
        return [np.array([code.get(label, -1) for label in y.tolist()]) for y in given], None

    def _weights(self, y: Array, labels: Sequence[Array]) -> list[Array]:
        """The weights of examples, from their labels as of `_targets`; 0 of an unknown class."""
        if self.kind_ == "regression":
            known = [np.ones(len(each)) for each in labels]
        else:
            known = [(each >= 0).astype(np.float64) for each in labels]
        if self.class_weight is None:
            return known
        if self.kind_ != "classification":
            raise ValueError(f"class_weight={self.class_weight!r}: only of classifications.")
        of_class, there = np.zeros(len(self.classes_)), np.unique(labels[0])
        names = self.classes_[there]
        of_class[there] = compute_class_weight(self.class_weight, classes=names, y=y)
        return [each * of_class[place] for each, place in zip(known, labels, strict=True)]

    def _checked(self, x: ArrayLike, y: ArrayLike, *, reset: bool) -> tuple[Array, Array]:
        """Vectors, float32 or float16, and labels; finite, and as many of both."""
        checked: tuple[Array, Array] = validate_data(
            self,
            _array(x),
            _array(y),
            reset=reset,
            dtype=[np.float32, np.float16],
            multi_output=True,
            ensure_min_samples=2 if reset else 1,
        )
        return checked

    def _labels(self, y: Array) -> Array:
        """Labels of the kind that is fitted: (n,), or of label sets (n, C)."""
        if self.kind_ == "multi-label":
            sets: Array = np.asarray(y) != 0
            return sets
        column: Array = column_or_1d(y, warn=True)
        return column.astype(np.float64) if self.kind_ == "regression" else column

    def _outputs(self, x: ArrayLike) -> Floats:
        """Logits, or numbers of a regression. Shape (n, C)."""
        check_is_fitted(self, "coefs_")
        found: Floats = validate_data(self, _array(x), reset=False, dtype=np.float64)
        for number, (weight, bias) in enumerate(zip(self.coefs_, self.intercepts_, strict=True)):
            found = (np.maximum(found, 0) if number else found) @ weight + bias
        return found

    def predict(self, x: ArrayLike) -> Array:
        """Classes or numbers (n,); of label sets 1 where a probability is above 1/2, (n, C).

        Raises:
            NotFittedError, ValueError: as of scikit-learn's estimators.
        """
        outputs = self._outputs(x)
        if self.kind_ == "regression":
            return outputs[:, 0]
        if self.kind_ == "multi-label":
            return (outputs > 0).astype(np.int64)
        classes: Array = self.classes_[outputs.argmax(1)]
        return classes

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def decision_function(self, x: ArrayLike) -> Floats:
        """Logits (n, C); of two classes those of the second less those of the first (n,)."""
        outputs = self._outputs(x)
        two = self.kind_ == "classification" and len(self.classes_) == 2
        return outputs[:, 1] - outputs[:, 0] if two else outputs

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, x: ArrayLike) -> Floats:
        """The probability of each class, or of each label. Shape (n, C)."""
        outputs = self._outputs(x)
        found: Floats = expit(outputs) if self.kind_ == "multi-label" else softmax(outputs, axis=1)
        return found

    def score(self, x: ArrayLike, y: ArrayLike) -> float:
        """Accuracy, of label sets that of whole sets; R² of a regression."""
        predicted = self.predict(x)
        score = r2_score if self.kind_ == "regression" else accuracy_score
        return float(score(_array(y), predicted))

    @property
    def coef_(self) -> Floats:
        """Of a linear probe the weight of each class, of two classes too (C, H)."""
        return self._only(self.coefs_).T

    @property
    def intercept_(self) -> Floats:
        """Of a linear probe the bias of each class (C,)."""
        return self._only(self.intercepts_)

    def _only(self, of_layers: Sequence[Floats]) -> Floats:
        if len(of_layers) > 1:
            raise AttributeError("an MLP has coefs_ and intercepts_, one for each of its layers")
        return of_layers[0]

    def __sklearn_tags__(self) -> Any:
        """Whether it is a classifier or a regressor; "auto" is neither until it is fitted."""
        tags = super().__sklearn_tags__()
        kind = getattr(self, "kind_", self.kind.replace("_", "-"))
        tags.target_tags.required = True
        if kind == "regression":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        elif kind != "auto":
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(multi_label=kind == "multi-label")
        return tags


def _kind(asked: str, y: Array) -> Kind:
    """The kind of probe that is fitted to labels.

    Raises:
        UserError: there is no kind of that name.
        ValueError: labels are not of that kind.
    """
    known = {kind.replace("-", "_"): kind for kind in _KINDS.values()}
    kind = known.get(asked.replace("-", "_"))
    if kind is None and asked != "auto":
        raise UserError(f"kind={asked!r}: {did_you_mean(asked, ('auto', *known))}")
    found = type_of_target(y, input_name="y", raise_unknown=True)
    if kind == "regression":
        return kind
    if kind == "classification" or found not in _KINDS:
        check_classification_targets(y)
    if kind == "multi-label" and _KINDS.get(found) != kind:
        raise ValueError(f"kind={asked!r}: y is {found}; give a column of 0 and 1 for each label.")
    return kind or _KINDS[found]


def _array(given: Any) -> Any:
    """A tensor as an array; anything else as it is."""
    if not isinstance(given, torch.Tensor):
        return given
    given = given.detach().cpu()
    return (given.float() if given.dtype == torch.bfloat16 else given).numpy()
