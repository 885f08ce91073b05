"""Spool files -> Recording."""
