"""The server holds to its own OpenAPI document, whatever is thrown at it."""

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def run(server, token, *more):
    command = [
        pathlib.Path(sys.executable).parent / "st",
        "--config-file",
        HERE / "schemathesis.toml",
        "run",
        f"{server.url}/v1/openapi.json",
        "--header",
        f"Authorization:Bearer {token}",
        "--phases=examples,coverage,fuzzing",
        "--max-examples=12",
        "--max-time=45",
        "--seed=812",
        "--generation-database=none",
        # NUL is refused, and a test of its own says so.
        "--generation-allow-x00=false",
        # A wrong method is a 404 that names the right ones; and what a schema cannot say, the rules refuse.
        "--exclude-checks=unsupported_method,positive_data_acceptance",
        # An event stream does not end.
        "--exclude-path=/v1/environments/{id}/events",
        "--no-color",
        "--continue-on-failure",
        *more,
    ]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, cwd=HERE, check=False
    )


# check: HTTP-11 HTTP-12 HTTP-1
def test_answers_conform_to_the_document(server):
    done = run(server, server.token)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    # The run is no run where it could not reach the calls.
    found = re.search(r"(\d+) generated", done.stdout)
    assert found and int(found[1]) > 300, done.stdout[-3000:]


# check: HTTP-11 ACCESS-1
def test_refusals_conform_to_the_document_too(server):
    done = run(server, "fuse_sk_" + "0" * 64, "--max-examples=3")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_the_server_has_logged_no_fault(server):
    faults = [line for line in server.log if '"ERROR"' in line or " ERROR " in line]
    assert not faults, "".join(faults[:10])
