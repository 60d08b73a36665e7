"""Several servers on one PostgreSQL database: one leads, the others stand by."""
