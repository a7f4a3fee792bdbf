-- One life cycle without group commit: a request is raised, then approved, each in a transaction of its own with its entry
-- in the hash chain. Run it with -M prepared and -D n=0, on a database that the store has brought into shape.
--
-- What the ledger does beside it is left out, in this script's favour: it does not read the environment, does not count what
-- is pending there, does not read the row that it decides, and wakes nobody. The chain's lock is taken as late as it can be.
\set n :n + 1
BEGIN;
INSERT INTO interventions (id, env_uid, env_id, kind, state, version, deadline, created_at, on_timeout, require_actor, run,
    raised_id, raised_name, raised_source, payload, payload_len)
VALUES ('int_' || lpad(to_hex(:n::bigint), 16, '0') || lpad(to_hex(:client_id::bigint), 16, '0'),
    '0190aaaabbbbccccddddeeeeffff0000', 'fuse-bench', 'ask', 'pending', 1, 4000000000000000, 1800000000000000, 'reject', 0,
    'nothing', 'master', 'master', 'key', convert_to(repeat('p', 120), 'UTF8'), 120);
SELECT seq, hash FROM chain_head WHERE id = 1 FOR UPDATE \gset
INSERT INTO audit_log (seq, event, at, env_id, intervention_id, surface, gate, actor_id, actor_name, actor_source,
    remote_addr, prev_hash, hash)
VALUES (:seq::bigint + 1, 'raised', 1800000000000000, 'fuse-bench',
    'int_' || lpad(to_hex(:n::bigint), 16, '0') || lpad(to_hex(:client_id::bigint), 16, '0'),
    'ask', '', 'master', 'master', 'key', '127.0.0.1', :hash::text,
    encode(sha256(convert_to(:hash::text || 'raised' || :n::bigint || :client_id::bigint, 'UTF8')), 'hex'));
UPDATE chain_head SET seq = :seq::bigint + 1,
    hash = encode(sha256(convert_to(:hash::text || 'raised' || :n::bigint || :client_id::bigint, 'UTF8')), 'hex')
WHERE id = 1;
COMMIT;
BEGIN;
UPDATE interventions SET version = 2, state = 'approved', resolved_at = 1800000001000000, outcome = 'approve',
    decided_at = 1800000001000000, decided_id = 'master', decided_name = 'master', decided_source = 'key',
    answer = convert_to('yes', 'UTF8'), reason = convert_to('', 'UTF8')
WHERE id = 'int_' || lpad(to_hex(:n::bigint), 16, '0') || lpad(to_hex(:client_id::bigint), 16, '0') AND version = 1;
SELECT seq, hash FROM chain_head WHERE id = 1 FOR UPDATE \gset
INSERT INTO audit_log (seq, event, at, env_id, intervention_id, surface, gate, actor_id, actor_name, actor_source,
    remote_addr, prev_hash, hash)
VALUES (:seq::bigint + 1, 'decided', 1800000001000000, 'fuse-bench',
    'int_' || lpad(to_hex(:n::bigint), 16, '0') || lpad(to_hex(:client_id::bigint), 16, '0'),
    'ask', '', 'master', 'master', 'key', '127.0.0.1', :hash::text,
    encode(sha256(convert_to(:hash::text || 'decided' || :n::bigint || :client_id::bigint, 'UTF8')), 'hex'));
UPDATE chain_head SET seq = :seq::bigint + 1,
    hash = encode(sha256(convert_to(:hash::text || 'decided' || :n::bigint || :client_id::bigint, 'UTF8')), 'hex')
WHERE id = 1;
COMMIT;
