"""What `phasetrace.instrument()` starts: `python -m phasetrace.supervise`. See `follow`."""

import sys

from phasetrace.supervise import follow

follow.main(*sys.argv[1:])
