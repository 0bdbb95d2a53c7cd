"""Where models run: in this process, in worker processes, or on Ray Serve."""
