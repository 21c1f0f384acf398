"""The SQLite store's schema, one numbered file a step; a file that was released is never edited."""
