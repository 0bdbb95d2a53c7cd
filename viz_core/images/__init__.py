"""Pictures in: opening what a person brings, preprocessing, and samples that this project drew."""
