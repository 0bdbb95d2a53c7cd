"""Words, languages, numbers and messages."""
