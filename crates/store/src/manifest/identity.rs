//! The identity of a database. It differs from that of all other databases and, if wanted, from
//! that of its copies.
//!
//! What must stay true: files keep the uid with which they were written, because their checksums
//! depend on it.

use crate::base::random::random_uid;
use crate::base::xxh3::xxh3_64_with_seed;

/// Two numbers that no other database has, with high probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Mixed into every checksum of WALs, manifests and blocks. Copies share it, because they share
    /// files.
    pub uid: u64,
    /// Drawn when a copy with an identity of its own was made; 0 for the original.
    pub copy: u64,
}

impl Identity {
    /// Returns the identity of a new database.
    pub fn random() -> Identity {
        Identity { uid: random_uid(), copy: 0 }
    }

    /// Returns the identity of a database of which only the files are left.
    pub fn of_uid(uid: u64) -> Identity {
        Identity { uid, copy: 0 }
    }

    /// Returns the identity of a copy of this database.
    #[must_use]
    pub fn copy(self) -> Identity {
        Identity { uid: self.uid, copy: random_uid() }
    }

    /// Returns the identity as a UUID of version 8 (RFC 9562), whose bits the application chooses.
    pub fn uuid(self) -> String {
        let mut bytes = self.uid.to_le_bytes().to_vec();
        if self.copy != 0 {
            bytes.extend(self.copy.to_le_bytes());
        }
        let half = |seed| u128::from(xxh3_64_with_seed(&bytes, seed));
        let bits = (half(0x1D) << 64 | half(0x2D)) & !(0xF << 76) & !(0x3 << 62);
        let text = format!("{:032x}", bits | 0x8 << 76 | 0x2 << 62);
        let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| text.get(part).unwrap_or(""));
        parts.join("-")
    }
}
