//! Writes objects of JSON, field by field, without a copy of what they hold.

use std::fmt::Write;

/// A list of objects that is being written.
pub(super) struct Objects {
    text: String,
    first: bool,
}

impl Objects {
    pub(super) fn new(head: &str) -> Objects {
        Objects { text: head.to_owned(), first: true }
    }

    /// Begins the next object, with the fields that `fill` writes.
    pub(super) fn object(&mut self, fill: impl FnOnce(&mut Fields<'_>)) {
        self.text.push_str(if self.first { "\n" } else { ",\n" });
        self.first = false;
        fields(&mut self.text, fill);
    }

    pub(super) fn end(mut self, tail: &str) -> String {
        self.text.push_str(tail);
        self.text
    }
}

/// Writes the fields of an object.
pub(super) struct Fields<'a> {
    text: &'a mut String,
    first: bool,
}

pub(super) fn fields(text: &mut String, fill: impl FnOnce(&mut Fields<'_>)) {
    text.push('{');
    fill(&mut Fields { text, first: true });
    text.push('}');
}

impl Fields<'_> {
    fn name(&mut self, name: &str) {
        if !self.first {
            self.text.push(',');
        }
        self.first = false;
        quote(self.text, name);
        self.text.push(':');
    }

    pub(super) fn number(&mut self, name: &str, number: impl std::fmt::Display) -> &mut Self {
        self.name(name);
        // Writing to a string does not fail, here and below.
        let _infallible = write!(self.text, "{number}");
        self
    }

    pub(super) fn text(&mut self, name: &str, text: &str) -> &mut Self {
        self.name(name);
        quote(self.text, text);
        self
    }

    /// Writes thousandths as a ratio.
    pub(super) fn thousandths(&mut self, name: &str, thousandths: u32) -> &mut Self {
        self.number(name, f64::from(thousandths) / 1000.0)
    }

    /// Writes nanoseconds as microseconds, the unit of trace files.
    pub(super) fn micros(&mut self, name: &str, ns: u64) -> &mut Self {
        self.name(name);
        let _infallible = write!(self.text, "{}.{:03}", ns / 1000, ns % 1000);
        self
    }

    pub(super) fn object(&mut self, name: &str, fill: impl FnOnce(&mut Fields<'_>)) -> &mut Self {
        self.name(name);
        fields(self.text, fill);
        self
    }

    pub(super) fn list<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut fill: impl FnMut(&mut Fields<'_>, T),
    ) -> &mut Self {
        self.name(name);
        self.text.push('[');
        for (number, item) in items.into_iter().enumerate() {
            if number > 0 {
                self.text.push(',');
            }
            fields(self.text, |fields| fill(fields, item));
        }
        self.text.push(']');
        self
    }
}

/// Appends `text` as a JSON string.
fn quote(to: &mut String, text: &str) {
    to.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => to.extend(['\\', c]),
            c if (c as u32) < 0x20 => {
                let _infallible = write!(to, "\\u{:04x}", c as u32);
            }
            c => to.push(c),
        }
    }
    to.push('"');
}
