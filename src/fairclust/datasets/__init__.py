"""Data sets of papers, which are downloaded once, checked and returned as data frames."""

from fairclust.lazy import members

_MODULE_OF = {
    "DatasetError": "errors",
    "Generated": "generate",
    "SourceUnavailable": "errors",
    "fetch_dataset": "fetch",
    "get_data_home": "fetch",
    "list_datasets": "fetch",
}

__all__, __getattr__, __dir__ = members(__name__, _MODULE_OF)
