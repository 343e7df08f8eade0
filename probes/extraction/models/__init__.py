"""Finding, checking and loading models, and what is found out about a loaded one.

Running a model on texts belongs to `reading/`, and changing its passes to `changing/`.
"""
