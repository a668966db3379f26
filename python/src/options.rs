//! Options from keyword arguments: names and values as the engine's text, and those that are no
//! text (`merge_operator`, `comparator`).

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use sateen::{ColumnFamilyOptions, Comparator, OptionInfo, Options};

use crate::callbacks::{self, Order, Orders};
use crate::codec;
use crate::errors;

/// Options of an open.
pub(crate) struct Parsed {
    pub(crate) options: Options,
    pub(crate) families: Vec<(String, ColumnFamilyOptions)>,
    /// The comparators that are Python's, by column family.
    pub(crate) orders: HashMap<String, Arc<Order>>,
}

impl Parsed {
    pub(crate) fn families(&self) -> Vec<(&str, ColumnFamilyOptions)> {
        self.families.iter().map(|(name, options)| (name.as_str(), options.clone())).collect()
    }
}

/// Reads the options of a database, and of `families`: a dict of dicts.
pub(crate) fn database(
    arguments: Option<&Bound<'_, PyDict>>,
    families: Option<&Bound<'_, PyAny>>,
    orders: &Orders,
) -> PyResult<Parsed> {
    let mut parsed =
        Parsed { options: Options::default(), families: Vec::new(), orders: HashMap::new() };
    if let Some(arguments) = arguments {
        let py = arguments.py();
        // A profile replaces all options, so it comes first.
        if let Some(profile) = arguments.get_item("profile")? {
            let name: String = profile
                .extract()
                .map_err(|_| wrong_type("profile", "the name of a profile", &profile))?;
            parsed.options = Options::profile(&name)
                .map_err(|error| errors::bad_option(py, "profile", &error.to_string()))?;
        }
        let options = &mut parsed.options;
        let order = each(arguments, &mut |info, text| {
            if info.name == "profile" { Ok(()) } else { options.set(info.name, text) }
        })?;
        if let Some(order) = order.apply(arguments, &mut parsed.options.column_family, orders)? {
            parsed.orders.insert(sateen::DEFAULT_COLUMN_FAMILY.to_owned(), order);
        }
    }
    const FAMILIES: &str = "a dict of the options of each column family by its name";
    let families = families.filter(|families| !families.is_none());
    let families = families.map(|families| {
        families.cast::<PyDict>().map_err(|_| wrong_type("column_families", FAMILIES, families))
    });
    for (name, options) in families.transpose()?.iter().flat_map(|families| families.iter()) {
        let name: String =
            name.extract().map_err(|_| wrong_type("column_families", FAMILIES, &name))?;
        let (options, order) = match options.is_none() {
            true => (parsed.options.column_family.clone(), None),
            false => {
                let wrong = |_| wrong_type(&format!("column family {name}"), "a dict", &options);
                family(Some(options.cast::<PyDict>().map_err(wrong)?), orders)?
            }
        };
        if let Some(order) = order {
            parsed.orders.insert(name.clone(), order);
        }
        parsed.families.push((name, options));
    }
    Ok(parsed)
}

/// Reads the options of a column family.
pub(crate) fn family(
    arguments: Option<&Bound<'_, PyDict>>,
    orders: &Orders,
) -> PyResult<(ColumnFamilyOptions, Option<Arc<Order>>)> {
    let mut options = ColumnFamilyOptions::default();
    let Some(arguments) = arguments else { return Ok((options, None)) };
    for name in arguments.keys() {
        let name: String = name.extract()?;
        if Options::info(&name).is_ok_and(|info| !info.column_family) {
            let text = format!("the option {name} is one of the whole database: give it to Db");
            return Err(errors::bad_option(arguments.py(), &name, &text));
        }
    }
    let rest = each(arguments, &mut |info, text| options.set(info.name, text))?;
    let order = rest.apply(arguments, &mut options, orders)?;
    Ok((options, order))
}

/// The name of the order of typed keys, which is that of RocksDict.
const TYPED: &str = "rocksdict";

/// Returns true for a comparator that the engine knows by name.
fn is_text_comparator(value: &Bound<'_, PyAny>) -> bool {
    value.extract::<String>().is_ok_and(|name| name != TYPED)
}

/// The arguments that are no text.
struct Rest;

impl Rest {
    fn apply(
        &self,
        arguments: &Bound<'_, PyDict>,
        options: &mut ColumnFamilyOptions,
        orders: &Orders,
    ) -> PyResult<Option<Arc<Order>>> {
        if let Some(merge) = arguments.get_item("merge_operator")? {
            options.merge_operator = callbacks::merging(&merge, orders)?;
        }
        let name = arguments.get_item("comparator_name")?;
        let name = name.map(|name| name.extract::<String>()).transpose()?;
        let Some(compare) = arguments.get_item("comparator")? else { return Ok(None) };
        if compare.is_none() || is_text_comparator(&compare) {
            return Ok(None);
        }
        if compare.is_instance_of::<PyString>() {
            options.comparator = Comparator::custom(TYPED, codec::compare);
            return Ok(None);
        }
        if !compare.is_callable() {
            let text = "comparator must be a name or a callable (a, b) that returns an int";
            return Err(PyTypeError::new_err(text));
        }
        let (comparator, order) = orders.comparator(&compare, name);
        options.comparator = comparator;
        Ok(Some(order))
    }
}

/// Calls `set` with each argument that is text.
fn each(
    arguments: &Bound<'_, PyDict>,
    set: &mut dyn FnMut(&'static OptionInfo, &str) -> sateen::Result<()>,
) -> PyResult<Rest> {
    let py = arguments.py();
    for (name, value) in arguments {
        let name: String = name.extract()?;
        let special = match name.as_str() {
            "merge_operator" | "comparator_name" => true,
            "comparator" => !is_text_comparator(&value),
            _ => false,
        };
        if special {
            continue;
        }
        let info = Options::info(&name)
            .map_err(|error| errors::bad_option(py, &name, &error.to_string()))?;
        let text = text_of(info, &value)?;
        set(info, &text).map_err(|error| errors::bad_option(py, info.name, &error.to_string()))?;
    }
    Ok(Rest)
}

/// Returns `value` as the text of an option. A number for a time is in seconds.
fn text_of(info: &OptionInfo, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if value.is_none() {
        return Ok("none".to_owned());
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true().to_string());
    }
    if let Ok(text) = value.extract::<String>() {
        return Ok(text);
    }
    let is_time = info.unit.starts_with("duration");
    if is_time {
        let seconds = value.call_method0("total_seconds").unwrap_or_else(|_| value.clone());
        if let Ok(seconds) = seconds.extract::<f64>() {
            return match std::time::Duration::try_from_secs_f64(seconds) {
                Ok(time) => Ok(format!("{}ns", time.as_nanos())),
                // The option refuses it, with the value as the caller wrote it.
                Err(_) => Ok(value.str()?.to_string()),
            };
        }
    }
    if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        return Ok(value.str()?.to_string());
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let parts: Vec<String> =
            value.try_iter()?.map(|part| text_of(info, &part?)).collect::<PyResult<_>>()?;
        return Ok(parts.join(","));
    }
    if let Ok(path) = value.extract::<std::path::PathBuf>()
        && let Some(text) = path.to_str()
    {
        return Ok(text.to_owned());
    }
    Err(wrong_type(info.name, info.accepts, value))
}

/// Returns the exception for a value of a type that an option does not take.
fn wrong_type(name: &str, accepts: &str, value: &Bound<'_, PyAny>) -> PyErr {
    match value.get_type().name() {
        Ok(kind) => PyTypeError::new_err(format!("{name}: {accepts} is needed, not {kind}")),
        Err(error) => error,
    }
}

/// Returns changes of options as text.
pub(crate) fn changes(arguments: &Bound<'_, PyDict>) -> PyResult<Vec<(String, String)>> {
    let py = arguments.py();
    let mut changes = Vec::new();
    for (name, value) in arguments {
        let name: String = name.extract()?;
        let info = Options::info(&name)
            .map_err(|error| errors::bad_option(py, &name, &error.to_string()))?;
        changes.push((info.name.to_owned(), text_of(info, &value)?));
    }
    Ok(changes)
}

/// Returns all options of `options` as a dict of text.
pub(crate) fn as_dict<'py>(py: Python<'py>, options: &Options) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for name in Options::names() {
        dict.set_item(name, options.get(name).unwrap_or_default())?;
    }
    Ok(dict)
}

/// Returns the options of a column family as a dict of text.
pub(crate) fn family_as_dict<'py>(
    py: Python<'py>,
    options: &ColumnFamilyOptions,
) -> PyResult<Bound<'py, PyDict>> {
    let whole = Options { column_family: options.clone(), ..Options::default() };
    let dict = PyDict::new(py);
    for info in Options::all().filter(|info| info.column_family) {
        dict.set_item(info.name, whole.get(info.name).unwrap_or_default())?;
    }
    Ok(dict)
}

/// What is known about each option, as dicts.
#[pyfunction]
#[pyo3(name = "_option_infos")]
pub(crate) fn option_infos(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let defaults = Options::default();
    Options::all()
        .map(|info| {
            let dict = PyDict::new(py);
            dict.set_item("name", info.name)?;
            dict.set_item("description", info.plain_description())?;
            dict.set_item("default", defaults.get(info.name).unwrap_or_default())?;
            dict.set_item("accepts", info.accepts)?;
            dict.set_item("unit", info.unit)?;
            dict.set_item("limits", info.limits())?;
            dict.set_item("rocksdb", info.rocksdb)?;
            dict.set_item("mutable", info.mutable)?;
            dict.set_item("column_family", info.column_family)?;
            dict.set_item("group", info.group)?;
            Ok(dict)
        })
        .collect()
}

/// The names of the profiles.
#[pyfunction]
pub(crate) fn profiles() -> Vec<&'static str> {
    Options::profiles().to_vec()
}
