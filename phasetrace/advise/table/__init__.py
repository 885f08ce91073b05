"""From a table of numbers to a Diagnosis: rules for means instead of steps. Pure.

The joint: a table comes in as `model.Table`, a `model.Diagnosis` goes out, as from a recording. Between stand
`view` (a group with what holds for all, and pairs of groups) and `rules` (one function a cause).
"""
