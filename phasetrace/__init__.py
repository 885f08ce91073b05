"""phasetrace shows where the time of LLM requests goes, and what to change.

The rooms of this package and the arrows between them are described in docs/architecture.md.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
