//! What a run has put on record, and the conversation that follows from it.

use fisk_domain::session::{Record, Replay};
use fisk_llm::Message;

use crate::session::Journal;

/// The record of one run. Without a journal it is kept in memory alone, and everything else is the same.
#[derive(Debug)]
pub struct Log {
    replay: Replay,
    messages: Vec<Message>,
    journal: Option<Journal>,
}

impl Log {
    /// Begins a run with its first record, which is in the journal already where there is one.
    ///
    /// # Errors
    /// A record that begins no run.
    pub fn begin(first: Record, journal: Option<Journal>) -> Result<Self, String> {
        let mut replay = Replay::default();
        replay.apply(first).map_err(|error| error.to_string())?;
        Self::at(replay, journal)
    }

    /// Goes on where a record ended.
    ///
    /// # Errors
    /// The journal cannot be written, or its conversation is none.
    pub fn resume(replay: Replay, journal: Journal) -> Result<Self, String> {
        let mut log = Self::at(replay, Some(journal))?;
        log.record(Record::Resumed)?;
        Ok(log)
    }

    fn at(replay: Replay, journal: Option<Journal>) -> Result<Self, String> {
        let mut log = Self {
            replay,
            messages: Vec::new(),
            journal,
        };
        log.follow()?;
        Ok(log)
    }

    /// Where the run stands.
    pub fn replay(&self) -> &Replay {
        &self.replay
    }

    /// The conversation.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The name of the session, where there is one.
    pub fn session(&self) -> Option<&str> {
        self.journal.as_ref().map(Journal::name)
    }

    /// Whether the record can follow.
    ///
    /// # Errors
    /// Why not.
    pub fn admits(&self, record: &Record) -> Result<(), String> {
        self.replay
            .admits(record)
            .map_err(|error| error.to_string())
    }

    /// Puts a record into the journal, and only then takes it as a fact.
    ///
    /// # Errors
    /// It cannot follow, or the disk fails. What it announces must not happen then.
    pub fn record(&mut self, record: Record) -> Result<(), String> {
        self.admits(&record)?;
        if let Some(journal) = &mut self.journal {
            let name = journal.name().to_owned();
            journal
                .append(&record)
                .map_err(|error| format!("the session {name:?} cannot be written: {error}"))?;
        }
        self.replay
            .apply(record)
            .map_err(|error| error.to_string())?;
        self.follow()
    }

    fn follow(&mut self) -> Result<(), String> {
        for value in &self.replay.messages()[self.messages.len()..] {
            let message = serde::Deserialize::deserialize(value)
                .map_err(|error| format!("the conversation holds what is no message: {error}"))?;
            self.messages.push(message);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use fisk_domain::session::{FORMAT, Next};
    use serde_json::json;

    use super::*;

    // check: FISK-72
    #[test]
    fn what_cannot_be_written_down_does_not_happen() {
        let fingerprint = json!({
            "provider": "p", "model": "m", "base_url": null, "system_prompt": "", "application": "/a", "version": "1", "global_flags": [],
            "include": [], "exclude": [], "confirm_tags": [], "human_in_the_loop": false, "sandbox": false, "tools": {},
        });
        let first = Record::Started {
            format: FORMAT,
            session: "one".into(),
            fingerprint: serde_json::from_value(fingerprint).unwrap(),
            prompt: "go".into(),
        };
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let mut log = Log::begin(first, Some(Journal::on("one", full))).unwrap();
        let reply = serde_json::from_value(json!({
            "event": "reply", "stop": "tool_use", "tokens": {"input": 1, "output": 1},
            "content": [{"type": "tool_use", "id": "t1", "name": "x", "input": {}}],
        }))
        .unwrap();
        let told = log.record(reply).unwrap_err();
        assert!(
            told.starts_with("the session \"one\" cannot be written"),
            "{told}"
        );
        assert_eq!(log.replay().next(), Next::Model);
        assert_eq!(log.messages().len(), 1);
    }
}
