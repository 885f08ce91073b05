"""`python -m phasetrace` is the `phasetrace` command."""

import sys

from phasetrace.cli import main

sys.exit(main())
