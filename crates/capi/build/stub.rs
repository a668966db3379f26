//! The stub of a function that is not implemented. Options store and return values, and `destroy`
//! functions free. Any other function reports through `errptr` that it is not implemented. Without
//! an `errptr` it ends the program, because every result would be false.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::declaration::{Declaration, Type};

pub(crate) struct Known<'a> {
    /// The functions that the sources name.
    pub(crate) there: &'a BTreeSet<String>,
    /// The results of getters if nothing was set; zero for a getter that is not listed.
    pub(crate) defaults: &'a BTreeMap<String, String>,
    /// Getters of numbers that RocksDB keeps in a type of its own: bool, u8 or i8.
    pub(crate) narrow: &'a BTreeMap<String, String>,
}

impl Known<'_> {
    /// Returns the stub for a declaration.
    pub(crate) fn stub(&self, declaration: &Declaration) -> String {
        let Declaration { name, returns, parameters } = declaration;
        let body = self.body(declaration);
        let mut text = format!("#[unsafe(no_mangle)]\nunsafe extern \"C\" fn {name}(");
        for (nth, parameter) in parameters.iter().enumerate() {
            let _never = write!(text, "p{nth}: {}, ", parameter.rust());
        }
        if *returns != Type::Nothing {
            let _never = writeln!(text, ") -> {} {{", returns.rust());
        } else {
            text.push_str(") {\n");
        }
        if body.contains("unsafe {") {
            text.push_str("    // SAFETY: the contract of the library.\n");
        }
        format!("{text}    {body}\n}}\n")
    }

    fn body(&self, declaration: &Declaration) -> String {
        let Declaration { name, returns, parameters } = declaration;
        if let Some(nth) = parameters.iter().position(|it| *it == Type::Error) {
            return format!("unsafe {{ told(p{nth}, {name:?}) }};\n    {}", nothing(returns));
        }
        match (returns, parameters.as_slice()) {
            (Type::Handle(made), []) if self.is_plain(made) && name.ends_with("_create") => {
                "give(Settings::default()).cast()".into()
            }
            (Type::Nothing, [Type::Handle(freed)]) if name.ends_with("_destroy") => {
                if self.is_plain(freed) {
                    "unsafe { free(p0.cast::<Settings>()) }".into()
                } else {
                    // No function makes such a handle.
                    String::new()
                }
            }
            (Type::Nothing, [Type::Handle(handle), Type::Number(_) | Type::Text])
                if of_options(handle) && key(name).is_some() =>
            {
                let getter = name.replacen("_set_", "_get_", 1);
                let is_flag = self.narrow.get(&getter).is_some_and(|narrow| narrow == "bool");
                let value = if is_flag { "i32::from(p1 != 0)" } else { "p1" };
                let key = key(name).unwrap_or("");
                format!("unsafe {{ put::<{handle}, _>(p0, {key:?}, {value}) }}")
            }
            (Type::Number(_) | Type::Text, [Type::Handle(handle)])
                if of_options(handle) && key(name).is_some() =>
            {
                self.getter(name, returns, handle)
            }
            (Type::Nothing, [Type::Handle(handle), rest @ ..])
                if of_options(handle) && accepts(name) && !rest.contains(&Type::Callback) =>
            {
                String::new()
            }
            _ => format!("absent({name:?})"),
        }
    }

    fn getter(&self, name: &str, returns: &Type, handle: &str) -> String {
        let key = key(name).unwrap_or("");
        match returns {
            Type::Number(number) => {
                let default = self.defaults.get(name).map_or("0", String::as_str);
                let default = match *number {
                    "bool" => (default != "0").to_string(),
                    "f64" => format!("{:?}", default.parse::<f64>().unwrap_or(0.0)),
                    _ => default.to_owned(),
                };
                let got = format!("unsafe {{ got::<{handle}, {number}>(p0, {key:?}, {default}) }}");
                match (self.narrow.get(name).map(String::as_str), *number) {
                    (None, "u8") | (Some("bool"), _) => format!("{number}::from({got} != 0)"),
                    (Some("u8"), "u8") => got,
                    (Some("u8"), _) => format!("{number}::from({got}.to_le_bytes()[0])"),
                    (Some("i8"), _) => {
                        format!("{number}::from({got}.to_le_bytes()[0].cast_signed())")
                    }
                    (_, _) => got,
                }
            }
            Type::Text => {
                format!("unsafe {{ got::<{handle}, _>(p0, {key:?}, std::ptr::null()) }}")
            }
            _ => format!("absent({name:?})"),
        }
    }

    /// True if the sources lack the type. Its handles are then nothing but stored values.
    fn is_plain(&self, handle: &str) -> bool {
        of_options(handle) && !self.there.contains(handle)
    }

    /// Returns the handles of `stubs` that are nothing but values.
    pub(crate) fn handles<'a>(
        &self,
        all: impl Iterator<Item = &'a Declaration>,
        stubs: &str,
    ) -> String {
        let types =
            all.flat_map(|declaration| declaration.parameters.iter().chain([&declaration.returns]));
        let names: BTreeSet<&str> = types
            .filter_map(|what| match what {
                Type::Handle(name) if self.is_plain(name) => Some(name.as_str()),
                _ => None,
            })
            .collect();
        let used = names.iter().filter(|name| stubs.contains(&format!("::<{name}, ")));
        used.map(|name| format!("type {name} = Settings;\n")).collect()
    }
}

/// Returns a function that calls each getter of a number whose name begins with `prefix`, and shows
/// the value with the name of the option.
pub(crate) fn listed<'a>(all: impl Iterator<Item = &'a Declaration>, prefix: &str) -> String {
    let (mut declared, mut calls) = (String::new(), String::new());
    for Declaration { name, returns, parameters } in all {
        let (Some(option), Type::Number(number)) = (name.strip_prefix(prefix), returns) else {
            continue;
        };
        if !matches!(parameters.as_slice(), [Type::Handle(_)]) {
            continue;
        }
        let _never = writeln!(declared, "    fn {name}(options: *mut c_void) -> {number};");
        let value = match *number {
            "f64" => format!("format_args!(\"{{:.6}}\", {name}(options))"),
            "bool" => format!("u8::from({name}(options))"),
            _ => format!("{name}(options)"),
        };
        let _never = writeln!(calls, "        add({option:?}, &{value});");
    }
    format!(
        "unsafe extern \"C\" {{\n{declared}}}\n\n\
         #[allow(clippy::too_many_lines, reason = \"a line for each option\")]\n\
         pub(super) unsafe fn each(\n    options: *mut c_void,\n    \
         add: &mut dyn FnMut(&str, &dyn Display),\n) {{\n    \
         // SAFETY: the getters read a valid handle.\n    unsafe {{\n{calls}    }}\n}}\n"
    )
}

/// Returns the stub of a function with unknown parameters.
pub(crate) fn of_unknown(name: &str) -> String {
    format!("#[unsafe(no_mangle)]\nunsafe extern \"C\" fn {name}() {{ absent({name:?}) }}\n")
}

/// True for handles whose values functions set and get.
fn of_options(handle: &str) -> bool {
    handle.contains("options")
}

/// Returns the option that a setter or getter is for.
fn key(name: &str) -> Option<&str> {
    // The first occurrence counts, because the rest of a name may contain the word again.
    let found = ["_set_", "_get_"].iter().filter_map(|middle| name.split_once(middle));
    found.min_by_key(|(before, _)| before.len()).map(|(_, key)| key)
}

/// True for functions on options that may do nothing without an error.
fn accepts(name: &str) -> bool {
    key(name).is_some() || name.contains("_clear_") || name.contains("_file_types_")
}

fn nothing(what: &Type) -> &'static str {
    match what {
        Type::Nothing => "",
        Type::Number("bool") => "false",
        Type::Number("f64") => "0.0",
        Type::Number(_) => "0",
        Type::Slice => "Slice::default()",
        Type::Text => "std::ptr::null()",
        _ => "std::ptr::null_mut()",
    }
}
