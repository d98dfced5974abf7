"""Reading the configuration of a run, for the commands that look at one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from fairclust.cli import CommandError
from fairclust.pipeline.config import Config, laid_over, load_config, read_yaml

SHIPPED = Path("config/config.yaml")


def load(configfiles: list[Path]) -> Config:
    """The configuration of a run. CommandError if there is none, ConfigError if it is not valid."""
    if not SHIPPED.is_file():
        raise CommandError(
            f"there is no {SHIPPED}: run this in the folder that holds `config` and `workflow`"
        )
    sys.path.insert(0, str(Path.cwd()))  # for the user's classes in this folder
    user: dict[str, Any] = {}
    shipped = read_yaml(SHIPPED)
    for path in configfiles:
        user = laid_over(user, read_yaml(path))
    origin = " with ".join(map(str, (SHIPPED, *configfiles)))
    return load_config(laid_over(shipped, user), user=user, origin=origin)
