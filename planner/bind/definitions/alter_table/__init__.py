"""The actions of ALTER TABLE: a table's definition is read into an ``Alteration``, changed, and checked at the end."""
