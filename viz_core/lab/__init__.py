"""Science on loaded models, without a server: scans of every head over many texts, and what follows from them."""
