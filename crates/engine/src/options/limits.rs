//! The limits of one option's values, as a row of the schema says them: `2..=16`, `1..`,
//! `..=1024`, [`Growing`], [`Above`] or a sentence ([`Told`]). Validation checks them, sanitizing
//! takes the nearest value, and errors, `sateen db options` and docs/options.md print them. Limits
//! between options are code in `validate.rs`.

use std::ops::{RangeFrom, RangeInclusive, RangeToInclusive};

/// Which values of type `T` an option may have.
pub(super) trait Limits<T> {
    /// Returns true if the option may have this value.
    fn allow(&self, value: &T) -> bool;
    /// Returns the value that stands in for one that is not allowed; `None` if there is none.
    fn nearest(&self, value: &T) -> Option<T>;
    /// Returns what the values must be, in words; `print` makes text of a value.
    fn words(&self, print: fn(&T) -> String) -> Option<String>;
}

/// No limits but those of the type.
pub(super) struct Any;

impl<T> Limits<T> for Any {
    fn allow(&self, _value: &T) -> bool {
        true
    }

    fn nearest(&self, _value: &T) -> Option<T> {
        None
    }

    fn words(&self, _print: fn(&T) -> String) -> Option<String> {
        None
    }
}

impl<T: PartialOrd + Copy> Limits<T> for RangeInclusive<T> {
    fn allow(&self, value: &T) -> bool {
        self.contains(value)
    }

    fn nearest(&self, value: &T) -> Option<T> {
        Some(if value > self.end() { *self.end() } else { *self.start() })
    }

    fn words(&self, print: fn(&T) -> String) -> Option<String> {
        Some(format!("{} to {}", print(self.start()), print(self.end())))
    }
}

impl<T: PartialOrd + Copy> Limits<T> for RangeFrom<T> {
    fn allow(&self, value: &T) -> bool {
        self.contains(value)
    }

    fn nearest(&self, _value: &T) -> Option<T> {
        Some(self.start)
    }

    fn words(&self, print: fn(&T) -> String) -> Option<String> {
        Some(format!("at least {}", print(&self.start)))
    }
}

/// A limit of an option that may also be `none`.
impl<T: PartialOrd + Copy> Limits<Option<T>> for RangeFrom<T> {
    fn allow(&self, value: &Option<T>) -> bool {
        value.is_none_or(|value| self.contains(&value))
    }

    fn nearest(&self, _value: &Option<T>) -> Option<Option<T>> {
        Some(Some(self.start))
    }

    fn words(&self, print: fn(&Option<T>) -> String) -> Option<String> {
        Some(format!("at least {}", print(&Some(self.start))))
    }
}

impl<T: PartialOrd + Copy> Limits<T> for RangeToInclusive<T> {
    fn allow(&self, value: &T) -> bool {
        self.contains(value)
    }

    fn nearest(&self, _value: &T) -> Option<T> {
        Some(self.end)
    }

    fn words(&self, print: fn(&T) -> String) -> Option<String> {
        Some(format!("at most {}", print(&self.end)))
    }
}

/// Values above one, of which none is the smallest.
pub(super) struct Above<T>(pub(super) T);

impl<T: PartialOrd + Copy> Limits<T> for Above<T> {
    fn allow(&self, value: &T) -> bool {
        *value > self.0
    }

    fn nearest(&self, _value: &T) -> Option<T> {
        None
    }

    fn words(&self, print: fn(&T) -> String) -> Option<String> {
        Some(format!("above {}", print(&self.0)))
    }
}

/// Ratios above one number, up to another one; `instead` stands in for what is too small.
pub(super) struct Growing {
    pub(super) above: f64,
    pub(super) to: f64,
    pub(super) instead: f64,
}

impl Limits<f64> for Growing {
    fn allow(&self, value: &f64) -> bool {
        *value > self.above && *value <= self.to
    }

    fn nearest(&self, value: &f64) -> Option<f64> {
        Some(if *value > self.to { self.to } else { self.instead })
    }

    fn words(&self, print: fn(&f64) -> String) -> Option<String> {
        Some(format!("above {}, at most {}", print(&self.above), print(&self.to)))
    }
}

/// A limit that a sentence says and a function checks.
pub(super) struct Told<T>(pub(super) &'static str, pub(super) fn(&T) -> bool);

impl<T> Limits<T> for Told<T> {
    fn allow(&self, value: &T) -> bool {
        (self.1)(value)
    }

    fn nearest(&self, _value: &T) -> Option<T> {
        None
    }

    fn words(&self, _print: fn(&T) -> String) -> Option<String> {
        Some(self.0.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Copy + PartialEq + std::fmt::Debug>(
        limits: &impl Limits<T>,
        words: &str,
        print: fn(&T) -> String,
        cases: &[(T, Option<T>)],
    ) {
        assert_eq!(limits.words(print).as_deref(), Some(words));
        for (value, nearest) in cases {
            assert!(!limits.allow(value), "{value:?}");
            assert_eq!(limits.nearest(value), *nearest, "{value:?}");
            assert!(nearest.is_none_or(|nearest| limits.allow(&nearest)), "{value:?}");
        }
    }

    #[test]
    fn each_kind_refuses_takes_the_nearest_and_says_so() {
        let print = u32::to_string;
        check(&(2..=16), "2 to 16", print, &[(1, Some(2)), (17, Some(16))]);
        check(&(1..), "at least 1", print, &[(0, Some(1))]);
        check(&(..=9), "at most 9", print, &[(10, Some(9))]);
        check(&Above(3), "above 3", print, &[(3, None)]);
        check(&Told("even", |value| value % 2 == 0), "even", print, &[(3, None)]);
        let some = |value: &Option<u32>| value.map_or("none".into(), |value| value.to_string());
        check(&(5..), "at least 5", some, &[(Some(4), Some(Some(5)))]);
        assert!(Limits::<Option<u32>>::allow(&(5..), &None));
        let growing = Growing { above: 1.0, to: 1000.0, instead: 2.0 };
        let cases = [(1.0, Some(2.0)), (1e300, Some(1000.0)), (-1.0, Some(2.0))];
        check(&growing, "above 1, at most 1000", f64::to_string, &cases);
        assert_eq!(growing.nearest(&f64::NAN), Some(2.0));
        assert_eq!((0.0..=0.5).nearest(&f64::NAN), Some(0.0));
    }
}
