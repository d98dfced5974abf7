"""Compiled array functions. In a terminal or a notebook, a message tells the user when compiling takes long."""

from fairclust.kernels.compiling import announce, separate_processors

announce()
separate_processors()
