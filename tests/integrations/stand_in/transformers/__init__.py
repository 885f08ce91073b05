"""Forty lines that are hooked like transformers, for Pythons on which no engine is installed."""

__version__ = "5.24.0"
