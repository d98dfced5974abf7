"""Data sets out of small files."""

from fairclust.datasets.prepare import prepare_dataset
from fairclust.datasets.spec import DatasetSpec, SourceSpec


def prepare_files(folder, name, spec, sources):
    """Write the text or the frame of every source into a file with its name, and prepare the data set from them."""
    paths = {source: folder / f"{source}.csv" for source in sources}
    for source, content in sources.items():
        text = content if isinstance(content, str) else content.to_csv(index=False)
        paths[source].write_text(text, encoding="utf-8", errors="surrogateescape")
    read = {source: SourceSpec(path=str(path)) for source, path in paths.items()}
    return prepare_dataset(name, DatasetSpec.model_validate(spec), paths, read)
