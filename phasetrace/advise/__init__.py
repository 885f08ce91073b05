"""From a Breakdown to a Diagnosis: rules name causes, ranked by what their fix wins on the goal. Pure."""

from phasetrace.advise.diagnosis import diagnose
from phasetrace.advise.goals import parse_slo
from phasetrace.advise.table.diagnosis import diagnose_table

__all__ = ["diagnose", "diagnose_table", "parse_slo"]
