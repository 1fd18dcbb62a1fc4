"""Image of drivers and executors: its Dockerfile, its entry point and its class archive."""
