"""Pictures: opening uploaded files, preprocessing, and drawn samples."""
