"""The entry point for a public server: the same app under the hosted profile. `python hosted.py`, or `make host`."""

if __name__ == "__main__":  # a worker process imports this file under another name
    from ui.app.public_server import run

    run()
