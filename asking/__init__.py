"""What models can be asked, and where they run: in this process, or on a pool of machines."""
