//! From the configuration to the parts of a run.

use std::sync::Arc;

use fisk_domain::{ApplicationModel, BUILT_IN_TOOLS, Patterns, Selection, Toolset, Warning};
use fisk_exec::{ExecConfig, Executor};
use fisk_llm::{
    Anthropic, AnthropicConfig, OpenAi, OpenAiConfig, Provider, Thinking, parse_headers,
};
use fisk_operator::Prompter;

use crate::{
    config::{Config, Filter, ProviderKind},
    failure::{Failure, warning},
    secrets::Secrets,
};

/// The most tokens of thinking in one reply, where the model takes a number.
const THINKING: u64 = 8_000;

/// The application, and what it offers.
pub struct Application {
    /// Runs its commands.
    pub executor: Arc<Executor>,
    /// What it says about itself.
    pub model: ApplicationModel,
    /// The commands that are tools.
    pub tools: Arc<Toolset>,
    /// What the operator should know about them.
    pub warnings: Vec<Warning>,
}

impl Application {
    /// Asks the application what it offers.
    ///
    /// # Errors
    /// It cannot be run, or what it offers cannot be tools with this configuration.
    pub async fn find(config: &Config, file: &str) -> Result<Self, Failure> {
        let executor = Executor::new(ExecConfig {
            application: config.application.clone(),
            strip_env: config.harness.strip_env.clone(),
            sandbox: config.harness.sandbox,
        })
        .await
        .map_err(|error| Failure::Config(format!("{file}: application_path: {error}")))?;
        let printed = executor
            .introspect()
            .await
            .map_err(|error| Failure::said(error.to_string()))?;
        let model = ApplicationModel::parse(&printed).map_err(|error| {
            Failure::said(format!("{}: {error}", executor.application().display()))
        })?;
        let (tools, warnings) = Toolset::derive(&model, &selection(config), &BUILT_IN_TOOLS)
            .map_err(|error| Failure::Config(format!("{file}: {error}")))?;
        Ok(Self {
            executor: Arc::new(executor),
            model,
            tools: Arc::new(tools),
            warnings,
        })
    }

    /// Ends what runs its commands. What is left over is told: the next start tries again.
    pub async fn close(&self) {
        if let Err(error) = self.executor.close().await {
            warning(&error.to_string());
        }
    }
}

fn selection(config: &Config) -> Selection {
    let patterns = |filter: &Filter| Patterns {
        tools: filter.tools.clone(),
        tags: filter.tags.clone(),
    };
    Selection {
        include: patterns(&config.include),
        exclude: patterns(&config.exclude),
        confirm_tags: config.harness.confirm_tags.clone(),
        global_flags: config.global_flags.clone(),
    }
}

/// The variable that says where the provider is, where the configuration does not.
fn base_url_variable(config: &Config) -> &'static str {
    match config.llm.provider {
        ProviderKind::Anthropic => "ANTHROPIC_BASE_URL",
        ProviderKind::OpenAi => "OPENAI_BASE_URL",
    }
}

/// Where the provider is reached, unless it is its own place.
pub fn base_url(config: &Config) -> Option<String> {
    let set = std::env::var(base_url_variable(config))
        .ok()
        .filter(|url| !url.trim().is_empty());
    config.llm.base_url.clone().or(set)
}

/// The model's provider.
///
/// # Errors
/// No model or key is given, or the address cannot be used.
pub fn provider(
    config: &Config,
    file: &str,
    secrets: &Secrets,
) -> Result<Arc<dyn Provider>, Failure> {
    let variable = base_url_variable(config);
    let is_set_in_file = config.llm.base_url.is_some();
    let refused = |text: String| match text.strip_prefix("base_url") {
        Some(problem) if !is_set_in_file => Failure::Usage(format!("{variable}{problem}")),
        Some(_) | None => Failure::Config(format!("{file}: llm.{text}")),
    };
    let model =
        config.llm.model().map(str::to_owned).ok_or_else(|| {
            Failure::Config(format!("{file}: llm.model: is missing: name the model"))
        })?;
    match config.llm.provider {
        ProviderKind::Anthropic => {
            let (key, token) = (
                secrets.key("ANTHROPIC_API_KEY"),
                secrets.key("ANTHROPIC_AUTH_TOKEN"),
            );
            if key.is_none() && token.is_none() {
                return Err(Failure::Usage(
                    "there is no key: set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN".to_owned(),
                ));
            }
            let headers = match secrets.get("ANTHROPIC_CUSTOM_HEADERS") {
                Some(lines) => parse_headers(lines.expose()).map_err(|error| {
                    Failure::Usage(format!("ANTHROPIC_CUSTOM_HEADERS: {error}"))
                })?,
                None => Vec::new(),
            };
            let config = AnthropicConfig {
                base_url: base_url(config)
                    .unwrap_or_else(|| AnthropicConfig::DEFAULT_BASE_URL.to_owned()),
                key,
                auth_token: token,
                headers,
                thinking: match config.llm.thinking {
                    true => Thinking::Enabled { budget: THINKING },
                    false => Thinking::Unset,
                },
                model,
                allow_plain_http: config.llm.allow_plain_http,
                retry: Default::default(),
            };
            let provider = Anthropic::new(config).map_err(|error| refused(error.to_string()))?;
            Ok(Arc::new(provider))
        }
        ProviderKind::OpenAi => {
            let config = OpenAiConfig {
                base_url: base_url(config)
                    .unwrap_or_else(|| OpenAiConfig::DEFAULT_BASE_URL.to_owned()),
                key: secrets.key("OPENAI_API_KEY"),
                allow_plain_http: config.llm.allow_plain_http,
                ..OpenAiConfig::new(model)
            };
            let provider = OpenAi::new(config).map_err(|error| refused(error.to_string()))?;
            Ok(Arc::new(provider))
        }
    }
}

/// The people behind a Fuse orchestrator. With `once_only` they are offered no allowance for a session, since a served call has none.
///
/// # Errors
/// The configuration or the environment lacks what is needed, or this build has no part for it.
#[cfg(feature = "fuse")]
pub fn fuse(
    config: &Config,
    secrets: &Secrets,
    once_only: bool,
) -> Result<Arc<dyn Prompter>, Failure> {
    use fisk_operator::{FuseConfig, FusePrompter, Token};
    let block = &config.harness.fuse;
    let token = secrets.get(&block.token_env).ok_or_else(|| {
        Failure::Usage(format!(
            "harness.operator is fuse: set {} to a Fuse token",
            block.token_env
        ))
    })?;
    let set = std::env::var("FUSE_URL").ok().filter(|url| !url.is_empty());
    let url = block.url.clone().or(set).ok_or_else(|| {
        Failure::Usage(
            "harness.operator is fuse: set harness.fuse.url or FUSE_URL to its address".to_owned(),
        )
    })?;
    let prompter = FusePrompter::new(FuseConfig {
        url,
        token: Token::new(token.expose()),
        environment: block.environment.clone().unwrap_or_default(),
        timeout: block.timeout,
        actor: None,
    })
    .map_err(|error| Failure::Usage(format!("harness.fuse: {error}")))?;
    Ok(Arc::new(match once_only {
        true => prompter.once_only(),
        false => prompter,
    }))
}

/// The people behind a Fuse orchestrator.
///
/// # Errors
/// Always: this build has no part for it.
#[cfg(not(feature = "fuse"))]
pub fn fuse(_: &Config, _: &Secrets, _: bool) -> Result<Arc<dyn Prompter>, Failure> {
    Err(Failure::Usage(
        "harness.operator: fuse is not part of this build".to_owned(),
    ))
}
