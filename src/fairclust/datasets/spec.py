"""The specification of sources and data sets in the configuration."""

from __future__ import annotations

import codecs
import ipaddress
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from fairclust.messages import nearest

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
Sha256 = Annotated[str, Field(pattern=r"^(unknown|[0-9a-f]{64})$")]
ColumnRef = StrictStr | Annotated[StrictInt, Field(ge=0)]
ScaleStep = Literal["standardize", "minmax", "l2"]
OneCharacter = Annotated[str, Field(min_length=1, max_length=1)]


def is_secure_url(url: str) -> bool:
    """Tell whether `url` may be fetched: https anywhere, http only on the loopback interface."""
    parts = urlsplit(url)
    if not parts.hostname:
        return False
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname == "localhost"):
        return True
    try:
        return parts.scheme == "http" and ipaddress.ip_address(parts.hostname).is_loopback
    except ValueError:
        return False


def _as_text(value: object) -> object:
    # YAML reads true and false without quotes as booleans, but the file has these words in its cells.
    if isinstance(value, bool):
        raise ValueError(f"YAML reads this value as the boolean {value}; put it in quotes")
    return str(value) if isinstance(value, int | float) else value


CellValue = Annotated[str, BeforeValidator(_as_text)]


class Spec(BaseModel):
    """A model that rejects unknown keys, booleans and infinities in the place of numbers, and cannot be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_boolean(cls, value: object, info: ValidationInfo) -> object:
        # Pydantic takes true for the number 1.
        if isinstance(value, bool) and cls.model_fields[info.field_name or ""].annotation is not bool:
            raise ValueError(f"expected another kind of value; found the boolean {str(value).lower()}")
        return value


class SourceSpec(Spec):
    """A file to read: where it comes from, how it is recognised, and its licence."""

    file: str | None = None
    """Relative path of the file, both in a mirror and in the folder of raw data."""
    path: str | None = None
    """A file of the user's own, absolute or relative to the working folder; instead of `file`."""
    urls: tuple[str, ...] = ()
    """Addresses for the download, tried in order after the mirrors; https only."""
    sha256: Sha256 | None = None
    """SHA-256 of the file. With 'unknown', any file is accepted and the card says 'not verified'."""
    member: str | None = None
    """The member of a zip archive that is read, or the key of a JSON file under which the rows are."""
    member_sha256: Sha256 | None = None
    """SHA-256 of that member. It decides instead of `sha256`, because archives are sometimes packed again upstream."""
    licence: str | None = None
    """Licence of the data, or 'not stated'."""
    homepage: str | None = None
    """Page that describes the data."""
    max_bytes: Annotated[int, Field(gt=0)] = 2 * 2**30
    """Largest size in bytes of the download, and of the member."""
    note: str | None = None
    """Anything that a reader should know."""

    @field_validator("file")
    @classmethod
    def _file_is_relative(cls, value: str | None) -> str | None:
        if value is None:
            return None
        path = PurePosixPath(value)
        if path.is_absolute() or ".." in path.parts or not path.name or "\\" in value or ":" in value:
            raise ValueError(f"'{value}' must be a relative path such as 'adult/adult.data', without '..'")
        if not value.isprintable():
            raise ValueError(f"{value!r} holds a character that cannot be printed")
        return value

    @field_validator("urls")
    @classmethod
    def _urls_are_secure(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for url in value:
            if not is_secure_url(url):
                raise ValueError(f"'{url}' must be an https URL (http is for loopback hosts only)")
        return value

    @model_validator(mode="after")
    def _complete(self) -> SourceSpec:
        if (self.file is None) == (self.path is None):
            raise ValueError("a source needs either 'file' (to be fetched) or 'path' (your own file)")
        if self.member_sha256 is not None and self.member is None:
            raise ValueError("'member_sha256' needs 'member'")
        if self.path is not None:
            if self.urls or self.member is not None:
                raise ValueError("a source with 'path' is read in place and has no 'urls' and no 'member'")
            return self
        if not self.urls:
            raise ValueError("a source with 'file' needs 'urls'")
        if self.licence is None:
            raise ValueError("a source with 'file' needs 'licence' ('not stated' if upstream is silent)")
        if self.member is not None and self.member_sha256 is None:
            raise ValueError("a source with 'member' needs 'member_sha256' (or 'unknown')")
        if self.member is None and self.sha256 is None:
            raise ValueError("a source with 'file' needs 'sha256' (or 'unknown')")
        return self

    @property
    def content_sha256(self) -> str | None:
        """Hash that the file to read must have; None if it is not known."""
        stated = self.sha256 if self.member is None else self.member_sha256
        return None if stated == "unknown" else stated


class ReaderSpec(Spec):
    """How a table is read. The end of the file's name tells its format, such as ``.arff`` or ``.xlsx``."""

    sep: OneCharacter | None = None
    """Separator, one character. By default, the first lines of the file show it."""
    header: bool = True
    """Whether the first line names the columns."""
    names: tuple[StrictStr, ...] = ()
    """Names for the columns of a file without header; all of them or none."""
    decimal: OneCharacter = "."
    """Decimal point."""
    as_zero: tuple[StrictStr, ...] = ()
    """Cells of numeric columns that are read as 0, such as 'NA' where a fee was not charged."""
    encoding: str = "utf-8"
    """Encoding of the text."""

    @field_validator("encoding")
    @classmethod
    def _encoding_exists(cls, value: str) -> str:
        try:
            return codecs.lookup(value).name
        except LookupError:
            raise ValueError(f"unknown encoding '{value}'") from None

    @model_validator(mode="after")
    def _names_need_no_header(self) -> ReaderSpec:
        if self.names and self.header:
            raise ValueError("'names' is for a file without header; set 'header: false'")
        return self


class SensitiveSpec(Spec):
    """The column that says which demographic group a row belongs to."""

    column: ColumnRef
    """Name, or number counted from 0."""
    source: Name | SourceSpec | None = None
    """Another file that holds the groups: one row for each row of the table, in the same order. It is read like the
    table, but without `names`."""
    groups: dict[str, tuple[CellValue, ...] | Literal["*"]] | None = None
    """Group name to list of cell values; one list may be '*', which means every other value.

    The order is that of the group codes. Without it every distinct value is a group, sorted.
    """
    bins: Annotated[int, Field(ge=2)] | None = None
    """For a column of numbers, such as an age: the number of ranges, with about the same number of rows, as groups.

    A method with the parameter `mean_tolerance` gets the numbers themselves if that names the column.
    """

    @field_validator("groups")
    @classmethod
    def _groups_are_a_partition(
        cls, value: dict[str, tuple[str, ...] | Literal["*"]] | None
    ) -> dict[str, tuple[str, ...] | Literal["*"]] | None:
        if value is None:
            return None
        if len(value) < 2:
            raise ValueError("fairness needs at least two groups")
        if sum(listed == "*" for listed in value.values()) > 1:
            raise ValueError("only one group may be '*'")
        owner: dict[str, str] = {}
        for group, listed in value.items():
            if listed == "*":
                continue
            if not listed:
                raise ValueError(f"group '{group}' lists no value")
            for cell in listed:
                if cell in owner:
                    raise ValueError(f"value '{cell}' is listed in both '{owner[cell]}' and '{group}'")
                owner[cell] = group
        return value

    @model_validator(mode="after")
    def _groups_or_bins(self) -> SensitiveSpec:
        if self.groups is not None and self.bins is not None:
            raise ValueError(
                "'groups' lists values and 'bins' cuts numbers into ranges. Fix: omit one of them"
            )
        return self


class EdgesSpec(Spec):
    """How the lines of a table become the edges of a graph.

    The nodes and their groups are in the file that `sensitive.source` names.
    """

    ends: tuple[ColumnRef, ColumnRef]
    """The two columns that name the ends of an edge; direction and repetition do not count."""
    node: ColumnRef
    """The column of the groups' file that names the node."""
    min_group: Annotated[int, Field(ge=1)] = 1
    """Groups with fewer nodes are left out together with their nodes."""


SCALES: dict[str, tuple[ScaleStep, ...]] = {
    "none": (),
    "standardize": ("standardize",),
    "minmax": ("minmax",),
    "l2": ("standardize", "l2"),
}


def _steps_of(scale: Any) -> Any:
    if not isinstance(scale, str):
        return scale
    if scale not in SCALES:
        raise ValueError(f"there is no {scale!r}; {nearest(scale, SCALES)}")
    return SCALES[scale]


class DatasetSpec(Spec):
    """A data set: a table, a graph or a generator, its features, its groups, its scaling."""

    title: str
    """Name for tables and figures."""
    source: Name | SourceSpec | None = None
    """The table: a name in the catalogue of sources, or a source written out."""
    generator: Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$")] | None = None
    """Instead of a source: 'package.module.function'."""
    params: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the generator."""
    reader: ReaderSpec = ReaderSpec()
    """How the table is read."""
    features: Literal["all"] | tuple[ColumnRef, ...] = "all"
    """Numeric columns by name or number; 'all' means every column except those that the other keys name."""
    categorical: tuple[ColumnRef, ...] = ()
    """Columns of categories. They follow the numeric ones as codes 0, 1, ... of the sorted values, and are not scaled.

    The sensitive column may be one of them, if a paper has it among the features.
    """
    ordered: tuple[ColumnRef, ...] = ()
    """Columns of categories that have an order, such as bands of age.

    They follow the numeric columns as codes 0, 1, ... of the sorted values, and are scaled like these.
    """
    sensitive: SensitiveSpec | tuple[SensitiveSpec, ...] | None = None
    """The column of the groups; a generator returns groups and needs no column.

    If several columns are listed, the groups are the combinations of their values. Methods that take several columns
    get each of them, and a metric of groups is the value of the least fair column.
    """
    drop_rows: dict[ColumnRef, tuple[CellValue, ...]] = Field(default_factory=dict)
    """Rows to leave out, as a mapping from columns to cell values."""
    truth: ColumnRef | None = None
    """Column of true classes, with which labels are compared. It is no feature, and methods do not see it."""
    edges: EdgesSpec | None = None
    """If given, the rows of the table are the edges of a graph."""
    scale: Annotated[tuple[ScaleStep, ...], BeforeValidator(_steps_of)] = ("standardize", "l2")
    """Steps in order, or 'none', 'standardize', 'minmax', 'l2' (standardised, then rows of unit length)."""
    n_clusters: Annotated[int, Field(ge=2)]
    """The K that is used unless a run says otherwise."""
    rows: Annotated[int, Field(ge=2)] | None = None
    """Number of rows of the prepared data set, for a check and for estimates."""
    shown: str | None = None
    """Note printed beside the title, such as 'stands in for Census II'."""

    @property
    def sensitive_columns(self) -> tuple[SensitiveSpec, ...]:
        """The sensitive columns as a tuple; empty for a generator."""
        if self.sensitive is None or isinstance(self.sensitive, tuple):
            return self.sensitive or ()
        return (self.sensitive,)

    @model_validator(mode="after")
    def _table_or_generator(self) -> DatasetSpec:
        columns = self.sensitive_columns
        if (self.source is None) == (self.generator is None):
            raise ValueError("a data set needs either 'source' or 'generator'")
        if self.source is not None and not columns:
            raise ValueError("a data set with a source needs 'sensitive', the column of the groups")
        several = len(columns) > 1
        if several and any(column.source is not None for column in columns):
            raise ValueError(
                "several columns in 'sensitive' must be columns of the table: 'source' is for one alone. Fix: omit it"
            )
        if several and len({str(column.column) for column in columns}) < len(columns):
            raise ValueError("'sensitive' lists a column twice. Fix: list it once")
        if self.source is not None and self.params:
            raise ValueError("'params' belongs to a generator")
        if self.generator is not None:
            own = {"reader", "features", "categorical", "ordered", "sensitive", "drop_rows", "truth", "edges"}
            foreign = own & self.model_fields_set
            if foreign:
                raise ValueError(f"a generated data set has no {', '.join(sorted(foreign))}")
        if not self.features and not self.categorical and not self.ordered:
            raise ValueError("a data set needs a column in 'features', 'ordered' or 'categorical'")
        if self.edges is not None:
            foreign = {"features", "categorical", "ordered", "truth", "scale"} & self.model_fields_set
            if foreign:
                raise ValueError(f"a graph has no {', '.join(sorted(foreign))}")
            if len(columns) != 1 or columns[0].source is None:
                raise ValueError("a graph needs 'sensitive.source', the file with the groups of its nodes")
        return self


class Catalogue(Spec):
    """All sources and data sets of a configuration. Named sources must exist."""

    sources: dict[Name, SourceSpec] = Field(default_factory=dict)
    """Source name to source."""
    datasets: dict[Name, DatasetSpec] = Field(default_factory=dict)
    """Data set name to data set."""

    @model_validator(mode="after")
    def _sources_exist(self) -> Catalogue:
        for name in self.datasets:
            for own, stated in self.sources_of(name).items():
                if own in self.sources and self.sources[own] is not stated:
                    raise ValueError(
                        f"data set '{name}' writes out a source of its own, and there is another source "
                        f"'{own}' in the catalogue; rename one of them"
                    )
        return self

    def sources_of(self, dataset: str) -> dict[str, SourceSpec]:
        """The sources that a data set reads; a named source that does not exist is a ValueError.

        First comes the table, then the file of the groups if there is one. A source that is written out has the name of
        the data set, with ``.groups`` behind it for the groups.
        """
        found: dict[str, SourceSpec] = {}
        spec = self.datasets[dataset]
        stated = (spec.source, *(column.source for column in spec.sensitive_columns))
        for own, of in zip((dataset, f"{dataset}.groups"), stated, strict=False):
            if isinstance(of, SourceSpec):
                found[own] = of
            elif of in self.sources:
                found[of] = self.sources[of]
            elif of is not None:
                raise ValueError(
                    f"data set '{dataset}' reads the unknown source '{of}'; {nearest(of, self.sources)}"
                )
        return found
