//! `sidetone drain`: makes a node of the cluster accept no new calls, and stop when its last call has ended.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use sidetone_cluster::nats::{ClusterSettings, Connection, Observed};
use sidetone_model::cluster::NodeState;
use sidetone_model::ids::NodeId;
use sidetone_phone::softphone::clean;

use crate::cli::{EXIT_FAILED, EXIT_WRONG, prepare};
use crate::cluster::ask_to_drain;

/// The arguments of `drain`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
The node acts as on SIGTERM: it takes no new calls, lets live ones go on for [node] drain_seconds
at most, stores their records, leaves the cluster and ends. A service manager that starts it
again (Restart=always) undoes that. Phones that are registered at the node find another one by
DNS when they register the next time. Its conference rooms go to other nodes at once, with their
members, unless --move-rooms=false.

Exit status: 0 when the node drains (with --wait: has left), 1 when it does not answer or is gone, 2
for a wrong command line or a configuration without [cluster].

Examples:
  sidetone drain
  sidetone drain --node node-b --wait
  sidetone drain --move-rooms=false")]
pub struct DrainArgs {
    /// The name of the node; by default that of the configuration.
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Whether the conference rooms of the node go to other nodes; without it they end with its calls.
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    move_rooms: bool,
    /// Wait until the node has left the cluster.
    #[arg(long)]
    wait: bool,
    /// The configuration file, which names the servers of NATS.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Drains the node.
pub fn run(args: &DrainArgs) -> ExitCode {
    let (config, runtime) = match prepare(args.config.as_deref()) {
        Ok(prepared) => prepared,
        Err(exit) => return exit,
    };
    let Some(settings) = config.cluster else {
        crate::cli::tell!(
            "sidetone: drain: [cluster] nats is empty, so this node is on its own: send SIGTERM to it, or `systemctl stop \
             sidetone`"
        );
        return ExitCode::from(EXIT_WRONG);
    };
    let name = args.node.clone().unwrap_or(config.node.name);
    match runtime.block_on(drain(settings, &name, args)) {
        Ok(text) => {
            // A closed stdout does not change the result.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(problem) => {
            crate::cli::tell!("sidetone: drain: {problem}");
            ExitCode::from(EXIT_FAILED)
        }
    }
}

async fn drain(settings: ClusterSettings, name: &str, args: &DrainArgs) -> Result<String, String> {
    let servers = settings.to_string();
    let connection = Connection::open(settings, "drain").await.map_err(|error| error.to_string())?;
    let failed = |reason| format!("[cluster] nats {servers}: {reason}");
    let nodes = connection.observe().await.map_err(failed)?;
    let node = find(&nodes, name)?;
    let drains = ask_to_drain(&connection, node, args.move_rooms).await;
    let calls = drains.map_err(|reason| format!("{name}: {reason}"))?;
    if !args.wait {
        return Ok(format!("{name} drains: {calls} live calls\n"));
    }
    loop {
        let nodes = connection.observe().await.map_err(failed)?;
        match nodes.iter().find(|observed| observed.last.identity.node == node).map(|observed| observed.state)
        {
            Some(NodeState::Left) | None => return Ok(format!("{name} has left\n")),
            Some(NodeState::Gone) => {
                return Err(format!("{name} is gone without taking leave; look at its log"));
            }
            Some(NodeState::Unknown | NodeState::Up) => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
}

/// The node with that name, if it is a member.
fn find(nodes: &[Observed], name: &str) -> Result<NodeId, String> {
    let up = nodes.iter().filter(|node| node.state == NodeState::Up);
    if let Some(node) = up.clone().find(|node| node.last.identity.name == name) {
        return Ok(node.last.identity.node);
    }
    let names: Vec<String> = up.map(|node| clean(&node.last.identity.name)).collect();
    let known =
        if names.is_empty() { "no node is up".to_owned() } else { format!("up are {}", names.join(", ")) };
    Err(format!("{name} is not up; {known}"))
}

/// The pause between two checks of `--wait`.
const LOOK_EVERY: Duration = Duration::from_secs(1);
