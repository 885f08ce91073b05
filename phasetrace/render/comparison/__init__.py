"""Comparison -> str: text for a terminal, JSON, Markdown."""
