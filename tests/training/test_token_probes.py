"""Probes on bags of tokens, against plain torch on padded tensors, scikit-learn and closed cases."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from planted_examples import one_cell
from sklearn.linear_model import LogisticRegression, Ridge

from probes.records.probe_spec import PROBES
from probes.training.bags import Bags, TokenBags
from probes.training.features import InMemory
from probes.training.fit import FitSeed, first_margins, fit, predict
from probes.training.memory_plan import Work, group_layers
from probes.training.token_probes import Attention, TokenMax, TokenMean

N_FEATURES = 6
LENGTHS = torch.tensor([3, 1, 7, 2, 5])


def bags_of(values, lengths, labels):
    """Texts with some tokens (L, m, H)."""
    texts = one_cell(values[:, : len(labels)], labels)
    return replace(texts, features=Bags(InMemory(values), lengths))


def drawn(n, seed, n_classes=2, n_layers=1, n_features=N_FEATURES, noise=1.0):
    """Texts of 1 to 9 tokens; the mean of their tokens says the class, with noise."""
    random = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 10, (n,), generator=random)
    x = torch.randn(n_layers, int(lengths.sum()), n_features, generator=random)
    truth = torch.randn(n_features, max(2, n_classes), generator=torch.Generator().manual_seed(7))
    means = torch.stack([part.mean(0) for part in x[-1].split(lengths.tolist())])
    scores = 4 * means @ truth + noise * torch.randn(n, max(2, n_classes), generator=random)
    return bags_of(x, lengths, scores.argmax(1) if n_classes else scores[:, 0])


def of_texts(outputs, tokens, lengths):
    """A function of each text's tokens (T, H), over texts: (C, n)."""
    return torch.stack([outputs(part) for part in tokens.split(lengths.tolist())], 1)


def plain_max(parameters, tokens, lengths):
    (weight, bias) = (p[0, 0] for p in parameters)
    if len(bias) == 2:
        weight = torch.cat([-weight, weight]) / math.sqrt(2)

        def outputs(text):
            largest = (text @ weight[1]).max()
            return torch.stack([-largest, largest]) + bias
    else:

        def outputs(text):
            return (text @ weight.T).max(0).values + bias

    return of_texts(outputs, tokens, lengths)


def plain_attention(parameters, tokens, lengths, heads=3):
    (weight, bias) = (p[0, 0] for p in parameters)
    queries, values = weight[:heads], weight[heads:].unflatten(0, (heads, -1))

    def outputs(text):
        total = bias
        for query, value in zip(queries, values, strict=True):
            total = total + torch.softmax(text @ query, 0) @ (text @ value.T)
        return total

    return of_texts(outputs, tokens, lengths)


FAMILIES = {"token-max": (TokenMax(), plain_max), "attention": (Attention(3), plain_attention)}


@pytest.mark.parametrize(("family", "plain"), FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("n_outputs", [1, 2, 3])
def test_outputs_are_those_of_plain_torch(family, plain, n_outputs):
    torch.manual_seed(0)
    tokens = torch.randn(2, int(LENGTHS.sum()), N_FEATURES)
    bags = TokenBags(tokens, LENGTHS)
    parameters = [
        p + 0.5 * torch.randn_like(p) for p in family.initial(2, [0, 1], N_FEATURES, n_outputs)
    ]
    outputs = family.checked_outputs(parameters, bags)
    assert outputs.shape == (2, 2, n_outputs, len(LENGTHS))
    for layer in range(2):
        for cell in range(2):
            of_cell = [p[layer : layer + 1, cell : cell + 1] for p in parameters]
            expected = plain(of_cell, tokens[layer], LENGTHS)
            torch.testing.assert_close(outputs[layer, cell], expected)


def trained_by_plain_torch(plain, start, data, spec):
    """The parameters of the first cell after full-batch Adam."""
    leaves = [p[:1, :1].clone().requires_grad_() for p in start]
    adam = torch.optim.Adam(leaves, lr=1, betas=(0.9, 0.99))
    n_features, n = data.features.shape[2], len(data.labels[0])
    rate = spec.learning_rate * max(512 / n_features, 1) ** 0.5
    for step in range(1, spec.min_steps + 1):
        outputs = plain(leaves, data.features.tokens.values[0], data.features.lengths).T
        if data.labels.dtype == torch.int64:
            loss = torch.nn.functional.cross_entropy(outputs, data.labels[0])
        else:
            loss = 0.5 * (outputs[:, 0] - data.labels[0]).square().mean()
        loss = loss + spec.l2[0] / n / 2 * leaves[0].square().sum()
        adam.zero_grad()
        loss.backward()
        adam.param_groups[0]["lr"] = rate * (1 - step / spec.min_steps)
        adam.step()
    return leaves


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("n_classes", [2, 3, 0])
def test_a_fit_ends_where_a_plain_loop_does(name, n_classes):
    """From the same start, with one batch of all texts."""
    spec = PROBES[name].model_copy(
        update={"hidden": 3 * (name == "attention"), "batch": 512, "epochs": 1, "min_steps": 150}
    )
    spec = spec.model_copy(update={"checks": 1, "l2": (3.0,)})
    train = drawn(120, 1, n_classes)
    start = FAMILIES[name][0].initial(1, [5], N_FEATURES, n_classes or 1)
    expected = trained_by_plain_torch(FAMILIES[name][1], start, train, spec)
    fitted = fit(train, drawn(30, 2, n_classes), n_classes, spec, [FitSeed(5)])
    for ours, theirs in zip(fitted.parameters, expected, strict=True):
        torch.testing.assert_close(ours, theirs.detach(), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_token_mean_is_scikit_learns_regression_on_weighted_tokens(n_classes):
    train, test = drawn(150, 1, n_classes, n_layers=2), drawn(60, 2, n_classes, n_layers=2)
    fitted = fit(train, test, n_classes, PROBES["token-mean"], [FitSeed()])
    lengths = train.features.lengths
    labels = train.labels[0].repeat_interleave(lengths)
    weights = (1 / lengths).repeat_interleave(lengths)
    for layer in range(2):
        model = LogisticRegression(C=(2 if n_classes == 2 else 1) / 30, tol=1e-8, max_iter=1000)
        model.fit(train.features.tokens.values[layer], labels, sample_weight=weights)
        logits = model.decision_function(test.features.tokens.values[layer]).reshape(
            len(test.features.tokens.values[layer]), -1
        )
        parts = np.split(logits, np.cumsum(test.features.lengths)[:-1])
        theirs = np.stack([part.mean(0) for part in parts])
        ours = TokenMean().outputs(fitted.parameters, test.features.block(slice(None)))[layer, 0].T
        ours = ours.diff(dim=1) if n_classes == 2 else ours - ours.mean(1, keepdim=True)
        np.testing.assert_allclose(ours, theirs, atol=2e-3)
        assert theirs.std() > (0.0, 0.2)[layer]
    found = predict(fitted, test.features, n_classes, PROBES["token-mean"])[1, 0]
    assert (found == test.labels[0]).float().mean() > 0.6


def test_token_mean_of_numbers_is_ridge_regression_on_tokens_with_a_strength_chosen_by_texts():
    train, dev = drawn(150, 1, 0), drawn(50, 2, 0)
    fitted = fit(train, dev, 0, PROBES["token-mean"], [FitSeed()])
    lengths, tokens = train.features.lengths, train.features.tokens.values[0]
    weights = (1 / lengths).repeat_interleave(lengths)
    errors = {}
    for strength in PROBES["token-mean"].ridge_l2:
        model = Ridge(strength * len(lengths), tol=1e-8)
        model.fit(tokens, train.labels[0].repeat_interleave(lengths), sample_weight=weights)
        outputs = torch.from_numpy(model.predict(dev.features.tokens.values[0]))
        means = [part.mean() for part in outputs.split(dev.features.lengths.tolist())]
        errors[strength] = float(0.5 * (torch.stack(means) - dev.labels[0]).square().mean())
    best = min(errors, key=errors.get)
    assert fitted.strength.item() == pytest.approx(best)
    assert fitted.dev_loss.item() == pytest.approx(errors[best], rel=1e-4)


def test_with_one_token_per_text_mean_and_maximum_are_linear_probes():
    torch.manual_seed(0)
    ones = torch.ones(400, dtype=torch.int64)
    x = torch.randn(1, 400, N_FEATURES)
    y = (x[0, :, 0] + x[0, :, 1] + 0.5 * torch.randn(400) > 0).long()
    train, plain = bags_of(x, ones, y), one_cell(x, y)
    linear = fit(plain, plain, 2, PROBES["linear"], [FitSeed()])
    mean = fit(train, train, 2, PROBES["token-mean"], [FitSeed()])
    for ours, expected in zip(mean.parameters, linear.parameters, strict=True):
        torch.testing.assert_close(ours, expected, atol=1e-4, rtol=1e-4)
    spec = PROBES["token-max"].model_copy(update={"min_steps": 1000, "batch": 512, "checks": 1})
    largest = fit(train, train, 2, spec, [FitSeed()])
    expected = first_margins(linear, plain.features, PROBES["linear"])
    torch.testing.assert_close(
        first_margins(largest, train.features, spec), expected, atol=0.02, rtol=0.02
    )
    assert largest.dev_loss.item() == pytest.approx(linear.dev_loss.item(), abs=1e-4)


def test_without_queries_attention_is_a_linear_probe_of_the_mean():
    family, data = Attention(4), drawn(20, 3, 3)
    weight, bias = family.initial(1, [0], N_FEATURES, 3)
    assert weight[:, :, :4].eq(0).all()
    together = weight[0, 0, 4:].unflatten(0, (4, 3)).sum(0)
    means = [
        part.mean(0)
        for part in data.features.tokens.values[0].split(data.features.lengths.tolist())
    ]
    outputs = family.outputs([weight, bias], data.features.block(slice(None)))
    torch.testing.assert_close(outputs[0, 0], together @ torch.stack(means).T)


def with_planted_token(n, seed):
    """Texts of 40 to 80 tokens of noise; one token of each text of class 1 tells."""
    random = torch.Generator().manual_seed(seed)
    lengths = torch.randint(40, 81, (n,), generator=random)
    x = torch.randn(1, int(lengths.sum()), 16, generator=random)
    y = torch.randint(2, (n,), generator=random)
    token = lengths.cumsum(0) - lengths + (torch.rand(n, generator=random) * lengths).long()
    x[0, token[y == 1], 0] += 7
    return bags_of(x, lengths, y)


def test_maximum_and_attention_find_a_token_that_the_mean_of_long_texts_does_not():
    train, dev, test = (with_planted_token(n, n) for n in (400, 80, 300))
    right = {}
    for name in ("token-mean", "token-max", "attention"):
        fitted = fit(train, dev, 2, PROBES[name], [FitSeed()])
        predicted = predict(fitted, test.features, 2, PROBES[name])[0, 0]
        right[name] = (predicted == test.labels[0]).float().mean().item()
    assert right["token-mean"] < 0.75
    assert min(right["token-max"], right["attention"]) > 0.95


@pytest.mark.parametrize("name", ["token-mean", "token-max", "attention"])
def test_on_random_labels_test_accuracy_is_at_chance(name):
    right = []
    for seed in range(3):
        train, dev, test = (drawn(n, seed + 10 * n, noise=0) for n in (200, 100, 400))
        for number, part in enumerate((train, dev, test)):
            random = torch.Generator().manual_seed(3 * seed + number)
            part.labels[0] = torch.randint(2, part.labels[0].shape, generator=random)
        fitted = fit(train, dev, 2, PROBES[name], [FitSeed()])
        predicted = predict(fitted, test.features, 2, PROBES[name])[0, 0]
        right.append((predicted == test.labels[0]).float().mean().item())
    # Three standard errors of 1,200 texts.
    assert abs(np.mean(right) - 0.5) < 0.045


@pytest.mark.parametrize("name", ["token-max", "attention"])
def test_a_fit_is_the_same_whatever_is_fitted_beside_it_and_differs_by_seed(name):
    spec = PROBES[name].model_copy(update={"min_steps": 40, "epochs": 1})
    data = drawn(90, 1, n_layers=2), drawn(40, 2, n_layers=2)
    both = fit(*data, 2, spec, [FitSeed(0), FitSeed(1)])
    alone = [
        replace(b, features=Bags(InMemory(b.features.tokens.values[1:]), b.features.lengths))
        for b in data
    ]
    one = fit(*alone, 2, spec, [FitSeed(1)])
    torch.testing.assert_close(both.parameters[0][1:, 1:], one.parameters[0], atol=1e-4, rtol=1e-3)
    assert not torch.allclose(both.parameters[0][:, 0], both.parameters[0][:, 1], atol=1e-2)


def test_memory_is_planned_by_tokens():
    work = Work(PROBES["attention"], 640, 640, 30_000, 2, 1, n_tokens=50)
    cpu, budget = torch.device("cpu"), 1 << 29
    n_layers, room = group_layers(budget, cpu, work)
    assert room == n_layers * 4 * 640 * 30_000
    assert 1 < n_layers < budget / (4 * 640 * 30_000)
    # Steps of 64 texts and evaluations of 8,192 tokens are in memory, each with the one before it.
    needs = [
        (1 << 40) / group_layers(1 << 40, cpu, replace(work, n_tokens=n))[0] for n in (50, 550)
    ]
    assert needs[1] - needs[0] == pytest.approx(4 * 64 * 500 * (2 * 640 + 3 * 12), rel=1e-2)


def test_parts_of_an_evaluation_are_cut_by_tokens_and_hold_every_text_once(monkeypatch):
    monkeypatch.setattr("probes.training.bags.TOKENS_AT_ONCE", 8)
    x = torch.arange(float(LENGTHS.sum()))[None, :, None]
    bags = Bags(InMemory(x), LENGTHS)
    assert bags.parts == [slice(0, 2), slice(2, 3), slice(3, 5)]
    whole = torch.cat([bags.block(part).tokens for part in bags.parts], 1)
    assert torch.equal(whole, x)
