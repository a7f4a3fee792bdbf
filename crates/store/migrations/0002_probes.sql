-- What a server writes to see whether commits go through again, one row each.
CREATE TABLE probes (
    ledger TEXT PRIMARY KEY,
    filler BYTEA NOT NULL
);
