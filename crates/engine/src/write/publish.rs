//! Publishes writes in commit order: writers finish in any order, and readers see a prefix.
//!
//! 1. The leader gave each write a ticket, in commit order. Tickets are places in a ring.
//! 2. [`Publisher::wait_for_room`] keeps the leader from giving out more tickets than the ring has
//!    places.
//! 3. A writer that has applied its entries stores its last sequence number at its place
//!    ([`Publisher::publish`]).
//! 4. `advance` moves the head of the ring past every finished write, and raises the visible
//!    sequence number. Any writer that waits does this for all.
//! 5. The writer returns when its own entries are visible.

use std::time::Duration;

use sateen_control::SeqNo;
use sateen_store::base::sync::atomic::{AtomicU64, Ordering};
use sateen_store::base::sync::{hint, pause, processors, thread};
use sateen_store::base::waited::{self, Part, Wait};

/// Largest number of writes between ordering and publishing.
pub(super) const IN_FLIGHT_MAX: usize = 1024;

/// A place in the ring.
#[derive(Default)]
struct Finished {
    /// The ticket plus one, once its write is applied. It shows for which ticket the place speaks.
    ticket_plus_one: AtomicU64,
    last_seqno: AtomicU64,
}

/// The ring of finished writes and the sequence number that readers see.
pub(crate) struct Publisher {
    ring: Box<[Finished]>,
    /// The first ticket that is not published.
    next: AtomicU64,
    /// The newest sequence number that readers see.
    visible: AtomicU64,
}

impl Publisher {
    pub(crate) fn new(visible: SeqNo) -> Publisher {
        Publisher {
            ring: (0..IN_FLIGHT_MAX).map(|_| Finished::default()).collect(),
            next: AtomicU64::new(0),
            visible: AtomicU64::new(visible.0),
        }
    }

    /// Returns the newest sequence number that readers see.
    #[inline]
    pub(crate) fn visible(&self) -> SeqNo {
        SeqNo(self.visible.load(Ordering::Acquire))
    }

    /// Sets the sequence number that readers see, whatever it was. For a database without writers.
    pub(crate) fn show(&self, visible: SeqNo) {
        self.visible.store(visible.0, Ordering::Release);
    }

    /// Returns the first ticket that is not published.
    pub(crate) fn next_ticket(&self) -> u64 {
        self.next.load(Ordering::Acquire)
    }

    #[inline]
    fn slot(&self, ticket: u64) -> &Finished {
        &self.ring[(ticket % IN_FLIGHT_MAX as u64) as usize]
    }

    /// Waits until tickets below `ticket` use at most half of the ring. The other half is for the
    /// next group.
    #[inline]
    pub(crate) fn wait_for_room(&self, ticket: u64) {
        let full = || ticket.saturating_sub(self.next_ticket()) > IN_FLIGHT_MAX as u64 / 2;
        if full() {
            wait_while(false, full);
        }
    }

    /// Waits until everything ordered before `ticket` is applied and published.
    pub(crate) fn wait_applied(&self, ticket: u64) {
        let mut backoff = Backoff::default();
        while self.next_ticket() < ticket {
            self.advance();
            backoff.pause();
        }
    }

    /// Marks `ticket` as applied up to `last_seqno`, and waits until readers see it. `logged`: the
    /// group was written to the WAL, so earlier writers may still have to be woken and may take a
    /// while.
    pub(crate) fn publish(&self, ticket: u64, last_seqno: u64, logged: bool) {
        let own = self.slot(ticket);
        own.last_seqno.store(last_seqno, Ordering::Release);
        own.ticket_plus_one.store(ticket + 1, Ordering::SeqCst);
        let hidden = || {
            self.advance();
            self.visible.load(Ordering::Acquire) < last_seqno
        };
        if hidden() {
            let ahead = ticket.saturating_sub(self.next_ticket());
            wait_while(!logged || ahead < processors() as u64, hidden);
        }
    }

    /// Publishes every finished write at the head of the ring. One compare-exchange claims the
    /// head, and `visible` only grows, so several threads may do this at once.
    fn advance(&self) {
        loop {
            let ticket = self.next.load(Ordering::SeqCst);
            let head = self.slot(ticket);
            if head.ticket_plus_one.load(Ordering::SeqCst) != ticket + 1 {
                return;
            }
            let seqno = head.last_seqno.load(Ordering::Acquire);
            // The place is reused only after `next` has passed this ticket. If `next` has not, the
            // number just read belongs to this ticket.
            if self.next.load(Ordering::SeqCst) != ticket {
                continue;
            }
            let before = self.visible.fetch_max(seqno, Ordering::AcqRel);
            debug_assert!(before <= seqno || self.next.load(Ordering::SeqCst) > ticket);
            let _lost =
                self.next.compare_exchange(ticket, ticket + 1, Ordering::SeqCst, Ordering::Relaxed);
        }
    }
}

/// Waits until `wait` returns false. `spin`: the writers that it waits for are probably running.
/// Not inlined, so that writers that need not wait do not pay for it.
#[cold]
#[inline(never)]
fn wait_while(spin: bool, wait: impl Fn() -> bool) {
    let mut backoff = Backoff { rounds: if spin { 0 } else { Backoff::SPINS }, waits: None };
    while wait() {
        backoff.pause();
    }
}

/// A wait for something that takes microseconds, unless its thread was taken off the processor. It
/// spins, then yields, then sleeps.
#[derive(Default)]
pub(crate) struct Backoff {
    rounds: u32,
    /// The measurement of the wait. It begins once the wait is long compared with reading the
    /// clock.
    waits: Option<Wait>,
}

impl Backoff {
    const SPINS: u32 = 64;
    const YIELDS: u32 = 64;

    #[inline]
    pub(crate) fn pause(&mut self) {
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds <= Self::SPINS {
            hint::spin_loop();
        } else if self.rounds <= Self::SPINS + Self::YIELDS {
            self.waits.get_or_insert_with(|| waited::wait(Part::Queue));
            thread::yield_now();
        } else {
            pause(Duration::from_micros(50));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_only_after_all_earlier_tickets() {
        let publisher = Publisher::new(SeqNo(10));
        std::thread::scope(|scope| {
            let late = scope.spawn(|| publisher.publish(1, 15, false));
            // Ticket 1 alone publishes nothing, however long it waits.
            for _ in 0..1000 {
                assert_eq!(publisher.visible(), SeqNo(10));
            }
            publisher.publish(0, 12, false);
            late.join().unwrap();
        });
        assert_eq!(publisher.visible(), SeqNo(15));
        assert_eq!(publisher.next_ticket(), 2);
    }

    #[test]
    fn many_writers_publish_every_ticket_in_order() {
        let publisher = Publisher::new(SeqNo(0));
        let tickets = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let ticket = tickets.fetch_add(1, Ordering::SeqCst);
                        publisher.wait_for_room(ticket);
                        publisher.publish(ticket, ticket + 1, ticket.is_multiple_of(2));
                        assert!(publisher.visible().0 > ticket);
                    }
                });
            }
        });
        assert_eq!(publisher.visible(), SeqNo(80_000));
        assert_eq!(publisher.next_ticket(), 80_000);
    }
}
