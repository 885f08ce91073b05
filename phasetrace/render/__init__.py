"""Diagnosis -> str: text for a terminal, JSON, Markdown, one request as a waterfall.

Pure: returns strings, prints nothing. The only room that converts nanoseconds. Every string that came out of
a trace passes `Ink.say` (or the encoder of its format) first: control characters are shown, never obeyed.
"""
