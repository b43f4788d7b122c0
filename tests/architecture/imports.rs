//! Resolves the names used in the modules of a crate to the files that define them: the graph of files.

use std::collections::{BTreeMap, BTreeSet};

use crate::modules::{Crate, Module, is_parent};

/// The dependencies between files: `(from, to)` to the first line that causes each one.
pub(crate) type Graph = BTreeMap<String, BTreeMap<String, Reason>>;

#[derive(Clone, Debug)]
pub(crate) struct Reason {
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Module(usize),
    /// An item of a module; the rest of the path is a variant, a method or a constant of it.
    Item(usize, String),
}

/// The files that each file of a crate depends on, by `use` lines, by paths in code, and by calls of methods of the
/// same type that are defined in another file.
///
/// A name imported through a re-export counts as an import of the file that defines it. Re-exports in a parent
/// (`mod.rs`, `lib.rs`) of items below it are its list of contents and do not count.
pub(crate) fn graph(of: &Crate) -> Graph {
    let mut graph = Graph::new();
    let mut methods: BTreeMap<(Target, &str), BTreeSet<&str>> = BTreeMap::new();
    for (place, module) in of.modules.iter().enumerate() {
        for method in &module.methods {
            if let Some(owner) = resolve(of, place, &method.owner) {
                methods.entry((owner, &method.name)).or_default().insert(&module.file);
            }
        }
    }
    for (place, module) in of.modules.iter().enumerate() {
        for import in &module.imports {
            let contents = import.public && is_parent(&module.file);
            match resolve(of, place, &import.path) {
                Some(target) if contents && is_below(of, &target, place) => (),
                Some(Target::Module(used)) if import.name.is_none() => {
                    let used = &of.modules[used];
                    if !is_parent(&used.file) {
                        add(
                            &mut graph,
                            module,
                            &used.file,
                            import.line,
                            format!("use {}::*", import.path.join("::")),
                        );
                    }
                }
                Some(Target::Item(used, _)) => {
                    let text = format!("use {}", import.path.join("::"));
                    add(&mut graph, module, &of.modules[used].file, import.line, text);
                }
                Some(Target::Module(_)) | None => (),
            }
        }
        for mention in &module.mentions {
            if let Some(Target::Item(used, _)) = resolve(of, place, &mention.path) {
                add(&mut graph, module, &of.modules[used].file, mention.line, mention.path.join("::"));
            }
        }
        for call in &module.own_calls {
            let Some(owner) = resolve(of, place, &call.owner) else { continue };
            let Some(files) = methods.get(&(owner, call.name.as_str())) else { continue };
            if !files.contains(module.file.as_str()) {
                for file in files {
                    add(&mut graph, module, file, call.line, format!("self.{}()", call.name));
                }
            }
        }
    }
    graph
}

fn add(graph: &mut Graph, from: &Module, to: &str, line: usize, text: String) {
    if from.file != to {
        let reasons = graph.entry(from.file.clone()).or_default();
        let reason = reasons.entry(to.to_owned()).or_insert_with(|| Reason { line, text: text.clone() });
        if line < reason.line {
            *reason = Reason { line, text };
        }
    }
}

/// Whether a target is in a module below `parent`.
fn is_below(of: &Crate, target: &Target, parent: usize) -> bool {
    let (Target::Module(module) | Target::Item(module, _)) = target;
    let mut above = of.modules[*module].parent;
    while let Some(module) = above {
        if module == parent {
            return true;
        }
        above = of.modules[module].parent;
    }
    false
}

fn resolve(of: &Crate, from: usize, path: &[String]) -> Option<Target> {
    resolve_within(of, from, path, &mut BTreeSet::new())
}

/// `asked` holds the names that are being resolved, so that modules which import each other by `*` cause no endless
/// loop.
fn resolve_within(
    of: &Crate,
    from: usize,
    path: &[String],
    asked: &mut BTreeSet<(usize, String)>,
) -> Option<Target> {
    let (first, mut rest) = path.split_first()?;
    let mut target = match first.as_str() {
        "crate" => Target::Module(0),
        "self" => Target::Module(from),
        "super" => Target::Module(of.modules[from].parent?),
        name => look_up(of, from, name, true, asked)?,
    };
    while let (Target::Module(module), Some((next, after))) = (&target, rest.split_first()) {
        target = match next.as_str() {
            "super" => Target::Module(of.modules[*module].parent?),
            name => look_up(of, *module, name, false, asked)?,
        };
        rest = after;
    }
    Some(target)
}

/// The target of a name in a module; `inside` also sees the imports inside functions of the module.
fn look_up(
    of: &Crate,
    module: usize,
    name: &str,
    inside: bool,
    asked: &mut BTreeSet<(usize, String)>,
) -> Option<Target> {
    if !asked.insert((module, name.to_owned())) {
        return None;
    }
    let here = &of.modules[module];
    let found = if let Some(child) = here.children.get(name) {
        Some(Target::Module(*child))
    } else if here.items.contains(name) {
        Some(Target::Item(module, name.to_owned()))
    } else {
        let visible = || here.imports.iter().filter(|import| inside || !import.local);
        let named = visible()
            .filter(|import| import.name.as_deref() == Some(name))
            .find_map(|import| resolve_within(of, module, &import.path, asked));
        named
            .or_else(|| {
                visible().filter(|import| import.name.is_none()).find_map(|import| {
                    match resolve_within(of, module, &import.path, asked)? {
                        Target::Module(opened) => look_up(of, opened, name, false, asked),
                        Target::Item(..) => None,
                    }
                })
            })
            .or_else(|| here.generated.contains(name).then(|| Target::Item(module, name.to_owned())))
    };
    asked.remove(&(module, name.to_owned()));
    found
}
