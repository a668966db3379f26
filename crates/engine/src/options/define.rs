//! The macros that define an option once: field, name, meaning, default, unit, RocksDB's name for
//! it, and whether a running database can change it.

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
    /// What values it takes, in words.
    pub accepts: &'static str,
    /// True if it belongs to a column family, false if to the whole database.
    pub column_family: bool,
}

/// Defines an option struct. A field is
/// `/// meaning` then `name: Type = default, Unit, fixed|mutable, "rocksdb name"|none;`.
/// Fields in `plus { .. }` are not options by themselves.
macro_rules! option_struct {
    (
        $(#[$meta:meta])*
        pub struct $struct:ident, column_family = $family:literal {
            $(
                $(#[doc = $doc:literal])+
                $field:ident: $type:ty = $default:expr, $unit:ident, $change:ident, $rocksdb:tt;
            )*
        }
        plus { $( $(#[doc = $plus_doc:literal])+ $plus:ident: $plus_type:ty, )* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $struct {
            $( $(#[doc = $doc])+ pub $field: $type, )*
            $( $(#[doc = $plus_doc])+ pub $plus: $plus_type, )*
        }

        impl Default for $struct {
            fn default() -> Self {
                Self {
                    $( $field: $default, )*
                    $( $plus: Default::default(), )*
                }
            }
        }

        impl $struct {
            /// Every option of this struct, in the order of declaration.
            pub const INFO: &'static [OptionInfo] = &[
                $( OptionInfo {
                    name: stringify!($field),
                    description: concat!($($doc),+),
                    rocksdb: option_struct!(@rocksdb $rocksdb),
                    mutable: option_struct!(@mutable $change),
                    accepts: <$unit as Unit<$type>>::ACCEPTS,
                    column_family: $family,
                }, )*
            ];

            /// Sets the option at `info`; `false` if `text` is not a value of it.
            fn set_field(&mut self, info: &OptionInfo, text: &str) -> bool {
                $(
                    if info.name == stringify!($field) {
                        let value = <$unit as Unit<$type>>::read(text);
                        return value.map(|value| self.$field = value).is_some();
                    }
                )*
                false
            }

            /// The option at `info` as text.
            fn get_field(&self, info: &OptionInfo) -> String {
                $(
                    if info.name == stringify!($field) {
                        return <$unit as Unit<$type>>::print(&self.$field);
                    }
                )*
                String::new()
            }
        }
    };
    (@rocksdb none) => { None };
    (@rocksdb $name:literal) => { Some($name) };
    (@mutable mutable) => { true };
    (@mutable fixed) => { false };
}

/// Defines an enumeration whose members have a name in text.
macro_rules! named_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident, $accepts:literal {
            $( $(#[doc = $doc:literal])+ $member:ident = $text:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[doc = $doc])+ $member, )+
        }

        impl Named for $name {
            const ACCEPTS: &'static str = $accepts;
            const NAMES: &'static [(&'static str, Self)] = &[ $( ($text, $name::$member), )+ ];
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $( $name::$member => $text, )+ })
            }
        }
    };
}

pub(super) use {named_enum, option_struct};
