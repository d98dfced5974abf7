"""Data sets: their specification, download, checks, reading, scaling and storage.

Each name is imported when it is first used. A fit only reads prepared data, so it need not wait for the
imports of pandas, pydantic and requests.
"""

from fairclust.lazy import members

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
    "fetch_adult": "fetch",
    "fetch_bank": "fetch",
    "fetch_census": "fetch",
    "fetch_credit": "fetch",
    "fetch_dataset": "fetch",
    "fetch_source": "download",
    "get_data_home": "fetch",
    "list_datasets": "fetch",
    "load_prepared": "store",
    "local_path": "download",
    "prepare_dataset": "prepare",
    "save_prepared": "store",
    "source_names": "spec",
    "write_skipped": "store",
}

__all__, __getattr__, __dir__ = members(__name__, _HOMES)
