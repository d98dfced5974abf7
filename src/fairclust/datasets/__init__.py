"""Data sets: what they are, how they are fetched, checked, read, scaled and stored."""

from fairclust.datasets.digest import content_digest
from fairclust.datasets.download import fetch_source, local_path
from fairclust.datasets.errors import DatasetError, DatasetSkipped, SourceCorrupt, SourceUnavailable
from fairclust.datasets.generate import Generated
from fairclust.datasets.prepare import prepare_dataset
from fairclust.datasets.spec import (
    Catalogue,
    DatasetSpec,
    ReaderSpec,
    SensitiveSpec,
    SourceSpec,
    source_names,
)
from fairclust.datasets.store import PreparedDataset, load_prepared, save_prepared, write_skipped

__all__ = [
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
    "content_digest",
    "fetch_source",
    "load_prepared",
    "local_path",
    "prepare_dataset",
    "save_prepared",
    "source_names",
    "write_skipped",
]
