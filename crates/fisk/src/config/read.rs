//! From the tree to a [`Config`].

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use fisk_domain::{Patterns, budget::Limits};
use fisk_serve::ConfirmOverMcp;

use super::{
    A2a, Config, Filter, Fuse, Harness, Llm, Mcp, Operator, ProviderKind, Surface,
    check::{Checker, Problem, Problems, Section},
    yaml::{self, Place},
};

pub(super) const ROOT: [&str; 9] = [
    "application_path",
    "identity",
    "system_prompt",
    "global_flags",
    "include",
    "exclude",
    "llm",
    "harness",
    "expose",
];
const FILTER: [&str; 2] = ["tools", "tags"];
const LLM: [&str; 6] = [
    "provider",
    "model",
    "base_url",
    "allow_plain_http",
    "budget",
    "thinking",
];
const BUDGET: [&str; 3] = ["max_tokens", "max_iterations", "call_timeout"];
const HARNESS: [&str; 10] = [
    "human_in_the_loop",
    "confirm_tags",
    "no_tui",
    "no_bell",
    "sessions",
    "strip_env",
    "tool_timeout",
    "sandbox",
    "operator",
    "fuse",
];
const FUSE: [&str; 4] = ["url", "environment", "token_env", "timeout"];
const MCP: [&str; 7] = [
    "port",
    "address",
    "confirm_over_mcp",
    "max_concurrent_tools",
    "tool_timeout",
    "instructions",
    "token_env",
];
const A2A: [&str; 6] = [
    "port",
    "address",
    "max_concurrent_tools",
    "tool_timeout",
    "instructions",
    "token_env",
];

/// Reads the text of a configuration. `file` is its name in problems, `folder` what its relative paths are relative to.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(file: &str, folder: &Path, text: &str) -> Result<Config, Problems> {
    let problems = |list| Problems {
        file: file.to_owned(),
        list,
    };
    let root = yaml::read(text).map_err(|(at, message)| problems(vec![Problem { at, message }]))?;
    let mut checker = Checker::default();
    let config = Section::root(&root, &ROOT, &mut checker)
        .and_then(|section| config(&section, folder, root.at, &mut checker));
    let mut list = checker.list;
    list.sort_by_key(|problem| problem.at);
    match config {
        Some(config) if list.is_empty() => Ok(config),
        Some(_) | None => Err(problems(list)),
    }
}

fn config(root: &Section, folder: &Path, top: Place, checker: &mut Checker) -> Option<Config> {
    let known = checker.list.len();
    let application = root.text("application_path", checker);
    if application.is_none() && checker.list.len() == known {
        let message = "application_path: is missing: name the application's executable";
        checker.wrong(top, message);
    }
    let llm = root
        .section("llm", &LLM, checker)
        .map(|section| llm(&section, checker))
        .unwrap_or_default();
    let harness = root
        .section("harness", &HARNESS, checker)
        .map(|section| harness(&section, folder, checker))
        .unwrap_or_default();
    let agent = root
        .section("expose", &["agent"], checker)
        .and_then(|expose| expose.section("agent", &["mcp", "a2a"], checker));
    let (mcp, a2a) = match agent {
        Some(agent) => (
            agent
                .section("mcp", &MCP, checker)
                .map(|section| mcp(&section, checker)),
            agent.section("a2a", &A2A, checker).map(|section| A2a {
                surface: surface(&section, 8081, checker),
            }),
        ),
        None => (None, None),
    };
    Some(Config {
        identity: root.text("identity", checker),
        system_prompt: root.text("system_prompt", checker),
        global_flags: plain(root.texts("global_flags", checker)),
        include: filter(root, "include", checker),
        exclude: filter(root, "exclude", checker),
        llm,
        harness,
        mcp,
        a2a,
        application: in_folder(folder, &application?),
    })
}

fn plain(texts: Vec<(Place, String)>) -> Vec<String> {
    texts.into_iter().map(|(_, text)| text).collect()
}

/// A bare name stays one: it is looked up in `PATH`.
fn in_folder(folder: &Path, path: &str) -> PathBuf {
    if path.contains('/') {
        folder.join(path)
    } else {
        PathBuf::from(path)
    }
}

fn filter(root: &Section, key: &str, checker: &mut Checker) -> Filter {
    let Some(section) = root.section(key, &FILTER, checker) else {
        return Filter::default();
    };
    let tools = section.texts("tools", checker);
    for (at, pattern) in &tools {
        if let Some(why) = Patterns::problem(pattern) {
            let message = format!("{key}.tools: {pattern:?} is no regular expression: {why}");
            checker.wrong(*at, message);
        }
    }
    Filter {
        tools: plain(tools),
        tags: plain(section.texts("tags", checker)),
    }
}

fn llm(section: &Section, checker: &mut Checker) -> Llm {
    let default = Llm::default();
    let provider = section.word(
        "provider",
        &[
            ("anthropic", ProviderKind::Anthropic),
            ("openai", ProviderKind::OpenAi),
        ],
        checker,
    );
    let (mut limits, mut call_timeout) = (Limits::default(), default.call_timeout);
    if let Some(budget) = section.section("budget", &BUDGET, checker) {
        if let Some(tokens) = budget.number("max_tokens", 1..=1_000_000_000, checker) {
            limits.max_tokens = tokens;
        }
        if let Some(calls) = budget.number("max_iterations", 1..=100_000, checker) {
            limits.max_iterations = u32::try_from(calls).unwrap_or(u32::MAX);
        }
        let range = Duration::from_secs(1)..=Duration::from_secs(3600);
        if let Some(timeout) = budget.duration("call_timeout", range, checker) {
            call_timeout = timeout;
        }
    }
    let base_url = section.field("base_url", checker).and_then(|field| {
        let text = section.text("base_url", checker)?;
        match text.starts_with("http://") || text.starts_with("https://") {
            true => Some(text),
            false => field.must("begin with http:// or https://", checker),
        }
    });
    Llm {
        provider: provider.unwrap_or_default(),
        model: section.text("model", checker),
        base_url,
        allow_plain_http: section
            .switch("allow_plain_http", checker)
            .unwrap_or(default.allow_plain_http),
        limits,
        call_timeout,
        thinking: enabled(section, "thinking", checker),
    }
}

/// `KEY: {enabled: true}`.
fn enabled(section: &Section, key: &str, checker: &mut Checker) -> bool {
    section
        .section(key, &["enabled"], checker)
        .and_then(|inner| inner.switch("enabled", checker))
        .unwrap_or(false)
}

fn harness(section: &Section, folder: &Path, checker: &mut Checker) -> Harness {
    let words = [("terminal", Operator::Terminal), ("fuse", Operator::Fuse)];
    let operator = section
        .word("operator", &words, checker)
        .unwrap_or_default();
    let strip_env = section.texts("strip_env", checker);
    for (at, name) in &strip_env {
        if name.contains('=') || name.chars().any(char::is_whitespace) {
            let message = format!(
                "harness.strip_env: must be names of variables, with * for anything, not {name:?}"
            );
            checker.wrong(*at, message);
        }
    }
    let tool_range = Duration::from_secs(1)..=Duration::from_secs(24 * 3600);
    let switch = |key: &str, checker: &mut Checker| section.switch(key, checker).unwrap_or(false);
    let fuse = section
        .section("fuse", &FUSE, checker)
        .map(|section| fuse(&section, checker))
        .unwrap_or_default();
    if operator == Operator::Fuse
        && fuse.environment.is_none()
        && let Some(field) = section.field("operator", checker)
    {
        let message = "harness.fuse.environment: is missing: the operator fuse asks on behalf of an environment";
        checker.wrong(field.node.at, message);
    }
    Harness {
        human_in_the_loop: enabled(section, "human_in_the_loop", checker),
        confirm_tags: plain(section.texts("confirm_tags", checker)),
        no_tui: switch("no_tui", checker),
        no_bell: switch("no_bell", checker),
        sessions_dir: section
            .section("sessions", &["dir"], checker)
            .and_then(|sessions| sessions.text("dir", checker))
            .map(|dir| folder.join(dir)),
        strip_env: plain(strip_env),
        tool_timeout: section
            .duration("tool_timeout", tool_range, checker)
            .unwrap_or(Harness::default().tool_timeout),
        sandbox: switch("sandbox", checker),
        operator,
        fuse,
    }
}

fn fuse(section: &Section, checker: &mut Checker) -> Fuse {
    let default = Fuse::default();
    // The bounds that Fuse sets to a deadline.
    let range = Duration::from_secs(10)..=Duration::from_secs(24 * 3600);
    Fuse {
        url: section.text("url", checker),
        environment: section.text("environment", checker),
        token_env: variable(section, checker).unwrap_or(default.token_env),
        timeout: section.duration("timeout", range, checker),
    }
}

fn mcp(section: &Section, checker: &mut Checker) -> Mcp {
    let words = [
        ("always", ConfirmOverMcp::Always),
        ("auto", ConfirmOverMcp::Auto),
        ("never", ConfirmOverMcp::Never),
    ];
    Mcp {
        surface: surface(section, 8080, checker),
        confirm: section
            .word("confirm_over_mcp", &words, checker)
            .unwrap_or_default(),
    }
}

fn surface(section: &Section, port: u16, checker: &mut Checker) -> Surface {
    let mut surface = Surface::on_port(port);
    if let Some(port) = section.number("port", 0..=65535, checker) {
        surface.port = u16::try_from(port).unwrap_or(port as u16);
    }
    if let Some(field) = section.field("address", checker)
        && let Some(text) = section.text("address", checker)
    {
        match text.parse::<IpAddr>() {
            Ok(address) => surface.address = address,
            Err(_) => {
                let what = "be an IP address like 127.0.0.1 or ::1";
                field.must::<()>(what, checker);
            }
        }
    }
    if let Some(tools) = section.number("max_concurrent_tools", 1..=1000, checker) {
        surface.max_concurrent_tools = usize::try_from(tools).unwrap_or(2);
    }
    let range = Duration::from_millis(100)..=Duration::from_secs(24 * 3600);
    if let Some(timeout) = section.duration("tool_timeout", range, checker) {
        surface.tool_timeout = timeout;
    }
    surface.instructions = section.text("instructions", checker);
    surface.token_env = variable(section, checker);
    surface
}

/// `token_env`: the name of a variable, never the token itself.
fn variable(section: &Section, checker: &mut Checker) -> Option<String> {
    let field = section.field("token_env", checker)?;
    let name = section.text("token_env", checker)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.chars().all(fits) && !name.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(name);
    }
    // Somebody may have put the token itself there: it is not shown.
    let message = format!(
        "{}: must be the name of a variable that holds the token: letters, digits and _",
        field.path
    );
    checker.wrong(field.node.at, message);
    None
}
