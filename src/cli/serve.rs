//! `sidetone serve`: the engine, until SIGTERM or Ctrl-C.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::app::Engine;
use crate::cli::{EXIT_FAILED, service_manager, task_failed, wrong_config};
use crate::config::{Config, ConfigError};
use crate::log::Log;
use crate::supervise::Supervisor;

/// The arguments of `serve`.
#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// The configuration file; by default sidetone.toml if it exists, else the built-in defaults.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Runs the engine until it is stopped, drains, and reports the result.
pub fn run(args: &ServeArgs, log: &Log) -> ExitCode {
    let config = match load(args) {
        Ok(config) => config,
        Err(error) => return wrong_config(&error),
    };
    log.set_level(config.log.level.as_deref());
    // Each runtime has its own threads, so that long background work delays no SIP message.
    let (runtime, background) = match (runtime("switch").build(), background().build()) {
        (Ok(runtime), Ok(background)) => (runtime, background),
        (Err(error), _) | (_, Err(error)) => {
            crate::cli::tell!("sidetone: cannot start the runtime ({error})");
            return ExitCode::from(EXIT_FAILED);
        }
    };
    let supervisor = Supervisor::new(Some(background.handle().clone()));
    let exit = runtime.block_on(serve(args, config, log, supervisor));
    // A thread that hangs must not keep the process from ending.
    runtime.shutdown_timeout(RUNTIME_STOP_MAX);
    background.shutdown_timeout(RUNTIME_STOP_MAX);
    exit
}

fn runtime(threads: &str) -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.enable_all().thread_name(threads);
    builder
}

/// The threads that no call waits for, and the threads that these start, such as SQLite's writer. On a fully used
/// processor the switch has priority: with the same priority, storing 500 records took the processor from the calls
/// for 0.1 s.
fn background() -> Builder {
    let mut builder = runtime("background");
    builder.on_thread_start(|| {
        if let Err(error) = rustix::process::nice(BACKGROUND_NICE) {
            tracing::warn!(%error, "background threads have the same priority as the switch");
        }
    });
    builder
}

fn load(args: &ServeArgs) -> Result<Config, ConfigError> {
    Config::load(args.config.as_deref(), std::env::vars())
}

async fn serve(args: &ServeArgs, mut config: Config, log: &Log, supervisor: Supervisor) -> ExitCode {
    // The signal handlers are installed first, so that a signal during the start is not lost.
    let Ok(mut signals) = Signals::listen() else {
        crate::cli::tell!("sidetone: cannot listen for SIGTERM");
        return ExitCode::from(EXIT_FAILED);
    };
    let engine = match Engine::start_supervised(&config, supervisor).await {
        Ok(engine) => engine,
        Err(error) => {
            crate::cli::tell!("sidetone: cannot start: {error}");
            return ExitCode::from(EXIT_FAILED);
        }
    };
    announce(&engine, &config);
    service_manager::ready();
    loop {
        let asked = tokio::select! {
            asked = signals.next() => asked,
            task = engine.failed() => {
                crate::cli::tell!("{}", task_failed(task));
                return ExitCode::from(EXIT_FAILED);
            }
            () = engine.drain_requested() => {
                tracing::info!("an operator drains this node");
                Asked::Stop
            }
            () = service_manager::feed_watchdog(&engine) => continue,
        };
        match asked {
            Asked::Stop => break,
            Asked::Reload => config = reload(args, config, &engine, log).await,
            #[cfg(debug_assertions)]
            Asked::Panic => inject(&engine),
        }
    }
    service_manager::stopping(config.node.drain);
    let calls = engine.live_calls();
    tracing::info!(calls, seconds = config.node.drain.as_secs(), "draining: no new calls");
    tokio::select! {
        () = engine.stop(config.node.drain) => ExitCode::SUCCESS,
        // A second signal: records that are not in the database yet stay in the journal.
        () = signals.stop() => {
            tracing::warn!("second stop signal: calls are cut off");
            ExitCode::from(EXIT_FAILED)
        }
    }
}

/// Reads the configuration again and applies what is possible during calls; an invalid one changes nothing.
async fn reload(args: &ServeArgs, config: Config, engine: &Engine, log: &Log) -> Config {
    service_manager::reloading();
    let config = apply(args, config, engine, log).await;
    service_manager::ready();
    config
}

async fn apply(args: &ServeArgs, config: Config, engine: &Engine, log: &Log) -> Config {
    let new = match load(args) {
        Ok(new) => new,
        Err(error) => {
            tracing::error!(%error, "the configuration was not reloaded and nothing has changed");
            return config;
        }
    };
    let (config, waiting) = config.reloaded(&new);
    log.set_level(config.log.level.as_deref());
    engine.reload(&config).await;
    tracing::info!("the configuration was reloaded");
    for key in waiting {
        tracing::warn!("needs a restart: {key}");
    }
    config
}

/// Makes the task that the environment specifies panic: only in debug builds, for tests of the process.
#[cfg(debug_assertions)]
fn inject(engine: &Engine) {
    let named = std::env::var("SIDETONE_PANIC_TASK").ok();
    if let Some(task) = named.as_deref().and_then(crate::supervise::Task::from_name) {
        engine.supervisor().inject(task);
    }
}

/// The meaning of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    #[cfg(debug_assertions)]
    Panic,
    Reload,
    Stop,
}

/// The signals that the engine handles.
struct Signals {
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
    #[cfg(debug_assertions)]
    panic: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            #[cfg(debug_assertions)]
            panic: signal(SignalKind::user_defined2())?,
        })
    }

    #[cfg(not(debug_assertions))]
    async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.terminate.recv() => Asked::Stop,
            _ = self.interrupt.recv() => Asked::Stop,
            _ = self.hangup.recv() => Asked::Reload,
        }
    }

    #[cfg(debug_assertions)]
    async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.terminate.recv() => Asked::Stop,
            _ = self.interrupt.recv() => Asked::Stop,
            _ = self.hangup.recv() => Asked::Reload,
            _ = self.panic.recv() => Asked::Panic,
        }
    }

    /// Completes on a stop signal; other signals are ignored at this point.
    async fn stop(&mut self) {
        while self.next().await != Asked::Stop {
            tracing::warn!("the configuration is not reloaded: the engine is stopping");
        }
    }
}

/// How much higher the niceness of background threads is: on a fully used processor, they get a third of the other
/// threads' share.
const BACKGROUND_NICE: i32 = 5;

/// How long remaining tasks may take at the end of the process.
const RUNTIME_STOP_MAX: std::time::Duration = std::time::Duration::from_secs(5);

/// One line per listener, then `ready`, which scripts wait for.
fn announce(engine: &Engine, config: &Config) {
    let mut out = std::io::stdout().lock();
    let mut lines: Vec<String> = engine.sip.iter().map(|address| format!("sip udp://{address}")).collect();
    lines.extend(
        engine
            .sip_connections
            .iter()
            .map(|(protocol, address)| format!("sip {}://{address}", protocol.as_str().to_ascii_lowercase())),
    );
    lines.push(format!("rtp udp ports {}-{}", config.media.ports.start(), config.media.ports.end()));
    lines.push(format!("http {}://{}", config.http.scheme(), engine.http));
    lines.push("ready".to_owned());
    // A closed stdout does not stop the engine.
    let _ = writeln!(out, "{}", lines.join("\n"));
    let _ = out.flush();
}
