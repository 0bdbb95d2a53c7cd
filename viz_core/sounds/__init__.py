"""Sounds in: opening what people bring, and a drawn sample."""
