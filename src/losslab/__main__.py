"""``python -m losslab`` is the command ``losslab``."""

import sys

from losslab.cli import main

if __name__ == "__main__":
    sys.exit(main())
