//! Every operation keeps the buffer aligned and within its capacity.

use super::*;
use proptest::prelude::*;

#[test]
fn padding_is_zeros_whatever_was_there_before() {
    let mut buffer = AlignedBuffer::with_capacity(100_000);
    buffer.whole_mut().fill(7);
    drop(buffer);
    let mut buffer = AlignedBuffer::with_capacity(100_000);
    buffer.extend_some(&[1]);
    buffer.pad_to(4096);
    assert_eq!(buffer.len(), 4096);
    assert!(buffer.as_slice().iter().skip(1).all(|byte| *byte == 0));
}

#[derive(Clone, Debug)]
enum Step {
    Extend(Vec<u8>),
    Pad(usize),
    Drain(usize),
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..6000).prop_map(Step::Extend),
        prop_oneof![Just(1usize), Just(512), Just(4096)].prop_map(Step::Pad),
        (0usize..5000).prop_map(Step::Drain),
        Just(Step::Clear),
    ]
}

proptest! {
    #[test]
    fn behaves_as_a_vector_with_an_aligned_address(
        capacity in prop_oneof![0usize..20_000, 60_000usize..80_000],
        steps in prop::collection::vec(step(), 0..40),
    ) {
        let mut buffer = AlignedBuffer::with_capacity(capacity);
        let mut model = Vec::new();
        prop_assert!(buffer.capacity() >= capacity);
        prop_assert_eq!(buffer.capacity() % DIRECT_IO_ALIGNMENT, 0);
        let address = buffer.as_slice().as_ptr().addr();
        if buffer.capacity() > 0 {
            prop_assert_eq!(address % DIRECT_IO_ALIGNMENT, 0);
        }
        for step in steps {
            match step {
                Step::Extend(bytes) => {
                    let room = buffer.remaining();
                    let taken = buffer.extend_some(&bytes);
                    prop_assert_eq!(taken, bytes.len().min(room));
                    model.extend_from_slice(&bytes[..taken]);
                }
                Step::Pad(unit) => {
                    let added = buffer.pad_to(unit);
                    model.resize(model.len() + added, 0);
                    prop_assert_eq!(model.len() % unit, 0);
                }
                Step::Drain(n) => {
                    let n = n.min(buffer.len());
                    buffer.drain_front(n);
                    model.drain(..n);
                }
                Step::Clear => {
                    buffer.clear();
                    model.clear();
                }
            }
            prop_assert_eq!(buffer.as_slice(), &model[..]);
            prop_assert_eq!(buffer.len() + buffer.remaining(), buffer.capacity());
            prop_assert_eq!(buffer.as_slice().as_ptr().addr(), address);
        }
    }
}

#[test]
fn padding_overwrites_what_an_earlier_fill_left() {
    let mut buffer = AlignedBuffer::with_capacity(4096);
    buffer.extend_from_slice(&[7; 4096]);
    buffer.clear();
    buffer.extend_from_slice(&[1; 3]);
    assert_eq!(buffer.pad_to(512), 509);
    assert!(buffer[3..].iter().all(|&byte| byte == 0));
}

#[test]
#[should_panic(expected = "do not fit")]
fn overfilling_panics() {
    AlignedBuffer::with_capacity(4096).extend_from_slice(&[0; 4097]);
}

#[test]
fn growing_and_shrinking_keep_the_alignment() {
    let mut buffer = AlignedBuffer::default();
    assert_eq!(buffer.capacity(), 0);
    assert!(buffer.whole().is_empty() && buffer.whole_mut().is_empty());
    for capacity in [1, 4095, 4096, 4097, 1 << 20] {
        buffer.reserve(capacity);
        assert!(buffer.capacity() >= capacity);
        assert_eq!(buffer.whole().len(), buffer.capacity());
        assert_eq!(buffer.whole_mut().as_ptr().addr() % DIRECT_IO_ALIGNMENT, 0);
    }
    buffer.shrink_to(1 << 20);
    assert_eq!(buffer.capacity(), 1 << 20);
    buffer.shrink_to(4096);
    assert_eq!(buffer.capacity(), 0);
}
