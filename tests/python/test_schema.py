"""Generated requests against the live server: it takes what its own document allows, refuses what it does not, and answers as said."""

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

HOOKS = Path(__file__).with_name("schema_hooks.py")
SEED = "20260101"
LIMIT = 240
# A 501 is a promise for later, not a fault. Ids that are there let requests reach the calls behind them: a generated one is
# always a 404.
CONFIG = """
hooks = "{hooks}"

[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", 501]

# What a valid request may meet: the state of things, a body or a review over its size, and what later releases serve.
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 403, 404, 409, 413, 501]

# What an invalid one may meet: the state counts before the content does, and the size before either.
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 409, 413, 501]

[[operations]]
include-operation-id = ["get_environment", "act_on_environment"]
parameters = {{ "path.id" = "{environment}" }}

# The document describes the data of an event, not the lines around it. A stream that is there would not end.
[[operations]]
include-operation-id = ["watch_environment"]
parameters = {{ "path.id" = "fuse-nobody-has-this" }}
checks = {{ response_schema_conformance = {{ enabled = false }} }}

[[operations]]
include-operation-id = ["get_intervention", "decide_intervention"]
parameters = {{ "path.id" = "{intervention}" }}
"""
# Every kind is declared, and deadlines may be as long as they get, so that each request for a person is in order.
POLICY = {
    "timeout_seconds": 86_400,
    "requests": {
        "ask": {},
        "review": {},
        "secret": {"targets": [{"env": "TOKEN", "label": "A token"}]},
        "takeover": {},
    },
    "exec": {"default": "ask", "allow": ["true"]},
}


def configured(server, tmp_path):
    """A file of settings that names an environment and an intervention that is settled, so that no read waits for it."""
    with server.api() as api:
        environment = api.post("/v1/environments", json={"task_id": f"kept-{secrets.token_hex(6)}", "hitl": POLICY})
        environment = environment.raise_for_status().json()["id"]
        asked = api.post(f"/v1/environments/{environment}?action=request", json={"kind": "ask", "question": "Q?"})
        intervention = asked.raise_for_status().json()["id"]
        api.post(f"/v1/interventions/{intervention}?action=approve", json={}).raise_for_status()
    file = tmp_path / "schemathesis.toml"
    file.write_text(CONFIG.format(hooks=HOOKS, environment=environment, intervention=intervention))
    return file


def run(server, token, tmp_path, phases, examples):
    command = [
        Path(sys.executable).with_name("schemathesis"),
        "--config-file",
        configured(server, tmp_path),
        "run",
        f"{server.url}/v1/openapi.json",
        "--header",
        f"Authorization: Bearer {token}",
        "--checks",
        "all",
        "--phases",
        phases,
        "--max-examples",
        str(examples),
        "--seed",
        SEED,
        # No text that JSON carries to this server holds one; a test of its own says so.
        "--generation-allow-x00",
        "false",
        "--generation-database",
        "none",
        "--continue-on-failure",
        "--request-timeout",
        "60",
        # Threads would make the order depend on the machine; and the compiler of Python 3.11 is not safe in several at once.
        "--workers",
        "1",
        "--no-color",
    ]
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "NO_COLOR": "1"}
    ran = subprocess.run(command, cwd=tmp_path, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT)
    # A generated text may be very long.
    told = "\n".join(line[:600] for line in ran.stdout.splitlines())
    assert ran.returncode == 0, f"{told[-12000:]}\n{ran.stderr[-2000:]}"
    # It really called something, in each of its phases.
    assert "generated" in ran.stdout, ran.stdout
    assert "API Links:" in ran.stdout, ran.stdout


# check: HTTP-11, HTTP-12, HTTP-17, HTTP-19
@pytest.mark.parametrize(
    ("credential", "phases", "examples"),
    [("master", "examples,coverage,fuzzing,stateful", 60), ("key", "fuzzing,stateful", 8)],
)
def test_requests_and_answers_keep_to_the_document(server, tmp_path, credential, phases, examples):
    token = server.token
    if credential == "key":
        with server.api() as api:
            token = api.post("/v1/api-keys", json={"label": "schema"}).json()["key"]
    run(server, token, tmp_path, phases, examples)
    faults = [line for line in server.log if " 500 " in line or "panicked" in line or "status=500" in line]
    assert faults == []
    server.destroy_all()
