//! What may be minted (spec: "Access").

use crate::refusal::Refusal;
use fuse_api::keys::CreateKey;

/// The longest label, in bytes.
pub const MAX_LABEL: usize = 128;

/// Checks the request for a full-access key, and gives its label. Such a key takes neither scopes, ttl, env_id nor actor.
///
/// # Errors
/// Names the member that is wrong; a scoped key is not served by this release.
pub fn full_access(request: &CreateKey) -> Result<String, Refusal> {
    if request.scopes.as_ref().is_some_and(|s| !s.is_empty()) {
        return Err(Refusal::Unserved(
            "scopes: this release mints full-access keys only".into(),
        ));
    }
    let scoped_only = [
        ("ttl_seconds", request.ttl_seconds.is_some()),
        ("env_id", request.env_id.is_some()),
        ("actor", request.actor.is_some()),
    ];
    if let Some((name, _)) = scoped_only.iter().find(|(_, given)| *given) {
        return Err(Refusal::invalid(
            *name,
            "belongs to a key with scopes; a full-access key takes a label only",
        ));
    }
    let label = request.label.clone().unwrap_or_default();
    if label.len() > MAX_LABEL {
        return Err(Refusal::invalid(
            "label",
            format!("is {} bytes long; {MAX_LABEL} are allowed", label.len()),
        ));
    }
    if label.chars().any(char::is_control) {
        return Err(Refusal::invalid("label", "holds control characters"));
    }
    Ok(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_access_key_takes_a_label_and_nothing_else() {
        let plain = CreateKey {
            label: Some("ci".into()),
            ..CreateKey::default()
        };
        assert_eq!(full_access(&plain), Ok("ci".into()));
        let bad = CreateKey {
            ttl_seconds: Some(60),
            ..plain.clone()
        };
        assert!(
            matches!(full_access(&bad), Err(Refusal::Invalid(v)) if v[0].path == "ttl_seconds")
        );
        let long = CreateKey {
            label: Some("x".repeat(129)),
            ..plain
        };
        assert!(full_access(&long).is_err());
    }
}
