//! Publishing in commit order: writers finish in any order, readers see a prefix.

use std::time::Duration;

use sateen_control::SeqNo;
use sateen_store::base::sync::atomic::{AtomicU64, Ordering};
use sateen_store::base::sync::{hint, pause, processors, thread};
use sateen_store::base::waited::{self, Part, Wait};

/// Writes that may be between ordering and publishing at once.
pub(super) const IN_FLIGHT_MAX: usize = 1024;

#[derive(Default)]
struct Finished {
    /// Ticket + 1 once applied: a slot says by itself for which ticket it speaks.
    ticket_plus_one: AtomicU64,
    last_seqno: AtomicU64,
}

/// The ring of finished writes and the sequence number that readers see.
pub(crate) struct Publisher {
    ring: Box<[Finished]>,
    next: AtomicU64,
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

    #[inline]
    pub(crate) fn visible(&self) -> SeqNo {
        SeqNo(self.visible.load(Ordering::Acquire))
    }

    /// Readers see up to `visible`, whatever they saw before. For a database that is not written
    /// to.
    pub(crate) fn show(&self, visible: SeqNo) {
        self.visible.store(visible.0, Ordering::Release);
    }

    pub(crate) fn next_ticket(&self) -> u64 {
        self.next.load(Ordering::Acquire)
    }

    #[inline]
    fn slot(&self, ticket: u64) -> &Finished {
        &self.ring[(ticket % IN_FLIGHT_MAX as u64) as usize]
    }

    /// Returns when tickets below `ticket` fit the ring.
    #[inline]
    pub(crate) fn wait_for_room(&self, ticket: u64) {
        let full = || ticket.saturating_sub(self.next_ticket()) > IN_FLIGHT_MAX as u64 / 2;
        if full() {
            wait_while(false, full);
        }
    }

    /// Returns when everything ordered before `ticket` is applied and published.
    pub(crate) fn wait_applied(&self, ticket: u64) {
        let mut backoff = Backoff::default();
        while self.next_ticket() < ticket {
            self.advance();
            backoff.pause();
        }
    }

    /// Says that `ticket` is applied up to `last_seqno`, and returns when readers see it.
    /// `logged`: it may take a while until those before it are, whose group was written to a log.
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

    /// Publishes every finished write at the head of the ring. The head is claimed by one
    /// compare-exchange, and `visible` only grows, so helpers may overtake each other.
    fn advance(&self) {
        loop {
            let ticket = self.next.load(Ordering::SeqCst);
            let head = self.slot(ticket);
            if head.ticket_plus_one.load(Ordering::SeqCst) != ticket + 1 {
                return;
            }
            let seqno = head.last_seqno.load(Ordering::Acquire);
            // Nobody has the place in the ring for another ticket before this one is behind us.
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

/// Returns when `wait` says no. `spin`: those that it waits for may all be on processors. Apart, so
/// that those who need not wait do not pay for it.
#[cold]
#[inline(never)]
fn wait_while(spin: bool, wait: impl Fn() -> bool) {
    let mut backoff = Backoff { rounds: if spin { 0 } else { Backoff::SPINS }, waits: None };
    while wait() {
        backoff.pause();
    }
}

/// Waiting for something that takes microseconds unless its thread was taken off the processor.
#[derive(Default)]
pub(crate) struct Backoff {
    rounds: u32,
    /// Measured once it is long against a look at the clock.
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
