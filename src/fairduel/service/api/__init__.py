"""HTTP around a service; ``http.md`` in the folder above lists the routes."""
