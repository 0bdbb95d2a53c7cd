"""Visitors' pictures and sounds, decoded in processes with limits."""
