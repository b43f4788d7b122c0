//! `sidetone serve`: the engine, until SIGTERM or Ctrl-C.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use crate::app::Engine;
use crate::cli::{EXIT_FAILED, EXIT_WRONG};
use crate::config::Config;

/// The arguments of `serve`.
#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// The configuration; without it sidetone.toml where that exists, else the defaults.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Runs the engine until it is told to stop, drains, and says how it went.
pub fn run(args: &ServeArgs) -> ExitCode {
    let config = match Config::load(args.config.as_deref(), std::env::vars()) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("sidetone: {error}");
            return ExitCode::from(EXIT_WRONG);
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("sidetone: cannot start the runtime ({error})");
            return ExitCode::from(EXIT_FAILED);
        }
    };
    runtime.block_on(serve(&config))
}

async fn serve(config: &Config) -> ExitCode {
    // Listening for the signals first: one that comes during the start is not lost.
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    let (Ok(mut terminate), Ok(mut interrupt)) = signals else {
        eprintln!("sidetone: cannot listen for SIGTERM");
        return ExitCode::from(EXIT_FAILED);
    };
    let engine = match Engine::start(config).await {
        Ok(engine) => engine,
        Err(error) => {
            eprintln!("sidetone: cannot start: {error}");
            return ExitCode::from(EXIT_FAILED);
        }
    };
    announce(&engine, config);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    let calls = engine.live_calls();
    tracing::info!(calls, seconds = config.node.drain.as_secs(), "draining: no new calls");
    tokio::select! {
        () = engine.stop(config.node.drain) => ExitCode::SUCCESS,
        // Asked twice: records that are not in the database yet stay in the journal.
        _ = interrupt.recv() => ExitCode::from(EXIT_FAILED),
    }
}

/// One line per listener, then `ready`: what scripts wait for.
fn announce(engine: &Engine, config: &Config) {
    let mut out = std::io::stdout().lock();
    let mut lines: Vec<String> = engine.sip.iter().map(|address| format!("sip udp://{address}")).collect();
    lines.push(format!("rtp udp ports {}-{}", config.media.ports.start(), config.media.ports.end()));
    lines.push(format!("http http://{}", engine.http));
    lines.push("ready".to_owned());
    // A closed stdout is no reason to stop serving.
    let _ = writeln!(out, "{}", lines.join("\n"));
    let _ = out.flush();
}
