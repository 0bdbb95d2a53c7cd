"""What guards and completes HTTP: security headers, rate limits, the web-socket gate, upload limits, static scripts."""
