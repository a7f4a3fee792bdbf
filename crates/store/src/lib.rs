//! The ledger, queries and sealing on PostgreSQL and SQLite.
