"""All records as one frame: reading, checking, caching, joining scores with their evidence.

What a record is belongs to `records/`; which results may stand together, to `boards/`.
"""
