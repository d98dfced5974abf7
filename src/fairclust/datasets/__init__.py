"""Data sets: what they are, how they are fetched, checked, read, scaled and stored."""

import importlib
from typing import Any

# Where each name is defined. Imported when first used: Snakemake reads names and directions alone, and must not wait
# for compiled code.
_HOMES = {
    "content_digest": "digest",
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
    "fetch_source": "download",
    "load_prepared": "store",
    "local_path": "download",
    "prepare_dataset": "prepare",
    "save_prepared": "store",
    "source_names": "spec",
    "write_skipped": "store",
}

__all__ = [
    "content_digest",
    "Catalogue",
    "DatasetError",
    "DatasetSkipped",
    "DatasetSpec",
    "Generated",
    "PreparedDataset",
    "ReaderSpec",
    "SensitiveSpec",
    "SourceCorrupt",
    "SourceSpec",
    "SourceUnavailable",
    "fetch_source",
    "load_prepared",
    "local_path",
    "prepare_dataset",
    "save_prepared",
    "source_names",
    "write_skipped",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
