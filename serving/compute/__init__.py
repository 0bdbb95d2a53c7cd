"""Bounded computation: slots with a queue, an LRU cache, process-wide singletons."""
