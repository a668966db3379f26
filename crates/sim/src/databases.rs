//! Several databases on one device. They share its scheduler and the threads, as databases of the
//! engine with one `Runtime` do, or each has its own.
//!
//! 1. [`Databases::run_until`] runs the clients up to the next event, those of all databases in the
//!    order of time.
//! 2. [`Databases::with`] lends the device, and the scheduler if it is shared, to the database
//!    that acts.
//! 3. [`Databases::settle`] polls the databases whose turn has come, and gives jobs free threads.
//! 4. [`Databases::sample`] adds up what all did for the scheduler.
//!
//! What must stay true: a control plane is called only while it has the scheduler.

use std::collections::BTreeSet;

use sateen_control::{ControlPlane, DatabaseId, Instant, SAMPLE_PERIOD, Sample, SharedScheduler};

use crate::classes::{Classes, add};
use crate::config::SimConfig;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::recorder::{Recorder, SECOND_NS};
use crate::report::Report;
use crate::simulation::Simulation;

const SAMPLE_NS: u64 = SAMPLE_PERIOD.as_nanos() as u64;

/// The most times that databases may call each other at one moment.
const CALLS_MAX: usize = 100_000;

/// A running simulation of several databases on one device.
#[derive(Debug)]
pub struct Databases {
    /// The device, unless a database has it.
    device: Device,
    /// The scheduler, if it is shared. The number of a database is its place in `all`.
    scheduler: Option<SharedScheduler>,
    all: Vec<Simulation>,
    /// When each database has something to do that is no client's.
    due: Vec<u64>,
    /// When a client of each database acts next.
    clients_due: Vec<u64>,
    /// The database that got the last free thread.
    served: usize,
    now: u64,
    next_sample: u64,
    /// The latencies of all together.
    recorder: Recorder,
}

impl Databases {
    /// A simulation at its beginning. The device, the duration and the number of threads are those
    /// of the first configuration. With `shared` the databases share a scheduler and threads.
    ///
    /// # Errors
    /// If a configuration is invalid, or there is none.
    pub fn new(configs: Vec<SimConfig>, shared: bool) -> Result<Databases> {
        let Some(first) = configs.first() else {
            return Err(Error::usage("there must be at least one database"));
        };
        let device = Device::new(first.device.clone());
        let control = first.policy.control();
        let mut scheduler = shared.then(|| SharedScheduler::new(&control));
        let mut all = Vec::new();
        for config in configs {
            config.check()?;
            let control = config.policy.control();
            let simulation = match &mut scheduler {
                None => Simulation::begin(config, ControlPlane::new(control))?,
                Some(scheduler) => {
                    let mut plane = scheduler.join(control);
                    scheduler.exchange(&mut plane);
                    let mut simulation = Simulation::begin(config, plane)?;
                    scheduler.exchange(&mut simulation.plane);
                    simulation
                }
            };
            all.push(simulation);
        }
        for simulation in &mut all {
            // Samples are taken of all at once.
            simulation.next_sample = u64::MAX;
        }
        let clients_due = all.iter().map(|simulation| simulation.clients.next_at()).collect();
        Ok(Databases {
            device,
            scheduler,
            due: vec![0; all.len()],
            clients_due,
            all,
            served: 0,
            now: 0,
            next_sample: SAMPLE_NS,
            recorder: Recorder::default(),
        })
    }

    /// Runs a simulation from beginning to end. Returns a report of all databases together, and one
    /// of each.
    ///
    /// # Errors
    /// If a configuration is invalid, or the control plane and the model disagree.
    pub fn run(configs: Vec<SimConfig>, shared: bool) -> Result<Vec<Report>> {
        let duration_ns = configs.first().map_or(0, |config| config.duration_ns);
        let mut databases = Databases::new(configs, shared)?;
        databases.run_until(duration_ns)?;
        Ok(databases.reports())
    }

    /// Runs up to a moment, in nanoseconds from the start.
    ///
    /// # Errors
    /// If the control plane and the model disagree.
    pub fn run_until(&mut self, end: u64) -> Result<()> {
        while self.now < end {
            let due = self.due.iter().copied().min().unwrap_or(u64::MAX);
            let at = due.max(self.now + 1).min(self.next_sample).min(end);
            match self.run_clients(at) {
                Some((nth, sealed_at)) => {
                    self.now = sealed_at.max(self.now);
                    self.with(nth, |simulation| {
                        simulation.memtables_changed();
                        simulation.poll()
                    })?;
                }
                None => {
                    self.now = at;
                    if self.next_sample <= self.now {
                        self.sample()?;
                    }
                    for nth in 0..self.all.len() {
                        if self.due[nth] <= self.now {
                            self.with(nth, Simulation::happen)?;
                        }
                    }
                }
            }
            self.settle()?;
        }
        Ok(())
    }

    /// Runs the clients until `until` (excluded). If a write seals a memtable before, stops there,
    /// and returns its database and the moment.
    fn run_clients(&mut self, until: u64) -> Option<(usize, u64)> {
        loop {
            let (mut nth, mut first, mut second) = (0, u64::MAX, u64::MAX);
            for (other, at) in self.clients_due.iter().enumerate() {
                if *at < first {
                    (nth, first, second) = (other, *at, first);
                } else {
                    second = second.min(*at);
                }
            }
            if first >= until {
                return None;
            }
            let simulation = &mut self.all[nth];
            std::mem::swap(&mut self.device, &mut simulation.data.device);
            let sealed =
                simulation.clients.run(until.min(second.max(first + 1)), &mut simulation.data);
            std::mem::swap(&mut self.device, &mut simulation.data.device);
            self.clients_due[nth] = simulation.clients.next_at();
            if let Some(at) = sealed {
                return Some((nth, at));
            }
        }
    }

    fn exchange(&mut self, nth: usize) {
        let simulation = &mut self.all[nth];
        std::mem::swap(&mut self.device, &mut simulation.data.device);
        if let Some(scheduler) = &mut self.scheduler {
            scheduler.exchange(&mut simulation.plane);
        }
    }

    /// Lets a database act now.
    fn with<R>(&mut self, nth: usize, act: impl FnOnce(&mut Simulation) -> Result<R>) -> Result<R> {
        let busy = self.busy();
        self.exchange(nth);
        let simulation = &mut self.all[nth];
        simulation.busy_elsewhere =
            if self.scheduler.is_some() { busy - simulation.busy } else { 0 };
        simulation.now = self.now;
        let done = act(simulation);
        self.due[nth] = simulation.next_at();
        self.clients_due[nth] = simulation.clients.next_at();
        self.exchange(nth);
        done
    }

    /// Returns the number of threads that run a step.
    fn busy(&self) -> usize {
        self.all.iter().map(|simulation| simulation.busy).sum()
    }

    /// Polls the databases whose turn has come, and gives free threads to jobs of all in turn.
    fn settle(&mut self) -> Result<()> {
        let Some(workers) = self.all.first().map(|first| first.workers) else { return Ok(()) };
        for _ in 0..CALLS_MAX {
            let Some(scheduler) = &mut self.scheduler else { return Ok(()) };
            let restless: BTreeSet<DatabaseId> = scheduler.take_restless();
            if restless.is_empty() {
                let count = self.all.len();
                let waits = |nth: &usize| !self.all[*nth].runnable.is_empty();
                let next = (1..=count).map(|n| (self.served + n) % count).find(waits);
                let Some(next) = next.filter(|_| self.busy() < workers) else { return Ok(()) };
                self.served = next;
                // All of its jobs that may run get threads, as long as there are any.
                self.with(next, Simulation::assign)?;
            }
            for DatabaseId(nth) in restless {
                self.with(nth as usize, Simulation::poll)?;
            }
        }
        Err(Error::broken("databases never cease to call each other"))
    }

    /// Sends the scheduler a sample of all databases, and each control plane its own.
    fn sample(&mut self) -> Result<()> {
        self.next_sample += SAMPLE_NS;
        let mut total = Sample::default();
        let mut samples = Vec::new();
        for simulation in &mut self.all {
            simulation.now = self.now;
            let sample = simulation.take_sample();
            total.add(&sample);
            samples.push(sample);
        }
        if let Some(scheduler) = &mut self.scheduler {
            scheduler.sample(Instant(self.now), &total);
        }
        if self.now.is_multiple_of(SECOND_NS) {
            self.end_second();
        }
        for (nth, sample) in samples.into_iter().enumerate() {
            self.with(nth, |simulation| {
                simulation.report_sample(sample);
                simulation.poll()
            })?;
        }
        Ok(())
    }

    /// Closes the current second of all databases together, before they close their own.
    fn end_second(&mut self) {
        let mut classes = Classes::default();
        let mut oldest_due = self.now;
        for simulation in &self.all {
            self.recorder.add_second(&simulation.data.recorder);
            let own = classes.iter_mut().zip(&simulation.second);
            own.for_each(|(sum, class)| add(sum, class));
            oldest_due = oldest_due.min(simulation.clients.oldest_due());
        }
        self.recorder.end_second(&classes, oldest_due);
    }

    /// Ends the load and runs until no work is left.
    ///
    /// # Errors
    /// If something is never released, or the control plane and the model disagree.
    pub fn quiesce(&mut self) -> Result<()> {
        /// The virtual time within which the simulation must come to rest.
        const PATIENCE_NS: u64 = 100_000 * SECOND_NS;
        let end = self.now + PATIENCE_NS;
        self.all.iter_mut().for_each(|simulation| simulation.clients.stop());
        while !self.all.iter().all(|simulation| simulation.clients.at_rest()) && self.now < end {
            self.run_until(self.now + SAMPLE_NS)?;
        }
        for nth in 0..self.all.len() {
            self.with(nth, Simulation::flush)?;
        }
        self.settle()?;
        while let Some(nth) = self.all.iter().position(|simulation| !simulation.is_idle()) {
            if self.now >= end {
                return Err(Error::broken(format!("database {nth} does not come to rest")));
            }
            self.run_until(self.now + SAMPLE_NS)?;
        }
        self.all.iter().try_for_each(Simulation::check_at_rest)
    }

    /// Checks that no table, job or thread is lost.
    ///
    /// # Errors
    /// If something is lost.
    pub fn check(&self) -> Result<()> {
        self.all.iter().try_for_each(Simulation::check)
    }

    /// Returns a report of all databases together up to now, and one of each.
    #[must_use]
    pub fn reports(&self) -> Vec<Report> {
        let mut reports: Vec<Report> = self.all.iter().map(Simulation::report).collect();
        let count = reports.len();
        for (nth, report) in reports.iter_mut().enumerate() {
            report.workload = format!("{} db{nth}", report.workload);
        }
        if let Some(first) = self.all.first() {
            let (mut recorder, mut total) = (self.recorder.clone(), Classes::default());
            for simulation in &self.all {
                recorder.add_rest(&simulation.data.recorder);
                total.iter_mut().zip(&simulation.total).for_each(|(sum, class)| add(sum, class));
            }
            let all = Report::of_all(&first.config, &recorder, &total, &reports);
            let workload = format!("{} x{count}", first.config.load.spec.name);
            reports.insert(0, Report { workload, ..all });
        }
        reports
    }
}
