//! What a session was recorded with. A resume with anything else would continue another run's conversation.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// What has to be the same when a session is resumed. Budgets and whatever changes no meaning of the conversation are no part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    /// `llm.provider`.
    pub provider: String,
    /// `llm.model`.
    pub model: String,
    /// Where the provider is reached, where it is not the provider's own place.
    pub base_url: Option<String>,
    /// A digest of the whole system prompt.
    pub system_prompt: String,
    /// The application, as an absolute path.
    pub application: String,
    /// What it calls its version.
    pub version: String,
    /// `global_flags`.
    pub global_flags: Vec<String>,
    /// `include`, as it is compared.
    pub include: Vec<String>,
    /// `exclude`, as it is compared.
    pub exclude: Vec<String>,
    /// `harness.confirm_tags`.
    pub confirm_tags: BTreeSet<String>,
    /// `harness.human_in_the_loop.enabled`.
    pub human_in_the_loop: bool,
    /// `harness.sandbox`.
    pub sandbox: bool,
    /// Every tool that the model has.
    pub tools: BTreeMap<String, ToolPrint>,
}

/// What has to be the same about one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolPrint {
    /// A digest of its description and schema.
    pub schema: String,
    /// Its tags.
    pub tags: BTreeSet<String>,
    /// The tags for which it is gated.
    pub gating: BTreeSet<String>,
}

impl Fingerprint {
    /// What is different now, one sentence each, in the words of the configuration. Nothing where both are the same.
    pub fn changes(&self, now: &Self) -> Vec<String> {
        let mut told = Vec::new();
        let mut text = |name: &str, then: &str, now: &str| {
            if then != now {
                told.push(format!("{name} was {then:?} and is {now:?}"));
            }
        };
        text("llm.provider", &self.provider, &now.provider);
        text("llm.model", &self.model, &now.model);
        let place = |url: &Option<String>| url.clone().unwrap_or_else(|| "the default".to_owned());
        text(
            "llm.base_url",
            &place(&self.base_url),
            &place(&now.base_url),
        );
        text("application_path", &self.application, &now.application);
        text("the application's version", &self.version, &now.version);
        let switch = |on: bool| if on { "true" } else { "false" };
        text(
            "harness.human_in_the_loop.enabled",
            switch(self.human_in_the_loop),
            switch(now.human_in_the_loop),
        );
        text("harness.sandbox", switch(self.sandbox), switch(now.sandbox));
        if self.system_prompt != now.system_prompt {
            told.push("system_prompt changed".to_owned());
        }
        for (name, then, now) in [
            ("global_flags", &self.global_flags, &now.global_flags),
            ("include", &self.include, &now.include),
            ("exclude", &self.exclude, &now.exclude),
        ] {
            if then != now {
                told.push(format!("{name} was {then:?} and is {now:?}"));
            }
        }
        if self.confirm_tags != now.confirm_tags {
            told.push(set(
                "harness.confirm_tags",
                &self.confirm_tags,
                &now.confirm_tags,
            ));
        }
        self.tool_changes(now, &mut told);
        told
    }

    fn tool_changes(&self, now: &Self, told: &mut Vec<String>) {
        for (name, then) in &self.tools {
            let Some(tool) = now.tools.get(name) else {
                told.push(format!("the tool {name:?} is gone"));
                continue;
            };
            if then.schema != tool.schema {
                told.push(format!(
                    "the description or the input of the tool {name:?} changed"
                ));
            }
            if then.tags != tool.tags {
                let what = format!("the tags of the tool {name:?}");
                told.push(set(&what, &then.tags, &tool.tags));
            }
            if then.gating != tool.gating {
                let what = format!("the gate of the tool {name:?}");
                told.push(set(&what, &then.gating, &tool.gating));
            }
        }
        for name in now.tools.keys() {
            if !self.tools.contains_key(name) {
                told.push(format!("the tool {name:?} is new"));
            }
        }
    }
}

fn set(what: &str, then: &BTreeSet<String>, now: &BTreeSet<String>) -> String {
    let list = |all: &BTreeSet<String>| match all.len() {
        0 => "none".to_owned(),
        _ => all.iter().cloned().collect::<Vec<_>>().join(", "),
    };
    format!("{what}: was {}, is {}", list(then), list(now))
}
