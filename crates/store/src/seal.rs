//! Content at rest (spec: "Where the content lives").
//!
//! A stored value starts with a byte that tells its form. `0`: the content itself, written while no key was given. `1`: eight
//! bytes that name the key, a nonce of 24 bytes, and the content sealed with XChaCha20-Poly1305. Table, row id and column are
//! authenticated along with it, so a value that was moved to another place does not open there.
//!
//! A store that gets its first key seals from then on; what was written before stays readable as it is.

use crate::error::StoreError;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac};
use rand::Rng;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use zeroize::Zeroizing;

const PLAIN: u8 = 0;
const SEALED: u8 = 1;
const KEY_ID: usize = 8;
const NONCE: usize = 24;

/// A text is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 32 bytes, as 64 hex digits or base64")]
pub struct KeyError;

/// Seals and opens content. Cheap to clone. It has no `Debug`, since it holds the key.
#[derive(Clone)]
pub struct Sealer(Option<Arc<Key>>);

struct Key {
    bytes: Zeroizing<[u8; 32]>,
    id: [u8; KEY_ID],
}

/// Where a value is stored.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub table: &'static str,
    pub row: &'a str,
    pub column: &'static str,
}

impl Place<'_> {
    fn aad(&self) -> Vec<u8> {
        // Table and column are this crate's own names, without NUL, so that the parts cannot run into one another.
        [self.table, self.column, self.row].join("\0").into_bytes()
    }

    fn corrupt(&self) -> StoreError {
        StoreError::corrupt(self.table, self.row, self.column)
    }
}

impl Sealer {
    /// Stores content as it is. For development.
    #[must_use]
    pub const fn plain() -> Self {
        Self(None)
    }

    /// Reads the key of `TOKEN_ENCRYPTION_KEY`: 32 bytes, as 64 hex digits or base64 (spec: "Where the content lives").
    ///
    /// # Errors
    /// The text is neither.
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let mut bytes = Zeroizing::new([0_u8; 32]);
        if text.len() == 64 {
            hex::decode_to_slice(text, &mut bytes[..]).map_err(|_| KeyError)?;
        } else {
            let decoded = Zeroizing::new(BASE64_STANDARD.decode(text).map_err(|_| KeyError)?);
            if decoded.len() != bytes.len() {
                return Err(KeyError);
            }
            bytes.copy_from_slice(&decoded);
        }
        Ok(Self::from_key(bytes))
    }

    /// Takes the key itself.
    #[must_use]
    pub fn from_key(bytes: Zeroizing<[u8; 32]>) -> Self {
        let digest = Sha256::new()
            .chain_update(b"fuse key id v1\0")
            .chain_update(&bytes[..])
            .finalize();
        let mut id = [0; KEY_ID];
        id.copy_from_slice(&digest[..KEY_ID]);
        Self(Some(Arc::new(Key { bytes, id })))
    }

    /// Whether content is stored in the clear.
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.0.is_none()
    }

    /// The public name of the key, in hex; none without a key.
    #[must_use]
    pub fn key_id(&self) -> Option<String> {
        self.0.as_ref().map(|key| hex::encode(key.id))
    }

    pub(crate) fn seal(&self, place: Place<'_>, content: &[u8]) -> Result<Vec<u8>, StoreError> {
        let Some(key) = &self.0 else {
            return Ok([&[PLAIN], content].concat());
        };
        let mut nonce = [0_u8; NONCE];
        rand::rng().fill_bytes(&mut nonce);
        // It fails only for content beyond 256 GiB.
        let sealed = key
            .cipher()
            .encrypt(
                &XNonce::from(nonce),
                Payload {
                    msg: content,
                    aad: &place.aad(),
                },
            )
            .map_err(|_| place.corrupt())?;
        Ok([&[SEALED][..], &key.id, &nonce, &sealed].concat())
    }

    pub(crate) fn open(&self, place: Place<'_>, stored: &[u8]) -> Result<Vec<u8>, StoreError> {
        match (stored.split_first(), &self.0) {
            (Some((&PLAIN, content)), _) => Ok(content.to_vec()),
            (Some((&SEALED, rest)), Some(key)) if rest.len() > KEY_ID + NONCE => {
                let (id, rest) = rest.split_at(KEY_ID);
                let (nonce, sealed) = rest.split_at(NONCE);
                let nonce = <[u8; NONCE]>::try_from(nonce).map_err(|_| place.corrupt())?;
                if id != key.id {
                    return Err(place.corrupt());
                }
                key.cipher()
                    .decrypt(
                        &XNonce::from(nonce),
                        Payload {
                            msg: sealed,
                            aad: &place.aad(),
                        },
                    )
                    .map_err(|_| place.corrupt())
            }
            (Some(_) | None, _) => Err(place.corrupt()),
        }
    }

    /// A name for a value that does not let who reads the database guess it: what equality is looked up by.
    pub(crate) fn blind(&self, value: &str) -> String {
        let Some(key) = &self.0 else {
            return value.to_owned();
        };
        let derived = Zeroizing::new(<[u8; 32]>::from(
            Sha256::new()
                .chain_update(b"fuse blind v1\0")
                .chain_update(&key.bytes[..])
                .finalize(),
        ));
        let Ok(mut mac) = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(&derived[..]) else {
            unreachable!("HMAC takes a key of any length")
        };
        mac.update(value.as_bytes());
        hex::encode(mac.finalize().into_bytes())
    }
}

impl Key {
    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&*self.bytes).into())
    }
}

/// The id of the key that a stored value names; none for a plain one.
pub(crate) fn key_id_of(stored: &[u8]) -> Option<String> {
    match stored.split_first() {
        Some((&SEALED, rest)) if rest.len() >= KEY_ID => Some(hex::encode(&rest[..KEY_ID])),
        Some(_) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(row: &str) -> Place<'_> {
        Place {
            table: "t",
            row,
            column: "c",
        }
    }

    // check: SEAL-6
    #[test]
    fn a_key_is_32_bytes_in_hex_or_base64() {
        let hex = "00".repeat(32);
        let base64 = BASE64_STANDARD.encode([0_u8; 32]);
        let ids: Vec<_> = [&hex, &base64, &format!(" {hex}\n")]
            .into_iter()
            .map(|text| Sealer::from_text(text).map(|s| s.key_id()))
            .collect();
        assert_eq!(ids[0], ids[1]);
        assert_eq!(ids[0], ids[2]);
        let short = BASE64_STANDARD.encode([0_u8; 31]);
        for bad in ["", "abc", &"zz".repeat(32), &"00".repeat(31), &short] {
            assert!(Sealer::from_text(bad).is_err(), "{bad}");
        }
    }

    // check: SEAL-2
    #[test]
    fn a_value_opens_in_its_own_place_only() {
        let sealer = Sealer::from_key(Zeroizing::new([7; 32]));
        let stored = sealer.seal(place("r"), b"content").expect("seals");
        assert_eq!(sealer.open(place("r"), &stored).expect("opens"), b"content");
        let elsewhere = [
            place("s"),
            Place {
                table: "u",
                ..place("r")
            },
            Place {
                column: "d",
                ..place("r")
            },
        ];
        for other in elsewhere {
            assert!(sealer.open(other, &stored).is_err());
        }
    }

    // check: SEAL-1
    #[test]
    fn an_altered_or_cut_value_does_not_open() {
        let sealer = Sealer::from_key(Zeroizing::new([7; 32]));
        let stored = sealer.seal(place("r"), b"content").expect("seals");
        assert!(!stored.windows(7).any(|w| w == b"content"));
        for i in 1..stored.len() {
            let mut altered = stored.clone();
            altered[i] ^= 1;
            assert!(sealer.open(place("r"), &altered).is_err(), "byte {i}");
            assert!(sealer.open(place("r"), &stored[..i]).is_err(), "cut at {i}");
        }
        assert!(sealer.open(place("r"), &[]).is_err());
    }

    // check: SEAL-3
    #[test]
    fn a_value_names_its_key_and_opens_with_no_other() {
        let (one, two) = ([1; 32], [2; 32]);
        let (one, two) = (
            Sealer::from_key(Zeroizing::new(one)),
            Sealer::from_key(Zeroizing::new(two)),
        );
        let stored = one.seal(place("r"), b"content").expect("seals");
        assert_eq!(key_id_of(&stored), one.key_id());
        assert_ne!(one.key_id(), two.key_id());
        assert!(two.open(place("r"), &stored).is_err());
        assert!(Sealer::plain().open(place("r"), &stored).is_err());
    }

    // check: SEAL-4
    #[test]
    fn without_a_key_content_stays_readable_also_once_there_is_one() {
        let stored = Sealer::plain()
            .seal(place("r"), b"content")
            .expect("stores");
        let keyed = Sealer::from_key(Zeroizing::new([1; 32]));
        assert_eq!(keyed.open(place("r"), &stored).expect("opens"), b"content");
        assert_eq!(key_id_of(&stored), None);
    }
}
