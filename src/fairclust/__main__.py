"""``python -m fairclust`` is the command ``fairclust``."""

import sys

from fairclust.cli import main

sys.exit(main())
