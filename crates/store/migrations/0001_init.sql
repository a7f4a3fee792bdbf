-- One text for PostgreSQL and SQLite. Times are microseconds since 1970 UTC, booleans are 0 or 1, sealed columns are BYTEA.

CREATE TABLE environments (
    uid           TEXT PRIMARY KEY,
    id            TEXT NOT NULL,
    task_id       TEXT NOT NULL,
    host_id       TEXT NOT NULL,
    state         TEXT NOT NULL,
    url           TEXT NOT NULL,
    spec          TEXT NOT NULL,
    hitl          TEXT,
    has_task      BIGINT NOT NULL,
    error         TEXT,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    started_at    BIGINT,
    last_activity BIGINT NOT NULL,
    idle_timeout  BIGINT,
    max_runtime   BIGINT
);
-- A name is free again once its environment is destroyed.
CREATE UNIQUE INDEX environments_live_id ON environments (id) WHERE state <> 'destroyed';
CREATE INDEX environments_live_list ON environments (created_at, uid) WHERE state <> 'destroyed';
CREATE INDEX environments_live_host ON environments (host_id) WHERE state <> 'destroyed';

CREATE TABLE interventions (
    id              TEXT PRIMARY KEY,
    env_uid         TEXT NOT NULL,
    env_id          TEXT NOT NULL,
    kind            TEXT NOT NULL,
    state           TEXT NOT NULL,
    version         BIGINT NOT NULL,
    deadline        BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    resolved_at     BIGINT,
    gate            TEXT,
    mode            TEXT,
    on_timeout      TEXT NOT NULL,
    require_actor   BIGINT NOT NULL,
    run             TEXT NOT NULL,
    run_instance    TEXT,
    raised_id       TEXT NOT NULL,
    raised_name     TEXT NOT NULL,
    raised_source   TEXT NOT NULL,
    raised_key      TEXT,
    payload         BYTEA NOT NULL,
    payload_len     BIGINT NOT NULL,
    outcome         TEXT,
    granted         TEXT,
    decided_at      BIGINT,
    decided_id      TEXT,
    decided_name    TEXT,
    decided_source  TEXT,
    decided_key     TEXT,
    answer          BYTEA,
    reason          BYTEA,
    edited_argv     BYTEA,
    edited_text     BYTEA,
    result          BYTEA,
    CHECK ((state = 'pending') = (outcome IS NULL))
);
-- An id starts with its time, so that the primary key is the list in order. Few indexes keep a mass expiry quick: each one
-- that is not limited to pending rows costs an entry per change.
CREATE INDEX interventions_env_list ON interventions (env_id, id);
CREATE INDEX interventions_raised_by ON interventions (raised_id, id);
CREATE INDEX interventions_decided_by ON interventions (decided_id, id) WHERE decided_source <> 'system';
CREATE INDEX interventions_pending_list ON interventions (id) WHERE state = 'pending';
CREATE INDEX interventions_pending_env ON interventions (env_uid) WHERE state = 'pending';
CREATE INDEX interventions_pending_due ON interventions (deadline, id) WHERE state = 'pending';
CREATE INDEX interventions_to_run ON interventions (run, id) WHERE run IN ('ready', 'started');

CREATE TABLE grants (
    env_uid         TEXT NOT NULL,
    key             TEXT NOT NULL,
    intervention_id TEXT NOT NULL,
    gate            TEXT NOT NULL,
    reach           TEXT NOT NULL,
    expires_at      BIGINT,
    created_at      BIGINT NOT NULL,
    -- An action that several gates held is granted for each of them.
    PRIMARY KEY (env_uid, key, gate, intervention_id)
);

CREATE TABLE api_keys (
    id            TEXT PRIMARY KEY,
    secret_sha256 TEXT NOT NULL UNIQUE,
    label         TEXT NOT NULL,
    scopes        TEXT NOT NULL,
    env_uid       TEXT,
    env_id        TEXT,
    actor_id      TEXT,
    actor_name    TEXT,
    created_at    BIGINT NOT NULL,
    expires_at    BIGINT,
    revoked_at    BIGINT,
    first_used_at BIGINT
);
CREATE INDEX api_keys_list ON api_keys (created_at, id);
CREATE INDEX api_keys_env ON api_keys (env_uid) WHERE env_uid IS NOT NULL;

CREATE TABLE audit_log (
    seq             BIGINT PRIMARY KEY,
    event           TEXT NOT NULL,
    at              BIGINT NOT NULL,
    env_id          TEXT,
    intervention_id TEXT,
    surface         TEXT NOT NULL,
    gate            TEXT NOT NULL,
    actor_id        TEXT NOT NULL,
    actor_name      TEXT NOT NULL,
    actor_source    TEXT NOT NULL,
    actor_key       TEXT,
    remote_addr     TEXT NOT NULL,
    recording_id    TEXT,
    prev_hash       TEXT NOT NULL,
    hash            TEXT NOT NULL
);
CREATE INDEX audit_log_env ON audit_log (env_id, seq) WHERE env_id IS NOT NULL;
CREATE INDEX audit_log_actor ON audit_log (actor_id, seq);
CREATE INDEX audit_log_at ON audit_log (at);

-- The end of the audit log. Every transaction of a ledger holds this row's lock from its first statement to its commit.
CREATE TABLE chain_head (
    id   BIGINT PRIMARY KEY,
    seq  BIGINT NOT NULL,
    hash TEXT NOT NULL
);
INSERT INTO chain_head (id, seq, hash)
VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');

-- What each open ledger committed last: tells whether a commit whose answer was lost took place.
CREATE TABLE ledgers (
    id         TEXT PRIMARY KEY,
    last_batch BIGINT NOT NULL,
    at         BIGINT NOT NULL
);

-- Names the key that content is sealed with.
CREATE TABLE sealing (
    name   TEXT PRIMARY KEY,
    canary BYTEA NOT NULL
);
