//! Reads the source files of one crate into modules: the definitions, imports and names in each file.
//!
//! Test code is left out: `#[cfg(test)]` items and the files they declare. All Cargo features are treated as enabled.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// The text of a file, if it exists. Paths are relative to the workspace and written with `/`.
pub(crate) type Read<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The modules of one crate. The first is its root.
#[derive(Default)]
pub(crate) struct Crate {
    pub(crate) modules: Vec<Module>,
    /// Every function with its file, its line and how many lines it has.
    pub(crate) functions: Vec<Function>,
}

#[derive(Default)]
pub(crate) struct Module {
    pub(crate) file: String,
    pub(crate) parent: Option<usize>,
    pub(crate) children: BTreeMap<String, usize>,
    pub(crate) items: BTreeSet<String>,
    /// Names inside macro calls between items: the macro may define an item of that name.
    pub(crate) generated: BTreeSet<String>,
    pub(crate) imports: Vec<Import>,
    pub(crate) mentions: Vec<Mention>,
    pub(crate) methods: Vec<Method>,
    pub(crate) own_calls: Vec<Method>,
}

/// One leaf of a `use` tree.
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    /// Its name in the module; `None` for `*`.
    pub(crate) name: Option<String>,
    pub(crate) line: usize,
    /// `pub`, `pub(crate)` or `pub(super)`.
    pub(crate) public: bool,
    /// Inside a function, so that other modules cannot name it.
    pub(crate) local: bool,
}

/// A path in code.
pub(crate) struct Mention {
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
}

/// A method in an inherent `impl`, or a call of one on `self`.
pub(crate) struct Method {
    /// The type's path as written in the `impl`.
    pub(crate) owner: Vec<String>,
    pub(crate) name: String,
    pub(crate) line: usize,
}

pub(crate) struct Function {
    pub(crate) file: String,
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) lines: usize,
}

/// Reads the crate whose root is the file `root`.
pub(crate) fn read_crate(root: &str, read: Read<'_>) -> Crate {
    let mut reader = Reader { read, found: Crate::default() };
    reader.file(root, None);
    reader.found
}

/// A `mod.rs`, `lib.rs` or `main.rs`.
pub(crate) fn is_parent(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    ["mod.rs", "lib.rs", "main.rs"].contains(&name)
}

struct Reader<'a> {
    read: Read<'a>,
    found: Crate,
}

impl Reader<'_> {
    /// Reads one file as a module and returns the module's index.
    fn file(&mut self, path: &str, parent: Option<usize>) -> usize {
        let text = (self.read)(path).unwrap_or_else(|| panic!("{path} is declared and does not exist"));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
        let folder = if is_parent(path) {
            path.rsplit_once('/').map_or("", |(folder, _)| folder)
        } else {
            path.trim_end_matches(".rs")
        };
        let module = self.module(path, parent);
        self.items(&parsed.items, module, folder);
        module
    }

    fn module(&mut self, file: &str, parent: Option<usize>) -> usize {
        self.found.modules.push(Module { file: file.to_owned(), parent, ..Module::default() });
        self.found.modules.len() - 1
    }

    fn items(&mut self, items: &[syn::Item], module: usize, folder: &str) {
        for item in items.iter().filter(|item| !is_test(attributes(item))) {
            if let syn::Item::Mod(declared) = item {
                let name = declared.ident.to_string();
                let place = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
                let child = self.child(declared, module, &place);
                self.found.modules[module].children.insert(name, child);
            } else {
                let here = &mut self.found.modules[module];
                here.items.extend(item_name(item));
                if let syn::Item::Macro(called) = item
                    && called.ident.is_none()
                {
                    here.generated.extend(words(called.mac.tokens.clone()));
                }
                let mut walk = Walk { module: here, functions: Vec::new(), owner: None, depth: 0 };
                walk.visit_item(item);
                let functions = walk.functions;
                self.found.functions.extend(functions);
            }
        }
    }

    fn child(&mut self, declared: &syn::ItemMod, parent: usize, place: &str) -> usize {
        if let Some((_, items)) = &declared.content {
            let file = self.found.modules[parent].file.clone();
            let module = self.module(&file, Some(parent));
            self.items(items, module, place);
            return module;
        }
        let beside = format!("{place}.rs");
        let within = format!("{place}/mod.rs");
        let file = if (self.read)(&beside).is_some() { beside } else { within };
        self.file(&file, Some(parent))
    }
}

/// Collects the imports, names and calls of one item.
struct Walk<'m> {
    module: &'m mut Module,
    functions: Vec<Function>,
    /// The type of the inherent `impl` around the code.
    owner: Option<Vec<String>>,
    /// The number of functions and constants around the code.
    depth: usize,
}

impl Walk<'_> {
    fn function(&mut self, name: &syn::Ident, span: proc_macro2::Span) {
        let (first, last) = (span.start().line, span.end().line);
        self.functions.push(Function {
            file: self.module.file.clone(),
            name: name.to_string(),
            line: first,
            lines: last + 1 - first,
        });
    }

    /// The paths in tokens that the parser does not read: macro calls and attributes.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut line = 0;
        let mut colons = 0;
        for token in tokens {
            match &token {
                TokenTree::Ident(word) => {
                    if colons != 2 {
                        self.mention(std::mem::take(&mut path), line);
                    }
                    line = word.span().start().line;
                    path.push(word.to_string());
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' && !path.is_empty() && colons < 2 => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => (),
            }
            colons = 0;
            self.mention(std::mem::take(&mut path), line);
        }
        self.mention(path, line);
    }

    /// The paths in strings of an attribute, as serde has them: `serialize_with = "module::function"`.
    fn strings(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.strings(group.stream()),
                TokenTree::Literal(text) => {
                    let line = text.span().start().line;
                    let text = syn::parse_str::<syn::LitStr>(&text.to_string());
                    if let Some(Ok(path)) = text.ok().map(|text| text.parse::<syn::Path>()) {
                        self.mention(segments(&path), line);
                    }
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => (),
            }
        }
    }

    fn mention(&mut self, path: Vec<String>, line: usize) {
        if !path.is_empty() {
            self.module.mentions.push(Mention { path, line });
        }
    }
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if item.leading_colon.is_some() {
            return;
        }
        let public = !matches!(item.vis, syn::Visibility::Inherited);
        let local = self.depth > 0;
        leaves(&item.tree, &mut Vec::new(), &mut |path, name, line| {
            self.module.imports.push(Import { path, name, line, public, local });
        });
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig.ident, item.sig.span().join(item.block.span()).unwrap_or(item.block.span()));
        self.depth += 1;
        visit::visit_item_fn(self, item);
        self.depth -= 1;
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let around = self.owner.take();
        if let syn::Type::Path(owner) = &*item.self_ty {
            self.owner = Some(segments(&owner.path));
        }
        if let (None, Some(owner)) = (&item.trait_, &self.owner) {
            for function in item.items.iter().filter_map(as_function) {
                self.module.methods.push(Method {
                    owner: owner.clone(),
                    name: function.sig.ident.to_string(),
                    line: function.sig.ident.span().start().line,
                });
            }
        }
        visit::visit_item_impl(self, item);
        self.owner = around;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if is_test(&item.attrs) {
            return;
        }
        self.function(&item.sig.ident, item.sig.span().join(item.block.span()).unwrap_or(item.block.span()));
        self.depth += 1;
        visit::visit_impl_item_fn(self, item);
        self.depth -= 1;
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let on_self = matches!(&*call.receiver, syn::Expr::Path(path) if path.path.is_ident("self"));
        if let (true, Some(owner)) = (on_self, &self.owner) {
            let line = call.method.span().start().line;
            self.module.own_calls.push(Method { owner: owner.clone(), name: call.method.to_string(), line });
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let named = segments(path);
        let line = path.span().start().line;
        if let ([first, second, ..], Some(owner)) = (named.as_slice(), &self.owner)
            && first == "Self"
        {
            self.module.own_calls.push(Method { owner: owner.clone(), name: second.clone(), line });
        }
        if path.leading_colon.is_none() {
            self.mention(named, line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.tokens(called.tokens.clone());
        visit::visit_macro(self, called);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if let syn::Meta::List(list) = &attribute.meta {
            self.tokens(list.tokens.clone());
            self.strings(list.tokens.clone());
        }
    }
}

fn as_function(item: &syn::ImplItem) -> Option<&syn::ImplItemFn> {
    match item {
        syn::ImplItem::Fn(function) if !is_test(&function.attrs) => Some(function),
        _ => None,
    }
}

fn segments(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

/// Calls `leaf` with the path, the name and the line of every leaf of a `use` tree.
fn leaves(
    tree: &syn::UseTree,
    before: &mut Vec<String>,
    leaf: &mut dyn FnMut(Vec<String>, Option<String>, usize),
) {
    let whole = |before: &[String], last: &syn::Ident| {
        let mut path = before.to_vec();
        if last != "self" || path.is_empty() {
            path.push(last.to_string());
        }
        path
    };
    match tree {
        syn::UseTree::Path(step) => {
            before.push(step.ident.to_string());
            leaves(&step.tree, before, leaf);
            before.pop();
        }
        syn::UseTree::Name(name) => {
            let path = whole(before, &name.ident);
            let last = path.last().cloned();
            leaf(path, last, name.ident.span().start().line);
        }
        syn::UseTree::Rename(name) => {
            let path = whole(before, &name.ident);
            leaf(path, Some(name.rename.to_string()), name.ident.span().start().line);
        }
        syn::UseTree::Glob(star) => leaf(before.clone(), None, star.span().start().line),
        syn::UseTree::Group(group) => {
            for tree in &group.items {
                leaves(tree, before, leaf);
            }
        }
    }
}

fn item_name(item: &syn::Item) -> Option<String> {
    let name = match item {
        syn::Item::Const(item) => &item.ident,
        syn::Item::Enum(item) => &item.ident,
        syn::Item::Fn(item) => &item.sig.ident,
        syn::Item::Macro(item) => item.ident.as_ref()?,
        syn::Item::Static(item) => &item.ident,
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::TraitAlias(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        syn::Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// `#[test]`, or a `#[cfg]` that names `test` and does not negate it.
fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let words = words(list.tokens.clone());
            words.contains("test") && !words.contains("not")
        }
        _ => false,
    })
}

/// Every word of a token stream.
fn words(tokens: TokenStream) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for token in tokens {
        match token {
            TokenTree::Ident(word) => {
                found.insert(word.to_string());
            }
            TokenTree::Group(group) => found.extend(words(group.stream())),
            TokenTree::Punct(_) | TokenTree::Literal(_) => (),
        }
    }
    found
}
