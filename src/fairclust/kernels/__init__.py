"""Compiled array functions. A message tells a user who waits that they are being compiled."""

from fairclust.kernels.compiling import announce, save_under_own_names

announce()
save_under_own_names()
