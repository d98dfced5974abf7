"""Data sets: what they are, how they are fetched, checked, read, scaled and stored.

Each name is imported when it is first used. A fit only reads prepared data, so it need not wait for the
imports of pyarrow, pydantic and requests.
"""

import importlib
from typing import Any

_HOMES = {
    "Catalogue": "spec",
    "DatasetError": "errors",
    "DatasetSkipped": "errors",
    "DatasetSpec": "spec",
    "Generated": "generate",
    "PreparedDataset": "store",
    "ReaderSpec": "spec",
    "SensitiveSpec": "spec",
    "SourceCorrupt": "errors",
    "SourceSpec": "spec",
    "SourceUnavailable": "errors",
    "content_digest": "digest",
    "fetch_source": "download",
    "load_prepared": "store",
    "local_path": "download",
    "prepare_dataset": "prepare",
    "save_prepared": "store",
    "source_names": "spec",
    "write_skipped": "store",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
