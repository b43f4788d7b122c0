//! `sidetone nodes`: lists the nodes of the configured cluster, as seen on NATS.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use sidetone_cluster::membership::Heartbeat;
use sidetone_cluster::nats::{ClusterSettings, Connection, Observed};
use sidetone_model::cluster::NodeState;
use sidetone_phone::softphone::clean;

use crate::cli::{EXIT_FAILED, EXIT_WRONG, prepare};

/// The arguments of `nodes`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
It connects to NATS as [cluster] of the configuration says, and listens to the heartbeats of the
nodes for three seconds at most. Operators read the same in GET /api/v1/nodes.

STATE is up, left (stopped in order) or gone (no heartbeat while it listened).

Exit status: 0 when every node is up or has left, 1 when one is gone or NATS does not answer, 2
for a wrong command line or a configuration without [cluster].

Examples:
  sidetone nodes
  sidetone nodes --config /etc/sidetone/sidetone.toml --json")]
pub struct NodesArgs {
    /// The configuration file, which names the servers of NATS.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print a JSON array in place of a table.
    #[arg(long)]
    json: bool,
}

/// Prints the nodes.
pub fn run(args: &NodesArgs) -> ExitCode {
    let (config, runtime) = match prepare(args.config.as_deref()) {
        Ok(prepared) => prepared,
        Err(exit) => return exit,
    };
    let Some(settings) = config.cluster else {
        crate::cli::tell!(
            "sidetone: nodes: [cluster] nats is empty, so this node is on its own; name the NATS servers of the cluster"
        );
        return ExitCode::from(EXIT_WRONG);
    };
    match runtime.block_on(observe(settings)) {
        Ok(nodes) => {
            let text = if args.json { as_json(&nodes) } else { as_table(&nodes) };
            // A closed stdout does not change the result.
            let _ = std::io::stdout().write_all(text.as_bytes());
            let is_one_gone = nodes.iter().any(|node| node.state == NodeState::Gone);
            if is_one_gone { ExitCode::from(EXIT_FAILED) } else { ExitCode::SUCCESS }
        }
        Err(problem) => {
            crate::cli::tell!("sidetone: nodes: {problem}");
            ExitCode::from(EXIT_FAILED)
        }
    }
}

async fn observe(settings: ClusterSettings) -> Result<Vec<Observed>, String> {
    let servers = settings.to_string();
    let connection = Connection::open(settings, "nodes").await.map_err(|error| error.to_string())?;
    let nodes = connection.observe().await;
    nodes.map_err(|reason| {
        format!("[cluster] nats {servers}: {reason}; check that a NATS server with JetStream runs there")
    })
}

fn as_table(nodes: &[Observed]) -> String {
    if nodes.is_empty() {
        return "no node has joined the cluster\n".to_owned();
    }
    let rows: Vec<[String; 9]> = nodes.iter().map(row).collect();
    let mut text = String::new();
    for row in std::iter::once(&HEAD.map(str::to_owned)).chain(&rows) {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            let width = width.chain(HEAD.get(column).map(|head| head.len())).max().unwrap_or_default();
            // Writing to a string cannot fail.
            let _ = write!(line, "{cell:<width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The cells of a node. The texts are from another process, so control characters are removed.
fn row(node: &Observed) -> [String; 9] {
    let Heartbeat { identity, figures, .. } = &node.last;
    let state = match (node.state, figures.draining) {
        (NodeState::Up, true) => "draining",
        (state, _) => state.as_str(),
    };
    [
        clean(&identity.name),
        state.to_owned(),
        clean(&identity.version),
        figures.calls.to_string(),
        figures.rooms.to_string(),
        figures.registrations.to_string(),
        format!("{}%", figures.cpu_percent),
        clean(&identity.http),
        clean(&identity.sip.join(" ")),
    ]
}

fn as_json(nodes: &[Observed]) -> String {
    let nodes: Vec<Value> = nodes
        .iter()
        .map(|node| {
            let Heartbeat { identity, figures, at, .. } = &node.last;
            json!({
                "id": identity.node,
                "name": identity.name,
                "state": node.state,
                "version": identity.version,
                "started_at": identity.started_at,
                "heartbeat_at": at,
                "draining": figures.draining,
                "loaded": figures.loaded,
                "calls": figures.calls,
                "rooms": figures.rooms,
                "registrations": figures.registrations,
                "cpu_percent": figures.cpu_percent,
                "http": identity.http,
                "sip": identity.sip,
            })
        })
        .collect();
    format!("{:#}\n", Value::from(nodes))
}

const HEAD: [&str; 9] = ["NODE", "STATE", "VERSION", "CALLS", "ROOMS", "PHONES", "CPU", "HTTP", "SIP"];

#[cfg(test)]
mod tests {
    use sidetone_cluster::membership::{Figures, Identity, RunId};
    use sidetone_model::ids::NodeId;
    use sidetone_model::time::Timestamp;
    use uuid::Uuid;

    use super::*;

    fn node(name: &str, state: NodeState, figures: Figures) -> Observed {
        let identity = Identity {
            node: NodeId(Uuid::nil()),
            name: name.to_owned(),
            run: RunId(Uuid::nil()),
            started_at: Timestamp::default(),
            version: "0.1.0".to_owned(),
            sip: vec!["udp://192.0.2.1:5060".to_owned()],
            edge: None,
            http: "http://192.0.2.1:8080".to_owned(),
        };
        let at = Timestamp::default();
        Observed { last: Heartbeat { v: 1, identity, seq: 1, at, figures, leaving: false }, state }
    }

    #[test]
    fn the_table_is_aligned_and_clean() {
        let busy = Figures { calls: 120, registrations: 4_000, cpu_percent: 7, ..Figures::default() };
        let nodes = [
            node("edge-1", NodeState::Up, busy),
            node("edge-\u{1b}[2J2", NodeState::Up, Figures { draining: true, ..Figures::default() }),
            node("c", NodeState::Gone, Figures::default()),
        ];
        let text = as_table(&nodes);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[0].starts_with("NODE"), "{text}");
        assert!(lines[1].contains("up        0.1.0    120    0      4000    7%"), "{text}");
        assert!(lines[2].contains("draining") && !text.contains('\u{1b}'), "{text}");
        assert!(lines[3].contains("gone"), "{text}");
        assert_eq!(as_table(&[]), "no node has joined the cluster\n");
        let json: Value = serde_json::from_str(&as_json(&nodes)).unwrap();
        assert_eq!((json[0]["calls"].as_u64(), json[2]["state"].as_str()), (Some(120), Some("gone")));
    }
}
