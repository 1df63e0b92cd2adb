"""json and jsonb: documents as texts, their modification and sort order, and SQL/JSON paths."""
