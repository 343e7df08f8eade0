"""Behaviour of a model: probabilities of words under its own language-model head."""
