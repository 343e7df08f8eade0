"""Agreement of two beyond chance, which is taken within each class, from scikit-learn's κ."""

import numpy as np
from sklearn.metrics import cohen_kappa_score


def stratified_kappa(one, other, positive):
    """The mean of the κ of both classes, weighted by 1 − chance (Barlow, Lai & Azen 1991)."""
    kappas, weights = [], []
    for of_class in (positive, ~positive):
        a, b = one[of_class].mean(), other[of_class].mean()
        weights.append(1 - a * b - (1 - a) * (1 - b))
        kappas.append(cohen_kappa_score(one[of_class], other[of_class]) if weights[-1] else 0.0)
    return np.average(kappas, weights=weights)
