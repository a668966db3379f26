//! The bugs, the simplest first. The check of a change looks for the first few.

use super::Bug;

const CRASH: &[&str] = &["cannot be opened", "wrong contents", "commits, promised", "is gone"];
const META: &[&str] = &["REPLAY: SATEEN_META_SEED"];
const DIFFERENT: &[&str] = &["assertion `left == right` failed"];

const fn bug(
    name: &'static str,
    class: &'static str,
    test: &'static str,
    says: &'static [&'static str],
) -> Bug {
    Bug { name, class, test, says }
}

pub(super) const BUGS: &[Bug] = &[
    // The simplest bug, which shows that the suite works.
    bug(
        "ack_before_sync",
        "a group of commits is acknowledged before its sync",
        "crash::power::synced_log",
        CRASH,
    ),
    bug(
        "hole_too_long",
        "the range of a punch is off by its alignment",
        "resources::space::what_is_taken_away_is_nothing_that_is_needed",
        &["Corruption", "punch"],
    ),
    bug(
        "torn_tail_refused",
        "a torn tail is taken for corruption",
        "crash::power::buffered_log",
        &["cannot be opened"],
    ),
    bug(
        "manifest_not_synced",
        "files are deleted before the manifest is durable",
        "crash::power::buffered_log",
        CRASH,
    ),
    bug(
        "log_removed_before_barrier",
        "a log goes before the edit that makes it needless is durable",
        "crash::power::a_log_is_there_until_the_flush_is_durable",
        &["a synced write is lost", "cannot be opened", "Corruption"],
    ),
    bug(
        "inputs_retired_before_barrier",
        "a compaction's inputs go before its edit is durable",
        "crash::power::buffered_log",
        CRASH,
    ),
    bug(
        "atomic_flush_in_parts",
        "a flush of all column families is installed one family at a time",
        "crash::power::atomic_flush_without_a_log",
        &["a batch is in one family and not in the other", "wrong contents"],
    ),
    bug(
        "two_openers",
        "two processes open one directory",
        "faults::bad_input::a_second_opener_in_the_same_process_is_refused",
        &["`Result::unwrap_err()` on an `Ok` value"],
    ),
    bug(
        "destroy_takes_logs_of_others",
        "destroying a database removes the logs of others from a wal_dir",
        "features::destroy::logs_of_another_database_stay",
        &["the other database's log stays"],
    ),
    bug(
        "destroy_takes_the_logs_of_the_source",
        "destroying a checkpoint removes its source's logs",
        "features::destroy::a_checkpoint_goes_without_the_logs_of_its_source",
        &["the source opens with all that it had"],
    ),
    bug(
        "range_lost_at_cut",
        "a range tombstone is lost at a table's boundary",
        "features::ranges::every_way_to_read_sees_the_same_wherever_the_ranges_are",
        DIFFERENT,
    ),
    bug(
        "sync_retried",
        "a failed fsync is retried",
        "faults::full_disk::every_call::every_sync_fails",
        &["breach of the contract of the file system"],
    ),
    bug(
        "tombstone_dropped",
        "a tombstone is dropped while an older version lives below",
        "crash::power::buffered_log",
        CRASH,
    ),
    bug(
        "level0_by_seqno",
        "level 0 is ordered by sequence numbers",
        "features::ingest::what_is_taken_in_is_newer_than_all_before_and_older_than_all_after",
        DIFFERENT,
    ),
    bug(
        "visible_before_applied",
        "a snapshot between apply and publish",
        "sched",
        &["before <= seqno", "half a batch is seen"],
    ),
    bug(
        "stale_log_bytes",
        "stale bytes of a log are accepted",
        "faults::corrupt::damaged_bytes_are_reported_or_harmless",
        &["SILENT", "panicked"],
    ),
    bug(
        "damaged_log_cut",
        "corruption is taken for a torn tail",
        "faults::corrupt::damaged_bytes_are_reported_or_harmless",
        &["SILENT"],
    ),
    bug(
        "durable_log_untold",
        "damage of what a flush relied on is taken for a torn tail",
        "faults::check::what_a_flush_relied_on_is_not_taken_for_an_unfinished_end",
        &["is not named"],
    ),
    bug(
        "gap_after_failed_append",
        "an append to the manifest fails and later records follow the gap",
        "faults::full_disk::every_call::every_call_fails_once_and_for_good",
        &["corruption at offset", "wrong contents", "/db/MANIFEST-"],
    ),
    bug(
        "rename_not_synced",
        "a rename without a sync of the directory",
        "crash::power::buffered_log",
        // A checkpoint's rename is lost, too.
        &["is no database", "cannot be opened", "wrong contents", "commits, promised", "is gone"],
    ),
    bug(
        "create_not_synced",
        "a file is made without a sync of the directory",
        "crash::power::buffered_log",
        CRASH,
    ),
    bug(
        "recovery_skips_logs",
        "a crash during recovery",
        "crash::power::a_recovery_that_flushes_on_its_way",
        &["a batch is in one family and not in the other"],
    ),
    bug(
        "table_number_reused",
        "a table's number is used again after a crash",
        "features::basics::what_was_written_is_read_before_and_after_reopening",
        DIFFERENT,
    ),
    bug(
        "log_cut_at_close",
        "a close gives back blocks of a log that has records in them",
        "resources::room::the_next_log_gets_as_much_as_the_log_in_use_has_got",
        &["is gone"],
    ),
    bug(
        "seqno_reused",
        "a sequence number is used again after a crash",
        "features::basics::what_was_written_is_read_before_and_after_reopening",
        DIFFERENT,
    ),
    bug(
        "hole_under_reader",
        "a hole under an open reader",
        "resources::space::what_is_taken_away_is_nothing_that_is_needed",
        &["Corruption", "pinned"],
    ),
    bug(
        "hole_under_lease",
        "a hole under a reader in another process",
        "features::readers::a_lease_keeps_what_is_read",
        &["they wait for the reader", "the reader is behind"],
    ),
    bug(
        "given_back_is_damage",
        "what a writer has given back is called damage",
        "features::readers::what_is_given_back_is_never_called_damage",
        &["corruption"],
    ),
    bug(
        "hole_under_checkpoint",
        "a hole under a hard-linked checkpoint",
        "resources::space::what_is_taken_away_is_nothing_that_is_needed",
        &["/checkpoint"],
    ),
    bug(
        "punch_error_ignored",
        "the error of a punch is ignored",
        "crash::planted::space_is_given_back_though_a_punch_failed",
        &["after an orderly end"],
    ),
    bug(
        "unreadable_taken_for_damage",
        "an error of the environment is taken for damage by a repair",
        "faults::refused::a_repair_that_may_not_read_something_changes_nothing",
        &["changed", "error 24"],
    ),
    bug(
        "zeros_verify",
        "a block of zeros is accepted",
        "faults::corrupt::damaged_parts_and_wrong_files_are_reported_or_harmless",
        &["SILENT"],
    ),
    bug(
        "place_not_checked",
        "the right checksum in the wrong place",
        "crash::planted::blocks_in_each_others_place_are_not_taken_for_each_other",
        &["wrong contents"],
    ),
    bug(
        "read_error_ends_iterator",
        "an iterator swallows an error of a read",
        "faults::corrupt::damaged_bytes_are_reported_or_harmless",
        &["SILENT", "the directions differ"],
    ),
    bug(
        "short_write_taken_for_whole",
        "a short write is taken for whole",
        "crash::planted::a_write_that_was_cut_short_is_refused",
        &["was acknowledged", "written before the limit", "refused: "],
    ),
    bug(
        "full_disk_for_ever",
        "a database does not resume after a full disk",
        "crash::resume::a_sync_of_a_log_that_died_of_a_full_disk_lets_it_mend_itself",
        &["still (Degraded"],
    ),
    bug("replayed_twice", "what was stored is applied again", "crash::power::buffered_log", CRASH),
    bug(
        "discarded_job_keeps_slot",
        "a job that was preempted keeps its slot and its inputs",
        "model::meta::fixed_sets_first_half",
        META,
    ),
    bug(
        "discarded_files_left",
        "discarded work leaves its files",
        "model::meta::disks_that_fail_under_fixed_sets",
        &["the files that are there, and those that the manifest names"],
    ),
    bug(
        "pins_not_told",
        "a long iterator pins everything unseen",
        "crash::planted::what_a_long_iterator_pins_is_told",
        &["are kept for the iterator"],
    ),
    bug(
        "length_truncated",
        "the length of a large value is cut to fewer bits",
        "crash::power::synced_log",
        CRASH,
    ),
    bug(
        "length_trusted",
        "a decoder trusts a length",
        "faults::corrupt::damaged_bytes_are_reported_or_harmless",
        &["out of range"],
    ),
    bug(
        "dropped_family_returns",
        "a dropped column family returns when the database is opened again",
        "model::meta::fixed_sets_first_half",
        META,
    ),
    bug("merge_twice", "an operand is merged twice", "crash::power::buffered_log", CRASH),
    bug(
        "settled_in_two_levels",
        "a settled table is in two levels",
        "crash::power::buffered_log",
        &["is there twice", "tables that somebody still reads at rest"],
    ),
    bug(
        "snapshots_not_seen",
        "a compaction drops what a snapshot sees",
        "features::ranges::a_snapshot_keeps_what_it_sees_and_the_deletion",
        DIFFERENT,
    ),
    bug(
        "last_key_not_in_filter",
        "a filter is built without the last key",
        "features::basics::what_was_written_is_read_before_and_after_reopening",
        DIFFERENT,
    ),
    bug(
        "region_off_by_one",
        "the boundary of a region is off by one",
        "features::regions::regions_are_one_to_clients",
        DIFFERENT,
    ),
    bug(
        "edits_lost_in_roll",
        "edits that come while the manifest is rolled are lost",
        "sched",
        &["MissingFile", "InconsistentEdit"],
    ),
    bug(
        "memtables_told_late",
        "what control is told of memtables is older than what it knows",
        "sched",
        &["exceeded max_steps"],
    ),
    bug(
        "sealed_before_applied",
        "a memtable is sealed while writes are on their way into it",
        "sched",
        &["is gone", "once all is stored"],
    ),
    bug(
        "value_file_removed_early",
        "a value file is removed while a table refers to it",
        "features::values::a_file_goes_with_its_last_value_and_pages_before",
        &["MissingFile"],
    ),
    bug(
        "values_punched_while_read",
        "dead values are punched while an iterator reads them",
        "features::values::an_iterator_reads_values_of_tables_that_were_replaced_twice",
        &["values", "hole"],
    ),
    bug(
        "values_of_older_tables_punched",
        "dead values are punched while a table that was replaced before has them, too",
        "features::values::an_iterator_reads_values_of_tables_that_were_replaced_twice",
        &["values", "hole"],
    ),
    bug(
        "values_not_synced",
        "a table is installed before its value file is durable",
        "crash::power::values_apart",
        &["Truncated", "MissingFile", "wrong contents"],
    ),
    bug(
        "backup_shared_purged",
        "a table that backups share goes with one of them",
        "model::backups::random_backups_are_what_the_database_was",
        &["missing file", "is_sound"],
    ),
    bug(
        "backup_record_not_synced",
        "objects of a backup go before the deletion of its record is durable",
        "crash::backups::what_is_not_deleted_stays",
        &["missing file", "MissingFile"],
    ),
    bug(
        "copy_of_two_moments",
        "a copy has writes that are later than its tables",
        "model::moments::a_copy_with_a_write_has_the_ingestion_before_it",
        &["ingested "],
    ),
    bug(
        "backup_not_verified",
        "the checksums of a backup are not verified",
        "faults::backups::damage_is_told_by_name_and_nothing_is_restored_in_part",
        &["is another one", "Corruption", "corruption"],
    ),
    bug(
        "backup_values_not_verified",
        "values of tables that an earlier backup has are copied unseen",
        "features::backups_of_values::a_damaged_value_is_told_by_name_and_not_backed_up",
        &["unwrap_err"],
    ),
    bug(
        "backup_stamp_ignored",
        "tables of two databases with the same numbers are taken for one",
        "features::backups::tables_with_the_same_numbers_and_other_content_are_not_shared",
        &["has other content"],
    ),
    // A bug of this engine, which the suite `sched` found.
    bug(
        "short_pause_forgotten",
        "what a pause gave up is told as something else once it is over",
        "features::tables::a_short_pause_is_told_as_one",
        &["no such column family: default"],
    ),
    bug(
        "commit_not_validated",
        "a transaction commits although a key of it was written meanwhile",
        "features::transactions::a_key_that_others_wrote_is_named",
        &["Ok(())"],
    ),
    bug(
        "wait_left_after_timeout",
        "who has given up waiting for a lock is still taken for waiting",
        "features::locks::after_a_timeout_nothing_is_left",
        &["Deadlock"],
    ),
    bug(
        "leader_does_not_compare",
        "a key is written between the validation of a transaction and its commit",
        "model::histories::optimistic_transactions_are_snapshot_isolated",
        &["lost update"],
    ),
    bug(
        "lock_left_after_timeout",
        "who has given up waiting for a lock gets it all the same, for ever",
        "features::locks::after_a_timeout_nothing_is_left",
        &["LockTimedOut"],
    ),
    bug(
        "lock_left_after_conflict",
        "a transaction keeps the lock of a key that it was refused",
        "features::locks::a_key_that_was_written_since_the_snapshot_is_not_locked",
        &["left: (0, 1)", "LockTimedOut"],
    ),
    bug(
        "untracked_lock_not_compared",
        "a key that an untracked write locked is never compared with the snapshot",
        "model::histories::pessimistic_transactions_with_snapshots_are_snapshot_isolated",
        &["lost update"],
    ),
    bug(
        "range_lock_unseen",
        "a key of a locked range is locked by another transaction",
        "features::locks::a_locked_range_has_no_phantoms",
        &["Ok(())"],
    ),
    bug(
        "prepared_lost_with_wal",
        "a WAL goes while a prepared transaction is in it alone",
        "crash::prepared::every_crash_leaves_whole_steps",
        &["none of the states"],
    ),
    bug(
        "prepared_not_removed",
        "a prepared transaction is committed and forgotten in two steps",
        "crash::prepared::every_crash_leaves_whole_steps",
        &["none of the states"],
    ),
];
