"""Migrations of the tables, one file per released schema."""
