"""Every private name of uvicorn that the project uses."""
