"""Generated requests against the live server: what comes back is what its own document promises, and never a fault."""

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
]
LIMIT = 150
# A 501 is a promise for later, not a fault. Ids that are there let requests reach the calls behind them: a generated one is
# always a 404.
CONFIG = """
[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", 501]

[[operations]]
include-operation-id = ["get_environment", "act_on_environment"]
parameters = {{ "path.id" = "{environment}" }}

# It must outlive the run.
[[operations]]
include-operation-id = ["destroy_environment"]
parameters = {{ "path.id" = "fuse-nobody-has-this" }}

# The document describes the data of an event, not the lines around it.
[[operations]]
include-operation-id = ["watch_environment"]
parameters = {{ "path.id" = "fuse-nobody-has-this" }}
checks = {{ response_schema_conformance = {{ enabled = false }} }}

[[operations]]
include-operation-id = ["get_intervention", "decide_intervention"]
parameters = {{ "path.id" = "{intervention}" }}
"""


def configured(server, tmp_path):
    """A file of settings that names an environment and an intervention that is settled, so that no read waits for it."""
    with server.api() as api:
        policy = {"requests": {"ask": {}, "review": {}}, "exec": {"default": "ask", "allow": ["true"]}}
        environment = api.post("/v1/environments", json={"task_id": f"schema-{secrets.token_hex(6)}", "hitl": policy})
        environment = environment.raise_for_status().json()["id"]
        asked = api.post(f"/v1/environments/{environment}?action=request", json={"kind": "ask", "question": "Q?"})
        intervention = asked.raise_for_status().json()["id"]
        api.post(f"/v1/interventions/{intervention}?action=approve", json={}).raise_for_status()
    file = tmp_path / "schemathesis.toml"
    file.write_text(CONFIG.format(environment=environment, intervention=intervention))
    return file


def run(server, token, tmp_path):
    command = [
        Path(sys.executable).with_name("schemathesis"),
        "--config-file",
        configured(server, tmp_path),
        "run",
        f"{server.url}/v1/openapi.json",
        "--header",
        f"Authorization: Bearer {token}",
        "--checks",
        ",".join(CHECKS),
        "--phases",
        "examples,coverage,fuzzing",
        "--max-examples",
        "12",
        "--request-timeout",
        "60",
        "--workers",
        "2",
        "--no-color",
    ]
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "NO_COLOR": "1"}
    ran = subprocess.run(command, cwd=tmp_path, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT)
    assert ran.returncode == 0, f"{ran.stdout[-12000:]}\n{ran.stderr[-2000:]}"
    # It really called something.
    assert "generated" in ran.stdout or "passed" in ran.stdout, ran.stdout


# check: HTTP-11, HTTP-12
@pytest.mark.parametrize("credential", ["master", "key"])
def test_answers_keep_to_the_document(server, tmp_path, credential):
    token = server.token
    if credential == "key":
        with server.api() as api:
            token = api.post("/v1/api-keys", json={"label": "schema"}).json()["key"]
    run(server, token, tmp_path)
    faults = [line for line in server.log if " 500 " in line or "panicked" in line or "status=500" in line]
    assert faults == []
    server.destroy_all()
