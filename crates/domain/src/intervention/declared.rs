//! Which kinds an environment's agent may raise: those its policy declares (spec: "Declaring it").

use crate::policy::Policy;
use crate::refusal::Refusal;
use fuse_api::intervention::Kind;

/// Checks that the environment's policy declares a kind of request.
///
/// # Errors
/// It was created without a `hitl` block, or the block does not declare the kind.
pub fn check(policy: Option<&Policy>, kind: Kind) -> Result<&Policy, Refusal> {
    let Some(policy) = policy else {
        return Err(Refusal::invalid(
            "kind",
            "this environment was created without a hitl block, so it takes no requests",
        ));
    };
    let requests = &policy.block().requests;
    let declared = match kind {
        Kind::Ask => requests.ask.is_some(),
        Kind::Review => requests.review.is_some(),
        Kind::Secret => requests.secret.is_some(),
        Kind::Takeover => requests.takeover.is_some(),
        Kind::Exec | Kind::Lifecycle | Kind::Computer | Kind::Stall | Kind::Expiry => false,
    };
    if declared {
        return Ok(policy);
    }
    let all = [
        ("ask", requests.ask.is_some()),
        ("review", requests.review.is_some()),
        ("secret", requests.secret.is_some()),
        ("takeover", requests.takeover.is_some()),
    ];
    let known: Vec<&str> = all
        .iter()
        .filter(|(_, yes)| *yes)
        .map(|(name, _)| *name)
        .collect();
    Err(Refusal::invalid(
        "kind",
        format!(
            "{kind} is not declared under hitl.requests of this environment; declared: {}",
            if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            }
        ),
    ))
}
