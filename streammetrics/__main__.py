"""``python -m streammetrics``."""

import sys

from streammetrics.cli import main

if __name__ == "__main__":
    sys.exit(main())
