//! Tests of the options of `sateen bench`.

use super::value_size::value_size;
use super::*;
use clap::Parser;
use sateen_workload::{ArrivalSpec, ValueSize};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    bench: BenchArgs,
}

pub(crate) fn parse(line: &str) -> BenchArgs {
    let words = std::iter::once("bench").chain(line.split_ascii_whitespace());
    Command::try_parse_from(words).map(|command| command.bench).unwrap()
}

#[test]
fn the_options_shape_the_workload() {
    let args = parse("-w bursts --rate 8k --valley-rate 500 --peak-seconds 3 --read-percent 90");
    let plan = args.plan("bursts").unwrap();
    assert_eq!(
        plan.spec.arrivals,
        ArrivalSpec::Bursts {
            peak_rate: 8_000.0,
            valley_rate: 500.0,
            peak_seconds: 3.0,
            valley_seconds: 10.0
        }
    );
    assert_eq!((plan.spec.mix.read, plan.spec.mix.update), (90, 10));
    assert_eq!((plan.operations, plan.seconds), (None, Some(60.0)));

    let args = parse("-n 8M --value-size 250-1000");
    let plan = args.plan("readrandom").unwrap();
    assert_eq!((plan.operations, plan.seconds), (Some(8_000_000), None));
    assert_eq!(plan.sizes, ValueSize::Uniform(250, 1000));

    let plan = parse("-n 9k -d 5").plan("fillseq").unwrap();
    assert_eq!((plan.operations, plan.seconds), (Some(9_000), Some(5.0)));
    let plan = parse("--rate 100 -d 5").plan("readrandom").unwrap();
    assert_eq!(plan.spec.arrivals, ArrivalSpec::Steady { rate: 100.0 });
    assert_eq!((plan.operations, plan.seconds), (None, Some(5.0)));
    let plan = parse("--mode closed -d 5").plan("nutanix").unwrap();
    assert_eq!((plan.spec.arrivals, plan.sizes), (ArrivalSpec::Closed, ValueSize::Nutanix));
}

#[test]
fn nonsense_is_refused_with_the_option_named() {
    for (line, part) in [
        ("--threads 0", "--threads"),
        ("--num 0", "--num"),
        ("--key-size 1 --num 1000", "--key-size"),
        ("--duration=-1", "--duration"),
        ("--mode closed --rate 5", "--rate"),
        ("--mode open -w readrandom", "--rate"),
        ("-w fillrandm", "fillrandm"),
        ("-w replay", "replay=FILE"),
        ("-w replay=x --replay-speed 0", "--replay-speed"),
        ("-w replay=x --replay-speed inf", "--replay-speed"),
        ("-w readrandom --multi-get 0", "--multi-get"),
        ("-w ycsb-b --multi-get 8", "--multi-get 8: ycsb-b"),
        ("-w readrandom --rate 5 --multi-get 8", "no closed loop"),
        ("--set x", "NAME=VALUE"),
        ("--rounds 0", "--rounds"),
        ("--regions 0", "--regions"),
        ("--regions 20 --num 10", "--regions"),
        ("--compression-ratio nan", "--compression-ratio"),
        ("--compression-ratio 1.01", "--compression-ratio"),
        ("--duration nan", "--duration"),
        ("--duration inf", "--duration"),
        ("--peak-seconds nan", "--peak-seconds"),
        ("--peak-seconds=-1", "--peak-seconds"),
        ("--valley-seconds inf", "--valley-seconds"),
        ("--bloom-bits nan", "--bloom-bits"),
        ("--bloom-bits=-1", "--bloom-bits"),
        ("--device-limit 0", "--device-limit"),
        ("--barrier-cost nan", "--barrier-cost"),
        ("--barrier-cost inf", "--barrier-cost"),
    ] {
        let words = std::iter::once("bench").chain(line.split_ascii_whitespace());
        let error = match Command::try_parse_from(words) {
            Ok(command) => command.bench.check().unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(part), "{line}: {error}");
    }
    for bad in ["abc", "10-5", "4G"] {
        assert!(value_size(bad).is_err(), "{bad}");
    }
}
