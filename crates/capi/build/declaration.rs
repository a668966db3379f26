//! The declarations of the headers.

use std::collections::BTreeMap;

/// A function: `returns name(parameters)`.
pub(crate) struct Declaration {
    pub(crate) name: String,
    pub(crate) returns: Type,
    pub(crate) parameters: Vec<Type>,
}

/// The type of a parameter or result, as far as it matters here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Type {
    Nothing,
    /// A number, by its name in Rust.
    Number(&'static str),
    /// `const char*`.
    Text,
    /// `char**` with the name `errptr`.
    Error,
    /// A pointer to the type of RocksDB with this name.
    Handle(String),
    /// A beginning and a length.
    Slice,
    /// Any other pointer.
    Pointer,
    /// A function of the caller.
    Callback,
}

impl Type {
    fn of(text: &str, name: &str) -> Type {
        let text = text.trim();
        let plain = text.replace("const ", "").replace(' ', "");
        match plain.as_str() {
            "void" | "" => Type::Nothing,
            "unsignedchar" | "uint8_t" => Type::Number("u8"),
            "char" => Type::Number("c_char"),
            "bool" => Type::Number("bool"),
            "int" | "int32_t" => Type::Number("i32"),
            "unsignedint" | "uint32_t" => Type::Number("u32"),
            "uint64_t" => Type::Number("u64"),
            "int64_t" => Type::Number("i64"),
            "size_t" => Type::Number("usize"),
            "double" => Type::Number("f64"),
            "char*" => Type::Text,
            "char**" if name == "errptr" => Type::Error,
            "rocksdb_slice_t" => Type::Slice,
            _ if plain.ends_with("_cb") => Type::Callback,
            _ => match plain.strip_suffix('*') {
                Some(of) if of.starts_with("rocksdb_") && of.ends_with("_t") => {
                    Type::Handle(of.to_owned())
                }
                Some(_) => Type::Pointer,
                None => {
                    panic!(
                        "a header has the type {text:?}, which build/declaration.rs does not know"
                    )
                }
            },
        }
    }

    /// Returns the type in Rust.
    pub(crate) fn rust(&self) -> &str {
        match self {
            Type::Nothing => "()",
            Type::Number(name) => name,
            Type::Text => "*const c_char",
            Type::Error => "ErrPtr",
            Type::Slice => "Slice",
            Type::Handle(_) | Type::Pointer | Type::Callback => "*mut c_void",
        }
    }
}

/// Returns all functions that `headers` declare, by name.
pub(crate) fn declarations(headers: &str) -> BTreeMap<String, Declaration> {
    let code = without_comments(headers);
    let lines = code.lines().filter(|line| !line.starts_with('#'));
    let code = lines.collect::<Vec<_>>().join(" ");
    let mut all = BTreeMap::new();
    for statement in code.split([';', '{', '}']).map(str::trim) {
        if !statement.starts_with("typedef")
            && let Some(declaration) = declaration(statement)
        {
            all.insert(declaration.name.clone(), declaration);
        }
    }
    all
}

fn declaration(statement: &str) -> Option<Declaration> {
    let (head, parameters) = statement.split_once('(')?;
    let parameters = parameters.strip_suffix(')')?;
    let (returns, name) = typed(head)?;
    let parameters = at_top_level(parameters).into_iter().filter_map(|text| {
        if text.contains("(*") {
            return Some(Type::Callback);
        }
        let (what, name) = typed(&text)?;
        Some(Type::of(&what, &name))
    });
    let parameters = parameters.collect();
    name.starts_with("rocksdb_").then(|| Declaration {
        returns: Type::of(&returns, ""),
        name,
        parameters,
    })
}

/// Divides `const char* name` into its type and its name; none for `void`.
fn typed(text: &str) -> Option<(String, String)> {
    let text = text.trim();
    let name: String =
        text.rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next()?.to_owned();
    let what = text.strip_suffix(name.as_str())?.trim();
    let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
    (!what.is_empty()).then_some((what, name))
}

/// Splits a list at commas outside of parentheses.
fn at_top_level(list: &str) -> Vec<String> {
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for letter in list.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(letter);
        }
    }
    parts
}

fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let mut code = parts.next().unwrap_or("").to_owned();
    for part in parts {
        code.push_str(part.split_once("*/").map_or("", |(_, code)| code));
    }
    code.replace("extern \"C\"", "")
}
