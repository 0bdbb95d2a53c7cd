"""What computing needs besides mathematics: a device, all cores, a stopwatch, a way to be interrupted."""
