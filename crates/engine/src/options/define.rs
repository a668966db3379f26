//! The macros that define an option once: field, name, meaning, default, unit, limits, RocksDB's
//! name for it, and whether a running database can change it.

use super::{ColumnFamilyOptions, Options};

/// What is known about an option besides its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionInfo {
    /// The name, as [`Options::set`](super::Options::set) takes it.
    pub name: &'static str,
    /// What it means, in words.
    pub description: &'static str,
    /// RocksDB's name for it, if the meaning is the same; `set` and `get` take it, too.
    pub rocksdb: Option<&'static str>,
    /// True if a running database can change it.
    pub mutable: bool,
    /// What its values are, in a word or two.
    pub unit: &'static str,
    /// What values it takes, in words.
    pub accepts: &'static str,
    /// True if it belongs to a column family, false if to the whole database.
    pub column_family: bool,
    /// The heading under which lists show it.
    pub group: &'static str,
}

impl OptionInfo {
    /// The description as plain text, without links.
    #[must_use]
    pub fn plain_description(&self) -> String {
        let mut parts = self.description.trim().split("](crate::");
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            text.push_str(part.split_once(')').map_or(part, |(_, behind)| behind));
        }
        text.replace("[`", "`").replace("`]", "`")
    }

    /// What its value must be beyond what `accepts` says, in words; `None` if that is all. Limits
    /// between options come on top: [`Options::validate`] checks both.
    #[must_use]
    pub fn limits(&self) -> Option<String> {
        if self.column_family {
            ColumnFamilyOptions::limits_of(self)
        } else {
            Options::limits_of(self)
        }
    }
}

/// Defines an option struct. A group is `"heading":` and its fields. A field is `/// meaning` then
/// `name: Type = default, Unit, fixed|mutable, "rocksdb name"|none, limits;`, where limits may be
/// absent. Fields in `plus { .. }` are not options by themselves.
macro_rules! option_struct {
    (
        $(#[$meta:meta])*
        pub struct $struct:ident, column_family = $family:literal {
            $(
                $group:literal:
                $(
                    $(#[doc = $doc:literal])+
                    $field:ident: $type:ty = $default:expr, $unit:ident, $change:ident, $rocksdb:tt
                        $(, $limits:expr)?;
                )*
            )*
        }
        plus { $( $(#[doc = $plus_doc:literal])+ $plus:ident: $plus_type:ty, )* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $struct {
            $( $( $(#[doc = $doc])+ pub $field: $type, )* )*
            $( $(#[doc = $plus_doc])+ pub $plus: $plus_type, )*
        }

        impl Default for $struct {
            fn default() -> Self {
                Self {
                    $( $( $field: $default, )* )*
                    $( $plus: Default::default(), )*
                }
            }
        }

        impl $struct {
            /// Every option of this struct, in the order of declaration.
            pub const INFO: &'static [OptionInfo] = &[
                $( $( OptionInfo {
                    name: stringify!($field),
                    description: concat!($($doc),+),
                    rocksdb: option_struct!(@rocksdb $rocksdb),
                    mutable: option_struct!(@mutable $change),
                    unit: <$unit as Unit<$type>>::NAME,
                    accepts: <$unit as Unit<$type>>::ACCEPTS,
                    column_family: $family,
                    group: $group,
                }, )* )*
            ];

            /// Sets the option at `info`; `false` if `text` is not a value of it.
            pub(super) fn set_field(&mut self, info: &OptionInfo, text: &str) -> bool {
                $( $(
                    if info.name == stringify!($field) {
                        let value = <$unit as Unit<$type>>::read(text);
                        return value.map(|value| self.$field = value).is_some();
                    }
                )* )*
                false
            }

            /// Returns the option at `info` as text.
            pub(super) fn get_field(&self, info: &OptionInfo) -> String {
                $( $(
                    if info.name == stringify!($field) {
                        return <$unit as Unit<$type>>::print(&self.$field);
                    }
                )* )*
                String::new()
            }

            /// Returns the limits of the option at `info` in words.
            pub(super) fn limits_of(info: &OptionInfo) -> Option<String> {
                $( $(
                    if info.name == stringify!($field) {
                        let limits = option_struct!(@limits $($limits)?);
                        return Limits::<$type>::words(&limits, <$unit as Unit<$type>>::print);
                    }
                )* )*
                None
            }

            /// Checks each option against its own limits.
            pub(super) fn check_limits(&self) -> Result<()> {
                $( $( $(
                    if !Limits::<$type>::allow(&$limits, &self.$field) {
                        let value = <$unit as Unit<$type>>::print(&self.$field);
                        let must = Limits::<$type>::words(&$limits, <$unit as Unit<$type>>::print);
                        return Err(out_of_limits(stringify!($field), &value, must));
                    }
                )? )* )*
                Ok(())
            }

            /// Replaces each value outside of its own limits by the nearest one inside, if there is
            /// one.
            pub(super) fn clamp_to_limits(&mut self) {
                $( $( $(
                    if !Limits::<$type>::allow(&$limits, &self.$field) {
                        let nearest = Limits::<$type>::nearest(&$limits, &self.$field);
                        if let Some(nearest) = nearest {
                            self.$field = nearest;
                        }
                    }
                )? )* )*
            }
        }
    };
    (@rocksdb none) => { None };
    (@rocksdb $name:literal) => { Some($name) };
    (@mutable mutable) => { true };
    (@mutable fixed) => { false };
    (@limits) => { Any };
    (@limits $limits:expr) => { $limits };
}

pub(super) use option_struct;
