//! The text with which a database is opened. A store takes the settings that it knows; what is left
//! is refused by name.

use crate::Result;

/// Settings that no one has taken yet.
#[derive(Debug)]
pub struct Settings<'a> {
    left: Vec<(&'a str, &'a str)>,
}

impl<'a> Settings<'a> {
    /// Parses "name=value;name=value".
    ///
    /// # Errors
    /// The part that is not of this form.
    pub fn parse(text: &'a str) -> Result<Settings<'a>> {
        let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
        let left = parts.map(|part| {
            let (name, value) =
                part.split_once('=').ok_or_else(|| format!("{part}: not of the form A=B"))?;
            Ok((name.trim(), value.trim()))
        });
        Ok(Settings { left: left.collect::<Result<_>>()? })
    }

    /// Takes a setting as text. The last of several values counts.
    pub fn take(&mut self, name: &str) -> Option<&'a str> {
        let value = self.left.iter().rev().find(|(has, _)| *has == name).map(|(_, value)| *value);
        self.left.retain(|(has, _)| *has != name);
        value
    }

    /// Takes a setting that is a number, or one of two words.
    ///
    /// # Errors
    /// If the value is of another kind.
    pub fn parsed<T: std::str::FromStr>(&mut self, name: &str) -> Result<Option<T>> {
        let Some(text) = self.take(name) else { return Ok(None) };
        let kind = std::any::type_name::<T>();
        text.parse().map(Some).map_err(|_| format!("{name}={text}: not a value of type {kind}"))
    }

    /// Takes a setting whose value is one of these words; without it the first word counts.
    ///
    /// # Errors
    /// If the value is another word.
    pub fn one_of(&mut self, name: &str, words: &[&'static str]) -> Result<&'static str> {
        let Some(text) = self.take(name) else { return Ok(words[0]) };
        let word = words.iter().find(|word| **word == text);
        word.copied().ok_or_else(|| format!("{name}={text}: neither of {}", words.join(", ")))
    }

    /// Refuses what is left.
    ///
    /// # Errors
    /// The first setting that no one took.
    pub fn finish(&self) -> Result<()> {
        match self.left.first() {
            None => Ok(()),
            Some((name, value)) => Err(format!("{name}={value}: there is no such setting")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_taken_once_and_the_rest_is_refused() {
        let mut settings = Settings::parse("a=1; b=x;a=2;c=on;").unwrap();
        assert_eq!(settings.parsed::<u64>("a"), Ok(Some(2)));
        assert_eq!(settings.parsed::<u64>("a"), Ok(None));
        assert!(settings.one_of("b", &["y", "z"]).unwrap_err().contains("b=x"));
        assert_eq!(settings.finish().unwrap_err(), "c=on: there is no such setting");
        assert_eq!(settings.one_of("d", &["y", "z"]), Ok("y"));
        assert_eq!(settings.take("c"), Some("on"));
        assert_eq!(settings.finish(), Ok(()));
        assert!(Settings::parse("a").unwrap_err().starts_with("a: "));
        assert!(Settings::parse("a=q").unwrap().parsed::<u64>("a").unwrap_err().contains("a=q"));
    }
}
