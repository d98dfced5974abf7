"""The titles and labels that readers see instead of the names in the configuration."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from fairclust.looks import look


@dataclass(frozen=True)
class Names:
    """Titles, labels and looks of the data sets and methods of a run, as plain data.

    A name without an entry is shown as it is in the configuration.
    """

    datasets: Mapping[str, str] = field(default_factory=dict)  # name to title
    methods: Mapping[str, str] = field(default_factory=dict)  # name to label, in the order of the catalogue
    families: Mapping[str, str] = field(default_factory=dict)  # name to family
    ours: Collection[str] = ()  # methods of this project
    looks: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # name to `looks.looks_of`

    def dataset(self, name: str) -> str:
        return self.datasets.get(name, name)

    def method(self, name: str) -> str:
        return self.methods.get(name, name)

    def family(self, name: str) -> str:
        return self.families.get(name, "other")

    def look(self, name: str) -> tuple[int, int]:
        """Positions of the colour and the mark of a method."""
        return self.looks.get(name) or look(name)

    def in_order(self, methods: Iterable[str]) -> list[str]:
        """Methods by their position in the catalogue; those without a position come last, by name."""
        places = {name: place for place, name in enumerate(self.methods)}
        return sorted(set(methods), key=lambda name: (places.get(name, len(places)), name))
