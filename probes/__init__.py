"""Layer-wise probing of transformers: which layer knows what, in one command.

From Python::

    import probes

    results = probes.run_probes("all-MiniLM-L6-v2", corpus="sample")
    results.table("linear")

Plug-ins and notebooks import from `probes` itself: inner modules may move, these names stay.
"""

import os

import lazy_loader

__version__ = "1.0.0"

# An editable install finds this folder by a link to it.
__path__[0] = os.path.realpath(__path__[0])
if not os.path.isdir(os.path.join(__path__[0], "data")):
    # A checkout without links: common, data and tasks are beside this folder.
    __path__.append(os.path.dirname(__path__[0]))

# Each name is imported when it is first used, from the module that __init__.pyi gives.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
