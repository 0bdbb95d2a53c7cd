"""Models on the Hub and on this machine: names, files, downloads, and how much of them fits."""
