"""What many visitors at once need: settings, compute slots, bounded memory, metrics, models on other machines."""
