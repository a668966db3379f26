//! Several databases on one device: the command `database`.

use std::collections::BTreeMap;
use std::sync::Arc;

use sateen_control::{
    CfOptions, ColumnFamilyId, ControlOptions, ControlPlane, SharedScheduler, Version,
};

use super::World;
use super::parse::{Line, number};

/// The state of a database that the commands do not speak to.
#[derive(Default)]
struct Aside {
    plane_options: ControlOptions,
    plane: Option<ControlPlane>,
    options: BTreeMap<ColumnFamilyId, CfOptions>,
    versions: BTreeMap<ColumnFamilyId, Arc<Version>>,
}

#[derive(Default)]
pub(super) struct Databases {
    pub(super) scheduler: Option<SharedScheduler>,
    /// The one that the commands speak to.
    current: u64,
    others: BTreeMap<u64, Aside>,
}

impl World {
    /// Goes to a database, which is made if it is not there.
    pub(super) fn go_to(&mut self, line: &Line<'_>) -> String {
        let next = number(line.word(1));
        let mut databases = std::mem::take(&mut self.databases);
        if let (Some(scheduler), Some(plane)) = (&mut databases.scheduler, &mut self.plane) {
            scheduler.exchange(plane);
            self.swap(databases.others.entry(databases.current).or_default());
        }
        databases.current = next;
        match databases.others.remove(&next) {
            Some(mut aside) => self.swap(&mut aside),
            None => {
                let parallel_only_under_pressure = false;
                let options = ControlOptions::default();
                self.plane_options = ControlOptions { parallel_only_under_pressure, ..options };
                (self.options, self.versions) = Default::default();
                self.change(line);
            }
        }
        let options = &self.plane_options;
        let scheduler = databases.scheduler.get_or_insert_with(|| SharedScheduler::new(options));
        let plane = self.plane.get_or_insert_with(|| scheduler.join(options.clone()));
        scheduler.exchange(plane);
        self.databases = databases;
        String::new()
    }

    /// Exchanges the database that the commands speak to.
    fn swap(&mut self, aside: &mut Aside) {
        std::mem::swap(&mut self.plane_options, &mut aside.plane_options);
        std::mem::swap(&mut self.plane, &mut aside.plane);
        std::mem::swap(&mut self.options, &mut aside.options);
        std::mem::swap(&mut self.versions, &mut aside.versions);
    }
}
