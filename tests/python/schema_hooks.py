"""What no schema can say, put right in generated requests that are meant to be taken.

A request that keeps to the document may still break a rule across members: a name that has to be a key of `secrets`, an action in
the query that has to fit the body. Here such a pair is made to fit and everything else is left as generated, so that no operation
needs an exemption from the check that good requests are taken. Requests that are meant to be refused are not touched.
"""

import schemathesis

# The server may call it, and nobody listens there.
NOWHERE = "http://127.0.0.1:9/"
# The environment that has to outlive the run.
KEPT = "fuse-kept-"
ANY_GRANT = "ttl:30m"
APPROVAL_ONLY = {"answer", "edited_argv", "edited_text", "grant", "extend_seconds"}


def fit_gates(block):
    """Names are unique, only an ask gate is approved, and a grant lasts 10 seconds to 24 hours. Yields the names of secrets."""
    names = set()
    for number, gate in enumerate(block.get("gates") or []):
        if gate["name"] in names or gate["name"] in ("system", "exec.default"):
            gate["name"] = f"gate-{number}"
        names.add(gate["name"])
        if gate.get("mode") not in (None, "ask"):
            gate.pop("grant", None)
            gate.pop("decide", None)
        if (gate.get("grant") or "").startswith("ttl:"):
            gate["grant"] = ANY_GRANT
        if gate.get("decide"):
            # The ports and the numeric hosts that an address may have are more than a pattern can tell.
            gate["decide"]["url"] = NOWHERE
            yield gate["decide"]["secret"]
    for hook in block.get("notify") or []:
        hook["webhook"] = NOWHERE
        yield hook["secret"]


def fit_targets(block):
    """Each place is declared once, and none lies where Fuse keeps its own files."""
    secret = (block.get("requests") or {}).get("secret") or {}
    for number, target in enumerate(secret.get("targets") or []):
        if "env" in target:
            target["env"] = f"{target['env'][:200]}_{number}"
        if "file" in target:
            target["file"] = f"/root/{number}"


def fit_environment(body):
    """A secret that is named is there; a signal is ahead of a reaper; a desktop takeover has a desktop; there is one host."""
    block = body.get("hitl") or {}
    spec = body.get("spec") or {}
    named = [variable["secret"] for variable in (body.get("env") or {}).values() if "secret" in variable]
    named += fit_gates(block)
    fit_targets(block)
    if isinstance(body.get("run"), list):
        fit_program(body["run"])
    if named:
        body["secrets"] = {**{name: "s" for name in named}, **(body.get("secrets") or {})}
    if any(gate["on"] == "expiry" for gate in block.get("gates") or []):
        spec["idle_timeout_seconds"] = 86_401
        body["spec"] = spec
    via = ((block.get("requests") or {}).get("takeover") or {}).get("via") or []
    if "desktop" in via and not body.get("desktop"):
        body["desktop"] = {"width": 800, "height": 600}
    # A host by its id is one that is there.
    spec.pop("host_id", None)
    if spec.get("image") is not None:
        spec["image"] = "host"
    files = body.get("files") or {}
    if files:
        # One may not lie in another, or in a folder of the kernel's.
        body["files"] = {f"/srv/{number}": content for number, content in enumerate(files.values())}


def fit_program(argv):
    """The first item of a command names the program."""
    if argv and argv[0] == "":
        argv[0] = "true"


def fit_action(case):
    """The action in the query is one that the form of the body is for."""
    action = case.query.get("action")
    for name in ("cmd", "edited_argv"):
        fit_program(case.body.get(name))
    if action in ("exec", "request"):
        case.query["action"] = "request" if "kind" in case.body else "exec"
        if "path" in case.body:
            # A review is of a file that is there.
            case.body["path"] = "/etc/passwd"
    if action in ("approve", "reject"):
        is_rejection = "reason" in case.body and not APPROVAL_ONLY & set(case.body)
        blank = not (case.body.get("reason") or "").strip()
        case.query["action"] = "reject" if is_rejection and not blank and action == "reject" else "approve"


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.method == "DELETE" and str((case.path_parameters or {}).get("id")).startswith(KEPT):
        case.path_parameters["id"] = "fuse-nobody-has-this"
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if case.query and "cursor" in case.query:
        # It is what the page before gave, and nothing else.
        del case.query["cursor"]
    if case.headers and "Fuse-Actor-Name" in case.headers and "Fuse-Actor" not in case.headers:
        del case.headers["Fuse-Actor-Name"]
    if isinstance(case.body, dict):
        if case.operation.path == "/v1/environments":
            fit_environment(case.body)
        elif case.query:
            fit_action(case)
