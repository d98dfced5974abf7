"""fairclust: fair clustering, compared honestly."""

__version__ = "0.1.0"
