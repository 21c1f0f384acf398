"""Service status outside: PostgreSQL, Redis, and the queue between monitor and processor."""
