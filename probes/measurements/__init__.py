"""The definition of a measurement: its contexts, views, options, registry, plug-ins and keys.

Measurements themselves are in `probing/` and in families, and stored records in `frames/`.
"""
