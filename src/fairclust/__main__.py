"""``python -m fairclust`` is the command ``fairclust``."""

import sys

from fairclust.cli import main

if __name__ == "__main__":
    sys.exit(main())
