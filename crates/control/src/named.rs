//! Enumerations whose members have names in text, as options and reports show them.

/// Defines an enumeration with `NAMES`, `NAMES_IN_WORDS` and `Display`. The engine uses it, too.
#[doc(hidden)]
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident, $in_words:literal {
            $( $(#[$member_meta:meta])* $member:ident = $text:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$member_meta])* $member, )+
        }

        impl $name {
            /// All members with their names.
            pub const NAMES: &'static [(&'static str, $name)] = &[ $( ($text, $name::$member), )+ ];

            /// The names as a list in words.
            pub const NAMES_IN_WORDS: &'static str = $in_words;

            /// Returns the name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $( $name::$member => $text, )+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
