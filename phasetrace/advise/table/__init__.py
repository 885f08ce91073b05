"""From a table of numbers to a Diagnosis: what rules see of means, where there are no steps. Pure.

The joint: a table comes in as `model.Table`, a `model.Diagnosis` goes out, as from a recording. Between stand
`view` (a group with what holds for all, and pairs of groups), what several causes ask of it, and `told` (what
a rule answers).
"""
