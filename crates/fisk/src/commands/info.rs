//! `fisk info`.

use fisk_domain::CommandTool;
use fisk_operator::AskTool;
use fisk_serve::mcp_warning;
use fuse_terminal::{cell, strip};
use serde_json::{Value, json};

use super::serve;
use crate::{
    cli::InfoArgs,
    config::{Config, Operator, show_duration},
    failure::{Done, warning},
    output,
    setup::Application,
};

/// The widest description of a tool, in columns.
const WIDEST: usize = 60;

/// Shows what the model may call. It needs no key and asks no model.
///
/// # Errors
/// The application cannot be asked.
pub async fn run(args: &InfoArgs, config: &Config) -> Done {
    let file = args.config.config.display().to_string();
    let application = Application::find(config, &file).await?;
    application.close().await;
    let warnings = warnings(config, &application);
    if args.json {
        output::json(&as_json(config, &application, &warnings))?;
        return Ok(0);
    }
    output::data(&as_text(config, &application))?;
    for told in &warnings {
        warning(&format!("{file}: {told}"));
    }
    Ok(0)
}

fn warnings(config: &Config, application: &Application) -> Vec<String> {
    let mut told: Vec<String> = application
        .warnings
        .iter()
        .map(ToString::to_string)
        .collect();
    if let Some(block) = &config.mcp {
        let served = serve::served(config, application, &block.surface, block.confirm, None);
        told.extend(mcp_warning(&served).map(|text| format!("expose.agent.mcp: {text}")));
    }
    if config.llm.model().is_none() {
        told.push("llm.model: is missing: `fisk run` needs it".to_owned());
    }
    told
}

fn asks(config: &Config) -> Vec<&'static str> {
    match config.harness.human_in_the_loop {
        true => AskTool::ALL.map(AskTool::name).to_vec(),
        false => Vec::new(),
    }
}

fn operator(config: &Config) -> &'static str {
    match config.harness.operator {
        Operator::Terminal => "terminal",
        Operator::Fuse => "fuse",
    }
}

fn as_json(config: &Config, application: &Application, warnings: &[String]) -> Value {
    let tool = |tool: &CommandTool| {
        json!({
            "name": tool.name().as_str(),
            "command": tool.path(),
            "description": tool.description(),
            "tags": tool.tags(),
            "gated_by": tool.gating_tags(),
            "required": tool.required().collect::<Vec<_>>(),
            "optional": tool.optional().collect::<Vec<_>>(),
            "input_schema": tool.input_schema(),
        })
    };
    json!({
        "application": {
            "path": application.executor.application().display().to_string(),
            "name": application.model.name,
            "version": application.model.version,
        },
        "model": {"provider": config.llm.provider.name(), "name": config.llm.model()},
        "operator": operator(config),
        "tools": application.tools.tools().iter().map(tool).collect::<Vec<_>>(),
        "ask_tools": asks(config),
        "warnings": warnings,
    })
}

fn as_text(config: &Config, application: &Application) -> String {
    let mut text = String::new();
    let mut row = |label: &str, value: &str| {
        text.push_str(format!("{label:<13}{}", strip(value)).trim_end());
        text.push('\n');
    };
    let about = &application.model;
    row(
        "application",
        &application.executor.application().display().to_string(),
    );
    row("", &format!("{} {}", about.name, about.version));
    row(
        "model",
        &match config.llm.model() {
            Some(model) => format!("{model} ({})", config.llm.provider.name()),
            None => format!("none yet ({})", config.llm.provider.name()),
        },
    );
    let limits = config.llm.limits;
    row(
        "budget",
        &format!(
            "{} tokens, {} calls of the model, {} each",
            limits.max_tokens,
            limits.max_iterations,
            show_duration(config.llm.call_timeout)
        ),
    );
    row("operator", operator(config));
    row("sandbox", if config.harness.sandbox { "on" } else { "off" });
    let tools = application.tools.tools();
    let gated = tools.iter().filter(|tool| tool.is_gated()).count();
    row("tools", &format!("{}, {gated} of them gated", tools.len()));
    let asks = asks(config);
    if !asks.is_empty() {
        row("", &asks.join(", "));
    }
    if !tools.is_empty() {
        text.push('\n');
        let rows = tools
            .iter()
            .map(|tool| {
                vec![
                    strip(tool.name().as_str()),
                    strip(&tool.gating_tags().join(", ")),
                    strip(&tags(tool)),
                    cell(tool.description(), WIDEST),
                ]
            })
            .collect();
        text.push_str(&output::table(
            &["TOOL", "GATE", "TAGS", "WHAT IT DOES"],
            rows,
        ));
    }
    text
}

fn tags(tool: &CommandTool) -> String {
    let tags: Vec<&str> = tool.tags().iter().map(String::as_str).collect();
    tags.join(", ")
}
