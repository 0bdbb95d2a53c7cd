"""The frame of a chapter: controls, lazy parts, claims, exercises, sources, code, downloads."""
