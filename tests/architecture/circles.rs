//! Finds cycles in the graph of files: groups of files that depend on each other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::imports::Graph;

/// Every group of two or more files that reach each other, sorted.
pub(crate) fn circles(graph: &Graph) -> Vec<BTreeSet<String>> {
    let mut backward: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, reasons) in graph {
        for to in reasons.keys() {
            backward.entry(to).or_default().push(from);
        }
    }
    let forward =
        |file: &str| graph.get(file).into_iter().flat_map(|to| to.keys().map(String::as_str)).collect();
    let back = |file: &str| backward.get(file).cloned().unwrap_or_default();
    let mut placed: BTreeSet<&str> = BTreeSet::new();
    let mut found = Vec::new();
    for file in graph.keys() {
        if placed.contains(file.as_str()) {
            continue;
        }
        let after: BTreeSet<&str> = reachable(file, &forward);
        let group: BTreeSet<&str> = reachable(file, &back).intersection(&after).copied().collect();
        placed.extend(&group);
        if group.len() > 1 {
            found.push(group.into_iter().map(str::to_owned).collect());
        }
    }
    found.sort();
    found
}

/// `start` and every file that is reachable from it.
fn reachable<'g>(start: &'g str, next: &dyn Fn(&str) -> Vec<&'g str>) -> BTreeSet<&'g str> {
    let mut seen = BTreeSet::from([start]);
    let mut open = vec![start];
    while let Some(file) = open.pop() {
        open.extend(next(file).into_iter().filter(|to| seen.insert(to)));
    }
    seen
}

/// The shortest cycle inside a group, as its files in order; the first is not repeated at the end.
pub(crate) fn shortest(graph: &Graph, group: &BTreeSet<String>) -> Vec<String> {
    let rounds = group.iter().filter_map(|start| round(graph, group, start));
    rounds.min_by_key(Vec::len).unwrap_or_default()
}

/// The shortest path from `start` back to it.
fn round(graph: &Graph, group: &BTreeSet<String>, start: &str) -> Option<Vec<String>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(file) = open.pop_front() {
        for to in graph.get(file)?.keys().filter(|to| group.contains(*to)) {
            if to == start {
                let mut way = vec![file.to_owned()];
                let mut at = file;
                while let Some(before) = came_from.get(at) {
                    way.push((*before).to_owned());
                    at = before;
                }
                way.reverse();
                return Some(way);
            }
            if !came_from.contains_key(to.as_str()) {
                came_from.insert(to, file);
                open.push_back(to);
            }
        }
    }
    None
}

/// A group as readable text: its files, and the imports that form one shortest cycle.
pub(crate) fn describe(graph: &Graph, group: &BTreeSet<String>) -> String {
    let mut text = format!("{} files need each other:\n", group.len());
    for file in group {
        text.push_str(&format!("    {file}\n"));
    }
    let way = shortest(graph, group);
    text.push_str("  a shortest circle:\n");
    for (at, from) in way.iter().enumerate() {
        let to = &way[(at + 1) % way.len()];
        let reason = &graph[from][to];
        text.push_str(&format!("    {from}:{} → {to}   {}\n", reason.line, reason.text));
    }
    text
}
