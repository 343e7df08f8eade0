"""Answers of language models, by plain passes."""

import numpy as np
import tiny_runs
import torch
from slow_scores import ends_of_words, left_to_right, pseudo_log_likelihood, within_word_l2r

PLL, L2R, CAUSAL = "pseudo-log-likelihood", "within-word l2r", "left to right"


def run_models(models, folder, **settings):
    """A run of several models on a whole corpus."""
    model, *others = models
    return tiny_runs.run(model, folder, beside=others, limit=None, quiet=True, **settings)


def slow_scores(scoring, model, tokenizer, text):
    """Scores of all tokens by plain passes; those of causal models with the ends of words."""
    if scoring == CAUSAL:
        ends = ends_of_words(model, tokenizer, text)
        return np.add(left_to_right(model, tokenizer, text), ends)
    slow = pseudo_log_likelihood if scoring == PLL else within_word_l2r
    return np.array(slow(model, tokenizer, text))


def distribution(model, ids):
    """Log-probabilities of all tokens at all positions."""
    with torch.no_grad():
        found = model(input_ids=torch.tensor([list(ids)])).logits[0].double().log_softmax(-1)
    return np.asarray(found)
