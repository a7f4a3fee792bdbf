//! `fisk mcp` and `fisk a2a`.

use std::sync::Arc;

use fisk_domain::ServedSet;
use fisk_operator::Prompter;
use fisk_serve::{
    ConfirmOverMcp, Listen, Served, Serving, mcp_warning, serve_a2a, serve_mcp_http,
    serve_mcp_stdio,
};

use crate::{
    agent::stop::Stop,
    cli::{ConfigArgs, McpArgs},
    config::{Config, Operator, Surface},
    failure::{Done, Failure, warning},
    output,
    secrets::Secrets,
    setup::{self, Application},
};

/// Serves over MCP until a signal ends it.
///
/// # Errors
/// The configuration has no block for it, or it cannot be served.
pub async fn mcp(args: &McpArgs, config: &Config, secrets: &Secrets) -> Done {
    let file = args.config.config.display().to_string();
    let block = config
        .mcp
        .as_ref()
        .ok_or_else(|| missing(&file, "expose.agent.mcp"))?;
    let surface = &block.surface;
    let listen = listen("expose.agent.mcp", surface, secrets)?;
    let application = Application::find(config, &file).await?;
    tell(&file, &application);
    let served = served(config, &application, surface, block.confirm, None);
    let stop = Stop::new(false);
    stop.listen()?;
    if args.stdio {
        if let Some(text) = mcp_warning(&served) {
            warning(&text);
        }
        let serving = serve_mcp_stdio(served, stop.soft.clone());
        tokio::select! {
            ended = serving => ended.map_err(|error| Failure::said(error.to_string()))?,
            () = stop.now.cancelled() => {}
        }
        application.close().await;
        return Ok(0);
    }
    let serving = serve_mcp_http(served, listen, stop.soft.clone())
        .await
        .map_err(|error| Failure::said(error.to_string()))?;
    let address = serving.address();
    wait(serving, &stop, &format!("http://{address}/mcp")).await;
    application.close().await;
    Ok(0)
}

/// Serves over A2A until a signal ends it.
///
/// # Errors
/// The configuration has no block for it, or it cannot be served.
pub async fn a2a(args: &ConfigArgs, config: &Config, secrets: &Secrets) -> Done {
    let file = args.config.display().to_string();
    let block = config
        .a2a
        .as_ref()
        .ok_or_else(|| missing(&file, "expose.agent.a2a"))?;
    let listen = listen("expose.agent.a2a", &block.surface, secrets)?;
    let operator: Option<Arc<dyn Prompter>> = match config.harness.operator {
        Operator::Terminal => None,
        Operator::Fuse => Some(setup::fuse(config, secrets, true)?),
    };
    let application = Application::find(config, &file).await?;
    tell(&file, &application);
    let surface = &block.surface;
    let served = served(
        config,
        &application,
        surface,
        ConfirmOverMcp::Always,
        operator,
    );
    let stop = Stop::new(false);
    stop.listen()?;
    let serving = serve_a2a(served, listen, stop.soft.clone())
        .await
        .map_err(|error| Failure::said(error.to_string()))?;
    let address = serving.address();
    wait(serving, &stop, &format!("http://{address}/")).await;
    application.close().await;
    Ok(0)
}

/// What is served.
pub(super) fn served(
    config: &Config,
    application: &Application,
    surface: &Surface,
    confirm: ConfirmOverMcp,
    operator: Option<Arc<dyn Prompter>>,
) -> Served {
    Served {
        name: config.identity.clone().unwrap_or_else(|| "fisk".to_owned()),
        instructions: surface.instructions.clone(),
        tools: Arc::new(ServedSet::new((*application.tools).clone())),
        executor: Arc::clone(&application.executor),
        confirm_over_mcp: confirm,
        operator,
        max_concurrent_tools: surface.max_concurrent_tools,
        tool_timeout: surface.tool_timeout,
    }
}

fn missing(file: &str, block: &str) -> Failure {
    Failure::Config(format!(
        "{file}: {block}: is missing: nothing is served without it; `{{}}` takes the defaults"
    ))
}

fn listen(path: &str, surface: &Surface, secrets: &Secrets) -> Result<Listen, Failure> {
    Ok(Listen {
        address: surface.address,
        port: surface.port,
        token: secrets.token(path, surface.token_env.as_deref())?,
    })
}

fn tell(file: &str, application: &Application) {
    for told in &application.warnings {
        warning(&format!("{file}: {told}"));
    }
}

async fn wait(serving: Serving, stop: &Stop, url: &str) {
    if let Some(text) = serving.warning() {
        warning(text);
    }
    output::note(&format!("listening on {url}"));
    tokio::select! {
        () = serving.wait() => {}
        () = stop.now.cancelled() => {}
    }
}
