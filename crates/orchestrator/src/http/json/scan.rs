//! The reading that knows no types.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::HashSet;
use std::fmt;

/// What is wrong, and where: a path and a message.
pub type Complaint = (String, String);

/// Goes through a text once and finds the first thing that no typed reading would complain about.
pub fn scan(text: &str) -> Result<(), Complaint> {
    let mut trail = Trail::default();
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = Scan(&mut trail)
        .deserialize(&mut reader)
        .and_then(|()| reader.end());
    match (read, trail.found) {
        (Ok(()), _) => Ok(()),
        (Err(_), Some(complaint)) => Err(complaint),
        (Err(error), None) => Err(("body".to_owned(), format!("is not JSON: {error}"))),
    }
}

#[derive(Default)]
struct Trail {
    steps: Vec<Step>,
    found: Option<Complaint>,
}

enum Step {
    Key(String),
    Index(usize),
}

impl Trail {
    /// Notes a complaint at the place that the reading has come to. The error itself only ends the reading.
    fn complain<E: Error>(&mut self, message: &str) -> E {
        self.found = Some((self.path(), message.to_owned()));
        E::custom(message)
    }

    fn path(&self) -> String {
        use fmt::Write as _;
        let mut path = String::new();
        for step in &self.steps {
            // Writing into a String cannot fail.
            let _ = match step {
                Step::Key(key) if path.is_empty() => write!(path, "{key}"),
                Step::Key(key) => write!(path, ".{key}"),
                Step::Index(index) => write!(path, "[{index}]"),
            };
        }
        if path.is_empty() {
            path.push_str("body");
        }
        path
    }
}

struct Scan<'t>(&'t mut Trail);

impl<'de> DeserializeSeed<'de> for Scan<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Scan<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        if text.contains('\0') {
            return Err(self.0.complain("holds a NUL character"));
        }
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        for index in 0.. {
            self.0.steps.push(Step::Index(index));
            if items.next_element_seed(Scan(self.0))?.is_none() {
                self.0.steps.pop();
                break;
            }
            self.0.steps.pop();
        }
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = members.next_key::<String>()? {
            self.0.steps.push(Step::Key(key.clone()));
            if key.contains('\0') {
                return Err(self.0.complain("the key holds a NUL character"));
            }
            if !seen.insert(key) {
                return Err(self.0.complain("the key stands there twice"));
            }
            members.next_value_seed(Scan(self.0))?;
            self.0.steps.pop();
        }
        Ok(())
    }
}
