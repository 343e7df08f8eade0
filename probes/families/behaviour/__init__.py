"""Behaviour: probabilities of words under the model's own language-model head."""
