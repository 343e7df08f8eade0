"""Interventions: forward passes in which heads or blocks are disabled, or labels erased."""
