"""Whole blocks that several chapters show."""
