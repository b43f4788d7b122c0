//! The `sidetone` binary: reads the command line and hands over to a subcommand.

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand, ValueEnum};
use sidetone::cli;
use sidetone::log::{Format, Log};

/// One thread sets up a call and another records it: arenas of glibc grew as long as calls arrived, and took more of
/// the processor (benches/peers/README.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A SIP switch and RTP media analyser with an embedded HTTP API.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true, max_term_width = 80)]
struct Cli {
    /// The format of log lines on stderr; RUST_LOG selects their level.
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Find calls and RTP streams in captures, and judge them like live calls.
    Analyze(cli::analyze::AnalyzeArgs),
    /// Generate test calls with chosen faults, as a capture or as live RTP.
    Simulate(cli::simulate::SimulateArgs),
    /// Create or change organisations and their resources from files.
    Apply(cli::apply::ApplyArgs),
    /// Check the configuration, the ports, the limits and the database; list every problem.
    Check(cli::check::CheckArgs),
    /// Print a script that completes this program's command line in a shell.
    Completions(cli::completions::CompletionsArgs),
    /// List records that the database refused, and store them again.
    DeadLetters(cli::dead_letters::DeadLettersArgs),
    /// Place real calls between built-in phones on a throw-away engine, and show their records.
    Demo(cli::demo::DemoArgs),
    /// Let a node of the cluster take no new calls, and stop when the last one has ended.
    Drain(cli::drain::DrainArgs),
    /// Write the manual pages of this program.
    Man(cli::man::ManArgs),
    /// List the nodes of the cluster: which are there, their load, calls, rooms and phones.
    Nodes(cli::nodes::NodesArgs),
    /// Run a command-line phone: register, call, answer, show and acknowledge notes; interactive or scripted.
    Phone(cli::phone::PhoneArgs),
    /// Run the engine: SIP, RTP and the HTTP API.
    Serve(cli::serve::ServeArgs),
    /// Listen on an interface and write a record for every call on it, on any switch.
    Tap(cli::tap::TapArgs),
    /// Show the live calls, registrations, rooms and trunks of a server on the terminal, the worst first.
    Top(cli::top::TopArgs),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogFormat {
    Json,
    Text,
}

fn main() -> ExitCode {
    // A wrong command line ends here with exit code 2.
    let Cli { log_format, command } = Cli::parse();
    // The output of the demo, the phone and the live view is for people.
    let format = match log_format {
        LogFormat::Json => Format::Json,
        LogFormat::Text => Format::Text,
    };
    let is_for_people = matches!(
        command,
        Command::Demo(_) | Command::Drain(_) | Command::Nodes(_) | Command::Phone(_) | Command::Top(_)
    );
    let level = match command {
        _ if is_for_people => "error",
        // The output of a tap is for people as well, and includes its calls.
        Command::Tap(_) => "info,netring=error,sidetone_api=warn",
        // The member of the cluster reports the notices of the NATS client, once.
        _ => "info,async_nats=warn",
    };
    let log = Log::start(format, level);
    match command {
        Command::Analyze(args) => cli::analyze::run(&args),
        Command::Simulate(args) => cli::simulate::run(&args),
        Command::Apply(args) => cli::apply::run(&args),
        Command::Check(args) => cli::check::run(&args),
        Command::Completions(args) => cli::completions::run(&args, Cli::command()),
        Command::DeadLetters(args) => cli::dead_letters::run(&args),
        Command::Demo(args) => cli::demo::run(&args),
        Command::Drain(args) => cli::drain::run(&args),
        Command::Man(args) => cli::man::run(&args, Cli::command()),
        Command::Nodes(args) => cli::nodes::run(&args),
        Command::Phone(args) => cli::phone::run(&args),
        Command::Serve(args) => cli::serve::run(&args, &log),
        Command::Tap(args) => cli::tap::run(&args, &log),
        Command::Top(args) => cli::top::run(&args),
    }
}
