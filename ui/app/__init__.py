"""The app around the pages: entry script, warm-up, middleware, index page, error page."""
