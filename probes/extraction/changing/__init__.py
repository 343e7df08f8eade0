"""Sites in a model where a forward pass can be read or changed, and interventions there.

Which changes answer which question is decided in families, not here.
"""
