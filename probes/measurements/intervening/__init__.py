"""Interventions: passes in which a part of the model is disabled, or labels are erased."""
