"""json and jsonb: documents as texts, their modification and order, and SQL/JSON paths."""
