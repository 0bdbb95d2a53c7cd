"""Requests to models: a text, a picture or a sound, with a key under which the result is cached."""
