"""Serving models to many people at once: runners, compute slots, bounded caches, HTTP limits, settings and metrics."""
