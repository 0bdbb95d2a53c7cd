"""Fields whose tokens have places in a drawing, one file each."""
