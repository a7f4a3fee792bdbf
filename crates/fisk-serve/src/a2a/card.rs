//! The agent card: what there is to call, and how.

use std::collections::HashMap;

use a2a::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentSkill,
    HttpAuthSecurityScheme, SecurityScheme, TRANSPORT_PROTOCOL_HTTP_JSON,
};
use fisk_domain::CommandTool;
use serde_json::{Map, Value, json};

use crate::Served;

/// Names the way in which commands are called, for clients that know it.
pub(super) const EXTENSION: &str = "urn:fisk:command-call:v1";
/// The name of the one security scheme.
const BEARER: &str = "bearer";
/// What kinds of content go in and out.
const JSON: &str = "application/json";
const TEXT: &str = "text/plain";

/// The card, for a client that reached the server as `host`.
pub(super) fn card(served: &Served, host: &str, token: bool) -> AgentCard {
    let schemas: Map<String, Value> = served
        .tools
        .tools()
        .iter()
        .map(|tool| (tool.name().to_string(), tool.input_schema().clone()))
        .collect();
    AgentCard {
        name: served.name.clone(),
        description: format!(
            "{}Runs commands and has no model. A message carries one data part {{\"tool\": NAME, \"input\": {{...}}}}, or the same JSON as text; \
             the names are the skills' ids and the inputs' schemas are in the extension {EXTENSION}.",
            served
                .instructions
                .as_deref()
                .map(|told| format!("{told}\n\n"))
                .unwrap_or_default()
        ),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        supported_interfaces: vec![AgentInterface::new(
            format!("http://{host}/v1"),
            TRANSPORT_PROTOCOL_HTTP_JSON,
        )],
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(false),
            extensions: Some(vec![AgentExtension {
                uri: EXTENSION.to_owned(),
                description: Some(
                    "One data part {\"tool\", \"input\"} calls one command.".to_owned(),
                ),
                required: Some(false),
                params: Some(HashMap::from([(
                    "input_schemas".to_owned(),
                    Value::Object(schemas),
                )])),
            }]),
            extended_agent_card: Some(false),
        },
        default_input_modes: vec![JSON.to_owned(), TEXT.to_owned()],
        default_output_modes: vec![JSON.to_owned()],
        skills: served.tools.tools().iter().map(skill).collect(),
        provider: None,
        documentation_url: None,
        icon_url: None,
        security_schemes: token.then(|| {
            HashMap::from([(
                BEARER.to_owned(),
                SecurityScheme::HttpAuth(HttpAuthSecurityScheme {
                    scheme: "Bearer".to_owned(),
                    description: None,
                    bearer_format: None,
                }),
            )])
        }),
        security_requirements: token
            .then(|| vec![HashMap::from([(BEARER.to_owned(), Vec::new())])]),
        signatures: None,
    }
}

fn skill(tool: &CommandTool) -> AgentSkill {
    let mut description = tool.description().to_owned();
    if tool.is_gated() {
        description.push_str("\n\nNeeds the operator's approval.");
    }
    AgentSkill {
        id: tool.name().to_string(),
        name: tool.path().join(" "),
        description,
        tags: tool.tags().iter().cloned().collect(),
        examples: Some(vec![
            json!({"tool": tool.name().as_str(), "input": {}}).to_string(),
        ]),
        input_modes: None,
        output_modes: None,
        security_requirements: None,
    }
}
