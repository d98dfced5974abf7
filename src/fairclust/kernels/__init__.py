"""Compiled array functions. Whoever waits for the compiler in a terminal or a notebook is told so."""

from fairclust.kernels.compiling import announce

announce()
