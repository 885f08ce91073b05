"""How much runs differ by with nothing changed: what a prediction must allow for, and a comparison too."""

RUNS_DIFFER = 0.05  # of a metric: two runs of one program on one machine, with nothing changed
