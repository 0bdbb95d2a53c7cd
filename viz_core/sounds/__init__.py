"""Sounds: opening uploaded files, and a synthetic sample."""
